"""Frames in and out. In: any table as columns of the engine. Out: a frame of the kind that came in."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _dvim
from ._errors import Refused

KINDS = ("pandas", "polars", "pyarrow")


class Columns(Mapping[str, np.ndarray]):
    """Named columns as NumPy arrays: what tables are where no data frame library is installed.

    >>> t = Columns({"x": np.array([1.0, 2.0])})
    >>> t["x"].sum(), len(t), t.n_rows
    (np.float64(3.0), 1, 2)
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = {name: np.asarray(values) for name, values in columns.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self._columns.values()), ()))

    def __repr__(self) -> str:
        names = list(self._columns)
        rows = [[str(self[n][i]) for n in names] for i in range(min(self.n_rows, 10))]
        widths = [max(len(r[j]) for r in [names, *rows]) for j in range(len(names))]
        lines = ["  ".join(v.rjust(w) for v, w in zip(r, widths)) for r in [names, *rows]]
        more = [f"… {self.n_rows - 10} more rows"] if self.n_rows > 10 else []
        return "\n".join(lines + more)


def _refuse(found: str, rule: str, remedy: str) -> Refused:
    return Refused(f"error: {found}\n  rule:   {rule}\n  remedy: {remedy}")


@dataclass
class Frame:
    """A table on its way in, and what is needed to answer in kind."""

    kind: str
    """``pandas``, ``polars``, ``pyarrow``, ``narwhals`` or ``""``."""
    source: str
    """What is recorded of it in a run."""
    table: Any
    id: str | None = None
    """The column of ids, where the frame has some."""
    index: Any = None
    """The index of a pandas frame."""
    ids: Any = field(default=None, repr=False)
    """The ids that were taken from that index, one for each row."""
    id_values: Any = field(default=None, repr=False)
    """The ids of a pandas frame, from its index or a column; None where rows are numbered."""


def default_kind() -> str:
    """The first data frame library that is in use, else the first that is installed."""
    for kind in KINDS:
        if sys.modules.get(kind) is not None:
            return kind
    return next((k for k in KINDS if importlib.util.find_spec(k)), "")


