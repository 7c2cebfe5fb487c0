#!/usr/bin/env python3
"""Builds the R package as CRAN wants it: with the Rust crates of dvim and of its dependencies inside, to be built offline.

    r/tools/package.py [FOLDER]     writes dvim_<version>.tar.gz into FOLDER (dist by default)

What `R CMD INSTALL r` finds in a clone is gathered into one folder: the files of `r/`, the crates that the R face rests on
(without their tests), the sources of every crate they need (vendor.tar.xz), and inst/AUTHORS with their authors and licences.
"""

import json
import lzma
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Each crate before those that rest on it.
CRATES = ["dvim", "dvim-report", "dvim-io", "dvim-explore", "dvim-bind", "dvim-r"]
# Where R builds packages. A crate that none of them compiles leaves its manifest alone, which Cargo reads everywhere.
PLATFORMS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "x86_64-apple-darwin", "aarch64-apple-darwin",
             "x86_64-pc-windows-gnu"]
# What CRAN takes without asking.
LARGEST = 5_000_000
# What a build of a dependency never reads.
UNREAD = ["tests", "test", "benches", "bench", "examples", "docs", "doc", "ci", ".github", "book", "guide", "scripts", "testdata"]


def run(*command, cwd=ROOT, **more):
    return subprocess.run(command, cwd=cwd, check=True, **more)


def tracked(folder):
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", folder, stdout=subprocess.PIPE, text=True)
    return [Path(line) for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def copy(files, start, target):
    for file in files:
        to = target / file.relative_to(start)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, to)


def without_sections(text, names):
    """A manifest without some of its sections."""
    parts = re.split(r"(?m)^(?=\[)", text)
    return "".join(p for p in parts if not any(p.startswith(f"[{name}") or p.startswith(f"[[{name}") for name in names))


def without_choices(text):
    """A manifest without optional dependencies; features stay, and choose nothing."""
    text = re.sub(r"(?m)^.*optional = true.*\n", "", text)
    parts = re.split(r"(?m)^(?=\[)", text)
    return "".join(re.sub(r"(?m)= \[.*\]$", "= []", p) if p.startswith("[features]") else p for p in parts)


def crates(rust):
    """The workspace with the crates of the R face alone, without what only their tests need."""
    for name in CRATES:
        files = [f for f in tracked(f"crates/{name}") if f.parts[2] in ("src", "build.rs", "Cargo.toml", "assets", "README.md")]
        copy(files, Path("."), rust)
        manifest = rust / "crates" / name / "Cargo.toml"
        text = without_sections(manifest.read_text(), ["dev-dependencies", "bench", "test", "example"])
        manifest.write_text(without_choices(text.replace("readme.workspace = true\n", "")))
    whole = (ROOT / "Cargo.toml").read_text()
    members = "".join(f'    "crates/{name}",\n' for name in CRATES)
    whole = re.sub(r"members = \[.*?\]", f"members = [\n{members}]", whole, count=1, flags=re.S)
    whole = re.sub(r"default-members = .*\n", "", whole)
    for name in ("dvim-cli", "dvim-study", "dvim-python"):
        whole = re.sub(rf"(?m)^{name} = .*\n", "", whole)
    (rust / "Cargo.toml").write_text(whole)
    shutil.copy2(ROOT / "Cargo.lock", rust / "Cargo.lock")
    # Drops from the lock file what these crates do not need; the versions stay.
    run("cargo", "metadata", "--format-version", "1", cwd=rust, stdout=subprocess.DEVNULL)


def compiled(rust):
    """The crates that some platform compiles, as (name, version), each with the features that any of them asks for."""
    found = {}
    for platform in PLATFORMS:
        tree = run("cargo", "tree", "--locked", "--target", platform, "-p", "dvim-r", "--edges", "normal,build", "--prefix", "none",
                   "--no-dedupe", "--format", "{p}|{f}", cwd=rust, stdout=subprocess.PIPE, text=True).stdout
        for line in tree.splitlines():
            package, features = line.split("|")
            name, version = package.split()[:2]
            found.setdefault((name, version.lstrip("v")), set()).update(f for f in features.split(",") if f)
    return found


def leave_manifest(crate):
    """Makes a crate empty: its manifest, its licences, and sources without a line."""
    manifest = (crate / "Cargo.toml").read_text()
    for file in [f for f in crate.rglob("*") if f.is_file()]:
        kept = file.parent == crate and (file.name in ("Cargo.toml", ".cargo-checksum.json") or is_licence(file))
        if not kept:
            file.unlink()
    for source in {"src/lib.rs", *re.findall(r'(?m)^(?:path|build) = "([^"]+\.rs)"', manifest)}:
        (crate / source).parent.mkdir(parents=True, exist_ok=True)
        (crate / source).write_text("")


