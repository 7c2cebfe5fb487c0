"""Every kind of table gives the same effects, and an answer in kind."""

import datetime
import importlib.util
import sys

import numpy as np
import pytest
from conftest import PAPER

import dvim

pd = pytest.importorskip("pandas")
GIVEN = dict(**PAPER, horizon=800, group_size=20)


def same(a, b):
    for name in ("cure_effect", "time_effect", "cure_effect_low", "time_effect_high"):
        x, y = (np.asarray(e[name], dtype=float) for e in (a.effects, b.effects))
        assert np.array_equal(x, y, equal_nan=True), name
    assert list(map(str, np.asarray(a.effects["id"]))) == list(map(str, np.asarray(b.effects["id"])))


class Stream:
    """Nothing but the Arrow PyCapsule interface."""

    def __init__(self, inner):
        self._inner = inner

    def __arrow_c_stream__(self, requested_schema=None):
        return self._inner.__arrow_c_stream__(requested_schema)


def test_polars(cohort, fitted):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({c: cohort[c].to_numpy() for c in cohort.columns})
    found = dvim.fit(frame, **GIVEN)
    same(found, fitted)
    assert isinstance(found.effects, pl.DataFrame) and isinstance(found.weights, pl.DataFrame)
    assert isinstance(found.average_effects(), pl.DataFrame) and isinstance(found.balance(), pl.DataFrame)
    assert found.effects["time_effect"].is_nan().sum() == 0, "undefined is null"
    chunked = pl.concat([frame[:500], frame[500:]], rechunk=False)
    same(dvim.fit(chunked, **GIVEN), fitted)
    same(dvim.fit(frame.lazy(), **GIVEN), fitted)
    same(dvim.fit(frame[::-1], **GIVEN), fitted)
    assert isinstance(found.predict(frame[:5]), pl.DataFrame)


def test_pyarrow_and_capsules(cohort, fitted):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({c: cohort[c].to_numpy() for c in cohort.columns})
    found = dvim.fit(table, **GIVEN)
    same(found, fitted)
    assert isinstance(found.effects, pa.Table)
    same(dvim.fit(Stream(table), **GIVEN, id="id"), fitted)
    batch = table.combine_chunks().to_batches()[0]

    class Batch:
        def __arrow_c_array__(self, requested_schema=None):
            return batch.__arrow_c_array__(requested_schema)

    same(dvim.fit(Batch(), **GIVEN, id="id"), fitted)
    sliced = pa.concat_tables([table.slice(0, 700), table.slice(700)])
    same(dvim.fit(sliced, **GIVEN), fitted)
    small = table.set_column(table.schema.get_field_index("x1"), "x1", table["x1"].cast(pa.int8()))
    same(dvim.fit(small, **GIVEN), fitted)


def test_narwhals(cohort, fitted):
    nw = pytest.importorskip("narwhals")
    found = dvim.fit(nw.from_native(cohort), **GIVEN)
    same(found, fitted)
    assert isinstance(found.effects, nw.DataFrame)


def test_dataframe_protocol(cohort, fitted):
    pytest.importorskip("pyarrow")
    if not hasattr(cohort, "__dataframe__"):
        pytest.skip("this pandas has no interchange protocol")

    class Only:
        def __init__(self, inner):
            self._inner = inner

        def __dataframe__(self, **more):
            return self._inner.__dataframe__(**more)

    same(dvim.fit(Only(cohort), **GIVEN), fitted)


def test_dicts_arrays_and_structured_arrays(cohort, fitted):
    same(dvim.fit({c: cohort[c].to_numpy() for c in cohort.columns}, **GIVEN), fitted)
    array = cohort.to_numpy(dtype=float)
    same(dvim.fit(array, names=list(cohort.columns), **GIVEN), fitted)
    same(dvim.fit(cohort.to_records(index=False), **GIVEN), fitted)
    x = cohort.drop(columns=["time", "event", "treatment"])
    same(dvim.fit(x.to_numpy(), names=list(x.columns), time=cohort.time.to_numpy(), event=cohort.event.to_numpy() == 1,
                  treatment=cohort.treatment.to_numpy(), horizon=800, group_size=20, estimator="paper"), fitted)


def test_scikit_survival_outcome(cohort, fitted):
    y = np.array(list(zip(cohort.event == 1, cohort.time)), dtype=[("cens", "?"), ("time", "<f8")])
    x = cohort.drop(columns=["time", "event"])
    same(dvim.fit(x, y=y, treatment="treatment", horizon=800, estimator="paper", group_size=20), fitted)
    if importlib.util.find_spec("sksurv"):
        from sksurv.util import Surv

        own = Surv.from_arrays(cohort.event == 1, cohort.time)
        same(dvim.fit(x, y=own, treatment="treatment", horizon=800, estimator="paper", group_size=20), fitted)