def module_of(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


def read(data: Any, *, id: str | None, choose_id: Any, names: Sequence[str] | None = None,
         index_as_id: bool = True, text: Sequence[str] = (), threads: int | None = None) -> Frame:
    """Columns of ``data``. ``choose_id(names)`` says which column is the id where none is named."""
    if isinstance(data, (str, os.PathLike)):
        # As on the command line: an `id` column of any spelling is read without loss.
        default = "id" if choose_id(["id"]) else None
        try:
            table = _dvim.Table.read(os.fspath(data), id, default, list(text), threads)
        except Refused as refused:
            if "this build does not read" in str(refused):
                raise _refuse(str(refused).partition(";")[0], "files are CSV or TSV, also as gzip or zstd",
                              f"read it first: pandas.read_parquet({os.fspath(data)!r}), or polars or pyarrow, and pass the frame") from None
            raise
        return Frame(default_kind(), os.path.basename(os.fspath(data)), table)
    module = module_of(data)
    if isinstance(data, np.ndarray):
        return _of_arrays(data, names, id, choose_id)
    if isinstance(data, Mapping):
        if data and all(np.ndim(values) == 0 for values in data.values()):
            raise _refuse(
                "a dict of single values was given: a row, not a table",
                "a dict holds a column under each name; a list holds imputed data sets, each a table",
                "make a frame of the rows, such as pandas.DataFrame(rows)",
            )
        return _of_mapping(data, id, choose_id)
    if module == "pandas" and hasattr(data, "columns"):
        return _of_pandas(data, id, choose_id, index_as_id)
    if module == "polars" and hasattr(data, "collect") and not hasattr(data, "height"):
        data = data.collect()
    if module == "narwhals":
        native = data.to_native() if hasattr(data, "to_native") else data
        inner = read(native, id=id, choose_id=choose_id, index_as_id=index_as_id)
        inner.kind = f"narwhals.{inner.kind}" if inner.kind else ""
        return inner
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        columns = _names_of_arrow(data)
        chosen = id if id is not None else choose_id(columns) if columns else None
        if hasattr(data, "__arrow_c_stream__"):
            table = _dvim.Table.arrow(data.__arrow_c_stream__(), chosen)
        else:
            schema, array = data.__arrow_c_array__()
            table = _dvim.Table.arrow_batch(schema, array, chosen)
        kind = module if module in KINDS else default_kind()
        return Frame(kind, f"{module}.{type(data).__name__}", table, chosen)
    if hasattr(data, "__dataframe__"):
        return _of_protocol(data, id, choose_id, index_as_id)
    raise _refuse(
        f"`{type(data).__name__}` is not a table",
        "a table is a data frame (pandas, polars, pyarrow, or anything with __arrow_c_stream__ or __dataframe__), "
        "a dict of columns, a NumPy array with names, or the path of a file",
        "convert it to one of these",
    )


def _names_of_arrow(data: Any) -> list[str]:
    for attribute in ("columns", "column_names"):
        names = getattr(data, attribute, None)
        if names is not None and all(isinstance(n, str) for n in names):
            return list(names)
    schema = getattr(data, "schema", None)
    names = getattr(schema, "names", None)
    return list(names) if isinstance(names, Iterable) else []


def _of_protocol(data: Any, id: str | None, choose_id: Any, index_as_id: bool) -> Frame:
    for library, convert in (("pyarrow", "pyarrow.interchange"), ("pandas", "pandas.api.interchange")):
        if importlib.util.find_spec(library):
            frame = importlib.import_module(convert).from_dataframe(data)
            found = read(frame, id=id, choose_id=choose_id, index_as_id=index_as_id)
            found.source = f"{module_of(data)}.{type(data).__name__}"
            found.kind = default_kind()
            return found
    raise _refuse(
        f"`{type(data).__name__}` offers only the dataframe protocol (__dataframe__)",
        "that protocol is read by pyarrow or pandas, and neither is installed",
        "install pyarrow, or pass an object with __arrow_c_stream__",
    )


def _of_arrays(data: np.ndarray, names: Sequence[str] | None, id: str | None, choose_id: Any) -> Frame:
    if data.dtype.names:
        return _of_mapping({n: data[n] for n in data.dtype.names}, id, choose_id, source="numpy.ndarray")
    if data.ndim != 2:
        raise _refuse(
            f"the array has {data.ndim} dimension{'' if data.ndim == 1 else 's'}",
            "an array has a row for each patient and a column for each variable",
            "pass a two-dimensional array and names=[...], or a dict of columns",
        )
    if names is None or len(names) != data.shape[1]:
        given = "no names" if names is None else f"{len(names)} names"
        raise _refuse(
            f"an array of {data.shape[1]} columns was given with {given}",
            "columns are told apart by name",
            "pass names=[...], one for each column, or a data frame",
        )
    columns = {str(n): data[:, j] for j, n in enumerate(names)}
    return _of_mapping(columns, id, choose_id, source="numpy.ndarray")


def _of_mapping(data: Mapping[str, Any], id: str | None, choose_id: Any, source: str = "dict") -> Frame:
    names = [str(n) for n in data]
    chosen = id if id is not None else choose_id(names)
    table = _dvim.Table()
    for name, values in data.items():
        _add(table, str(name), values, str(name) == chosen)
    return Frame(default_kind(), source, table, chosen)


def _of_pandas(data: Any, id: str | None, choose_id: Any, index_as_id: bool) -> Frame:
    import pandas as pd

    names = [str(n).strip() for n in data.columns]
    index = data.index
    table = _dvim.Table()
    is_default = isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None
    named = id is not None and id not in names and id == index.name
    chosen = id if id is not None and not named else None
    ids = None
    if named or (index_as_id and id is None and not is_default and not isinstance(index, pd.MultiIndex)):
        # The index names the patients, unless a column does.
        own = choose_id(names)
        if named or own is None:
            label = str(index.name) if index.name is not None and str(index.name) not in names else _free("index", names)
            ids = index
            _add(table, label, index, True)
            chosen = label
    if chosen is None and ids is None:
        chosen = choose_id(names)
    for position, name in enumerate(names):
        _add(table, name, data.iloc[:, position], name == chosen and ids is None)
    values = ids if ids is not None else data.iloc[:, names.index(chosen)] if chosen in names else None
    return Frame("pandas", "pandas.DataFrame", table, chosen, index, ids, values)


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _add(table: Any, name: str, values: Any, is_id: bool) -> None:
    """One column, as it is now: numbers by value, text by level, ids without loss."""
    dtype = getattr(values, "dtype", None)
    if module_of(values) == "pandas":
        if _add_pandas(table, name, values, dtype, is_id):
            return
        values = values.to_numpy()
    elif not isinstance(values, np.ndarray) and hasattr(values, "__arrow_c_stream__") and hasattr(values, "to_numpy"):
        values = values.to_numpy()
    array: Any = np.ma.asarray(values) if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    if array.ndim != 1:
        raise _refuse(f"column `{name}` has {array.ndim} dimensions", "a column has one value for each row", "split it")
    kind = array.dtype.kind
    if is_id:
        return _add_id(table, name, array)
    if kind in "iuf":
        if isinstance(array, np.ma.MaskedArray):
            array = np.ma.filled(array.astype(np.float64), np.nan)
        table.numbers(name, np.ascontiguousarray(array, dtype=np.float64))
    elif kind == "b":
        _add_bool(table, name, array)
    elif kind == "M":
        _add_dates(table, name, array)
    elif kind == "m":
        raise _refuse(
            f"column `{name}` holds durations ({array.dtype})",
            "a time is a number, in the unit of the horizon",
            f'convert it: df["{name}"].dt.total_seconds() / 86400 gives days',
        )
    else:
        _add_objects(table, name, array)


def _add_bool(table: Any, name: str, array: Any) -> None:
    codes = array.astype(np.int64)
    if isinstance(array, np.ma.MaskedArray):
        codes = np.ma.filled(codes, -1)
    table.text(name, np.ascontiguousarray(codes), ["false", "true"])


def _add_dates(table: Any, name: str, array: np.ndarray) -> None:
    days = array.astype("datetime64[D]")
    whole = bool(np.all((days.astype(array.dtype) == array) | np.isnat(array)))
    levels, codes = np.unique(days if whole else array.astype("datetime64[s]"), return_inverse=True)
    texts = ["" if np.isnat(v) else str(v) for v in levels]
    table.text(name, np.ascontiguousarray(codes.reshape(-1), dtype=np.int64), texts)


def _is_gap(value: Any) -> bool:
    return value is None or value != value or type(value).__name__ in ("NAType", "NaTType")


def _add_objects(table: Any, name: str, array: np.ndarray) -> None:
    """Objects: numbers if all are, else what they say."""
    from decimal import Decimal
    from numbers import Real

    values = array.tolist()
    known = [v for v in values if not _is_gap(v)]
    if known and all(isinstance(v, (Real, Decimal)) and not isinstance(v, (bool, np.bool_)) for v in known):
        table.numbers(name, np.array([np.nan if _is_gap(v) else float(v) for v in values]))
        return
    levels: dict[str, int] = {}
    codes = np.empty(len(values), dtype=np.int64)
    for i, v in enumerate(values):
        codes[i] = -1 if _is_gap(v) else levels.setdefault(_text(v), len(levels))
    table.text(name, codes, list(levels))


def _text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.decode() if isinstance(value, bytes) else str(value)


def _add_id(table: Any, name: str, array: Any) -> None:
    if array.dtype.kind in "iu" and not isinstance(array, np.ma.MaskedArray):
        if array.dtype.kind == "i" or (len(array) == 0 or int(array.max()) < 2**63):
            table.integer_ids(name, np.ascontiguousarray(array, dtype=np.int64))
            return
    if isinstance(array, np.ma.MaskedArray):
        array = np.ma.filled(array.astype(object), None)
    table.text_ids(name, ["" if _is_gap(v) else _text(v) for v in array.tolist()])


def _add_pandas(table: Any, name: str, values: Any, dtype: Any, is_id: bool) -> bool:
    """Columns that are not plain NumPy; False for those that are."""
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype) and not is_id:
        array = values.cat if hasattr(values, "cat") else values
        categories = array.categories
        if categories.dtype.kind in "iuf" and not isinstance(categories.dtype, pd.CategoricalDtype):
            levels = [_text(float(c)) if categories.dtype.kind == "f" else str(c) for c in categories]
        else:
            levels = [_text(c) for c in categories]
        table.text(name, np.ascontiguousarray(array.codes, dtype=np.int64), levels)
        return True
    if isinstance(dtype, pd.CategoricalDtype):
        _add_id(table, name, np.asarray(values.astype(object)))
        return True
    if isinstance(dtype, np.dtype):
        if dtype.kind == "O" and not is_id and pd.api.types.infer_dtype(values, skipna=True) == "string":
            codes, levels = pd.factorize(values)
            table.text(name, np.ascontiguousarray(codes, dtype=np.int64), [str(v) for v in levels])
            return True
        return False
    if isinstance(dtype, pd.DatetimeTZDtype):
        naive = values.dt.tz_localize(None) if hasattr(values, "dt") else values.tz_localize(None)
        _add_dates(table, name, naive.to_numpy())
        return True
    # Nullable and Arrow-backed dtypes.
    if is_id:
        if pd.api.types.is_integer_dtype(dtype) and not values.isna().any():
            _add_id(table, name, values.to_numpy(dtype=np.int64))
        else:
            _add_id(table, name, np.asarray(values.astype(object)))
    elif pd.api.types.is_bool_dtype(dtype):
        codes = values.astype("Int8").to_numpy(dtype=np.int64, na_value=-1)
        table.text(name, np.ascontiguousarray(codes), ["false", "true"])
    elif pd.api.types.is_numeric_dtype(dtype):
        table.numbers(name, np.ascontiguousarray(values.to_numpy(dtype=np.float64, na_value=np.nan)))
    elif pd.api.types.is_datetime64_any_dtype(dtype):
        _add_dates(table, name, values.to_numpy(dtype="datetime64[ns]"))
    elif pd.api.types.is_string_dtype(dtype):
        codes, levels = pd.factorize(values)
        table.text(name, np.ascontiguousarray(codes, dtype=np.int64), [str(v) for v in levels])
    else:
        _add_objects(table, name, np.asarray(values.astype(object)))
    return True


