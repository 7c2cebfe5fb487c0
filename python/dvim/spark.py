"""The same analysis of tables of any size, on Apache Spark.

A sample of the patients is fitted on the driver, as :func:`dvim.fit` does it. The executors then estimate every patient, and
sum what averages over all patients need. It works with plain PySpark 4: a local session, a cluster, Spark Connect. The
executors need this package, and nothing else.

.. code-block:: python

    import dvim.spark
    fit = dvim.spark.fit(df, time="days", event="relapse", treatment="arm", horizon=1825)
    fit.effects            # a Spark DataFrame: a row for each patient
    fit.averages           # averages over all patients, with intervals
    fit.save("run")        # an ordinary run
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from . import _dvim, _frames
from ._analysis import Analysis
from ._errors import Refused
from ._fit import SIGNATURE, bound
from ._fit import fit as _fit
from ._options import bins, filters, label, listed, roles_json
from ._progress import Progress, Watching

__all__ = ["Fit", "fit"]

SUMS = "_dvim_sums"
"""The column beside the effects in which a partition hands over its sums."""
KNOWN = "_dvim_known"
"""The column that says on its way to the executors who is of the sample."""
LEFT_TO_SPARK = ("names", "start", "end", "cluster", "entry", "y", "imputation", "audit", "estimator")
"""Arguments of :func:`dvim.fit` that are not offered here."""
WITNESSES = 5
"""Rows of each kind that are shown to the engine when it has to say what is wrong."""


class Fit:
    """What was found on Spark. Made by :func:`fit`."""

    def __init__(self, sample: Analysis, kit: bytes, own: bytes, joined: Any, n: int, persisted: bool) -> None:
        self.sample = sample
        """The analysis of the sample: models, match groups, balance, sensitivity."""
        self.n_patients = n
        """Patients in all, after rows were left out."""
        self._kit, self._own, self._joined, self._persisted = kit, own, joined, persisted

    @property
    def effects(self) -> Any:
        """Both effects of each patient as a Spark DataFrame, written by the executors: the columns that
        ``dvim predict`` gives. Patients of the sample are estimated by the folds that left them out."""
        from pyspark.sql import functions as F

        return self._joined.where(F.col(SUMS).isNull()).drop(SUMS)

    @cached_property
    def _sums(self) -> bytes:
        from pyspark.sql import functions as F

        parts = self._joined.where(F.col(SUMS).isNotNull()).select(SUMS).collect()
        return bytes(_dvim.merged([self._own, *(zlib.decompress(bytes(row[0])) for row in parts)]))

    @cached_property
    def _everybody(self) -> Analysis:
        run = _dvim.over_everybody(self.sample._run, self._kit, self._sums)
        return Analysis(run, self.sample._kind)

    @property
    def averages(self) -> Any:
        """Average effects over all patients, the treated, the control and the subgroups that were asked for, with standard
        errors and intervals. One row for each estimand and population."""
        return self._everybody.average_effects()

    def curves(self) -> Any:
        """Standardised survival curves over all patients, as :meth:`dvim.Analysis.curves` gives them."""
        return self._everybody.curves()

    def save(self, path: str | os.PathLike[str], *, force: bool = False, format: str = "csv") -> None:
        """Writes an ordinary run, for ``report``, ``explore``, ``match`` and ``predict``: the averages and curves over all
        patients; everything else, the effects among them, of the sample."""
        self._everybody.save(path, force=force, format=format)

    def report(self, path: str | os.PathLike[str], **about: Any) -> None:
        """Writes a page that explains the fit, as :meth:`dvim.Analysis.report` does."""
        self._everybody.report(path, **about)

    def unpersist(self) -> None:
        """Lets Spark forget the effects that it keeps. They are made again where they are asked for."""
        if self._persisted:
            self._joined.unpersist()
            self._persisted = False

    def __repr__(self) -> str:
        n = len(self.sample.effects)
        return f"{self._everybody!r}\n\nAverages and curves are over {self.n_patients:,} patients; all else is of a sample of {n:,}."


def fit(
    df: Any,
    *,
    sample: int = 1_000_000,
    keep: bool = True,
    batch: int = 20_000,
    shared: str | os.PathLike[str] | None = None,
    **arguments: Any,
) -> Fit:
    """Estimates both effects for each patient of a Spark DataFrame, and the averages over all of them.

    Takes the arguments of :func:`dvim.fit`, but for those that need all patients on one machine (``cluster``, ``entry``,
    the paper's estimator) and dates (``start``, ``end``: make a column of days first). An ``id`` column is required: rows on
    Spark have no order.

    Parameters
    ----------
    df
        A row for each patient.
    sample
        About how many patients the models, metrics and match groups are learned from, chosen by a hash of their ids.
        Everybody, where there are no more. The driver must hold them.
    keep
        Let Spark keep the effects on the disks of the executors, so that ``effects`` and ``averages`` are made in one pass.
    batch
        Patients that an executor estimates at a time. No number changes a result.
    shared
        A directory that the driver and all executors can read. What the executors need then travels as a file in it,
        instead of inside the query. Spark Connect refuses queries of more than 128 MB.
    """
    from pyspark import StorageLevel
    from pyspark.sql import functions as F

    given = _given(df, arguments)
    id, used = _columns(df, given)
    df, given = _kept(df, given, used)
    n = df.count()
    is_chosen = F.lit(True) if n <= sample else _hash(id, given["seed"]) < F.lit(_threshold(sample / n))
    chosen = df if n <= sample else df.where(is_chosen)
    table = chosen.toArrow().sort_by(id)
    _door(df, table, id, given)
    analysis = _fit(table, **{**given, "id": id})
    with Watching(given["progress"]) as shown:
        kit, own = _dvim.kit(analysis._run, bins(given["by"]), given["threads"], shown)
    work = _Work(kit, shared, analysis, id, given, batch)
    _extremes(df, table, work)
    joined = df.withColumn(KNOWN, is_chosen).mapInArrow(work.function(), work.schema)
    if keep:
        joined = joined.persist(StorageLevel.DISK_ONLY)
    return Fit(analysis, kit, own, joined, n, keep)


def _signature() -> inspect.Signature:
    own = [p for p in inspect.signature(fit).parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    rest = [p for name, p in SIGNATURE.parameters.items() if name not in {*LEFT_TO_SPARK, "data"}]
    return inspect.Signature([own[0], *rest, *own[1:]])


fit.__signature__ = _signature()  # type: ignore[attr-defined]


def _refuse(found: str, rule: str, remedy: str) -> Refused:
    return Refused(f"error: {found}\n  rule:   {rule}\n  remedy: {remedy}")


def _given(df: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name, with the defaults of :func:`dvim.fit`."""
    for name in LEFT_TO_SPARK:
        if name in arguments and not (name == "estimator" and arguments[name] == "adjusted"):
            raise _refuse(
                f"{name}= was given",
                "on Spark patients are independent rows with a time as a number, and the adjusted estimator gives the averages",
                "leave it out, or use dvim.fit on one machine",
            )
    given = bound("fit", SIGNATURE, df, arguments)
    given.pop("data")
    for part in ("time", "event", "treatment"):
        if part == "event" and given["event"] is None and given["censor"] is not None:
            continue
        if not isinstance(given[part], str):
            raise _refuse(
                f"no column of {part} was named" if given[part] is None else f"{part}= is no name of a column",
                "time, event and treatment are columns of the Spark DataFrame",
                f'add {part}="name of the column"',
            )
    if given["treated"] == "all":
        raise _refuse('treated="all" was given', "one treatment is compared with one control", "fit each arm by itself")
    return dict(given)


def _columns(df: Any, given: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The column of ids, and all columns that are used."""
    names = list(df.columns)
    parts = {p: given[p] for p in ("time", "event", "treatment") if given[p] is not None}
    parts.setdefault("event", given["censor"])
    id = given["id"] or _dvim.id_column(names, roles_json(parts, {**given, "id": None}))
    if id is None:
        raise _refuse("no column of ids was named", "rows on Spark have no order, so each patient needs an id",
                      'add id="name of the column"')
    own = [id, *parts.values(), *([given["weights"]] if given["weights"] else [])]
    beside = list(given["covariates"]) if given["covariates"] is not None else [
        n for n in names if n not in listed(given["drop"]) and n not in dict(filters(given["where"]))
    ]
    wanted = dict.fromkeys([*own, *beside, *dict(filters(given["where"]))])
    for name in wanted:
        if name not in names:
            near = ", ".join(names[:8])
            raise _refuse(f"column `{name}`: there is no such column", "every column that is named is in the table",
                          f"the table has: {near}")
    return id, [n for n in names if n in {*own, *beside}]


def _is(df: Any, column: str, text: str) -> Any:
    """Whether the value of a column is the one that ``text`` writes; numbers are compared as numbers."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    kind = df.schema[column].dataType
    if isinstance(kind, T.NumericType):
        try:
            return F.col(_quoted(column)) == F.lit(float(text))
        except ValueError:
            return F.lit(False)
    return F.col(_quoted(column)).cast("string") == F.lit(text)


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _gap(df: Any, column: str) -> Any:
    """Whether a row has no value in a column."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    value = F.col(_quoted(column))
    return value.isNull() | F.isnan(value) if isinstance(df.schema[column].dataType, (T.DoubleType, T.FloatType)) else value.isNull()


def _kept(df: Any, given: dict[str, Any], used: list[str]) -> tuple[Any, dict[str, Any]]:
    """The rows and columns that take part: what the engine would leave out is left out before."""
    from pyspark.sql import functions as F

    for column, text in filters(given["where"]):
        df = df.where(_is(df, column, text))
    if given["treated"] is not None and given["control"] is not None:
        arms = [_is(df, given["treatment"], label(given[arm]) or "") for arm in ("treated", "control")]
        df = df.where(arms[0] | arms[1] | _gap(df, given["treatment"]))
    df = df.select(*(_quoted(c) for c in used))
    if given["missing"] == "drop":
        for column in used:
            df = df.where(~_gap(df, column))
    time = F.col(_quoted(given["time"]))
    if given["zero_time"] == "drop":
        df = df.where((time != 0) | _gap(df, given["time"]))
    elif given["zero_time"] == "shift":
        least = df.where(time > 0).agg(F.min(time)).collect()[0][0]
        if least is not None:
            df = df.withColumn(given["time"], F.when(time == 0, F.lit(0.5 * float(least))).otherwise(time.cast("double")))
    used_now = set(used)
    kept = {name: [c for c in listed(given[name]) if c in used_now or c == "duplicates"]
            for name in ("numeric", "categorical", "allow")}
    missing = "indicator" if given["missing"] == "indicator" else "refuse"
    return df, {**given, **kept, "drop": (), "where": None, "missing": missing, "zero_time": "refuse"}


def _hash(id: str, seed: int) -> Any:
    """A number in [-2⁶³, 2⁶³) that depends on the id, as text, and the seed."""
    from pyspark.sql import functions as F

    return F.xxhash64(F.lit(f"dvim {seed}"), F.col(_quoted(id)).cast("string"))


def _threshold(share: float) -> int:
    return min(int(share * 2**64) - 2**63, 2**63 - 1)


def _door(df: Any, table: Any, id: str, given: Mapping[str, Any]) -> None:
    """The rules that every row has to keep, looked at over all rows in one pass of aggregates. Where one is broken, the engine
    says so in its own words, of the sample and a few of the rows."""
    import pyarrow.compute as pc
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    time, event, treatment = given["time"], given["event"] or given["censor"], given["treatment"]
    is_number = {f.name: isinstance(f.dataType, T.NumericType) for f in df.schema.fields}
    value = lambda c: F.col(_quoted(c))  # noqa: E731
    rules: dict[str, tuple[str, Any]] = {}
    for column in df.columns:
        if given["missing"] != "indicator" or column in (id, time, event, treatment, given["weights"]):
            rules[f"missing {column}"] = (f"column `{column}`: missing", _gap(df, column))
    if is_number[time]:
        rules["time"] = (f"column `{time}`: not a positive number", ~((value(time) > 0) & (value(time) < float("inf"))))
    if is_number[event] and given["cause"] is None and given["censor"] is None:
        rules["event"] = (f"column `{event}`: neither 0 nor 1", ~value(event).isin(0, 1))
    if given["weights"] is not None and is_number[given["weights"]]:
        weight = value(given["weights"])
        rules["weight"] = (f"column `{given['weights']}`: not a positive number", ~((weight > 0) & (weight < float("inf"))))
    arms = [a for a in pc.unique(table[treatment]).to_pylist() if a is not None]
    if len(arms) == 2:
        rules["arms"] = (f"column `{treatment}`: another value than {arms[0]!r} and {arms[1]!r}", ~value(treatment).isin(*arms))
    for column in df.columns:
        if column in (id, time, event, treatment, given["weights"]) or is_number[column]:
            continue
        levels = [v for v in pc.unique(table[column]).to_pylist() if v is not None]
        if len(levels) <= 1000:
            rules[f"level {column}"] = (f"column `{column}`: a level that the sample does not have", ~value(column).isin(*levels))
    counts = df.agg(*(F.sum(F.when(rule, 1).otherwise(0)).alias(f"r{i}") for i, (_, rule) in enumerate(rules.values()))).collect()[0]
    broken = [(what, rule, int(counts[i] or 0)) for i, (what, rule) in enumerate(rules.values()) if counts[i]]
    twice = df.groupBy(_quoted(id)).count().where("count > 1").select(_quoted(id))
    twice = twice.orderBy(_quoted(id)).limit(WITNESSES).collect()
    if twice:
        ids = [row[0] for row in twice]
        broken.append((f"column `{id}`: in several rows, such as {', '.join(map(str, ids[:3]))}", value(id).isin(*ids), len(ids)))
    if not broken:
        return
    import pyarrow as pa

    seen = [table]
    for _, rule, _ in broken:
        rows = df.where(rule).orderBy(_quoted(id)).limit(2 * WITNESSES).toArrow()
        seen.append(rows.cast(table.schema) if rows.schema != table.schema else rows)
    everything = "\n".join(f"  in all rows: {what}: {count:,} row{'' if count == 1 else 's'}" for what, _, count in broken)
    try:
        _fit(pa.concat_tables(seen), **{**given, "id": id, "audit": False})
    except Refused as refused:
        words = f"error: {refused}\n{everything}"
        raise Refused(words, json.dumps([{**vars(p), "rows": list(p.rows)} for p in refused.problems])) from None
    raise _refuse("rows break a rule\n" + everything, "every patient keeps the rules that the sample keeps",
                  "correct or leave out these rows; a rare level can be merged with another")


def _extremes(df: Any, table: Any, work: _Work) -> None:
    """Shows the engine the smallest and the largest value of each number, so that absurd ones are refused before the work."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    numbers = [f.name for f in df.schema.fields if isinstance(f.dataType, T.NumericType) and f.name not in work.parts]
    if not numbers:
        return
    each = [of(_quoted(c)).alias(f"c{k}_{i}") for i, c in enumerate(numbers) for k, of in enumerate((F.min, F.max))]
    found = df.agg(*each).collect()[0]
    rows = table.slice(0, 1).to_pylist()
    seen = {c: pc.min_max(table[c]).as_py() for c in numbers}
    for i, column in enumerate(numbers):
        for k, end in enumerate(("min", "max")):
            value, known = found[f"c{k}_{i}"], seen[column][end]
            if value is not None and known is not None and (value < known if k == 0 else value > known):
                rows.append({**rows[0], column: value})
    if len(rows) > 1:
        for i, row in enumerate(rows):
            row[work.id] = i if pa.types.is_integer(table.schema.field(work.id).type) else str(i)
        next(iter(work.estimate(pa.Table.from_pylist(rows, schema=table.schema), sums=False)))


class _Work:
    """What an executor does with its rows."""

    def __init__(self, kit: bytes, shared: str | os.PathLike[str] | None, analysis: Analysis, id: str,
                 given: Mapping[str, Any], batch: int) -> None:
        from pyspark.sql import types as T

        if batch < 1:
            raise _refuse(f"batch is {batch}", "a batch holds a patient at least", "leave it out, or use batch=20_000")
        self.id = id
        self.key = hashlib.sha256(kit).hexdigest()
        self.parts = [id, given["time"], given["event"] or given["censor"], given["treatment"], given["weights"]]
        columns = {p: given[p] for p in ("time", "event", "treatment")}
        columns["event"] = columns["event"] or given["censor"]
        self.roles = roles_json(columns, {**given, "id": id})
        self.batch = batch
        packed = zlib.compress(kit, 1)
        self.source: bytes | str = packed
        if shared is not None:
            self.source = os.path.join(os.fspath(shared), f"dvim-{self.key[:16]}.kit")
            partial = f"{self.source}.{os.getpid()}"
            with open(partial, "wb") as file:
                file.write(packed)
            os.replace(partial, self.source)
        kinds = {"f8": T.DoubleType(), "i8": T.LongType(), "text": T.StringType()}
        found = _frames.columns_of(analysis._run.effects())
        self.kinds = {name: kind for name, (kind, _, _) in found.items() if name not in ("id", "treatment")}
        self._kinds = kinds
        self._id_type: Any = None
        self.schema: Any = None
        self._make_schema(T)

    def _make_schema(self, T: Any) -> None:
        fields = [T.StructField("id", T.StringType())]
        fields += [T.StructField(name, self._kinds[kind]) for name, kind in self.kinds.items()]
        self.schema = T.StructType([*fields, T.StructField(SUMS, T.BinaryType())])

    def function(self) -> Any:
        source, key, id, roles, kinds, batch = self.source, self.key, self.id, self.roles, self.kinds, self.batch

        def dvim_estimate(batches: Iterator[Any]) -> Iterator[Any]:
            return _estimated(batches, source, key, id, roles, kinds, batch)

        return dvim_estimate

    def estimate(self, table: Any, sums: bool) -> Iterator[Any]:
        return _estimated(iter(table.to_batches()), self.source, self.key, self.id, self.roles if sums else None, self.kinds, self.batch)


_OPEN: dict[str, Any] = {}
"""The kit that this process has open, by its digest: a worker that is reused opens it once."""


def _executor(source: bytes | str, key: str) -> Any:
    if key not in _OPEN:
        packed = source
        if isinstance(packed, str):
            with open(packed, "rb") as file:
                packed = file.read()
        _OPEN.clear()
        _OPEN[key] = _dvim.Executor(zlib.decompress(packed), 1)
    return _OPEN[key]


def _gathered(batches: Iterable[Any], size: int) -> Iterator[Any]:
    """Tables of this many rows from batches of any. Those of the sample are kept apart: they are estimated fold by fold, and
    few of them at a time would cost as much as many."""
    import pyarrow as pa
    import pyarrow.compute as pc

    held: dict[bool, list[Any]] = {False: [], True: []}

    def table(parts: list[Any]) -> Any:
        return pa.Table.from_batches(parts).combine_chunks()

    for batch in batches:
        place = batch.schema.get_field_index(KNOWN)
        kinds = [(False, batch)]
        if place >= 0:
            known, batch = batch.column(place), batch.remove_column(place)
            kinds = [(False, batch.filter(pc.invert(known))), (True, batch.filter(known))]
        for kind, rest in kinds:
            while rest.num_rows:
                part = rest.slice(0, size - sum(b.num_rows for b in held[kind]))
                held[kind].append(part)
                rest = rest.slice(part.num_rows)
                if sum(b.num_rows for b in held[kind]) == size:
                    yield table(held[kind])
                    held[kind] = []
    for parts in held.values():
        if parts:
            yield table(parts)


def _estimated(batches: Iterator[Any], source: bytes | str, key: str, id: str, roles: str | None, kinds: Mapping[str, str],
               size: int) -> Iterator[Any]:
    """On an executor: the effects of a partition, and with ``roles`` its sums in a last row."""
    import pyarrow as pa

    types = {"f8": pa.float64(), "i8": pa.int64(), "text": pa.string()}
    schema = pa.schema([("id", pa.string()), *((name, types[kind]) for name, kind in kinds.items()), (SUMS, pa.binary())])
    sums: list[bytes] = []
    for table in _gathered(batches, size):
        executor = _executor(source, key)
        columns, part, _ = executor.estimate(_dvim.Table.arrow(table.__arrow_c_stream__(), id), id, roles, True)
        found = _frames.columns_of(columns)
        n = table.num_rows
        arrays = [pa.array(found["id"][1], pa.string())]
        for name, kind in kinds.items():
            made, values, gaps = found[name]
            # A column in which nothing is defined has no kind.
            arrays.append(pa.array(values, types[kind], mask=gaps, from_pandas=True) if made == kind else pa.nulls(n, types[kind]))
        yield pa.RecordBatch.from_arrays([*arrays, pa.nulls(n, pa.binary())], schema=schema)
        if part is not None:
            sums = [bytes(_dvim.merged([*sums, bytes(part)]))]
    for total in sums:
        last = [pa.nulls(1, field.type) for field in schema][:-1]
        yield pa.RecordBatch.from_arrays([*last, pa.array([zlib.compress(total, 1)], pa.binary())], schema=schema)
