"""Beside the fit: cohorts with known effects, a look at a table, every method at once, curves and cure models."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import _dvim, _frames
from ._errors import Exists, Problem, Refused, warn
from ._fit import SIGNATURE, bound, prepare, signature_without, survival_outcome
from ._progress import Watching
from ._record import Record


def scenarios() -> dict[str, Record]:
    """The worlds that can be simulated, by name: ``label``, ``horizon`` (that of their truth), ``n`` (the usual size),
    ``can_be_confounded``.

    >>> scenarios()["both-overlap"].horizon
    800.0
    """
    keys = ("label", "horizon", "n", "can_be_confounded")
    return {name: Record(dict(zip(keys, rest))) for name, *rest in _dvim.scenarios()}


def simulate(
    scenario: str = "both-overlap",
    n: int | None = None,
    seed: int = 1,
    *,
    confounded: bool = False,
    truth: bool = False,
    frame: str | None = None,
) -> Any:
    """A cohort with known effects: columns ``id``, ``time``, ``event``, ``treatment`` and covariates.

    With ``truth`` a second frame holds the true effects of each patient. ``frame`` is ``"pandas"``, ``"polars"`` or
    ``"pyarrow"``; by default the first of these that is there. :func:`scenarios` lists the worlds.

    >>> cohort, truth = simulate("cure-only", n=500, seed=3, truth=True)
    >>> cohort.shape, truth.columns[:3].tolist()
    ((500, 24), ['id', 'cure_effect', 'time_effect'])
    """
    worlds = scenarios()
    if scenario not in worlds:
        raise Refused(
            f"error: there is no scenario `{scenario}`\n  rule:   a scenario is one of a list\n"
            f"  remedy: the scenarios are {', '.join(worlds)}"
        )
    if confounded and not worlds[scenario].can_be_confounded:
        raise Refused(
            f"error: scenario {scenario} has no --confounded\n  rule:   only the paper's four scenarios have a confounded "
            "form\n  remedy: leave out --confounded"
        )
    n = worlds[scenario].n if n is None else n
    if n < 1:
        raise Refused("error: n is 0\n  rule:   a cohort has patients\n  remedy: use n=2000")
    cohort, true = _dvim.simulate(scenario, n, seed, confounded)
    kind = frame if frame is not None else _frames.default_kind()
    made = _frames.frame(kind, cohort)
    return (made, _frames.frame(kind, true)) if truth else made


class Check:
    """How a table was understood, and everything that is wrong with it."""

    def __init__(self, found: dict[str, Any], problems: list[dict[str, Any]], words: str, kind: str) -> None:
        self._found, self._problems, self._words, self._kind = found, problems, words, kind

    @property
    def refused(self) -> bool:
        """Whether :func:`dvim.fit` would refuse the table."""
        return bool(self._found["refused"])

    @property
    def problems(self) -> list[Problem]:
        """What is wrong with it, or worth knowing."""
        return [Problem._of(p) for p in self._problems]

    @property
    def columns(self) -> Any:
        """Each column: its role, its kind, its range. One row each."""
        names = ("name", "role", "kind", "n_missing", "min", "mean", "max", "n_levels", "one")
        return _frames.of_records(self._kind, self._found["columns"], names)

    @property
    def arms(self) -> Record | None:
        """Both arms as they were seen, where the outcomes could be read."""
        return None if self._found["arms"] is None else Record(self._found["arms"])

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``dvim check --json`` prints it."""
        return self._found

    def __repr__(self) -> str:
        problems = "\n".join(f"{p.severity}: {p}" for p in self.problems)
        return f"{self._words.rstrip()}\n{problems}".rstrip()


def check(data: Any, **arguments: Any) -> Check:
    """How a table is understood and everything that is wrong with it; fits nothing. Takes the arguments of :func:`fit`.

    >>> df = simulate("both-overlap", n=500)
    >>> found = check(df, time="time", event="event", treatment="treatment", horizon=800)
    >>> found.refused, found.arms.treated.n_units + found.arms.control.n_units
    (False, 500)
    """
    given = bound("check", SIGNATURE, data, arguments)
    if given["imputation"] is not None:
        raise Refused(
            "error: imputation= was given\n  rule:   one data set is looked at, as one is analysed\n"
            f"  remedy: choose one with where={{{given['imputation']!r}: 1}}, drop={given['imputation']!r}"
        )
    frame, roles, options = prepare(given)
    found, problems, words = _dvim.check(frame.table, frame.source, roles, options)
    return Check(json.loads(found), json.loads(problems), words, frame.kind)


check.__signature__ = SIGNATURE  # type: ignore[attr-defined]


