#!/usr/bin/env python3
"""What comes with dvim: checks deny.toml, and writes the software bill of materials.

    tests/supply_chain.py                  licences, duplicates and sources, by the rules of deny.toml
    tests/supply_chain.py --deny           and by `cargo deny` itself, with its advisories; needs it and a network
    tests/supply_chain.py --sbom FILE      CycloneDX 1.5 as JSON: every crate that the released programs are built from

Without `--deny` it reads `cargo metadata` and Cargo.lock alone, so that the test command needs no other tool.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


def metadata(*flags):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features", *flags]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)


def is_allowed(expression, allowed):
    """Whether an expression of SPDX holds with these licences: OR of ANDs, with parentheses."""
    tokens = re.findall(r"[()]|[\w.+-]+", expression.replace("/", " OR "))

    def either(at):
        found, at = both(at)
        while at < len(tokens) and tokens[at] == "OR":
            other, at = both(at + 1)
            found = found or other
        return found, at

    def both(at):
        found, at = one(at)
        while at < len(tokens) and tokens[at] == "AND":
            other, at = one(at + 1)
            found = found and other
        return found, at

    def one(at):
        if tokens[at] == "(":
            found, at = either(at + 1)
            return found, at + 1
        name, at = tokens[at], at + 1
        if at < len(tokens) and tokens[at] == "WITH":
            name, at = f"{name} WITH {tokens[at + 1]}", at + 2
        return name in allowed, at

    return either(0)[0]


def matches(version, rule):
    """Whether a version is one of those that `skip` names, as `1` or `0.9`."""
    return rule is None or version == rule or version.startswith(f"{rule}.")


def reached(found):
    """Packages that something of the workspace depends on, by whatever edge: Cargo lists optional ones too."""
    nodes = {n["id"]: [d["pkg"] for d in n["deps"]] for n in found["resolve"]["nodes"]}
    todo, seen = list(found["workspace_members"]), set()
    while todo:
        package = todo.pop()
        if package not in seen:
            seen.add(package)
            todo += nodes[package]
    return [p for p in found["packages"] if p["id"] in seen]


def problems(rules, packages):
    allowed = set(rules["licenses"]["allow"])
    skips = rules["bans"].get("skip", []) + [{"name": s["name"]} for s in rules["bans"].get("skip-tree", [])]
    for p in packages:
        if not p["license"] or not is_allowed(p["license"], allowed):
            yield f"{p['name']} {p['version']} has the licence {p['license']!r}, which deny.toml does not allow"
        if p["source"] not in (None, REGISTRY):
            yield f"{p['name']} {p['version']} comes from {p['source']}, not from the registry"
        for d in p["dependencies"] if p["source"] is None else []:
            if d["req"] == "*" and not d.get("path"):
                yield f"{p['name']} takes any version of {d['name']}"
    names = {}
    for p in packages:
        names.setdefault(p["name"], []).append(p["version"])
    for name, versions in sorted(names.items()):
        kept = [v for v in versions
                if not any(s["name"] == name and matches(v, s.get("version")) for s in skips)]
        if len(kept) > 1:
            yield f"{name} is there in several versions: {', '.join(kept)}"
    for skip in rules["bans"].get("skip", []):
        if not any(matches(v, skip.get("version")) for v in names.get(skip["name"], [])) or len(names[skip["name"]]) < 2:
            yield f"deny.toml skips {skip['name']} {skip.get('version', '')}, which is not there twice"


def sbom(found):
    """The crates of the command and the Python package, without those of tests."""
    members = {p["id"]: p for p in found["packages"]}
    nodes = {n["id"]: n for n in found["resolve"]["nodes"]}
    todo = [i for i in found["workspace_members"]]
    seen = {}
    while todo:
        package = todo.pop()
        if package in seen:
            continue
        used = [d["pkg"] for d in nodes[package]["deps"] if any(k["kind"] != "dev" for k in d["dep_kinds"])]
        seen[package] = used
        todo += used
    with open(ROOT / "Cargo.lock", "rb") as file:
        locked = {(p["name"], p["version"]): p.get("checksum") for p in tomllib.load(file)["package"]}

    def ref(package):
        return f"pkg:cargo/{members[package]['name']}@{members[package]['version']}"

    components = []
    for package in sorted(seen, key=ref):
        p = members[package]
        checksum = locked.get((p["name"], p["version"]))
        components.append({
            "type": "library",
            "bom-ref": ref(package),
            "name": p["name"],
            "version": p["version"],
            "purl": ref(package),
            "licenses": [{"expression": p["license"].replace("/", " OR ")}],
            **({"hashes": [{"alg": "SHA-256", "content": checksum}]} if checksum else {}),
        })
    version = next(p["version"] for p in found["packages"] if p["name"] == "dvim")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "dvim", "name": "dvim", "version": version}},
        "components": components,
        "dependencies": [{"ref": ref(p), "dependsOn": sorted(map(ref, used))} for p, used in sorted(seen.items(), key=lambda x: ref(x[0]))],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sbom", type=pathlib.Path)
    parser.add_argument("--deny", action="store_true", help="ask cargo deny too, advisories included")
    args = parser.parse_args()
    found = metadata()
    if args.sbom:
        args.sbom.write_text(json.dumps(sbom(found), indent=1) + "\n")
        return 0
    with open(ROOT / "deny.toml", "rb") as file:
        rules = tomllib.load(file)
    packages = reached(found)
    wrong = list(problems(rules, packages))
    for problem in wrong:
        print("WRONG:", problem)
    listed = len(sbom(found)["components"])
    print(f"{len(packages)} crates with tests and tools, {listed} of them in what is released")
    if args.deny:
        subprocess.run(["cargo", "deny", "--all-features", "check"], cwd=ROOT, check=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
