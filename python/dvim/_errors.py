"""Exceptions and warnings: the engine's messages, in the words of Python."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass
from typing import Any

__all__ = ["Error", "Exists", "ModelError", "NoSuchUnit", "OpenError", "Problem", "Refused", "Warning"]

# Options whose value is a word: only these words are taken for a value that follows the flag.
_WORDS = {
    "missing": {"refuse", "drop", "indicator"},
    "zero-time": {"refuse", "drop", "shift"},
    "estimator": {"paper", "adjusted"},
    "metric": {"separate", "combined"},
    "scale": {"standard", "none"},
    "latency": {"auto", "log-normal", "weibull", "log-logistic", "generalised-gamma"},
    "group-size": {"auto"},
    "format": {"csv", "json", "parquet"},
    "ties": {"breslow", "efron"},
}
_SWITCHES = {"force": "force=True", "exclude-self": "exclude_self=True", "confounded": "confounded=True"}
_LABELS = {"treated", "control"}
_FLAG = re.compile(r"--([a-z](?:[a-z-]*[a-z])?)(?:(?: |=)('(?:[^']|'\\'')*'|[^\s,;()?]+))?")
_NUMBER = re.compile(r"[-+]?[0-9.]+(?:e[-+]?[0-9]+)?$")


def in_python(message: str) -> str:
    """A message of the command line with its flags as arguments.

    >>> in_python("use --group-size 50, or --zero-time shift; dates are named with --start and --end")
    'use group_size=50, or zero_time="shift"; dates are named with start= and end='
    """

    def argument(found: re.Match[str]) -> str:
        flag, value = found.group(1), found.group(2)
        name = flag.replace("-", "_")
        rest = found.group(0)[2 + len(flag) :]
        if flag in _SWITCHES:
            return _SWITCHES[flag] + rest
        if value is not None:
            end = "." if value.endswith(".") and not _NUMBER.match(value) else ""
            bare = value[: len(value) - len(end)]
            if _NUMBER.match(bare):
                return f"{name}={bare.rstrip('.')}{'.' if bare.endswith('.') else end}"
            if bare in _WORDS.get(flag, ()):
                return f'{name}="{bare}"{end}'
            if flag in _LABELS:
                if bare.startswith("'"):
                    bare = bare[1:-1].replace("'\\''", "'")
                return f"{name}={json.dumps(bare, ensure_ascii=False)}{end}"
            if flag in {"caliper", "where"} and "=" in bare:
                column, _, width = bare.partition("=")
                width = width if _NUMBER.match(width) else json.dumps(width, ensure_ascii=False)
                return f"{name}={{{json.dumps(column, ensure_ascii=False)}: {width}}}{end}"
        return f"{name}={rest}"

    return _FLAG.sub(argument, message)


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
        words = {key: in_python(record[key]) for key in ("found", "rule", "remedy")}
        return cls(**{**record, **words, "rows": tuple(record["rows"])})

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
        super().__init__(in_python(message.removeprefix("error: ")).replace("\nerror: ", "\n"))

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