# --- out -------------------------------------------------------------------------------------------------------------


def columns_of(raw: list[tuple[str, str, Any, Any]]) -> dict[str, tuple[str, Any, Any]]:
    """Columns of the engine: name to kind, values and marks of what is missing."""
    out: dict[str, tuple[str, Any, Any]] = {}
    for name, kind, values, gaps in raw:
        if kind == "f8":
            out[name] = (kind, np.frombuffer(values, dtype=np.float64), None)
        elif kind == "i8":
            marks = None if gaps is None else np.frombuffer(gaps, dtype=np.uint8).astype(bool)
            out[name] = (kind, np.frombuffer(values, dtype=np.int64), marks)
        else:
            out[name] = (kind, values, None)
    return out


def build(kind: str, columns: Mapping[str, tuple[str, Any, Any]], index: Any = None) -> Any:
    """A frame of a kind. An undefined value is NaN in pandas and NumPy, null elsewhere."""
    if kind.startswith("narwhals."):
        import narwhals

        return narwhals.from_native(build(kind.partition(".")[2], columns), eager_only=True)
    if kind == "polars":
        import polars as pl

        def series(name: str, column: tuple[str, Any, Any]) -> Any:
            what, values, gaps = column
            if what == "f8":
                return pl.Series(name, values).fill_nan(None)
            if what == "i8" and gaps is not None:
                return pl.Series(name, [None if g else v for v, g in zip(values.tolist(), gaps)], dtype=pl.Int64)
            return pl.Series(name, values, dtype=pl.String if what == "text" else None)

        return pl.DataFrame([series(n, c) for n, c in columns.items()])
    if kind == "pyarrow":
        import pyarrow as pa

        def array(column: tuple[str, Any, Any]) -> Any:
            what, values, gaps = column
            if what == "f8":
                return pa.array(values, from_pandas=True)
            if what == "text":
                return pa.array(values, type=pa.string())
            return pa.array(values, mask=gaps)

        return pa.table({n: array(c) for n, c in columns.items()})
    plain = {}
    for name, (what, values, gaps) in columns.items():
        if what == "i8" and gaps is not None:
            values = np.where(gaps, np.nan, values)
        plain[name] = values if what != "text" else np.array(values, dtype=object)
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame(plain, index=index)
    return Columns(plain)


