"""Several analyses at once: imputed data sets that are pooled, and every arm against one control."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from . import _dvim, _frames
from ._analysis import Analysis, Rows, changed_files
from ._errors import warn
from ._options import label
from ._progress import Progress, Watching
from ._record import Record


class Several(Mapping[str, Analysis]):
    """Analyses by name, and what they say together."""

    def __init__(self, found: Any, kind: str, rows: Sequence[Rows | None] = ()) -> None:
        self._found, self._kind, self._rows = found, kind, rows
        self._names: list[str] = [run["name"] for run in self.summary.to_dict()["runs"]]
        self._made: dict[str, Analysis] = {}

    @cached_property
    def summary(self) -> Record:
        """Everything about them together, as in ``summary.json``."""
        return Record(json.loads(self._found.record()))

    def average_effects(self) -> Any:
        """Average effects with standard errors and intervals, one row each."""
        return _frames.frame(self._kind, self._found.averages())

    def save(self, path: str | os.PathLike[str], *, force: bool = False, format: str = "csv") -> None:
        """Writes all of it into a directory, each analysis into a run of its own, as ``dvim fit`` does. It appears whole or
        not at all. ``force`` replaces a directory of this kind, and nothing else."""
        self._found.save(os.fspath(path), force, format)

    def _name(self, key: Any) -> str:
        return str(label(key))

    def __getitem__(self, key: Any) -> Analysis:
        name = self._name(key)
        if name not in self._names:
            raise KeyError(f"there is no {key!r}; there are {', '.join(map(repr, self._names))}")
        if name not in self._made:
            i = self._names.index(name)
            # Arms are parts of one table, imputed data sets may each have a table.
            rows = self._rows[min(i, len(self._rows) - 1)] if self._rows else None
            self._made[name] = Analysis(self._found.run(i), self._kind, rows)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, key: object) -> bool:
        return self._name(key) in self._names

    def __repr__(self) -> str:
        return str(self._found.text()).rstrip()

    def _repr_html_(self) -> str:
        return str(self._found.card())


class Pooled(Several):
    """Imputed data sets, analysed one by one and pooled by Rubin's rules. A mapping from the name of each data set, or its
    number from 1, to its :class:`dvim.Analysis`.

    >>> import dvim, pandas as pd
    >>> one = dvim.simulate("both-overlap", n=1000)
    >>> two = one.assign(x11=one.x11 + 0.1)   # stands for another imputation
    >>> roles = dict(time="time", event="event", treatment="treatment", horizon=800)
    >>> p = dvim.fit(pd.concat([one.assign(m=1), two.assign(m=2)]), imputation="m", **roles)
    >>> list(p), len(p.effects) == len(p[2].effects)
    (['m 1', 'm 2'], True)
    >>> p.average_effects().columns[:3].tolist()
    ['estimand', 'population', 'estimate']
    """

    @cached_property
    def effects(self) -> Any:
        """The pooled effects of each patient, one row each: the columns of ``effects.csv``, with degrees of freedom and the
        share of information that is missing. A value is there where every data set defines it."""
        rows = self._rows[0] if self._rows else None
        return _frames.with_ids(self._kind, self._found.effects(), rows)

    def _name(self, key: Any) -> str:
        is_number = isinstance(key, int) and not isinstance(key, bool)
        return self._names[key - 1] if is_number and 0 < key <= len(self._names) else super()._name(key)


class Arms(Several):
    """Every arm against one control. A mapping from the label of each arm to its :class:`dvim.Analysis`.

    :meth:`average_effects` has one row for each estimand and arm, with intervals that hold for all arms at once
    (``low_simultaneous``, ``high_simultaneous``; Bonferroni) and p-values adjusted for their number (``p_holm``). Each arm is
    compared among its own patients and those of the control, so the averages are over different patients.

    >>> import dvim
    >>> df = dvim.simulate("both-overlap", n=2000)
    >>> df["arm"] = df.treatment.map({0: "none", 1: "A"}).where(df.index % 3 > 0, "B")
    >>> arms = dvim.fit(df, time="time", event="event", treatment="arm", horizon=800, treated="all", control="none",
    ...                 drop="treatment", group_size=20)
    >>> list(arms), arms["A"].horizon
    (['A', 'B'], 800.0)
    >>> sorted(set(arms.average_effects().arm))
    ['A', 'B']
    """


def several(found: Any, kind: str, rows: Sequence[Rows | None] = ()) -> Pooled | Arms:
    """What was fitted or opened, with what is worth knowing of it as warnings."""
    made: Pooled | Arms = (Arms if json.loads(found.record())["kind"] == "arms" else Pooled)(found, kind, rows)
    problems, notes = found.warnings()
    for name, problem in problems:
        problem = json.loads(problem)
        warn([{**problem, "found": f"in `{name}`: {problem['found']}"}], stacklevel=4)
    for note in notes:
        warn([{"code": "rows_dropped", "severity": "warning", "column": None, "count": 0, "rows": [], "found": note,
               "rule": "an imputed data set has no gaps", "remedy": "leave those rows out to hear no more of it"}], stacklevel=4)
    return made


def open(path: str | os.PathLike[str], *, frame: str | None = None, threads: int | None = None,  # noqa: A001
         progress: bool | Progress | None = None) -> Analysis | Pooled | Arms:
    """Opens a run that :meth:`Analysis.save` or ``dvim fit`` wrote. Effects are the same to the last bit.

    A directory of several runs, of imputed data sets or of arms, gives a :class:`Pooled` or an :class:`Arms`. ``frame`` is
    the kind of frames to answer with: ``"pandas"``, ``"polars"`` or ``"pyarrow"``.
    """
    place, kind = os.fspath(path), frame if frame is not None else _frames.default_kind()
    with Watching(progress) as shown:
        found = _dvim.open_all(place, threads, shown)
        if found is None:
            run = _dvim.open_run(place, threads, shown)
            changed_files(place, run)
            return Analysis(run, kind)
    made = several(found, kind)
    for i, member in enumerate(made.summary.to_dict()["runs"]):
        changed_files(os.path.join(place, member["folder"]), found.run(i))
    return made
