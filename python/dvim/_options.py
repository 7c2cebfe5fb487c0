"""What can be asked for, as the engine's records take it: values by the kinds of the engine's list of settings."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _dvim
from ._errors import Refused


def listed(value: str | Iterable[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else [str(v) for v in value]


def label(value: Any) -> str | None:
    """A value of a column as files write it."""
    if value is None:
        return None
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def filters(where: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    if where is not None and not isinstance(where, Mapping):
        raise Refused(
            f"error: where is {where!r}\n  rule:   rows are kept by the value of a column\n"
            '  remedy: use where={"column": value}, or filter the frame before: dvim.fit(df.query("..."), ...)'
        )
    return [(str(column), label(value) or "") for column, value in (where or {}).items()]


def bins(by: str | Iterable[str] | Mapping[str, int] | None) -> list[str]:
    """``"sex"``, ``["sex", "age:4"]`` or ``{"age": 4}``."""
    if isinstance(by, Mapping):
        return [f"{name}:{n}" for name, n in by.items()]
    return listed(by)


def calipers(caliper: Mapping[str, float | str] | None) -> list[dict[str, Any]]:
    if caliper is not None and not isinstance(caliper, Mapping):
        raise Refused(
            f"error: caliper is {caliper!r}\n  rule:   a caliper belongs to a covariate\n"
            '  remedy: use caliper={"age": 5}, or {"age": "0.2sd"} in standard deviations'
        )
    out = []
    for covariate, width in (caliper or {}).items():
        text = str(width).strip()
        in_sd = text.endswith("sd")
        try:
            number = float(text.removesuffix("sd"))
        except ValueError:
            raise Refused(
                f"error: the caliper of `{covariate}` is {width!r}\n  rule:   a caliper is a width in the unit of its "
                'covariate, or in standard deviations\n  remedy: write caliper={"age": 5} or caliper={"age": "0.2sd"}'
            ) from None
        out.append({"covariate": covariate, "width": number, "in_sd": in_sd})
    return out


def labels(given: Mapping[str, Any] | str | os.PathLike[str] | None) -> dict[str, Any]:
    """What things are called: a mapping, or the path of a file in TOML."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    try:
        with open(given, "rb") as file:
            return tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, TypeError) as wrong:
        raise Refused(
            f"error: the labels {given!r}: {wrong}\n  rule:   labels are a mapping, or a file in TOML\n"
            '  remedy: use labels={"time_unit": "days", "treated": "chemotherapy"}'
        ) from None


def number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise Refused(
            f"error: {name} is {value!r}\n  rule:   {name} is a number\n  remedy: give it in the unit of the times"
        ) from None


def whole(name: str, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 0:
        raise Refused(
            f"error: {name} is {value!r}\n  rule:   {name} is a whole number of at least 0\n  remedy: give one"
        )
    return int(value.__index__())


SETTINGS: dict[str, dict[str, Any]] = {s["argument"]: s for s in json.loads(_dvim.settings())}
"""The engine's list of settings, by their names in Python."""


def _word(name: str, value: Any) -> Any:
    words = SETTINGS[name]["words"]
    if value not in words:
        raise Refused(
            f"error: {name} is {value!r}\n  rule:   {name} is one of {', '.join(words)}\n  remedy: use {name}={json.dumps(words[0])}"
        )
    return value


_READ: dict[str, Callable[[str, Any], Any]] = {
    "columns": lambda _, value: listed(value),
    "label": lambda _, value: label(value),
    "pairs": lambda name, value: {"where": filters, "caliper": calipers}[name](value),
    "number": lambda name, value: number(name, value),
    "count": lambda name, value: None if value is None else whole(name, value),
    "word": _word,
    "switch": lambda _, value: bool(value),
}


def read(topic: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments about a topic, each as the engine takes a value of its kind."""
    of_topic = [s for s in SETTINGS.values() if s["topic"] == topic and s["argument"] in given]
    return {s["argument"]: _READ.get(s["kind"], lambda _, value: value)(s["argument"], given[s["argument"]]) for s in of_topic}


def roles_json(columns: Mapping[str, str], given: Mapping[str, Any]) -> str:
    """Which column plays which part, of the arguments of a call. ``columns`` names those that may come as arrays."""
    asked = read("columns", given)
    start, end = asked.pop("start"), asked.pop("end")
    if (start is None) != (end is None):
        raise Refused(
            "error: only one of start= and end= was given\n  rule:   follow-up has two dates\n  remedy: name both columns"
        )
    censor = asked.pop("censor", None)
    asked.update(
        time=columns.get("time") or "",
        event=columns["event"],
        censor=censor is not None,
        labels=labels(asked.pop("labels", None)),
        treatment=columns["treatment"],
        dates=[start, end] if start is not None else None,
        filters=asked.pop("where"),
    )
    if given["covariates"] is None:
        asked["covariates"] = None
    return json.dumps(asked)


def _share(penalty: str | float) -> float:
    """The share of the norm in an elastic net."""
    named = {"ridge": 0.0, "elastic-net": 0.5}
    text = penalty.removeprefix("elastic-net:") if isinstance(penalty, str) else penalty
    try:
        return named[text] if text in named else float(text)
    except ValueError:
        raise Refused(
            f"error: the penalty is {penalty!r}\n  rule:   it is prior, ridge, elastic-net, or the share of the norm in an elastic net\n"
            '  remedy: use penalty="prior", or penalty=0.5'
        ) from None


def options_json(given: Mapping[str, Any]) -> str:
    """How to analyse, of the arguments of a call."""
    asked = read("method", given)
    adjusted = asked["estimator"] == "adjusted"
    size = asked.pop("group_size")
    size = None if size in (None, "auto") else whole("group_size", size)
    options = json.loads(_dvim.default_options(adjusted))
    if size is not None:
        options["group_size"] = size
    if adjusted:
        family = None if asked["latency"] == "auto" else asked["latency"]
        options["adjusted"].update(splits=asked["splits"], folds=asked["folds"], latency=family, learners=asked["learners"], group_size=size)
        if asked["penalty"] != "prior":
            options["adjusted"]["elastic_net"] = _share(asked["penalty"])
    options.update({name: value for name, value in asked.items() if name in options}, calipers=asked["caliper"])
    return json.dumps(options)
