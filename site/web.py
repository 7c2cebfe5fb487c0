#!/usr/bin/env python3
"""Compiles dvim to WebAssembly and puts it into one page: `make web`, into target/web/try.html.

The standard library of wasm32-unknown-unknown comes from rustup where its target is installed or can be, else from Debian's
packages (rustc-web, rust-web-src, an lld), compiled with the program. Which one is said. Where there is neither, the page is not
made, and the exit code is 3.

The page holds everything: the program (gzip, base64), scripts and style. Its policy names the scripts by their hashes and allows no
connection.
"""

import base64
import gzip
import hashlib
import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ROOT / "crates" / "dvim-web" / "page"
EXPLORER = ROOT / "crates" / "dvim-explore" / "assets"
OUT = ROOT / "target" / "web" / "try.html"
TARGET = "wasm32-unknown-unknown"
MISSING = 3


def quiet(*command):
    """Whether a command can be run and succeeds; what it printed."""
    if not shutil.which(command[0]):
        return None
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return done.stdout if done.returncode == 0 else None


def toolchain():
    """Words for where the standard library comes from, further arguments of cargo, further flags, further environment."""
    root = (quiet("rustc", "--print", "sysroot") or "").strip()
    installed = Path(root, "lib", "rustlib", TARGET, "lib")
    if root and installed.is_dir():
        return f"the target {TARGET} of {root}", [], "", {}
    if quiet("rustup", "target", "add", TARGET) is not None and installed.is_dir():
        return f"the target {TARGET}, which rustup added to {root}", [], "", {}
    lld = next(filter(None, map(shutil.which, ("wasm-ld", "wasm-ld-22", "wasm-ld-21", "wasm-ld-20", "wasm-ld-19"))), None)
    source = Path(root, "lib", "rustlib", "src", "rust", "library")
    if root and source.is_dir() and lld:
        say = f"Debian's sources of the standard library and {lld}"
        return say, ["-Zbuild-std=std,panic_abort"], f"-C linker={lld} -C linker-flavor=wasm-ld", {"RUSTC_BOOTSTRAP": "1"}
    return None


def compile_program():
    """Compiles; gives the bytes of the program, or nothing where it cannot be compiled here."""
    found = toolchain()
    if found is None:
        return None
    words, arguments, flags, environment = found
    print(f"WebAssembly with {words}", flush=True)
    # Nothing draws from the system's randomness here; 128-bit vectors are in every browser since 2023.
    flags = f'--cfg getrandom_backend="unsupported" -C target-feature=+simd128 {flags}'.strip()
    environment = {**os.environ, **environment, "RUSTFLAGS": flags}
    command = ["cargo", "build", "--quiet", "--profile", "web", "--target", TARGET, "-p", "dvim-web", "--lib", *arguments]
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    return (ROOT / "target" / TARGET / "web" / "dvim_web.wasm").read_bytes()


def script_hash(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def page(program):
    """The whole page."""
    part = {name: (PARTS / name).read_text() for name in ("index.html", "style.css", "page.js", "worker.js", "bridge.js")}
    scripts = [part["page.js"], part["bridge.js"], (EXPLORER / "app.js").read_text()]
    # Styles may be inline: the report and the figures have theirs inside. Nothing that a style names can be loaded.
    policy = (
        f"default-src 'none'; connect-src 'none'; script-src {' '.join(map(script_hash, scripts))} 'wasm-unsafe-eval'; worker-src blob:; "
        "frame-src blob:; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    icon = base64.b64encode((EXPLORER / "icon.svg").read_bytes()).decode()
    version = re.search(r'^version = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    put = {
        "policy": html.escape(policy),
        "icon": f"data:image/svg+xml;base64,{icon}",
        "style": part["style.css"],
        "version": version,
        "program": base64.b64encode(gzip.compress(program, 9, mtime=0)).decode(),
        "worker": part["worker.js"],
        "bridge": part["bridge.js"],
        "script": part["page.js"],
    }
    for text in (part["worker.js"], part["bridge.js"], part["page.js"]):
        assert "</script" not in text
    return re.sub(r"\{(%s)\}" % "|".join(put), lambda m: put[m[1]], part["index.html"])


def main():
    program = compile_program()
    if program is None:
        print("!! NO WEBASSEMBLY: neither rustup's target nor Debian's rustc-web, rust-web-src and lld are here; "
              "the tool in the browser is not built", file=sys.stderr)
        OUT.unlink(missing_ok=True)
        return MISSING
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(page(program))
    print(f"{OUT.relative_to(ROOT)}: {OUT.stat().st_size / 1e6:.2f} MB, {len(gzip.compress(OUT.read_bytes(), 9)) / 1e6:.2f} MB compressed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
