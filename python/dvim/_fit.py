"""From a table, or several, to an analysis: the one list of arguments, and what is made of it."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_overloads, overload

import numpy as np

from . import _dvim, _frames
from ._analysis import Analysis, Rows
from ._errors import Refused, warn
from ._frames import Frame
from ._options import bins, listed, options_json, roles_json
from ._progress import Progress, Watching
from ._several import Arms, Pooled, several


def survival_outcome(y: Any) -> tuple[np.ndarray, np.ndarray]:
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


def prepare(given: Mapping[str, Any]) -> tuple[Frame, str, str]:
    """The table with every column that was handed over beside it, and what is asked of it, as the engine takes it."""
    data, start = given["data"], given["start"]
    time, event = given["time"], given["event"]
    if given["y"] is not None:
        if time is not None or event is not None:
            raise Refused("error: y= was given with time= or event=\n  rule:   y holds both\n  remedy: give one of them")
        time, event = survival_outcome(given["y"])
    if given.get("censor") is not None:
        if event is not None:
            raise Refused("error: both event= and censor= were given\n  rule:   one column says who had the event\n  remedy: drop one")
        event = given["censor"]
    parts = {"time": time, "event": event, "treatment": given["treatment"]}
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
        return _dvim.id_column(list(found), roles_json({p: named.get(p, p) for p in parts}, {**given, "id": None}))

    frame = _frames.read(data, id=given["id"], choose_id=choose, names=given["names"], text=listed(given["categorical"]),
                         threads=given["threads"])
    if beside and isinstance(data, (str, os.PathLike)):
        raise Refused(
            f"error: {', '.join(beside)} came as arrays, the table as a file\n  rule:   a file holds all of its columns\n"
            "  remedy: name columns of the file, or pass a data frame"
        )
    columns = dict(named)
    for part, value in beside.items():
        columns[part] = _frames._free(part, frame.table.names)
        _frames._add(frame.table, columns[part], value, False)
    id = frame.id if frame.ids is not None else given["id"]
    options = options_json(given)
    _dvim.refuse_idle(options, _unusual(given))
    return frame, roles_json(columns, {**given, "id": id}), options


@overload
def fit(data: Any, *, treated: Literal["all"], control: Any, horizon: float, **arguments: Any) -> Arms: ...
@overload
def fit(data: Any, *, imputation: str, horizon: float, **arguments: Any) -> Pooled: ...
@overload
def fit(data: list[Any], *, horizon: float, **arguments: Any) -> Pooled: ...
@overload
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
    censor: str | None = None,
    labels: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    numeric: str | Iterable[str] = (),
    categorical: str | Iterable[str] = (),
    drop: str | Iterable[str] = (),
    allow: str | Iterable[str] = (),
    imputation: None = None,
    where: Mapping[str, Any] | None = None,
    missing: str = "refuse",
    zero_time: str = "refuse",
    estimator: str = "adjusted",
    group_size: int | str | None = None,
    splits: int | None = None,
    folds: int | None = None,
    latency: str = "auto",
    learners: str = "all",
    penalty: str | float = "prior",
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
) -> Analysis: ...
def fit(data: Any, **arguments: Any) -> Any:
    """Estimates both effects for each patient of a table.

    The *cure effect* is how much treatment changes the probability of being event-free at the horizon; the *time effect*
    is how much it changes the mean event time of those who have the event before it.

    Parameters
    ----------
    data
        One row for each patient: a pandas, polars or pyarrow frame, anything with ``__arrow_c_stream__`` or
        ``__dataframe__``, a dict of columns, a NumPy array (with ``names``), or the path of a file. A list of tables is
        one of imputed data sets, which are analysed one by one and pooled.
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
        ``treated="all"`` compares every arm with ``control``.
    weights, cluster, entry
        Columns: case weights; clusters, by which standard errors are then; the time from which a patient is watched.
    cause
        The event column holds causes (0 is censored): which one is of interest.
    censor
        A column that says who was censored, instead of ``event``: 0 is an event, as in ``CNSR`` of CDISC ADTTE.
    labels
        What arms, times, the event and covariates are called, for every page, table and message: a mapping such as
        ``{"time_unit": "days", "treated": "chemotherapy", "covariates": {"age": "Age [years]"}}``, or the path of a file in
        TOML. They are kept in the run and change no number.
    numeric, categorical, drop
        Columns that are numbers, or categories, whatever they look like; columns to ignore.
    allow
        Columns to take as covariates although they look like an outcome, an identifier, a code for unknown values or a
        mistake; ``"duplicates"`` where rows may repeat each other.
    imputation
        The table holds imputed data sets one below the other: the column that numbers them (``.imp`` in R's mice). Each is
        analysed by itself and the results are pooled by Rubin's rules; patients are found by their ids.
    where
        Keep only rows in which each of these columns has this value: ``{"etype": 1}``.
    missing
        ``"refuse"``, ``"drop"``, or ``"indicator"`` (fill in and match on having done so).
    zero_time
        Times of zero: ``"refuse"``, ``"drop"`` or ``"shift"`` (half of the smallest positive time).
    estimator
        ``"adjusted"``: a model learned from other patients (cross-fitted), corrected by the patients most like this one; every
        patient is estimated. ``"paper"``: the paper's Algorithm 1, in which some patients train and, for each of the others, the
        ``group_size`` most similar patients of each arm give both effects alone.
    group_size
        K: patients of each arm in each match group. Chosen from the data (``"auto"``), or 50 with ``estimator="paper"``.
    splits, folds, latency, learners, penalty
        Of the adjusted estimator: honest splits in all (by default ten deals up to 2,000 patients, fewer for more, one from 15,000; as many as ``folds`` where only these are given); splits that share one deal at most (10), each
        patient being left out by one of a deal, so that estimates are means over ``splits / folds`` of them; ``"auto"``,
        ``"log-normal"``, ``"weibull"``, ``"log-logistic"`` or ``"generalised-gamma"``; what curves are learned by: ``"all"``
        (a cure model, and proportional and boosted hazards as far as they predict better), ``"cure"``, ``"hazards"`` or
        ``"boosted"`` alone; what holds the slopes of its models: ``"prior"``, which is learned with them, ``"ridge"``, ``"elastic-net"``, or the share of the norm in an elastic net.
    train_fraction, metric, scale
        Of the paper's estimator: share of each arm that trains; ``"separate"`` or ``"combined"``; ``"standard"`` or ``"none"``.
    seed
        Decides, with the ids, who trains and who is estimated.
    exact, caliper, exclude_self
        Covariates that groups must agree on; largest differences, ``{"age": 5, "bmi": "0.2sd"}``; keep a patient out of the
        patient's own group, which the adjusted estimator always does.
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
        With ``imputation`` or a list of tables a :class:`dvim.Pooled`, with ``treated="all"`` a :class:`dvim.Arms`: both are
        mappings to the analyses that they are made of.

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
    2000
    >>> a.average_effects().query("population == 'all' and estimand == 'cure_effect'").estimate.item() > 0
    True
    """
    given = bound("fit", SIGNATURE, data, arguments)
    tables = list(data) if isinstance(data, (list, tuple)) else [data]
    prepared = [prepare({**given, "data": table}) for table in tables]
    if not prepared:
        raise Refused("error: there is no table\n  rule:   a list holds imputed data sets\n  remedy: pass one table, or several")
    frame, roles, options = prepared[0]
    imputation = given["imputation"]
    asked = (bins(given["by"]), bool(given["audit"]), given["threads"])
    with Watching(given["progress"]) as shown:
        if not _dvim.asks_for_several(len(tables), imputation, roles):
            analysis = Analysis(_dvim.fit(frame.table, frame.source, roles, options, *asked, shown), frame.kind, Rows(frame))
        else:
            frames = [f for f, _, _ in prepared]
            names = [f.source if isinstance(t, (str, os.PathLike)) else f"data set {k}"
                     for k, (t, f) in enumerate(zip(tables, frames), 1)]
            found = _dvim.fit_several([f.table for f in frames], [f.source for f in frames], names, imputation, roles,
                                      options, *asked, shown)
            # Rows of one patient in several imputed data sets have several places in the index: none is the patient's.
            rows = [None if imputation is not None else Rows(f) for f in frames]
            return several(found, frame.kind, rows)
    warn(json.loads(analysis._run.warnings()))
    warn_verdict(analysis)
    return analysis


def warn_verdict(analysis: Analysis) -> None:
    """Warns where an effect has reservations or should not be relied on, in the words that every page has."""
    found = analysis._run.verdict()
    if found is None or not found[2]:
        return
    said, reasons, _ = found
    warn([{"code": "verdict", "severity": "warning", "column": None, "count": 0, "rows": [], "found": " ".join(said),
           "rule": "an average can be relied on where every check holds", "remedy": " ".join(reasons)}], stacklevel=4)


def _unusual(given: Mapping[str, Any]) -> list[str]:
    """The names of arguments that are not what they are without being given; of a group size, only ``auto``."""
    usual = {name: p.default for name, p in SIGNATURE.parameters.items()}
    names = [name for name, value in given.items() if isinstance(value, (str, int, float)) and value != usual.get(name)]
    return [name.replace("_", "-") for name in names if name != "group_size" or given[name] == "auto"]


SIGNATURE = inspect.signature(get_overloads(fit)[-1])
"""The one list of arguments: what :func:`dvim.check` and :func:`dvim.compare` take is taken from it."""
fit.__signature__ = SIGNATURE  # type: ignore[attr-defined]


def bound(name: str, signature: inspect.Signature, data: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, with the defaults of those that were not given."""
    try:
        given = signature.bind(data, **arguments)
    except TypeError as wrong:
        raise TypeError(f"{name}() {wrong}") from None
    given.apply_defaults()
    return given.arguments


def signature_without(names: Iterable[str], **more: Any) -> inspect.Signature:
    """The signature of :func:`fit` without some arguments and with others, of these defaults."""
    kept = [p for name, p in SIGNATURE.parameters.items() if name not in set(names)]
    new = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=d) for n, d in more.items()]
    return inspect.Signature([*kept, *new])
