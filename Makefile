# Thin on purpose: each target is one command.
.PHONY: demo test torture fuzz site web reference figures same-bytes wheel wheel-check r-install r-docs r-package r-check sanitize sanitize-quick msrv publish-check design-check bench bench-quick bench-growth bench-instructions

demo:
	cargo run --release -- demo

test:
	tests/run

# The documentation as a site, into target/site. It loads nothing from anywhere else; open target/site/index.html.
site: .venv/site web
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet

# The tool in the browser, one page: target/web/try.html, and try.html of the site. Without a compiler for WebAssembly it says so.
web:
	python3 site/web.py || [ $$? = 3 ]

# The pages of docs/reference, from the code.
reference:
	cargo build --quiet
	python3 site/reference.py

# Every picture of the documentation, by the lines that stand beside it. Needs the Python package and Chromium.
figures: .venv/site
	cargo build --quiet
	.venv/bin/python site/figures.py

.venv/site: site/requirements.txt .venv/ready
	.venv/bin/pip install --quiet --disable-pip-version-check -r site/requirements.txt
	touch $@

# Two binaries, byte for byte: make same-bytes OLD=/tmp/base/dvim [NEW=target/debug/dvim]
NEW ?= target/debug/dvim
same-bytes:
	tests/same_bytes.py $(OLD) $(NEW)

# The wheel, into dist/.
wheel: .venv/ready
	.venv/bin/maturin build --release --out dist

# The wheel in an environment of its own: its size, and its tests.
wheel-check: wheel
	tests/wheel dist

.venv/ready: tests/requirements.txt
	python3 -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check -r tests/requirements.txt
	touch $@

# The R package from this clone, into R's own library.
r-install:
	R CMD INSTALL r

# What is generated in r/: the wrappers of the Rust functions (savvy-cli 0.11, from cargo install) and the manual (roxygen2).
r-docs:
	savvy-cli update r crates/dvim-r && rm crates/dvim-r/api.h
	Rscript -e 'roxygen2::roxygenise("r", load_code = "installed")'

# The R package as CRAN wants it, with all crates inside, into dist/.
r-package:
	r/tools/package.py dist

# What CRAN would say of it. r/cran-comments.md explains its notes.
r-check: r-package
	r/tools/check dist

# The unsafe kernels under AddressSanitizer, with every instruction set of this processor (valgrind knows no AVX-512, Miri few
# intrinsics). tests/sanitize holds them by path: the whole engine would take minutes to build. The sanitizer is an unstable option of the
# compiler, whose runtime comes with the stable one; the standard library is as it is. `make test` runs sanitize-quick.
SANITIZED = cd tests/sanitize && RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address cargo test --quiet --target $$(rustc -vV | sed -n 's/^host: //p') --target-dir ../../target/sanitize --lib --test matching_index
sanitize:
	$(SANITIZED)
sanitize-quick:
	$(SANITIZED) -- matching:: product:: numeric:: small_for_memory_checkers edges

# Everything of docs/torture.md but the fuzzers, and its tables: hours. `make test` runs samples. With FAULTS=2000 about so many faults are
# drawn instead of all.
torture:
	cargo build
	cargo build -p dvim-fuzz --example campaign
	cargo test -p dvim-fuzz --features columnar --test corpus
	tests/torture/faults.py $(if $(FAULTS),--sample $(FAULTS)) --write docs/torture.md
	tests/torture/campaigns.py --write docs/torture.md

# One fuzzer for so many seconds: make fuzz TARGET=store FOR=3600.
TARGET ?= delimited
FOR ?= 300
fuzz:
	tests/torture/fuzz $(TARGET) $(FOR)

# The workspace with the oldest Rust that it promises: rustup's, or that which RUSTC names. `make test` checks what a newer one can.
msrv:
	tests/msrv.py --compile

# Every crate as a registry would get it, built from its package. Needs a clean checkout.
publish-check:
	cargo package --workspace --exclude dvim-python --exclude dvim-bind --exclude dvim-r

# Power that `dvim design` predicts beside the share of findings in trials of another seed, for twelve designs: minutes.
design-check:
	cargo run -p dvim-study --example design_check

# Minutes to an hour, on a quiet machine: us and the peers in one go, tables into docs/benchmarks.md.
bench: .venv-bench/ready
	cargo build --release -p dvim-cli
	cargo build --release -p dvim --example bench_search
	cargo build --release --manifest-path bench/kiddo/Cargo.toml
	.venv-bench/bin/python bench/search.py --write docs/benchmarks.md
	.venv-bench/bin/python bench/fit.py --write docs/benchmarks.md
	.venv-bench/bin/python bench/fit.py --adjusted --write docs/benchmarks.md

# The same in a few minutes: three rounds, only the peers that are ever the fastest, and the growth.
bench-quick: .venv-bench/ready
	cargo build --release -p dvim-cli
	cargo build --release -p dvim --example bench_search
	.venv-bench/bin/python bench/search.py --quick --write docs/benchmarks.md
	.venv-bench/bin/python bench/fit.py --rounds 5 --write docs/benchmarks.md
	.venv-bench/bin/python bench/fit.py --adjusted --rounds 5 --write docs/benchmarks.md
	.venv-bench/bin/python bench/fit.py --growth --rounds 3 --write docs/benchmarks.md

# dvim alone at 100,000 and 1,000,000 units; 300 MB of disk.
bench-growth: .venv-bench/ready
	cargo build --release -p dvim-cli
	.venv-bench/bin/python bench/fit.py --growth --write docs/benchmarks.md

# Instruction counts under valgrind; fails when a kernel grew by more than 15 %. Minutes, so not a part of the tests.
bench-instructions:
	bench/callgrind.sh

.venv-bench/ready: bench/requirements.txt
	python3 -m venv .venv-bench
	.venv-bench/bin/pip install --quiet -r bench/requirements.txt
	touch $@
