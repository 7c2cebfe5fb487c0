"""What a column is: of results, whatever values it happens to have; of a frame, what it was when it was handed over."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dvim
from dvim import _dvim, _frames

from conftest import PAPER

pd = pytest.importorskip("pandas")

WEIGHTS = {"covariate": "text", "level": "text", "fill": "text"}


def kinds(raw):
    return {name: kind for name, kind, _, _ in raw}


@pytest.fixture(scope="module")
def whole():
    """A cohort of whole numbers, on which unscaled metrics have whole centers and scales."""
    df = dvim.simulate("transplant", n=600, seed=2, frame="pandas").drop(columns="log10_white_cells")
    return dvim.fit(df, **PAPER, horizon=3650, group_size=15, scale="none")


def test_weights_are_numbers_also_where_all_are_whole(whole, fitted, untidy, tmp_path):
    assert whole.weights["scale"].eq(1).all() and whole.weights["center"].eq(0).all(), "else this tests nothing"
    for run in (whole, fitted):
        found = run.weights
        assert {n: str(t) for n, t in found.dtypes.items() if n not in WEIGHTS} == {
            n: "float64" for n in found.columns if n not in WEIGHTS
        }
        assert kinds(run._run.weights()) == {n: WEIGHTS.get(n, "f8") for n in found.columns}
        # The numbers are those of the file, to the last bit.
        run.save(tmp_path / str(id(run)))
        text = dict.fromkeys(WEIGHTS, str)
        written = pd.read_csv(tmp_path / str(id(run)) / "weights.csv", dtype=text, float_precision="round_trip")
        for name in found.columns:
            if name in WEIGHTS:
                assert found[name].fillna("").tolist() == written[name].fillna("").tolist()
            else:
                assert np.array_equal(found[name], written[name].astype(float), equal_nan=True), name


def test_results_keep_their_kinds(whole):
    frames = {
        "uses": (whole._run.uses(None, None), {"id": "text", "treatment": "text", "cure_uses": "f8", "time_uses": "f8"}),
        "truth": (
            _dvim.simulate("no-effect", 50, 1, False)[1],
            {n: "f8" for n in ("cure_effect", "time_effect", "cure_treated", "cure_control",
                               "mean_event_time_treated", "mean_event_time_control")} | {"id": "i8"},
        ),
    }
    for name, (raw, expected) in frames.items():
        assert kinds(raw) == expected, name


def test_a_frame_is_what_it_was_when_it_was_handed_over(cohort, fitted, monkeypatch):
    """Whoever writes into the arrays afterwards, also while the engine works, changes nothing."""
    columns = {name: np.array(cohort[name], dtype=float) for name in cohort.columns}
    done = threading.Event()

    def write():
        while not done.is_set():
            for name in ("time", "x1", "x18"):
                columns[name][:] = -1.0

    writer = threading.Thread(target=write)
    read = _frames.read

    def read_then_write(data, **how):
        frame = read(data, **how)
        columns["time"][:] = np.nan
        writer.start()
        return frame

    monkeypatch.setattr(_frames, "read", read_then_write)
    try:
        found = dvim.fit(columns, **PAPER, horizon=800, group_size=20, id="id")
    finally:
        done.set()
        writer.join()
    assert np.array_equal(found.effects["cure_effect"], fitted.effects["cure_effect"])
    assert np.array_equal(found.effects["time_effect"], fitted.effects["time_effect"], equal_nan=True)
