"""Exceptions and warnings. Their words come from the engine, which spells arguments as Python writes them."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import Any

__all__ = ["Error", "Exists", "ModelError", "NoSuchUnit", "OpenError", "Problem", "Refused", "Warning"]

@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with the input or worth knowing of it."""

    code: str
    """A stable name, such as ``missing_values``."""
    severity: str
    """``error`` or ``warning``."""
    column: str | None
    """The column, where there is one."""
    count: int
    """How many rows are concerned."""
    rows: tuple[int, ...]
    """The first of them, counted from 1."""
    found: str
    """What was found."""
    rule: str
    """The rule that it breaks."""
    remedy: str
    """What to do."""

    @classmethod
    def _of(cls, record: dict[str, Any]) -> Problem:
        return cls(**{**record, "rows": tuple(record["rows"])})

    def __str__(self) -> str:
        column = f"column `{self.column}`: " if self.column else ""
        rows = ""
        if self.rows:
            more = ", …" if self.count > len(self.rows) else ""
            rows = f" (row{'' if self.count == 1 else 's'} {', '.join(map(str, self.rows))}{more})"
        return f"{column}{self.found}{rows}\n  rule:   {self.rule}\n  remedy: {self.remedy}"


class Error(Exception):
    """Every failure of dvim. The message says what was found, the rule, and the remedy."""

    def __init__(self, message: str, *more: object) -> None:
        super().__init__(message.removeprefix("error: ").replace("\nerror: ", "\n"))

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class Refused(Error, ValueError):
    """The input breaks a rule. ``problems`` holds every rule it breaks, not only the first.

    >>> import dvim
    >>> try:
    ...     dvim.fit(dvim.simulate("both-overlap", n=200), time="tme", event="event", treatment="treatment", horizon=800)
    ... except dvim.Refused as refused:
    ...     print(refused.problems[0].code, "|", refused.problems[0].column)
    no_such_column | tme
    """

    problems: tuple[Problem, ...]

    def __init__(self, message: str, problems: str = "[]") -> None:
        super().__init__(message)
        self.problems = tuple(Problem._of(p) for p in json.loads(problems))


class ModelError(Error):
    """The cure model of an arm could not be fitted at all. ``arm`` says which."""

    def __init__(self, message: str, arm: str = "") -> None:
        super().__init__(message)
        self.arm = arm


class NoSuchUnit(Error, KeyError):
    """There is no patient of that id. ``id`` is the id that was asked for."""

    def __init__(self, message: str, id: str = "") -> None:
        super().__init__(message)
        self.id = id


class OpenError(Error, OSError):
    """A directory cannot be opened as a run."""


class Exists(Error, FileExistsError):
    """Something is there already; ``force=True`` replaces a run, and nothing but a run."""


class Warning(UserWarning):  # noqa: A001 - the name that users read
    """Something worth knowing; the analysis goes on. ``problem`` holds its parts."""

    problem: Problem

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def warn(problems: list[dict[str, Any]], stacklevel: int = 3) -> None:
    for record in problems:
        if record["severity"] == "warning":
            warnings.warn(Warning(Problem._of(record)), stacklevel=stacklevel)