class Comparison:
    """Both effects of each patient by every method of the paper."""

    def __init__(self, found: Any, kind: str) -> None:
        self._found, self._kind = found, kind

    @property
    def effects(self) -> Any:
        """One row for each patient and method."""
        return _frames.with_ids(self._kind, self._found.effects())

    @property
    def summary(self) -> Any:
        """Averages and quartiles, one row for each method."""
        return _frames.frame(self._kind, self._found.summary())

    @property
    def correlations(self) -> Any:
        """Correlations between methods over patients."""
        return _frames.frame(self._kind, self._found.correlations())

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes tables, figures and a page into a directory, as ``dvim compare`` does."""
        self._found.save(os.fspath(path), force)

    def __repr__(self) -> str:
        return str(self._found.text()).rstrip()

    def _repr_html_(self) -> str:
        from html import escape

        figures = "".join(self._found.figures())
        return f'<div style="background:#fff;color:#1b2230;padding:.8em 1em"><pre>{escape(repr(self))}</pre>{figures}</div>'


def compare(data: Any, **arguments: Any) -> Comparison:
    """Both effects by every method of the paper, on one cohort. Takes the arguments of :func:`fit` that all methods share, and how
    Cox models share tied event times (``"breslow"`` or ``"efron"``).

    >>> df = simulate("both-overlap", n=1000)
    >>> compare(df, time="time", event="event", treatment="treatment", horizon=800).summary.method.iloc[0]
    'mcm-knn'
    """
    defaults = {n: p.default for n, p in SIGNATURE.parameters.items()}
    given = {**defaults, "estimator": "paper", **bound("compare", COMPARED, data, arguments)}
    frame, roles, options = prepare(given)
    with Watching(given["progress"]) as shown:
        found = _dvim.compare(frame.table, frame.source, roles, options, given["ties"], given["threads"], shown)
    warn(json.loads(found.warnings()))
    return Comparison(found, frame.kind)


COMPARED = signature_without(("imputation", "estimator", "splits", "folds", "latency", "learners", "penalty", "by", "audit"), ties="breslow")
compare.__signature__ = COMPARED  # type: ignore[attr-defined]


def _outcome(time: Any, event: Any) -> tuple[np.ndarray, np.ndarray]:
    if event is None:
        time, event = survival_outcome(time)
    times = np.ascontiguousarray(np.asarray(time, dtype=np.float64))
    events = np.asarray(event)
    if times.ndim != 1 or events.shape != times.shape:
        raise Refused(
            f"error: {times.size} times and {events.size} events\n  rule:   each unit has one time and one event\n"
            "  remedy: pass two arrays of one length"
        )
    if not np.all(np.isfinite(times)) or np.any(times < 0):
        raise Refused(
            "error: a time is negative, infinite or missing\n  rule:   a time is a number of at least 0\n"
            "  remedy: leave those units out"
        )
    if events.dtype.kind != "b" and not np.all(np.isin(events.astype(np.float64), (0.0, 1.0))):
        raise Refused(
            "error: an event is neither 0 nor 1\n  rule:   an event is 1 or true if it was seen, 0 or false if not\n"
            "  remedy: recode it"
        )
    return times, np.ascontiguousarray(events.astype(np.uint8))


class Curve:
    """A Kaplan–Meier curve. ``frame`` has its steps; ``at`` reads it off."""

    def __init__(self, raw: Any, found: dict[str, Any], kind: str) -> None:
        self._raw, self._found, self._kind = raw, found, kind
        self._columns = _frames.columns_of(raw)

    @property
    def frame(self) -> Any:
        """One row for each distinct time: ``time``, ``n_at_risk``, ``n_events``, ``n_censored``, ``survival``, ``se``
        (Greenwood), ``low``, ``high`` (Wilson's interval with the effective size)."""
        return _frames.frame(self._kind, self._raw)

    @property
    def n_units(self) -> int:
        """Units behind it."""
        return int(self._found["n_units"])

    @property
    def median(self) -> float | None:
        """The median event time, where the curve reaches one half."""
        return self._found["median"]  # type: ignore[no-any-return]

    @property
    def median_interval(self) -> tuple[float | None, float | None]:
        """Its interval (Brookmeyer and Crowley); an end that is not reached is None."""
        return self._found["median_low"], self._found["median_high"]

    @property
    def horizon(self) -> Record | None:
        """At the horizon that was given: survival, mean event time of those with an event before it, restricted mean, with
        standard errors and intervals."""
        return Record(self._found["at"][0]) if self._found["at"] else None

    def at(self, times: Any) -> Any:
        """Survival at these times: after the events at them, carried forward after the last."""
        steps, survival = self._columns["time"][1], self._columns["survival"][1]
        passed = np.searchsorted(steps, np.asarray(times, dtype=np.float64), side="right")
        found = np.concatenate([[1.0], survival])[passed]
        return float(found) if np.ndim(times) == 0 else found

    def plot(self, ax: Any = None, label: str | None = None) -> Any:
        """The curve with its interval."""
        from ._plot import single_curve

        return single_curve(self._columns, ax, label)

    def __repr__(self) -> str:
        events = int(self._columns["n_events"][1].sum())
        median = "not reached" if self.median is None else f"{self.median:g}"
        return f"Kaplan–Meier curve of {self.n_units} units, {events} events; median {median}"


def kaplan_meier(time: Any, event: Any = None, *, horizon: float | None = None, confidence: float = 0.95,
                 frame: str | None = None) -> Curve:
    """The Kaplan–Meier curve of a sample, or of a scikit-survival outcome.

    >>> curve = kaplan_meier([1, 2, 3, 4], [1, 0, 1, 1], horizon=3.5)
    >>> curve.at([0.5, 1, 3]).tolist()
    [1.0, 0.75, 0.375]
    >>> curve.horizon.n_at_risk, curve.horizon.survival
    (1, 0.375)
    """
    times, events = _outcome(time, event)
    horizons = [] if horizon is None else [float(horizon)]
    raw, found = _dvim.kaplan_meier(times, events, confidence, horizons)
    return Curve(raw, json.loads(found), frame if frame is not None else _frames.default_kind())


class MixtureCure:
    """A mixture cure model: logistic for cure, log-normal for the times of the uncured, truncated at the horizon.

    Without a horizon it is the usual mixture cure model. ``cure_ridge`` and ``latency_ridge`` shrink the coefficients.

    >>> df = simulate("both-overlap", n=3000)
    >>> arm = df[df.treatment == 1]
    >>> model = MixtureCure(horizon=800).fit(arm[["x1", "x2", "x3"]], arm.time, arm.event)
    >>> model.converged, len(model.coefficients)
    (True, 8)
    >>> probability = model.predict_cure(arm[["x1", "x2", "x3"]])
    >>> bool(0 < probability.min() and probability.max() < 1)
    True
    """

    def __init__(self, horizon: float = float("inf"), *, cure_ridge: float = 0.0, latency_ridge: float = 0.0) -> None:
        self.horizon, self.cure_ridge, self.latency_ridge = horizon, cure_ridge, latency_ridge

    def fit(self, X: Any, time: Any, event: Any = None) -> MixtureCure:  # noqa: N803
        """Fits covariates (a frame or an array), times and events, or a scikit-survival outcome as ``time``."""
        x, names = _frames.to_matrix(X)
        times, events = _outcome(time, event)
        if x.shape[0] != len(times):
            raise Refused(
                f"error: {x.shape[0]} rows of covariates and {len(times)} times\n  rule:   each unit has both\n"
                "  remedy: pass arrays of one length"
            )
        self._model = _dvim.fit_cure(times, events, x, x.shape[1], float(self.horizon), float(self.cure_ridge),
                                     float(self.latency_ridge))
        self.names = names
        self._kind = _frames.module_of(X) if _frames.module_of(X) in _frames.KINDS else _frames.default_kind()
        self.record = Record(json.loads(self._model.record()))
        return self

    @property
    def converged(self) -> bool:
        """Whether the optimum is certified: no gradient, and a positive definite information matrix."""
        return bool(self.record.certificate.converged)

    @property
    def log_likelihood(self) -> float:
        """Without any penalty."""
        return float(self.record.log_likelihood)

    @property
    def coefficients(self) -> Any:
        """One row for each term: ``part`` (cure or latency), ``term``, ``coefficient``, ``se``. A positive cure
        coefficient means cure is more likely; a positive latency one, later events."""
        rows = []
        for part in ("cure", "latency"):
            p = self.record.to_dict()[part]
            errors = p["standard_errors"] or [None] * len(self.names)
            rows.append({"part": part, "term": "(intercept)", "coefficient": p["intercept"], "se": p["intercept_se"]})
            rows += [{"part": part, "term": n, "coefficient": c, "se": e}
                     for n, c, e in zip(self.names, p["coefficients"], errors)]
        return _frames.of_records(self._kind, rows)

    @property
    def sigma(self) -> float:
        """Spread of the log event times."""
        return float(np.exp(self.record.log_sigma))

    def _predict(self, X: Any, times: Sequence[float] = ()) -> np.ndarray:  # noqa: N803
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            X = X[self.names] if not hasattr(X, "column_names") else X.select(self.names)  # noqa: N806
        x, _ = _frames.to_matrix(X)
        if x.shape[1] != len(self.names):
            raise Refused(
                f"error: {x.shape[1]} covariates\n  rule:   the model was fitted with {len(self.names)}\n"
                f"  remedy: pass {', '.join(self.names)}"
            )
        return np.array(self._model.predict(x, list(times)), dtype=np.float64)

    def predict_cure(self, X: Any) -> np.ndarray:  # noqa: N803
        """The probability of being event-free at the horizon, for each row."""
        return self._predict(X)[:, 0]

    def predict_mean_event_time(self, X: Any) -> np.ndarray:  # noqa: N803
        """The mean event time of those with an event before the horizon, for each row."""
        return self._predict(X)[:, 1]

    def predict_survival(self, X: Any, times: Iterable[float]) -> np.ndarray:  # noqa: N803
        """The probability of no event by each of these times: a row for each unit."""
        return self._predict(X, [float(t) for t in times])[:, 2:]

    def __repr__(self) -> str:
        return f"MixtureCure(horizon={self.horizon:g}, cure_ridge={self.cure_ridge:g}, latency_ridge={self.latency_ridge:g})"


__all__ = ["Check", "Comparison", "Curve", "Exists", "MixtureCure", "check", "compare", "kaplan_meier", "scenarios", "simulate"]