def frame(kind: str, raw: list[tuple[str, str, Any, Any]], index: Any = None) -> Any:
    return build(kind, columns_of(raw), index)


class Rows:
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
            place = {_text(v).strip(): i for i, v in enumerate(np.asarray(self._ids.astype(object)).tolist())}
            positions = np.array([place[i] for i in ids], dtype=np.int64)
        return self.index.take(positions)


def plain(texts: Sequence[str | None]) -> tuple[str, Any, None]:
    """Texts as whole numbers, where all of them are."""
    try:
        numbers = np.array(texts, dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        return ("text", texts, None)
    return ("i8", numbers, None) if [str(n) for n in numbers.tolist()] == list(texts) else ("text", texts, None)


def with_ids(kind: str, raw: list[tuple[str, str, Any, Any]], rows: Rows | None = None) -> Any:
    """A frame of patients: ids and arms are whole numbers where all of them are; with the index of ``rows`` in pandas."""
    columns = columns_of(raw)
    index = rows.of(columns["id"][1]) if rows is not None and kind == "pandas" and "id" in columns else None
    for name in ("id", "treatment"):
        if name in columns and columns[name][0] == "text":
            columns[name] = plain(columns[name][1])
    return build(kind, columns, index)


def of_records(kind: str, records: Sequence[Mapping[str, Any]], names: Sequence[str] | None = None) -> Any:
    """A frame of records, one row each; None is undefined."""
    names = list(names if names is not None else records[0] if records else [])
    columns: dict[str, tuple[str, Any, Any]] = {}
    for name in names:
        values = [r.get(name) for r in records]
        known = [v for v in values if v is not None]
        if known and all(isinstance(v, bool) for v in known):
            columns[name] = ("bool", np.array(values, dtype=bool), None)
        elif known and all(isinstance(v, int) and not isinstance(v, bool) for v in known) and len(known) == len(values):
            columns[name] = ("i8", np.array(values, dtype=np.int64), None)
        elif all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in known):
            columns[name] = ("f8", np.array([np.nan if v is None else v for v in values], dtype=np.float64), None)
        else:
            columns[name] = ("text", [None if v is None else str(v) for v in values], None)
    return build(kind, columns)


def to_matrix(data: Any) -> tuple[np.ndarray, list[str]]:
    """Covariates of a frame or an array as C-ordered doubles, with their names."""
    if isinstance(data, np.ndarray) or not (hasattr(data, "columns") or hasattr(data, "column_names")):
        array = np.ascontiguousarray(np.atleast_2d(np.asarray(data, dtype=np.float64)))
        return array, [f"x{j + 1}" for j in range(array.shape[1])]
    names = [str(n) for n in (data.column_names if hasattr(data, "column_names") else data.columns)]
    array = np.column_stack([np.asarray(data[n], dtype=np.float64) for n in names]) if names else np.empty((len(data), 0))
    return np.ascontiguousarray(array), names