def test_dtypes(cohort, fitted):
    df = cohort.copy()
    df["x1"] = df["x1"].astype("Int8")
    df["x2"] = df["x2"].astype("float32")
    df["event"] = df["event"].astype("boolean")
    df["treatment"] = (df["treatment"] == 1)
    df["x11"] = df["x11"].astype("Float64")
    df["x12"] = df["x12"].astype(object)
    same(dvim.fit(df, **GIVEN), fitted)
    if importlib.util.find_spec("pyarrow"):
        same(dvim.fit(cohort.convert_dtypes(dtype_backend="pyarrow"), **GIVEN), fitted)
    same(dvim.fit(np.asfortranarray(cohort.to_numpy(float)), names=list(cohort.columns), **GIVEN), fitted)




def test_categories_are_levels_in_every_library(cohort):
    df = cohort.copy()
    site = np.random.default_rng(1).choice(["b", "a", "c"], len(df))
    df["site"] = site
    expected = dvim.fit(df, **GIVEN)
    df["site"] = pd.Categorical(site, categories=["zzz", "c", "b", "a"])
    same(dvim.fit(df, **GIVEN), expected)
    assert dvim.fit(df, **GIVEN).weights.query("covariate == 'site'").level.tolist() == ["a", "b", "c"]
    df["site"] = pd.array(site, dtype="string")
    same(dvim.fit(df, **GIVEN), expected)
    codes = df.assign(site=pd.Categorical(np.searchsorted(["a", "b", "c"], site)))
    assert dvim.fit(codes, **GIVEN).weights.query("covariate == 'site'").level.tolist() == ["0", "1", "2"]
    if importlib.util.find_spec("polars"):
        import polars as pl

        base = pl.DataFrame({c: cohort[c].to_numpy() for c in cohort.columns})
        for dtype in (pl.String, pl.Categorical, pl.Enum(["zzz", "c", "b", "a"])):
            same(dvim.fit(base.with_columns(pl.Series("site", site).cast(dtype)), **GIVEN), expected)
        flag = base.with_columns((pl.col("x2") == 1).alias("x2"))
        assert dvim.fit(flag, **GIVEN).weights.filter(pl.col("covariate") == "x2")["level"].to_list() == ["true"]
    if importlib.util.find_spec("pyarrow"):
        import pyarrow as pa

        table = pa.table({**{c: cohort[c].to_numpy() for c in cohort.columns}, "site": pa.array(site).dictionary_encode()})
        same(dvim.fit(table, **GIVEN), expected)


def test_gaps_in_every_library(cohort):
    gaps = np.random.default_rng(2).random(len(cohort)) < 0.1
    df = cohort.copy()
    df.loc[gaps, "x11"] = np.nan
    expected = dvim.fit(df, **GIVEN, missing="indicator")
    with pytest.raises(dvim.Refused, match="missing=\"drop\""):
        dvim.fit(df, **GIVEN)
    nullable = df.assign(x11=df.x11.astype("Float64"))
    same(dvim.fit(nullable, **GIVEN, missing="indicator"), expected)
    if importlib.util.find_spec("polars"):
        import polars as pl

        base = pl.DataFrame({c: df[c].to_numpy() for c in df.columns}).with_columns(pl.col("x11").fill_nan(None))
        same(dvim.fit(base, **GIVEN, missing="indicator"), expected)
    masked = {c: df[c].to_numpy() for c in df.columns}
    masked["x11"] = np.ma.masked_invalid(masked["x11"])
    same(dvim.fit(masked, **GIVEN, missing="indicator"), expected)


def test_the_index_names_the_patients(cohort, fitted):
    df = cohort.drop(columns="id")
    df.index = pd.Index([f"p{i:04d}" for i in cohort.id], name="patient")
    a = dvim.fit(df, **GIVEN)
    assert a.effects.id.iloc[0].startswith("p") and a.effects.index.name == "patient"
    assert (a.effects.index == a.effects.id).all()
    joined = df.join(a.effects[["cure_effect"]])
    assert joined.cure_effect.notna().sum() == len(a.effects)
    assert a.match_group(a.effects.index[0]).id == a.effects.index[0]
    # The same patients under a column of ids.
    same(a, dvim.fit(df.reset_index(), **GIVEN, id="patient"))
    assert dvim.fit(df, **GIVEN, id="patient").effects.equals(a.effects)
    # A plain index is no id, but results keep it.
    plain = dvim.fit(cohort.drop(columns="id"), **GIVEN)
    assert (plain.effects.index + 1 == plain.effects.id).all()
    same(plain, fitted)
    assert (fitted.effects.index + 1 == fitted.effects.id).all()


