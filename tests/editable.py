"""Puts the Python package of this checkout into the environment that runs this: the sources, and the extension as
`cargo build --workspace --all-targets` compiled it.

`maturin develop` does the same for a single crate. Cargo would then choose other features of third-party crates than for
the whole workspace, and compile the engine once more: four minutes of the tests.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main():
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
    built = [target / name for name in ("lib_dvim.so", "lib_dvim.dylib", "_dvim.dll")]
    built = next((path for path in built if path.exists()), None)
    if built is None:
        sys.exit(f"no extension in {target}: run `cargo build --workspace --all-targets` first")
    # A running interpreter may hold the old file: a new one takes its place.
    place = ROOT / "python" / "dvim" / ("_dvim.pyd" if built.suffix == ".dll" else "_dvim.abi3.so")
    fresh = place.with_suffix(".fresh")
    shutil.copy2(built, fresh)
    fresh.replace(place)

    packages = Path(sysconfig.get_path("purelib"))
    (packages / "dvim.pth").write_text(f"{ROOT / 'python'}\n")
    # What `importlib.metadata` and the command `dvim` of the environment need.
    metadata = json.loads(subprocess.check_output(["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=ROOT))
    version = next(p["version"] for p in metadata["packages"] if p["name"] == "dvim")
    for old in packages.glob("dvim-*.dist-info"):
        shutil.rmtree(old)
    about = packages / f"dvim-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dvim\nVersion: {version}\n")
    (about / "INSTALLER").write_text("tests/editable.py\n")
    command = Path(sysconfig.get_path("scripts")) / "dvim"
    command.write_text(f"#!{sys.executable}\nimport sys\nfrom dvim._command import main\nsys.exit(main())\n")
    command.chmod(0o755)


if __name__ == "__main__":
    main()
