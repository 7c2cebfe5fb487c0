#!/usr/bin/env python3
"""Checks that the workspace builds with the oldest Rust it promises (`rust-version` in Cargo.toml).

    tests/msrv.py              what any newer compiler can check: dependencies and syntax
    tests/msrv.py --compile    the workspace with that compiler itself; RUSTC names it, or rustup has it

Newer items of the standard library are found by clippy (`incompatible_msrv`), which knows `rust-version` too.
Exit code 1 when something needs a newer Rust.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What rustfmt reports, when told that a file is of the edition 2021: these are for the edition 2024 and newer compilers.
PARSED = {"let chains are only allowed in Rust 2024": ((1, 88), "a let chain")}

# What only the text shows. An `if let` guard stands between a pattern and `=>`.
WRITTEN = [
    (re.compile(r"^\s*(?!\}|else|if|while|let|return|//).*\S\s+if let .*=>"), (1, 95), "an if-let guard"),
    (re.compile(r"\bcfg(_attr)?!?\((not\()?(true|false)\b"), (1, 88), "cfg(true)"),
    (re.compile(r"\bcfg_select!"), (1, 95), "cfg_select!"),
]


def number(version):
    """"1.87.0" as (1, 87)."""
    return tuple(int(part) for part in version.split(".")[:2])


def dependencies(oldest):
    """Packages of the lock file that say they need a newer Rust."""
    command = ["cargo", "metadata", "--format-version", "1", "--all-features", "--locked"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    packages = metadata["packages"]
    silent = sum(p["rust_version"] is None for p in packages)
    print(f"{len(packages)} packages, of which {silent} do not say which Rust they need")
    for p in packages:
        if p["rust_version"] and number(p["rust_version"]) > oldest:
            yield f"{p['name']} {p['version']} needs Rust {p['rust_version']}"


def syntax(oldest):
    """Our files that are written in a newer Rust."""
    files = sorted(str(f.relative_to(ROOT)) for f in (ROOT / "crates").rglob("*.rs"))
    command = ["rustfmt", "--edition", "2021", "--check", "--color", "never", *files]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stderr
    for what, (since, name) in PARSED.items():
        for place in re.findall(re.escape(what) + r".*\n\s*--> (\S+)", said):
            if oldest < since:
                yield f"{place.removeprefix(f'{ROOT}/')}: {name} needs Rust {since[0]}.{since[1]}"
    for file in files:
        for line, text in enumerate((ROOT / file).read_text().splitlines(), 1):
            for pattern, since, name in WRITTEN:
                if oldest < since and pattern.search(text):
                    yield f"{file}:{line}: {name} needs Rust {since[0]}.{since[1]}"


def compile_with(version):
    """Checks every target with the compiler of that version."""
    environment = dict(os.environ)
    if "RUSTC" not in environment:
        found = subprocess.run(["rustup", "which", "--toolchain", version, "rustc"], capture_output=True, text=True)
        if found.returncode:
            sys.exit(f"no Rust {version}: `rustup toolchain install {version} --profile minimal`, or set RUSTC")
        environment["RUSTC"] = found.stdout.strip()
    command = ["cargo", "check", "--workspace", "--all-targets", "--locked", "--target-dir", "target/msrv"]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--compile", action="store_true", help="with the oldest compiler itself")
    version = re.search(r'^rust-version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
    if parser.parse_args().compile:
        return compile_with(version)
    oldest = number(version)
    newer = sorted(set([*dependencies(oldest), *syntax(oldest)]))
    print("\n".join(newer) or f"nothing needs a newer Rust than {version}")
    return 1 if newer else 0


if __name__ == "__main__":
    sys.exit(main())
