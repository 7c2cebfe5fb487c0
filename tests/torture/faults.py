#!/usr/bin/env python3
"""Faults injected into every system call of the commands that write files.

    tests/torture/faults.py [--binary target/debug/dvim] [--sample N] [--jobs 2] [--only fit-force] [--write docs/torture.md]

Each command runs once to count its calls and to see what it writes. Then it runs again and again, in a fresh copy of
the same folder, with one call going wrong: killed in front of it, failed (EIO, ENOSPC, ENOMEM), interrupted (EINTR), or
cut short. After each:

- the output is the old one, whole, or the new one, whole;
- nothing else in the folder has changed;
- the command said so: exit code 0 with the new output, or another with a message on stderr;
- what a kill left is hidden, and `dvim clean` leaves the folder as it was before or as it is after the command.

`--sample N` takes about N faults in all, spread over commands, kinds and calls. Without it every call is hit once by
every kind. Prints a table; exits 1 where anything was lost or silent.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
import table  # noqa: E402

ROLES = "--time time --event event --treatment treatment --horizon 800"
FIT = f"fit cohort.csv {ROLES} --estimator paper -k 10 --threads 1"
KINDS = ["kill", "EIO", "ENOSPC", "short", "EINTR", "ENOMEM"]

# Name, commands before it, the command, its output.
COMMANDS = [
    ("fit", [], f"{FIT} -o out", "out"),
    ("fit --force", [f"{FIT} --seed 2 -o out"], f"{FIT} -o out --force", "out"),
    ("fit, adjusted", [], f"fit cohort.csv {ROLES} --splits 2 --folds 2 --threads 1 -o out", "out"),
    ("fit --report", [], f"{FIT} --no-audit -o run --report out.html", "run"),
    ("predict", [f"{FIT} --no-audit -o run"], "predict run new.csv --threads 1 -o out.csv --groups groups.csv", "out.csv"),
    ("predict --force", [f"{FIT} --no-audit -o run", "predict run cohort.csv -o out.csv"],
     "predict run new.csv --threads 1 -o out.csv --force", "out.csv"),
    ("predict to stdout", [f"{FIT} --no-audit -o run"], "predict run new.csv --threads 1", None),
    ("report", [f"{FIT} -o run"], "report run -o out.html", "out.html"),
    ("report --force", [f"{FIT} -o run", "report run --title Old -o out.html"], "report run -o out.html --force", "out.html"),
    ("study", [], "study main --n 1000 --reps 1 --threads 1 -o out", "out"),
    ("study, again", ["study main --n 1000 --reps 1 --threads 1 -o out"],
     "study main --n 1000 --reps 1 --threads 1 -o out", "out"),
    ("compare", [], f"compare small.csv {ROLES} -k 10 --threads 1 -o out", "out"),
    ("compare --force", [f"compare small.csv {ROLES} -k 20 --threads 1 -o out"],
     f"compare small.csv {ROLES} -k 10 --threads 1 -o out --force", "out"),
    ("rerun", [f"{FIT} --no-audit -o run"], "rerun run --threads 1", None),
    ("rerun -o", [f"{FIT} --no-audit -o run"], "rerun run --threads 1 -o out", "out"),
    ("demo", [], "demo --n 400 --threads 1 -o out", "out"),
    ("demo, again", ["demo --n 500 --threads 1 -o out"], "demo --n 400 --threads 1 -o out", "out"),
]


def everything(folder):
    """Every file below a folder with its digest; folders too."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
    return found


def is_hidden(name):
    return any(part.startswith(".") and ".dvim-" in part for part in name.split(os.sep))


