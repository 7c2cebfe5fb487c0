"""Turns a script in percent format into a notebook, with its outputs where Jupyter's nbclient is installed.

    python docs/notebook.py docs/tutorial.py docs/tutorial-table1.py

`python/tests/test_tutorials.py` runs the cells and checks that notebook and script are the same.
"""

import json
import re
import sys
import tempfile
from pathlib import Path


def cells(script: str) -> list[tuple[str, str]]:
    """Kind and source of each cell."""
    out = []
    for part in re.split(r"^# %%", script, flags=re.M)[1:]:
        mark, _, body = part.partition("\n")
        # Data of others are shown to who runs the cell, and not kept.
        if "[not kept]" in mark:
            out.append(("private", body.strip()))
        elif "[markdown]" in mark:
            out.append(("markdown", "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.strip().split("\n"))))
        else:
            out.append(("code", body.strip()))
    return out


def notebook(script: str) -> dict:
    made = []
    for i, (kind, source) in enumerate(cells(script)):
        cell = {"cell_type": "markdown" if kind == "markdown" else "code", "id": f"cell-{i}", "metadata": {}}
        cell["source"] = source.splitlines(keepends=True)
        if kind == "private":
            cell["metadata"]["tags"] = ["not-kept"]
        if kind != "markdown":
            cell.update(execution_count=None, outputs=[])
        made.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def executed(found: dict) -> dict:
    try:
        import nbformat
        from nbclient import NotebookClient
    except ImportError:
        return found
    with tempfile.TemporaryDirectory() as place:
        book = nbformat.reads(json.dumps(found), as_version=4)
        NotebookClient(book, timeout=600, resources={"metadata": {"path": place}}).execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if "not-kept" in cell.metadata.get("tags", ()):
            cell.outputs = []
    return json.loads(nbformat.writes(book))


def main() -> None:
    for name in sys.argv[1:]:
        script = Path(name)
        book = executed(notebook(script.read_text()))
        script.with_suffix(".ipynb").write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
