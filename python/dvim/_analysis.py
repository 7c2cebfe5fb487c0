"""From a frame to both effects of each patient."""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _dvim, _frames
from ._errors import NoSuchUnit, Refused, Warning, warn
from ._frames import Frame
from ._options import bins, label, listed, options_json, roles_json
from ._progress import Progress, Watching
from ._record import Record, record

if TYPE_CHECKING:
    from ._plot import Plots

Where = Mapping[str, Any]


def _survival_outcome(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Times and events of a scikit-survival outcome: a structured array of one boolean field and one of numbers."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is None or len(names) != 2:
        raise Refused(
            "error: y is not a structured array of two fields\n  rule:   y holds an event (boolean) and a time, as in "
            'scikit-survival\n  remedy: use sksurv.util.Surv.from_arrays(event, time), or time="..." and event="..."'
        )
    is_event = [y.dtype[n].kind == "b" for n in names]
    if sum(is_event) != 1:
        raise Refused(
            f"error: the fields of y are {y.dtype}\n  rule:   one field is boolean, the event, and one a number, the time"
            "\n  remedy: use sksurv.util.Surv.from_arrays(event, time)"
        )
    event, time = (names[is_event.index(True)], names[is_event.index(False)])
    return np.asarray(y[time]), np.asarray(y[event])


def _prepare(data: Any, *, time: Any, event: Any, treatment: Any, y: Any, start: str | None, end: str | None,
             id: str | None, covariates: Iterable[str] | None, drop: Any, names: Sequence[str] | None,
             categorical: Any, threads: int | None) -> tuple[Frame, dict[str, str]]:
    """The table with every column that was handed over beside it, and the names of the parts."""
    if y is not None:
        if time is not None or event is not None:
            raise Refused("error: y= was given with time= or event=\n  rule:   y holds both\n  remedy: give one of them")
        time, event = _survival_outcome(y)
    parts = {"time": time, "event": event, "treatment": treatment}
    for part, value in parts.items():
        if value is None and not (part == "time" and start is not None):
            raise Refused(
                f"error: no {part} was given\n  rule:   time, event and treatment are columns of the table, or arrays\n"
                f'  remedy: add {part}="name of the column"'
            )
    if time is not None and start is not None:
        raise Refused("error: both time= and start= were given\n  rule:   the time is one column, or two dates\n  remedy: drop one")
    named = {part: value for part, value in parts.items() if isinstance(value, str)}
    beside = {part: value for part, value in parts.items() if value is not None and not isinstance(value, str)}

    def choose(found: Sequence[str]) -> str | None:
        roles = roles_json({p: named.get(p, p) for p in parts}, horizon=1.0, start=start, end=end, id=None,
                           covariates=covariates, treated=None, control=None, numeric=(), categorical=(), drop=drop,
                           where=None, missing="refuse", zero_time="refuse")
        return _dvim.id_column(list(found), roles)

    frame = _frames.read(data, id=id, choose_id=choose, names=names, text=listed(categorical), threads=threads)
    if beside and isinstance(data, (str, os.PathLike)):
        raise Refused(
            f"error: {', '.join(beside)} came as arrays, the table as a file\n  rule:   a file holds all of its columns\n"
            "  remedy: name columns of the file, or pass a data frame"
        )
    columns = dict(named)
    for part, value in beside.items():
        columns[part] = _frames._free(part, frame.table.names)
        _frames._add(frame.table, columns[part], value, False)
    return frame, columns


def fit(
    data: Any,
    *,
    time: Any = None,
    event: Any = None,
    treatment: Any = None,
    horizon: float,
    y: Any = None,
    start: str | None = None,
    end: str | None = None,
    id: str | None = None,
    covariates: Iterable[str] | None = None,
    treated: Any = None,
    control: Any = None,
    weights: str | None = None,
    cluster: str | None = None,
    entry: str | None = None,
    cause: Any = None,
    numeric: str | Iterable[str] = (),
    categorical: str | Iterable[str] = (),
    drop: str | Iterable[str] = (),
    where: Where | None = None,
    missing: str = "refuse",
    zero_time: str = "refuse",
    estimator: str = "paper",
    group_size: int | str | None = None,
    splits: int = 1,
    folds: int = 10,
    latency: str = "auto",
    train_fraction: float = 0.35,
    metric: str = "separate",
    scale: str = "standard",
    seed: int = 1,
    exact: str | Iterable[str] = (),
    caliper: Mapping[str, float | str] | None = None,
    exclude_self: bool = False,
    confidence: float = 0.95,
    by: str | Iterable[str] | Mapping[str, int] | None = None,
    audit: bool = True,
    names: Sequence[str] | None = None,
    threads: int | None = None,
    progress: bool | Progress | None = None,
) -> Analysis:
    """Estimates both effects for each patient of a table.

    The *cure effect* is how much treatment changes the probability of being event-free at the horizon; the *time effect*
    is how much it changes the mean event time of those who have the event before it.

    Parameters
    ----------
    data
        One row for each patient: a pandas, polars or pyarrow frame, anything with ``__arrow_c_stream__`` or
        ``__dataframe__``, a dict of columns, a NumPy array (with ``names``), or the path of a CSV file.
        Doubles are read where they are. The index of a pandas frame, unless it is the plain 0, 1, 2, …, names the patients.
    time, event, treatment
        Names of columns, or arrays. The event is 1 or true if it was seen, 0 or false if the patient was censored.
    horizon
        H, in the unit of the times. It defines what is estimated, so it has no default.
    y
        A scikit-survival outcome, instead of ``time`` and ``event``.
    start, end
        Columns of dates, instead of ``time``: times are then in days.
    id
        The column of ids. By default the column ``id`` if there is one, else the index, else row numbers from 1.
    covariates
        By default all other columns.
    treated, control
        Which values of the treatment mean treated and control; with both, rows of any other arm are left out and counted.
    weights, cluster, entry
        Columns: case weights; clusters, by which standard errors are then; the time from which a patient is watched.
    cause
        The event column holds causes (0 is censored): which one is of interest.
    numeric, categorical, drop
        Columns that are numbers, or categories, whatever they look like; columns to ignore.
    where
        Keep only rows in which each of these columns has this value: ``{"etype": 1}``.
    missing
        ``"refuse"``, ``"drop"``, or ``"indicator"`` (fill in and match on having done so).
    zero_time
        Times of zero: ``"refuse"``, ``"drop"`` or ``"shift"`` (half of the smallest positive time).
    estimator
        ``"paper"``: Algorithm 1. ``"adjusted"``: groups corrected by a cross-fitted model; every patient is estimated.
    group_size
        K: patients of each arm in each match group. 50, or chosen from the data by the adjusted estimator.
    splits, folds, latency
        Of the adjusted estimator: repeats, each with folds of its own, over which estimates are averaged; folds; ``"auto"``, ``"log-normal"``, ``"weibull"`` or ``"log-logistic"``.
    train_fraction, metric, scale, seed
        Share of each arm that trains; ``"separate"`` or ``"combined"``; ``"standard"`` or ``"none"``; who trains.
    exact, caliper, exclude_self
        Covariates that groups must agree on; largest differences, ``{"age": 5, "bmi": "0.2sd"}``; keep a patient out of the
        patient's own group.
    confidence
        Level of every interval.
    by
        Average effects by subgroup too: ``"sex"``, ``["sex", "age:4"]`` or ``{"age": 4}`` (bins of equal size).
    audit
        False gives the effects alone, sooner: no standard errors of averages, balance, heterogeneity or sensitivity.
        :meth:`Analysis.audit` makes them later.
    names
        Names of the columns of an array.
    threads
        Threads to use, all cores by default. The result is the same with any number.
    progress
        False shows nothing; a function is called with the stage, the steps done and their number.

    Returns
    -------
    Analysis

    Raises
    ------
    dvim.Refused
        If the input breaks a rule; the message names the column, the rows, the rule and the remedy.

    Examples
    --------
    >>> import dvim
    >>> df = dvim.simulate("both-overlap", n=2000, seed=1)
    >>> a = dvim.fit(df, time="time", event="event", treatment="treatment", horizon=800, seed=1)
    >>> len(a.effects)
    1300
    >>> a.average_effects().query("population == 'all' and estimand == 'cure_effect'").estimate.item() > 0
    True
    """
    frame, columns = _prepare(data, time=time, event=event, treatment=treatment, y=y, start=start, end=end, id=id,
                              covariates=covariates, drop=drop, names=names, categorical=categorical, threads=threads)
    roles = roles_json(columns, horizon=horizon, start=start, end=end, id=frame.id if frame.ids is not None else id,
                       covariates=covariates, treated=treated, control=control, numeric=numeric,
                       categorical=categorical, drop=drop, where=where, missing=missing, zero_time=zero_time,
                       weights=weights, cluster=cluster, entry=entry, cause=cause)
    options = options_json(estimator=estimator, group_size=group_size, splits=splits, folds=folds, latency=latency,
                           train_fraction=train_fraction, metric=metric, scale=scale, seed=seed, exact=exact,
                           caliper=caliper, exclude_self=exclude_self, confidence=confidence)
    with Watching(progress) as shown:
        run = _dvim.fit(frame.table, frame.source, roles, options, bins(by), audit, group_size == "auto", threads, shown)
    analysis = Analysis(run, frame.kind, _Rows(frame))
    warn(analysis.summary["warnings"])
    return analysis


class _Rows:
    """Where the rows of a pandas frame went, so that results carry its index."""

    def __init__(self, frame: Frame) -> None:
        self.index = frame.index
        self._ids = frame.id_values

    def of(self, ids: Sequence[str]) -> Any:
        if self.index is None:
            return None
        if self._ids is None:
            positions = np.array(ids, dtype=np.int64) - 1
        else:
            place = {_frames._text(v).strip(): i for i, v in enumerate(np.asarray(self._ids.astype(object)).tolist())}
            positions = np.array([place[i] for i in ids], dtype=np.int64)
        return self.index.take(positions)


def _plain(texts: Sequence[str | None]) -> tuple[str, Any, None]:
    """Texts as whole numbers, where all of them are."""
    try:
        numbers = np.array(texts, dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        return ("text", texts, None)
    return ("i8", numbers, None) if [str(n) for n in numbers.tolist()] == list(texts) else ("text", texts, None)


class Analysis:
    """What a fit found. Made by :func:`dvim.fit` and :func:`dvim.open`; its display says what was estimated, from how
    many, both average effects with their intervals, and what to worry about."""

    def __init__(self, run: Any, kind: str, rows: _Rows | None = None) -> None:
        self._run = run
        self._kind = kind
        self._rows = rows

    def _frame(self, raw: list[tuple[str, str, Any, Any]], index: bool = False) -> Any:
        columns = _frames.columns_of(raw)
        found = None
        if "id" in columns:
            ids = columns["id"][1]
            if index and self._rows is not None and self._kind == "pandas":
                found = self._rows.of(ids)
            if columns["id"][0] == "text":
                columns["id"] = _plain(ids)
        if "treatment" in columns and columns["treatment"][0] == "text":
            columns["treatment"] = _plain(columns["treatment"][1])
        return _frames.build(self._kind, columns, found)

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
        """What is worth knowing of the input."""
        from ._errors import Problem

        return [Warning(Problem._of(w)) for w in self.summary.to_dict()["warnings"]]

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
        """How alike the arms are in each covariate, before matching and in the groups matched for cure and for time:
        standardised differences, variance ratios, Kolmogorov–Smirnov distances. One row for each covariate."""
        found = self._audit.get("balance")
        if found is None:
            why = "; ".join(self._audit.get("left_out", [])) or "the run was made without it"
            raise Refused(
                f"error: this run has no balance: {why}\n  rule:   balance is that of the groups of the paper's estimator\n"
                "  remedy: fit with --estimator paper"
            )
        rows = []
        for c in found["covariates"]:
            row = {"covariate": c["covariate"]}
            for when in ("before", "cure", "time"):
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
        """The patients behind the estimate of one patient.

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
            effects, members, n_far, n_unserved = self._run.predict(
                frame.table, chosen, max_distance, groups, threads, shown
            )
        for n, why in ((n_far, "a group reaches beyond --max-distance"),
                       (n_unserved, "too few candidates satisfy the constraints of the run")):
            if n:
                found = f"{n} patients have no estimate: {why}"
                warn([{"code": "no_estimate", "severity": "warning", "column": None, "count": n, "rows": [],
                       "found": found, "rule": "nobody is given an estimate that the cohort cannot support",
                       "remedy": "see the column flags"}])
        columns = _frames.columns_of(effects)
        columns["id"] = _plain(columns["id"][1])
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
        from ._errors import Exists

        place = os.fspath(path)
        if os.path.exists(place) and not force:
            raise Exists(f"error: `{place}` exists already; choose another name or add --force")
        page = self._run.page(title, about, time_unit)
        partial = f"{place}.dvim-partial-{os.getpid()}"
        try:
            with builtins.open(partial, "w", encoding="utf-8") as out:
                out.write(page)
            os.replace(partial, place)
        finally:
            if os.path.exists(partial):
                os.remove(partial)

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
    """The patients behind one estimate, and their curves."""

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
                row = {"arm": arm, "rank": rank, **{k: m[k] for k in ("id", "distance", "time", "event")}}
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


def open(path: str | os.PathLike[str], *, frame: str | None = None, threads: int | None = None,  # noqa: A001
         progress: bool | Progress | None = None) -> Analysis:
    """Opens a run that :meth:`Analysis.save` or ``dvim fit`` wrote. Effects are the same to the last bit.

    ``frame`` is the kind of frames to answer with: ``"pandas"``, ``"polars"`` or ``"pyarrow"``.
    """
    with Watching(progress) as shown:
        run = _dvim.open_run(os.fspath(path), threads, shown)
    if changed := run.changed():
        warn([{"code": "changed_files", "severity": "warning", "column": None, "count": len(changed), "rows": [],
               "found": f"in `{os.fspath(path)}` {', '.join(changed)}",
               "rule": "the files of a run are written once, with their hashes in summary.json",
               "remedy": "what is shown here comes from run.dvim, which is intact; save the run elsewhere to have whole files"}])
    return Analysis(run, frame if frame is not None else _frames.default_kind())
