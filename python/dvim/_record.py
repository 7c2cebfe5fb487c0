"""Records: what the engine reports, with names for its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def record(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [record(v) for v in value]
    return value


class Record(Mapping[str, Any]):
    """Named values that can be read as attributes or as items.

    >>> r = Record({"n_units": 3, "cure": {"intercept": 0.5}})
    >>> r.n_units, r["cure"].intercept
    (3, 0.5)
    """

    _data: dict[str, Any]

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = dict(data)

    def __getitem__(self, name: str) -> Any:
        return record(self._data[name])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return record(self._data[name])
        except KeyError:
            raise AttributeError(f"there is no `{name}`; there are {', '.join(self._data)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def to_dict(self) -> dict[str, Any]:
        """As plain dicts and lists."""
        return self._data

    def __repr__(self) -> str:
        def short(value: Any) -> str:
            text = repr(value)
            return text if len(text) <= 60 else f"{type(value).__name__} of {len(value)}"

        return "\n".join(f"{name}: {short(value)}" for name, value in self._data.items())