def is_licence(file):
    return re.match(r"(?i)(licen[cs]e|copying|copyright|notice|unlicense|authors)", file.name) is not None


def included(crate):
    """Files that the sources of a crate take in: an example in its documentation must be there to compile."""
    pattern = r'include(?:_str|_bytes)?!\(\s*"([^"]+)"'
    sources = (crate / "src").rglob("*.rs")
    return {(f.parent / path).resolve() for f in sources for path in re.findall(pattern, f.read_text(errors="replace"))}


def leave_modules(crate, features):
    """Keeps of the bindings of Windows the modules of these features; the others are not compiled."""
    root = crate / "src" / "Windows"
    wanted = {tuple(f.split("_")) for f in features}
    for module in sorted(root.rglob("mod.rs")):
        path = module.parent.relative_to(root).parts
        if module.exists() and path and not any(w[: len(path)] == path for w in wanted):
            shutil.rmtree(module.parent)


def vendor(rust):
    """The sources of the dependencies, without what no build reads, as one compressed file."""
    folder = rust / "vendor"
    run("cargo", "vendor", "--quiet", "--locked", str(folder), cwd=rust, stdout=subprocess.DEVNULL)
    needed = compiled(rust)
    for crate in sorted(folder.iterdir()):
        manifest = (crate / "Cargo.toml").read_text()
        name, version = (re.search(rf'(?m)^{field} = "([^"]+)"', manifest)[1] for field in ("name", "version"))
        if (name, version) not in needed:
            leave_manifest(crate)
        elif name == "windows-sys":
            leave_modules(crate, needed[name, version])
        (crate / "Cargo.toml.orig").unlink(missing_ok=True)
        (crate / "Cargo.lock").unlink(missing_ok=True)
        for file in [f for f in crate.iterdir() if re.match(r"(?i)(changelog|changes|history|releases?)\b", f.name) and f.is_file()]:
            file.unlink()
        read = included(crate)
        for name in UNREAD:
            for file in [f for f in (crate / name).rglob("*") if f.is_file() and f.resolve() not in read]:
                file.unlink()
        checksum = crate / ".cargo-checksum.json"
        record = json.loads(checksum.read_text())
        checksum.write_text(json.dumps({"files": {}, "package": record["package"]}))
        # Import libraries of Windows, for compilers that R does not use there.
        for library in [*crate.rglob("*.lib"), *crate.rglob("*.a")]:
            if "gnu" not in crate.name:
                library.unlink()
    config = '[source.crates-io]\nreplace-with = "vendored-sources"\n\n[source.vendored-sources]\ndirectory = "vendor"\n'
    (rust / "cargo-config.toml").write_text(config)
    with tarfile.open(rust / "vendor.tar.xz", "w:xz", preset=9 | lzma.PRESET_EXTREME) as out:
        for file in sorted(f for f in folder.rglob("*") if f.is_file()):
            info = out.gettarinfo(file, file.relative_to(rust))
            info.uid = info.gid = info.mtime = 0
            info.uname = info.gname = ""
            with file.open("rb") as content:
                out.addfile(info, content)
    shutil.rmtree(folder)


def authors(rust, target):
    """Who wrote the crates that are inside, and under which licence."""
    found = run("cargo", "metadata", "--format-version", "1", "--locked", cwd=ROOT, stdout=subprocess.PIPE).stdout
    by_name = {(p["name"], p["version"]): p for p in json.loads(found)["packages"]}
    lines = ["The Rust crates in this package, their authors and licences, from their manifests.", ""]
    lock = (rust / "Cargo.lock").read_text()
    for name, version in re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"', lock):
        p = by_name[(name, version)]
        who = ", ".join(p["authors"]) or "its contributors, see " + (p["repository"] or "its repository")
        lines.append(f"{name} {version}\n  authors: {who}\n  licence: {p['license'] or p['license_file']}\n")
    target.mkdir(parents=True, exist_ok=True)
    (target / "AUTHORS").write_text("\n".join(lines))


def main():
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    out.mkdir(parents=True, exist_ok=True)
    package = ROOT / "target" / "r-package" / "dvim"
    shutil.rmtree(package, ignore_errors=True)
    copy(tracked("r"), Path("r"), package)
    rust = package / "src" / "rust"
    rust.mkdir(parents=True, exist_ok=True)
    crates(rust)
    authors(rust, package / "inst")
    vendor(rust)
    run("R", "CMD", "build", *sys.argv[2:], str(package), cwd=out)
    built = max(out.glob("dvim_*.tar.gz"), key=lambda f: f.stat().st_mtime)
    size = built.stat().st_size
    print(f"{built}: {size / 1e6:.2f} MB")
    if size > LARGEST:
        sys.exit(f"the package has {size} bytes; CRAN takes {LARGEST}")


if __name__ == "__main__":
    main()
