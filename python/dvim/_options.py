"""What can be asked for, as the engine's records take it. No default and no rule of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
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
    return [(str(column), label(value) or "") for column, value in (where or {}).items()]


def bins(by: str | Iterable[str] | Mapping[str, int] | None) -> list[str]:
    """``"sex"``, ``["sex", "age:4"]`` or ``{"age": 4}``."""
    if isinstance(by, Mapping):
        return [f"{name}:{n}" for name, n in by.items()]
    return listed(by)


def calipers(caliper: Mapping[str, float | str] | None) -> list[dict[str, Any]]:
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


def number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise Refused(
            f"error: {name} is {value!r}\n  rule:   {name} is a number\n  remedy: give it in the unit of the times"
        ) from None


def whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 0:
        raise Refused(
            f"error: {name} is {value!r}\n  rule:   {name} is a whole number of at least 0\n  remedy: give one"
        )
    return int(value.__index__())


def roles_json(columns: Mapping[str, str], *, horizon: float, start: str | None, end: str | None, id: str | None,
               covariates: Iterable[str] | None, treated: Any, control: Any, numeric: Any, categorical: Any, drop: Any,
               where: Mapping[str, Any] | None, missing: str, zero_time: str, weights: str | None = None,
               cluster: str | None = None, entry: str | None = None, cause: Any = None) -> str:
    if (start is None) != (end is None):
        raise Refused(
            "error: only one of start= and end= was given\n  rule:   follow-up has two dates\n  remedy: name both columns"
        )
    asked = {
        "time": columns.get("time") or "",
        "event": columns["event"],
        "treatment": columns["treatment"],
        "horizon": number("horizon", horizon),
        "dates": [start, end] if start is not None else None,
        "id": id,
        "covariates": None if covariates is None else listed(covariates),
        "treated": label(treated),
        "control": label(control),
        "numeric": listed(numeric),
        "categorical": listed(categorical),
        "drop": listed(drop),
        "filters": filters(where),
        "missing": missing,
        "zero_time": zero_time,
        "weights": weights,
        "cluster": cluster,
        "entry": entry,
        "cause": label(cause),
    }
    return json.dumps(asked)


def options_json(*, estimator: str, group_size: int | str | None, splits: int, folds: int, latency: str, train_fraction: float,
                 metric: str, scale: str, seed: int, exact: Any, caliper: Mapping[str, float | str] | None,
                 exclude_self: bool, confidence: float) -> str:
    if estimator not in ("paper", "adjusted"):
        raise Refused(
            f"error: the estimator is {estimator!r}\n  rule:   there are two: paper and adjusted\n"
            '  remedy: use estimator="paper" or estimator="adjusted"'
        )
    adjusted = estimator == "adjusted"
    size = None if group_size in (None, "auto") else whole("group_size", group_size)
    options = json.loads(_dvim.default_options(adjusted))
    if size is not None:
        options["group_size"] = size
    if adjusted:
        family = None if latency == "auto" else latency
        options["adjusted"] = {"splits": whole("splits", splits), "folds": whole("folds", folds), "latency": family,
                               "group_size": size}
    options.update(
        train_fraction=number("train_fraction", train_fraction),
        metric=metric,
        scale=scale,
        seed=whole("seed", seed),
        exact=listed(exact),
        calipers=calipers(caliper),
        exclude_self=bool(exclude_self),
        confidence=number("confidence", confidence),
    )
    return json.dumps(options)
