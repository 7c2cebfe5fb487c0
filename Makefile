# Thin on purpose: each target is one command.
.PHONY: demo test bench

demo:
	cargo run --release -- demo

test:
	tests/run
