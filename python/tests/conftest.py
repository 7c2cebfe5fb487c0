"""Cohorts for the tests, and the command line to compare with."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import dvim

ROOT = Path(__file__).resolve().parents[2]
ROLES = dict(time="time", event="event", treatment="treatment")
PAPER = dict(**ROLES, estimator="paper")


def read_csv(path):
    """Columns of a CSV file, numbers to the last bit, None where empty."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))

    def value(text):
        try:
            return float(text) if text else None
        except ValueError:
            return text

    return {name: [value(row[name]) for row in rows] for name in rows[0]}


def listed(column):
    """A column of a frame as a list with None where it is undefined."""
    return [None if v is None or v != v or v == "" else v for v in np.asarray(column).tolist()]


@pytest.fixture(scope="session")
def cohort():
    return dvim.simulate("both-overlap", n=1200, seed=5, frame="pandas")


@pytest.fixture(scope="session")
def fitted(cohort):
    return dvim.fit(cohort, **PAPER, horizon=800, group_size=20)


@pytest.fixture(scope="session")
def untidy():
    """As tables really are: categories, gaps, three arms, text ids in no order, a column for filtering, dates."""
    pd = pytest.importorskip("pandas")
    df = dvim.simulate("both-overlap", n=1500, seed=8, frame="pandas")
    draw = np.random.default_rng(3)
    site = draw.choice(["north", "south", "east", "west"], size=len(df))
    arm = np.where(draw.random(len(df)) < 0.1, "Obs", np.where(df.treatment == 1, "Lev+5FU", "Lev"))
    start = pd.Timestamp("2001-03-01") + pd.to_timedelta(draw.integers(0, 1000, len(df)), unit="D")
    days = np.ceil(df.time).astype(int)
    out = pd.DataFrame({
        "patient": [f"P{i:05d}" for i in df.id],
        "begin": start.strftime("%Y-%m-%d"),
        "stop": (start + pd.to_timedelta(days.to_numpy(), unit="D")).strftime("%Y-%m-%d"),
        "status": df.event,
        "rx": arm,
        "etype": draw.choice([1, 2], size=len(df), p=[0.9, 0.1]),
        "site": site,
        "sex": np.where(df.x2 == 1, "f", "m"),
        "grade": pd.array(np.where(draw.random(len(df)) < 0.05, None, draw.integers(1, 4, len(df))), dtype="Int64"),
        "junk": "x",
        **{f"x{j}": df[f"x{j}"] for j in range(11, 16)},
    })
    return out.iloc[draw.permutation(len(out))].reset_index(drop=True)


@pytest.fixture(scope="session")
def further(cohort):
    """Case weights, clusters, delayed entry and causes."""
    draw = np.random.default_rng(11)
    n = len(cohort)
    why = np.where(cohort.event == 1, draw.choice([1, 1, 2], n), 0)
    late = np.where(draw.random(n) < 0.2, cohort.time * 0.3, 0.0)
    return cohort.assign(w=draw.uniform(0.5, 3, n), site=draw.choice(list("abcdefgh"), n), late=late, why=why)


@pytest.fixture(scope="session")
def command():
    """The command line: the binary of the workspace where there is one, else the command that the package installs."""
    binary = os.environ.get("DVIM_BINARY")
    start = [binary] if binary else [sys.executable, "-m", "dvim"]

    def run(*args, code=0, **more):
        done = subprocess.run([*start, *map(str, args)], capture_output=True, text=True, check=False, **more)
        assert done.returncode == code, done.stderr
        return done

    return run


@pytest.fixture(autouse=True)
def quiet_dvim():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dvim.Warning)
        yield
