"""What a fit found: effects, averages, groups, predictions, figures."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _dvim, _frames
from ._errors import NoSuchUnit, Refused, Warning, warn
from ._frames import Rows, plain
from ._options import bins, label
from ._progress import Progress, Watching
from ._record import Record, record

if TYPE_CHECKING:
    from ._plot import Plots


class Analysis:
    """What a fit found. Made by :func:`dvim.fit` and :func:`dvim.open`; its display says what was estimated, from how
    many, both average effects with their intervals, and what to worry about."""

    def __init__(self, run: Any, kind: str, rows: Rows | None = None) -> None:
        self._run = run
        self._kind = kind
        self._rows = rows

    def _frame(self, raw: list[tuple[str, str, Any, Any]], index: bool = False) -> Any:
        return _frames.with_ids(self._kind, raw, self._rows if index else None)

    @cached_property
    def summary(self) -> Record:
        """Everything about the run, as in ``summary.json``."""
        return Record(json.loads(self._run.summary()))

    @cached_property
    def effects(self) -> Any:
        """Both effects of each estimated patient, one row each, in the order of ids: the columns of ``effects.csv``.

        A pandas frame has the index of the frame that came in, so that it can be joined with it.
        """
        return self._frame(self._run.effects(), index=True)

    @cached_property
    def weights(self) -> Any:
        """The weight of each covariate in each metric, with the coefficients behind it: the columns of ``weights.csv``."""
        return self._frame(self._run.weights())

    @property
    def models(self) -> Record:
        """The cure models of both arms, ``models.treated`` and ``models.control``: coefficients on scaled covariates,
        standard errors, log-likelihood, and the certificate of convergence."""
        return Record(self.summary.to_dict()["models"])

    @property
    def horizon(self) -> float:
        """H."""
        return float(self.summary["horizon"])

    @property
    def warnings(self) -> list[Warning]:
        """What is worth knowing of the input. A run that was opened says it as its file does, with flags of the command line."""
        from ._errors import Problem

        return [Warning(Problem._of(w)) for w in json.loads(self._run.warnings())]

    def average_effects(self, by: str | Iterable[str] | Mapping[str, int] | None = None) -> Any:
        """Average effects with standard errors and intervals: over all estimated patients, the treated, the control and,
        with ``by``, subgroups (``"sex"``, ``["sex", "age:4"]``, ``{"age": 4}``). One row for each estimand and population."""
        if by is None:
            records = self.summary.to_dict()["average_effects"]
        else:
            with Watching(None) as shown:
                records = json.loads(self._run.audit(bins(by), 0, None, shown)[1])
        return _frames.of_records(self._kind, records)

    def audit(
        self,
        by: str | Iterable[str] | Mapping[str, int] | None = None,
        *,
        seeds: int = 0,
        threads: int | None = None,
        progress: bool | Progress | None = None,
    ) -> Audit:
        """Whether the run can be relied on: intervals, follow-up, balance, heterogeneity, sensitivity.

        ``seeds`` repeats the whole analysis with that many other seeds.
        """
        with Watching(progress) as shown:
            found, averages, words = self._run.audit(bins(by), seeds, threads, shown)
        return Audit(json.loads(found), json.loads(averages), words, self._kind)

    def balance(self) -> Any:
        """How alike the arms are in each covariate, before matching, in the groups matched for cure and for time, and,
        under the adjusted estimator, weighted as its averages weigh patients (``average``): standardised differences,
        variance ratios, Kolmogorov–Smirnov distances. One row for each covariate."""
        found = self._audit.get("balance")
        if found is None:
            why = "; ".join(self._audit.get("left_out", [])) or "the run was made without it"
            raise Refused(
                f"error: this run has no balance: {why}\n  rule:   balance is part of the audit, and of cohorts without case weights\n"
                "  remedy: fit with audit=True and without weights"
            )
        rows = []
        for c in found["covariates"]:
            row = {"covariate": c["covariate"]}
            for when in ("before", "cure", "time", *(["average"] if "average" in c else [])):
                row.update({f"{what}_{when}": c[when][what] for what in ("difference", "variance_ratio", "ks")})
            rows.append(row)
        return _frames.of_records(self._kind, rows)

    def uses(self) -> Any:
        """How often each patient is in the groups of others: the weights that :meth:`balance` rests on."""
        with Watching(None) as shown:
            found = self._run.uses(None, shown)
        if found is None:
            self.balance()
        return self._frame(found)

    @cached_property
    def _audit(self) -> dict[str, Any]:
        found = self.summary.to_dict().get("audit")
        if found is None or not found.get("asked", True):
            found = json.loads(self._run.audit([], 0, None, None)[0])
        return dict(found)

    def match_group(self, id: Any) -> MatchGroup:
        """The patients most like one patient, nearest first, under each of the two metrics. They correct the estimate of the
        model; under ``estimator="paper"`` they give it alone.

        >>> import dvim
        >>> df = dvim.simulate("both-overlap", n=1000, seed=1)
        >>> a = dvim.fit(df, time="time", event="event", treatment="treatment", horizon=800)
        >>> g = a.match_group(17)
        >>> g.cure.columns[:5].tolist()
        ['arm', 'rank', 'id', 'distance', 'time']
        """
        try:
            found, words = self._run.match_groups(label(id), True)
        except NoSuchUnit as missing:
            missing.id = id
            raise
        return MatchGroup(json.loads(found), words, self._kind)

    def predict(
        self,
        data: Any,
        *,
        id: str | None = None,
        max_distance: float | None = None,
        groups: bool = False,
        names: Sequence[str] | None = None,
        threads: int | None = None,
        progress: bool | Progress | None = None,
    ) -> Any:
        """Both effects of patients who were not in the cohort: a frame with the columns of ``effects``, in the order of
        ``data``. It needs the covariates of the run under the same names; other columns are ignored.

        ``max_distance``: no estimate for a patient one of whose groups reaches farther. ``groups``: a second frame with
        one row for each member of each group.
        """
        usual, text = self._run.reading_new(id)
        if isinstance(data, np.ndarray) and names is None and data.dtype.names is None:
            names = self.summary.to_dict()["roles"]["covariates"]

        def choose(found: Sequence[str]) -> str | None:
            return next((n for n in found if usual is not None and n.lower() == usual.lower()), None)

        frame = _frames.read(data, id=id, choose_id=choose, names=names, text=text, threads=threads)
        if isinstance(data, (str, os.PathLike)):
            frame.table = _dvim.Table.read(os.fspath(data), id, usual, text, threads)
        chosen = frame.id if frame.ids is not None else id
        with Watching(progress) as shown:
            effects, members, n_far, n_unserved, (n_outside, outside) = self._run.predict(
                frame.table, chosen, max_distance, groups, threads, shown
            )
        for n, why in ((n_far, "a group reaches beyond --max-distance"),
                       (n_unserved, "too few candidates satisfy the constraints of the run")):
            if n:
                found = f"{n} patients have no estimate: {why}"
                warn([{"code": "no_estimate", "severity": "warning", "column": None, "count": n, "rows": [],
                       "found": found, "rule": "nobody is given an estimate that the cohort cannot support",
                       "remedy": "see the column flags"}])
        if n_outside:
            warn([{"code": "off_support", "severity": "warning", "column": None, "count": n_outside, "rows": [],
                   "found": f"{n_outside} patients have a value outside what the cohort has seen, in: {', '.join(outside)}",
                   "rule": "a patient can only be compared with patients; these estimates are extrapolations",
                   "remedy": "see the column flags"}])
        columns = _frames.columns_of(effects)
        columns["id"] = plain(columns["id"][1])
        columns.pop("treatment", None)
        out = _frames.build(frame.kind, columns, frame.index if frame.kind == "pandas" else None)
        return (out, _frames.frame(frame.kind, members)) if groups else out

    def save(self, path: str | os.PathLike[str], *, force: bool = False, format: str = "csv") -> None:
        """Writes the run into a directory, as ``dvim fit`` does: ``effects.csv``, ``weights.csv``, ``summary.json`` and
        ``run.dvim``. It appears whole or not at all. ``force`` replaces a run, and nothing but a run."""
        self._run.save(os.fspath(path), force, format)

    def report(self, path: str | os.PathLike[str], *, title: str | None = None, about: str | None = None,
               time_unit: str | None = None, force: bool = False) -> None:
        """Writes a page that explains the run: one HTML file that opens by double-click and loads nothing.

        ``about`` stands under the title and says where the data come from; ``time_unit`` names the unit, such as ``"days"``.
        """
        self._run.write_page(os.fspath(path), force, title, about, time_unit)

    def curves(self, patients: Any = None, at: Any = None, *, by: Any = ()) -> Any:
        """Survival curves with limits, as a frame.

        Without ``patients``: survival had all patients of a population been in one arm, adjusted for the covariates, and
        the difference of the arms, with limits at each time and limits of the whole curve. ``patients``: an id, several, or
        ``"all"``; then survival of each patient in either arm. ``at``: times from 0 to the horizon; without them those at
        which curves are held.
        """
        if patients is not None:
            several = isinstance(patients, Iterable) and not isinstance(patients, (str, bytes))
            patients = [label(p) for p in (patients if several else [patients])]
        if at is not None:
            at = [float(t) for t in np.atleast_1d(at)]
        return self._frame(self._run.curve_table(patients, at, bins(by)))

    @property
    def plot(self) -> Plots:
        """Figures, as matplotlib axes: ``effects``, ``curves``, ``balance``, ``plane``, ``horizon``, ``weights``."""
        from ._plot import Plots

        return Plots(self)

    def __repr__(self) -> str:
        return str(self._run.text()).rstrip()

    def _repr_html_(self) -> str:
        return str(self._run.card())


class Audit(Record):
    """Whether a run can be relied on. Read it aloud with ``print``; its parts are attributes."""

    def __init__(self, data: Mapping[str, Any], averages: list[dict[str, Any]], words: str, kind: str) -> None:
        super().__init__(data)
        self._averages, self._words, self._kind = averages, words, kind

    def average_effects(self) -> Any:
        """Average effects with intervals, one row for each estimand and population."""
        return _frames.of_records(self._kind, self._averages)

    def __repr__(self) -> str:
        return self._words.rstrip()

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self._words)}</pre>"


class MatchGroup:
    """The patients most like one patient, and their curves."""

    def __init__(self, found: dict[str, Any], words: str, kind: str) -> None:
        self._found, self._words, self._kind = found, words, kind

    @property
    def id(self) -> str:
        """The patient."""
        return str(self._found["id"])

    @property
    def treatment(self) -> str:
        """The patient's own arm."""
        return str(self._found["treatment"])

    @property
    def cure_effect(self) -> float:
        """The cure effect."""
        return float(self._found["cure_effect"])

    @property
    def time_effect(self) -> float | None:
        """The time effect, where it is defined."""
        return self._found["time_effect"]  # type: ignore[no-any-return]

    @property
    def covariates(self) -> Record:
        """The patient's covariates."""
        return Record(self._found["covariates"])

    @property
    def cure(self) -> Any:
        """Both groups matched for cure: arm, rank, id, distance, outcome, covariates, and what each covariate
        contributes to the squared distance."""
        return self._members("cure")

    @property
    def time(self) -> Any:
        """Both groups matched for time."""
        return self._members("time_groups")

    def _members(self, which: str) -> Any:
        rows = []
        for arm in ("treated", "control"):
            for rank, m in enumerate(self._found[which][arm]["members"], 1):
                row = {"arm": arm, "rank": rank, **{k: m[k] for k in ("id", "distance", "time", "event", "counts")}}
                row.update(m["covariates"])
                row.update({f"share_{name}": share for name, share in m["shares"].items()})
                rows.append(row)
        return _frames.of_records(self._kind, rows)

    @property
    def curves(self) -> Any:
        """The Kaplan–Meier curves of the four groups, one row for each step."""
        rows = []
        for which, name in (("cure", "cure"), ("time_groups", "time")):
            for arm in ("treated", "control"):
                rows += [{"matched_for": name, "arm": arm, **step} for step in self._found[which][arm]["curve"]]
        return _frames.of_records(self._kind, rows)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``dvim match --json`` prints it."""
        return self._found

    def plot(self, ax: Any = None) -> Any:
        """The curves of the groups: two axes, matched for cure and matched for time."""
        from ._plot import group_curves

        return group_curves(self._found, ax)

    def __repr__(self) -> str:
        return self._words.rstrip()


def changed_files(place: str, run: Any) -> None:
    """Warns of files of a run that were changed since it was written."""
    if changed := run.changed():
        warn([{"code": "changed_files", "severity": "warning", "column": None, "count": len(changed), "rows": [],
               "found": f"in `{place}` {', '.join(changed)}",
               "rule": "the files of a run are written once, with their hashes in summary.json",
               "remedy": "what is shown here comes from run.dvim, which is intact; save the run elsewhere to have whole files"}],
             stacklevel=4)
