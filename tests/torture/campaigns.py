#!/usr/bin/env python3
"""The campaigns of crates/dvim-fuzz/examples/campaign.rs as a table.

    tests/torture/campaigns.py [--binary target/debug/examples/campaign] [--part 0.01] [--write docs/torture.md]
"""

import argparse
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
import table  # noqa: E402

CAMPAIGNS = [("cohorts", 10_000), ("tables", 10_000), ("runs", 1_000), ("requests", 2_000)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "target/debug/examples/campaign"))
    parser.add_argument("--part", type=float, default=1.0, help="this share of each campaign")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--only")
    parser.add_argument("--write", type=pathlib.Path)
    args = parser.parse_args()
    rows, wrong = [], False
    for name, n in CAMPAIGNS:
        if args.only not in (None, name):
            continue
        done = subprocess.run([args.binary, name, str(round(n * args.part)), str(args.first)], capture_output=True, text=True)
        print(done.stdout, done.stderr, end="", flush=True)
        wrong |= done.returncode != 0
        rows += [[cell.strip() for cell in line.strip("|").split("|")]
                 for line in done.stdout.splitlines() if line.startswith("|")]
    text = table.markdown(["campaign", "drawn", "what came of them", "wrong"], rows)
    if args.write and not wrong:
        table.put(args.write, "campaigns", text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
