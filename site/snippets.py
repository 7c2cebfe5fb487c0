#!/usr/bin/env python3
"""Runs every command and snippet of README.md and docs/.

    site/snippets.py [PAGE...]        all pages, or those named, such as docs/start/quickstart.md

A fenced block of `sh`, `python` or `r` is run, in the order of the page, in a folder of its own. Blocks of `text`, `pycon`, `json` and
the like are not. Comments of the page say the rest; a reader does not see them:

    <!-- setup                        shell commands before the first block: files that the page takes for granted
    dvim simulate … -o cohort.csv
    -->
    <!-- not run: why -->             the next block is not run
    <!-- output -->                   the lines of the next block stand in what the block before printed, in this order; … skips
    <!-- exit 2 -->                   the next block of shell ends with this code

R blocks are run together at the end of the page, where R and the package are there. `DVIM` names the command.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DVIM = os.environ.get("DVIM", str(ROOT / "target/debug/dvim"))
R_LIBRARY = os.environ.get("DVIM_R_LIBRARY", str(ROOT / "target/r-library"))
RUN = {"sh", "python", "r"}
SHOWN = {"text", "pycon", "json", "csv", "toml"}
PART = re.compile(r"<!-- (?P<comment>setup\n.*?|not run: .*?|output|exit \d+)\s*-->|^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```",
                  re.DOTALL | re.MULTILINE)
SKIPPED = {"reference/commands.md", "reference/columns.md", "reference/python.md", "reference/r.md"}  # made from the code


def pages():
    docs = ROOT / "docs"
    return [ROOT / "README.md", *sorted(p for p in docs.rglob("*.md") if str(p.relative_to(docs)) not in SKIPPED)]


def parts(page):
    """The comments and blocks of a page: (line, kind, text)."""
    text = page.read_text()
    for m in PART.finditer(text):
        line = text.count("\n", 0, m.start()) + 1
        if m["comment"]:
            word, _, rest = m["comment"].partition(" " if not m["comment"].startswith("setup") else "\n")
            yield line, word, rest
        else:
            yield line, m["language"], textwrap.dedent(m["code"])


class Wrong(Exception):
    """A snippet that does not do what the page says."""


class Runner:
    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="dvim-snippets-")
        self.folder = Path(self._folder.name)
        self.setups, self.skipped = {}, []
        bin = self.folder / "bin"
        bin.mkdir()
        (bin / "dvim").symlink_to(Path(DVIM).resolve())
        (bin / "python").symlink_to(sys.executable)
        self.environment = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}", "MPLBACKEND": "Agg", "COLUMNS": "100"}
        self.environment.pop("DVIM", None)

    def close(self):
        self._folder.cleanup()

    def shell(self, code, where, expected=0):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", code], cwd=os.getcwd(), env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != expected:
            raise Wrong(f"{where}: exit {done.returncode}\n{code}\n{done.stdout[-2000:]}")
        return done.stdout

    def prepared(self, script, where):
        """A new folder with what the setup makes; equal setups are run once."""
        if script not in self.setups:
            made = self.folder / f"setup-{len(self.setups)}"
            made.mkdir()
            with contextlib.chdir(made):
                self.shell(script, where)
            self.setups[script] = made
        new = Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copytree(self.setups[script], new, dirs_exist_ok=True)
        return new

    def page(self, page):
        """Runs a page; gives how many blocks were run."""
        found = list(parts(page))
        if not any(kind in RUN for _, kind, _ in found):
            found = [f for f in found if f[1] not in RUN]
        setup = "\n".join(text for _, kind, text in found if kind == "setup")
        name = page.relative_to(ROOT)
        folder = self.prepared(setup, f"{name}: setup") if any(k in RUN for _, k, _ in found) else None
        scope, r, printed, skip, output, code, n = {"__name__": "__main__"}, [], "", None, False, 0, 0
        with contextlib.chdir(folder or "."):
            for line, kind, text in found:
                where = f"{name}:{line}"
                if kind == "not":
                    skip = text.removeprefix("run: ")
                elif kind == "output":
                    output = True
                elif kind == "exit":
                    code = int(text)
                elif kind in RUN:
                    if skip is not None:
                        self.skipped.append((where, skip))
                        skip = None
                        continue
                    n += 1
                    if kind == "sh":
                        printed = self.shell(text, where, code)
                        code = 0
                    elif kind == "python":
                        printed = run_python(text, where, scope, self.environment)
                    else:
                        r.append(text)
                elif kind != "setup":
                    if kind not in SHOWN and (kind or text.startswith("dvim ")):
                        raise Wrong(f"{where}: a block of language {kind!r}; use sh, python or r for what is run, text for what is not")
                    if output:
                        compare(text, printed, where)
                        output = False
                    skip = None
            if r:
                self.r("\n".join(r), name)
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")
        return n

    def r(self, script, where):
        environment = {**self.environment, "R_LIBS": R_LIBRARY}
        there = "quit(status = !requireNamespace('dvim', quietly = TRUE))"
        if shutil.which("Rscript") is None or subprocess.run(["Rscript", "-e", there], env=environment, capture_output=True).returncode:
            self.skipped.append((str(where), "R or its package dvim is not there"))
            return
        Path("snippets.R").write_text(script)
        done = subprocess.run(["Rscript", "snippets.R"], env=environment, text=True, capture_output=True)
        if done.returncode:
            raise Wrong(f"{where}: R\n{script}\n{done.stdout[-1500:]}{done.stderr[-1500:]}")


def run_python(code, where, scope, environment):
    """Runs a block in the scope of its page; gives what it printed, the value of a last expression included."""
    import ast

    out = io.StringIO()
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    before = os.environ.copy()
    os.environ.update(environment)
    try:
        with contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(tree, where, "exec"), scope)
            if last is not None:
                print(repr(eval(compile(ast.Expression(last.value), where, "eval"), scope)))
    except Exception as wrong:
        raise Wrong(f"{where}: {type(wrong).__name__}: {wrong}\n{code}") from wrong
    finally:
        os.environ.clear()
        os.environ.update(before)
    return out.getvalue()


def compare(shown, printed, where):
    lines, at = [line.strip() for line in printed.splitlines()], 0
    for line in filter(None, map(str.strip, shown.splitlines())):
        if line == "…":
            continue
        if line not in lines[at:]:
            raise Wrong(f"{where}: this line is not printed there:\n{line}\n--- printed:\n{printed[-3000:]}")
        at = lines.index(line, at) + 1


def main():
    asked = [Path(p).resolve() for p in sys.argv[1:]] or pages()
    runner, wrong, total = Runner(), 0, 0
    for page in asked:
        try:
            total += runner.page(page)
        except Wrong as problem:
            wrong += 1
            print(problem, file=sys.stderr)
    for where, why in runner.skipped:
        print(f"not run: {where}: {why}")
    print(f"{total} snippets run")
    runner.close()
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