class Torture:
    def __init__(self, binary, injector, room):
        self.binary, self.injector, self.room = binary, injector, room

    def dvim(self, folder, words, inject=None):
        command = [self.binary, *words.split()]
        if inject:
            command = [self.injector, *inject, *command]
        # Temporary files of `rerun` belong to the folder too.
        environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=300)

    def world(self, before):
        """A folder in which these commands have run."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.room))
        (folder / "tmp").mkdir()
        for words in [
            "simulate --scenario both-overlap --n 240 --seed 4 -o cohort.csv",
            "simulate --scenario both-overlap --n 200 --seed 6 -o small.csv",
            "simulate --scenario both-overlap --n 30 --seed 5 -o new.csv",
            *before,
        ]:
            done = self.dvim(folder, words)
            assert done.returncode == 0, (words, done.stderr.decode())
        (folder / "thesis.txt").write_text("three years of work")
        return folder

    def prepare(self, name, before, words, output):
        world = self.world(before)
        old = everything(world)
        new, counts = None, {}
        for kind in KINDS:
            folder = self.copy(world)
            report = folder.with_suffix(".report")
            begin = time.monotonic()
            done = self.dvim(folder, words, ["0", kind, str(report)])
            seconds = time.monotonic() - begin
            assert done.returncode == 0, (name, done.stderr.decode())
            counts[kind] = int(report.read_text().split()[0])
            found = everything(folder)
            assert new in (None, found), f"{name} does not write the same twice: {difference(new, found)}"
            new = found
            shutil.rmtree(folder)
            report.unlink()
        return {"name": name, "words": words, "output": output, "world": world, "old": old, "new": new, "counts": counts,
                "seconds": seconds}

    def copy(self, world):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.room))
        shutil.rmtree(folder)
        shutil.copytree(world, folder, symlinks=True)
        return folder

    def fault(self, case, kind, n):
        """One fault: (the call that was hit, what came of it, what is wrong)."""
        folder = self.copy(case["world"])
        report = folder.with_suffix(".report")
        wrong = []
        try:
            done = self.dvim(folder, case["words"], [str(n), kind, str(report)])
            _, hit, argument = report.read_text().split()
            said = done.stderr.decode(errors="replace")
            found = everything(folder)
            shown = {name: digest for name, digest in found.items() if not is_hidden(name)}
            hidden = len(found) - len(shown)
            if shown == case["new"]:
                state = "new"
            elif shown == case["old"]:
                state = "old"
            elif case["name"].startswith("study") and self.is_begun_study(case, folder, shown):
                state = "between"
            elif all(case["old"].get(n, case["new"].get(n)) == d or case["new"].get(n) == d for n, d in shown.items()) \
                    and all(n in shown for n in case["old"] if n in case["new"]) and self.is_mix_allowed(case, shown):
                state = "between"
            else:
                state = "broken"
                wrong.append("lost: " + difference(case["old"], shown) + " / " + difference(case["new"], shown))
            if "should have caught" in said or ("panicked" in said and "initialization or cleanup bug" not in said):
                wrong.append(f"panic: {said[-300:]}")
            code = done.returncode
            # Without memory, Rust ends a program before its first line, with words of its own.
            is_before_main = kind == "ENOMEM" and done.returncode in (134, 139) and self.ends_before_main(folder, n)
            # What is written to stderr itself may be lost there.
            mute = hit.startswith("write") and argument == "2"
            if kind == "kill":
                if code != 137 and hit != "-":
                    wrong.append(f"killed, but exit code {code}")
            elif code == 0:
                if state != "new":
                    wrong.append(f"exit code 0 without the output: {said[-200:]}")
            elif is_before_main:
                pass
            elif code not in (1, 2, 127):
                wrong.append(f"exit code {code}: {said[-300:]}")
            elif not said.strip() and not mute:
                wrong.append(f"silent: exit code {code}")
            # The loader of programs, before dvim begins, takes any fault as an error.
            is_loader = code == 127 and "shared librar" in said
            if kind in ("EINTR", "short") and code != 0 and hit != "-" and not mute and not is_loader:
                wrong.append(f"an interrupted or short call is an error: {hit}: {said[-200:]}")
            if kind != "kill" and hidden and kind != "ENOMEM" and not hit.startswith(("unlink", "rmdir", "getdents", "openat", "open", "newfstatat", "statx", "fstat", "flock", "rename")):
                wrong.append(f"hidden files stayed: {[n for n in found if is_hidden(n)]}")
            if hidden:
                for place in sorted({str(pathlib.Path(n).parent) for n in found if is_hidden(n)}, key=len):
                    self.dvim(folder, f"clean {place}")
                left = everything(folder)
                if any(is_hidden(name) for name in left):
                    wrong.append(f"`dvim clean` left {[n for n in left if is_hidden(n)]}")
                if state in ("new", "old") and left != case[state]:
                    wrong.append("`dvim clean` changed what is not hidden: " + difference(case[state], left))
            outcome = {"new": "new", "old": "old", "between": "between"}.get(state, "broken")
            return hit, outcome, code, wrong
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            report.unlink(missing_ok=True)

    def ends_before_main(self, folder, n):
        """Whether the same call ends a command that does nothing: the loader or Rust's runtime makes it, before dvim's
        first line."""
        report = folder.with_suffix(".version")
        done = self.dvim(folder, "--version", [str(n), "ENOMEM", str(report)])
        report.unlink(missing_ok=True)
        return done.returncode in (134, 139)

    def is_mix_allowed(self, case, shown):
        """Several outputs of one command appear one after the other, each whole; a study grows file by file."""
        return case["name"] in ("predict", "fit --report")

    def is_begun_study(self, case, folder, shown):
        """A study is written file by file, and a list of them after each: every file is whole, the list can be read, and
        the same command, typed again, ends with the new study."""
        manifest, journal = (os.path.join(case["output"], name) for name in ("manifest.json", "results.jsonl"))
        growing = (manifest, journal)
        whole = all(d in (case["old"].get(n), case["new"].get(n)) for n, d in shown.items() if n not in growing)
        kept = all(n in shown for n in case["old"] if n != manifest and n in case["new"])
        # Lines are added one by one; the last may be cut off, and is then written again.
        if journal in shown:
            lines = (folder / journal).read_text().split("\n")[:-1]
            [json.loads(line) for line in lines[1:]]
        if manifest in shown:
            json.loads((folder / manifest).read_text())
        if not (whole and kept):
            return False
        again = self.copy(folder)
        try:
            done = self.dvim(again, case["words"])
            left = {n: d for n, d in everything(again).items() if not is_hidden(n)}
            return done.returncode == 0 and left == case["new"]
        finally:
            shutil.rmtree(again, ignore_errors=True)


def difference(a, b):
    a, b = a or {}, b or {}
    gone = [n for n in a if n not in b]
    added = [n for n in b if n not in a]
    changed = [n for n in a if n in b and a[n] != b[n]]
    return f"gone {gone[:4]}, added {added[:4]}, changed {changed[:4]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "target/debug/dvim"))
    parser.add_argument("--sample", type=int, help="about so many faults, instead of all")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="only the commands that take a moment")
    parser.add_argument("--only", help="only the command of this name")
    parser.add_argument("--write", type=pathlib.Path, help="put the table into this file")
    args = parser.parse_args()
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        print("SKIPPED: faults are injected on Linux on x86-64 only")
        return 0
    with tempfile.TemporaryDirectory(prefix="dvim-faults-") as room:
        injector = os.path.join(room, "inject")
        subprocess.run(["cc", "-O1", "-Wall", "-o", injector, str(HERE / "inject.c")], check=True)
        torture = Torture(os.path.abspath(args.binary), injector, room)
        slow = ("study", "compare", "demo", "fit, adjusted")
        commands = [c for c in COMMANDS if args.only in (None, c[0]) and not (args.quick and c[0].startswith(slow))]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            cases = list(pool.map(lambda c: torture.prepare(*c), commands))
            faults = [(case, kind, n) for case in cases for kind in KINDS for n in range(1, case["counts"][kind] + 1)]
            if args.sample and args.sample < len(faults):
                # Some of each command, so that none is left out, and more of those that are quick.
                draw = random.Random(args.seed)
                weights = [1 / (0.3 + case["seconds"]) for case in cases]
                faults = [f for case, weight in zip(cases, weights)
                          for f in draw.sample([f for f in faults if f[0] is case],
                                               min(-int(-args.sample * weight // sum(weights)), sum(case["counts"].values())))]
            print(f"{len(faults)} faults", file=sys.stderr, flush=True)
            found = list(pool.map(lambda f: (f, torture.fault(*f)), faults))
    rows, problems = collections.OrderedDict(), []
    for (case, kind, n), (hit, outcome, code, wrong) in found:
        row = rows.setdefault(case["name"], collections.Counter())
        row["faults"] += 1
        row[kind] += 1
        row[outcome] += 1
        row["said"] += code not in (0, 137)
        row["wrong"] += bool(wrong)
        problems += [f"{case['name']}, {kind} at call {n} ({hit}): {w}" for w in wrong]
    header = ["command", "faults", *KINDS, "old whole", "new whole", "each file whole", "refused with a message", "wrong"]
    body = [[name, r["faults"], *(r[k] for k in KINDS), r["old"], r["new"], r["between"], r["said"], r["wrong"]]
            for name, r in rows.items()]
    body.append(["all", *(sum(row[i] for row in body) for i in range(1, len(header)))])
    text = table.markdown(header, body)
    print(text)
    for problem in problems[:40]:
        print("WRONG:", problem)
    if args.write and not problems:
        table.put(args.write, "faults", text)
    print(f"{len(found) - len({p.split(':')[0] for p in problems})} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