def test_dates_in_every_library(untidy):
    given = dict(start="begin", end="stop", event="status", treatment="rx", horizon=800, id="patient", treated="Lev+5FU",
                 control="Lev", drop=["junk", "grade"], zero_time="shift", group_size=15)
    expected = dvim.fit(untidy, **given)
    dated = untidy.assign(begin=pd.to_datetime(untidy.begin), stop=pd.to_datetime(untidy.stop))
    same(dvim.fit(dated, **given), expected)
    if importlib.util.find_spec("polars"):
        import polars as pl

        plain = {c: untidy[c].to_list() for c in untidy.columns if c != "grade"}
        for c in ("begin", "stop"):
            plain[c] = [datetime.date.fromisoformat(d) for d in plain[c]]
        frame = pl.DataFrame(plain)
        same(dvim.fit(frame, **{**given, "drop": ["junk"]}), expected)
        timed = frame.with_columns(pl.col("begin", "stop").cast(pl.Datetime("us")))
        same(dvim.fit(timed, **{**given, "drop": ["junk"]}), expected)


def test_what_is_no_table_is_refused(cohort):
    for data in (3, [1, 2], cohort.to_numpy(), cohort.to_numpy()[:, 0]):
        with pytest.raises(dvim.Refused, match="remedy"):
            dvim.fit(data, **GIVEN)
    if importlib.util.find_spec("polars"):
        import polars as pl

        frame = pl.DataFrame({c: cohort[c].to_numpy() for c in cohort.columns})
        with pytest.raises(dvim.Refused, match="column `bad`"):
            dvim.fit(frame.with_columns(pl.Series("bad", [[1]] * len(frame))), **GIVEN)


def test_what_a_new_user_gets_wrong_is_said(cohort, tmp_path):
    """The words of a refusal name what to do about it, in Python's terms."""
    n = len(cohort)
    cohort.to_parquet(tmp_path / "cohort.parquet")
    cases = [
        (cohort, dict(time="Time"), "did you mean `time`"),
        (cohort.assign(time=pd.to_timedelta(cohort.time, unit="D")), {}, "total_seconds"),
        (cohort.assign(event=cohort.event + 1), {}, "subtract 1"),
        (cohort.assign(event=np.where(cohort.event == 1, "dead", "alive")), {}, "`alive`, `dead`"),
        (cohort.assign(event=(cohort.event == 1).astype("boolean").where(cohort.index != 3)), {}, r"1 missing value \(row 4\)"),
        (cohort.assign(treatment=np.where(cohort.treatment == 1, "drug", "none")), {}, 'treated="drug"'),
        (cohort.assign(treatment=np.arange(n) % 3), {}, "treated=1 control=0"),
        (cohort.assign(x11=cohort.x11.astype("Float64").where(cohort.index > 5)), {}, 'missing="indicator"'),
        (cohort, dict(missing="impute"), "refuse, drop, indicator"),
        (cohort, dict(where="x1 == 1"), "where={"),
        (cohort, dict(caliper=0.2), "caliper={"),
        (cohort.to_dict("records"), {}, "DataFrame"),
        (pd.concat([cohort, cohort[["x1"]]], axis=1), {}, "rename"),
        (str(tmp_path / "cohort.parquet"), {}, "read_parquet"),
    ]
    for data, more, words in cases:
        with pytest.raises(dvim.Refused, match=words):
            dvim.fit(data, **{**GIVEN, **more})
    with pytest.raises(TypeError, match="fit.. got an unexpected keyword argument 'tme'"):
        dvim.fit(cohort, **GIVEN, tme="time")
    assert dvim.fit(cohort, **{**GIVEN, "group_size": 20.0, "audit": False}).summary.options.group_size == 20


def test_numbers_are_read_in_place():
    """Doubles of a frame are not copied on their way to the cohort: its own copy is the one."""
    import subprocess

    script = f"""
import numpy as np, resource, sys
import dvim
n, p = 100_000, 60
rng = np.random.default_rng(1)
data = {{f"x{{j}}": rng.random(n) for j in range(p)}}
data["time"] = rng.random(n) + 0.01
data["event"] = rng.integers(0, 2, n).astype(float)
data["treatment"] = rng.integers(0, 2, n).astype(float)
size = 8 * n * p
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
dvim.check(data, time="time", event="event", treatment="treatment", horizon=0.5)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print((after - before) / size)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    # The cohort is one copy; text, ids and outcomes are small beside 60 covariates.
    assert float(done.stdout) < 1.6, done.stdout
