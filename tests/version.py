#!/usr/bin/env python3
"""The version stands in one place, `[workspace.package]` of Cargo.toml; whatever repeats it must agree.

    tests/version.py            checks
    tests/version.py v1.2.3     checks, and that this tag is that version
"""

import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def problems(tag=None):
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    version = workspace["package"]["version"]
    for name, dependency in workspace["dependencies"].items():
        if isinstance(dependency, dict) and "path" in dependency and dependency.get("version") != version:
            yield f"Cargo.toml asks for {name} {dependency.get('version')}, the version is {version}"
    for manifest in ROOT.glob("crates/*/Cargo.toml"):
        if tomllib.loads(manifest.read_text())["package"].get("version") != {"workspace": True}:
            yield f"{manifest.relative_to(ROOT)} has a version of its own"
    for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]:
        if package["name"].startswith("dvim") and package["version"] != version:
            yield f"Cargo.lock has {package['name']} {package['version']}"
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    if not cited or cited[1] != version:
        yield f"CITATION.cff has version {cited and cited[1]}, Cargo.toml {version}"
    if "version" not in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]:
        yield "pyproject.toml has a version of its own"
    for description in ROOT.glob("*/DESCRIPTION"):
        found = re.search(r"^Version: (\S+)$", description.read_text(), re.M)
        if not found or found[1] != version:
            yield f"{description.relative_to(ROOT)} has version {found and found[1]}, Cargo.toml {version}"
    if tag:
        if tag != f"v{version}":
            yield f"the tag is {tag}, the version {version}"
        if not re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(), re.M):
            yield f"CHANGELOG.md has no heading `## {version}`"


def main():
    wrong = list(problems(sys.argv[1] if len(sys.argv) > 1 else None))
    for problem in wrong:
        print("WRONG:", problem)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
