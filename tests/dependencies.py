#!/usr/bin/env python3
"""Checks that every dependency in a crate's Cargo.toml is named in that crate's code, and that published crates say what
a registry wants to know. Exit code 1 when one is not used, or something is missing.

A dependency is used when its name stands before `::`, or after `use` or `extern crate`, in a file of the target that it is
for. One that is there for a feature of another's alone is listed in WITHOUT_CODE, with its reason.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WITHOUT_CODE: dict[tuple[str, str], str] = {}
WANTED = ["description", "license", "repository", "readme", "keywords", "categories", "rust_version"]


def code(folder, kind):
    """The code that a dependency of this kind is for."""
    places = {"build": ["build.rs"], "dev": ["src", "tests", "examples", "benches"]}.get(kind, ["src"])
    files = [f for place in places for f in [folder / place, *(folder / place).rglob("*.rs")] if f.is_file()]
    return "\n".join(f.read_text() for f in files)


def main():
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"]
    packages = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)["packages"]
    wrong = []
    for package in packages:
        folder = Path(package["manifest_path"]).parent
        for dependency in package["dependencies"]:
            name = (dependency["rename"] or dependency["name"]).replace("-", "_")
            is_used = re.search(rf"\b{name}::|\b(use|extern crate) {name}\b", code(folder, dependency["kind"]))
            if not is_used and (package["name"], dependency["name"]) not in WITHOUT_CODE:
                wrong.append(f"{package['name']}: does not use {dependency['name']} ({dependency['kind'] or 'normal'})")
            if package["publish"] != [] and dependency.get("path") and dependency["req"] == "*":
                wrong.append(f"{package['name']}: {dependency['name']} has a path and no version")
        if package["publish"] != []:
            wrong += [f"{package['name']}: has no {field}" for field in WANTED if not package[field]]
    print("\n".join(wrong) or f"every dependency of {len(packages)} crates is used")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
