"""Python and the command line give the same bits."""

import json

import numpy as np
import pytest
from conftest import PAPER, ROLES, listed, read_csv

import dvim

UNTIDY = dict(
    start="begin", end="stop", event="status", treatment="rx", horizon=800, id="patient", treated="Lev+5FU",
    control="Lev", where={"etype": 1}, drop=["junk"], missing="indicator", zero_time="shift", estimator="paper",
    group_size=15,
)
UNTIDY_FLAGS = [
    "--start", "begin", "--end", "stop", "--event", "status", "--treatment", "rx", "--horizon", 800, "--id", "patient",
    "--treated", "Lev+5FU", "--control", "Lev", "--where", "etype=1", "--drop", "junk", "--missing", "indicator",
    "--zero-time", "shift", "--estimator", "paper", "-k", 15,
]
SIMULATED = ["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", 800]
BY_PAPER = [*SIMULATED, "--estimator", "paper"]
CASES = {
    "plain": ("cohort", dict(**PAPER, horizon=800), BY_PAPER),
    "size-and-seed": ("cohort", dict(**PAPER, horizon=500, group_size=35, seed=7, train_fraction=0.5),
                      [*SIMULATED[:-1], 500, "--estimator", "paper", "-k", 35, "--seed", 7, "--train-fraction", 0.5]),
    "raw-combined": ("cohort", dict(**PAPER, horizon=800, metric="combined", scale="none", confidence=0.8),
                     [*BY_PAPER, "--metric", "combined", "--scale", "none", "--confidence", 0.8]),
    "constrained": ("cohort", dict(**PAPER, horizon=800, group_size=5, exact="x2", caliper={"x11": "1.5sd", "x12": 3},
                                   exclude_self=True),
                    [*BY_PAPER, "-k", 5, "--exact", "x2", "--caliper", "x11=1.5sd", "--caliper", "x12=3", "--exclude-self"]),
    "weighted": ("further", dict(**PAPER, horizon=800, group_size=20, drop="why", weights="w", cluster="site", entry="late"),
                 [*BY_PAPER, "-k", 20, "--drop", "why", "--weights", "w", "--cluster", "site", "--entry", "late"]),
    "cause": ("further", dict(**{**PAPER, "event": "why"}, horizon=800, group_size=20, cause=1,
                              drop=["w", "site", "late", "event"]),
              ["--time", "time", "--event", "why", "--treatment", "treatment", "--horizon", 800, "--estimator", "paper", "-k", 20, "--cause", 1,
               "--drop", "w,site,late,event"]),
    "no-audit": ("cohort", dict(**PAPER, horizon=800, audit=False), [*BY_PAPER, "--no-audit"]),
    "adjusted": ("cohort", dict(**ROLES, horizon=800, estimator="adjusted", folds=3, latency="weibull", group_size=30,
                                   penalty=0.3),
                 [*SIMULATED, "--estimator", "adjusted", "--folds", 3, "--latency", "weibull", "-k", 30,
                  "--penalty", "elastic-net:0.3"]),
    "adjusted-auto": ("cohort", dict(**ROLES, horizon=800, estimator="adjusted", group_size="auto", folds=3, splits=5,
                                     covariates=["x1", "x2", "x11"]),
                      [*SIMULATED, "--estimator", "adjusted", "--group-size", "auto", "--folds", 3, "--splits", 5,
                       "--covariates", "x1,x2,x11"]),
    "default": ("cohort", dict(**ROLES, horizon=800), SIMULATED),
    "untidy": ("untidy", UNTIDY, UNTIDY_FLAGS),
    "untidy-by": ("untidy", {**UNTIDY, "by": ["sex", "x11:3"], "categorical": ["grade"]},
                  [*UNTIDY_FLAGS, "--categorical", "grade", "--by", "sex", "--by", "x11:3"]),
    "untidy-drop": ("untidy", {**UNTIDY, "missing": "drop"}, [f if f != "indicator" else "drop" for f in UNTIDY_FLAGS]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_bytes(case, request, command, tmp_path):
    table, given, flags = CASES[case]
    df = request.getfixturevalue(table)
    df.to_csv(tmp_path / "cohort.csv", index=False)
    command("fit", tmp_path / "cohort.csv", *flags, "-o", tmp_path / "cli")
    a = dvim.fit(df, **given)
    a.save(tmp_path / "python")
    for name in ("effects.csv", "weights.csv", "run.dvim"):
        assert (tmp_path / "cli" / name).read_bytes() == (tmp_path / "python" / name).read_bytes(), name
    found, expected = (json.loads((tmp_path / face / "summary.json").read_text()) for face in ("python", "cli"))
    # The digest of the summary holds where the table came from.
    for name in ("input", "seal"):
        found.pop(name), expected.pop(name)
    assert found == expected


def test_a_path_is_read_as_the_command_line_reads_it(untidy, command, tmp_path):
    untidy.to_csv(tmp_path / "cohort.csv", index=False)
    command("fit", tmp_path / "cohort.csv", *UNTIDY_FLAGS, "-o", tmp_path / "cli")
    dvim.fit(tmp_path / "cohort.csv", **UNTIDY).save(tmp_path / "python")
    for name in ("effects.csv", "weights.csv", "run.dvim", "summary.json"):
        assert (tmp_path / "cli" / name).read_bytes() == (tmp_path / "python" / name).read_bytes(), name


def same_directories(found, expected):
    """All files of two directories are the same, but for where the table came from."""
    names = sorted(p.relative_to(expected) for p in expected.rglob("*") if p.is_file())
    assert names == sorted(p.relative_to(found) for p in found.rglob("*") if p.is_file())
    for name in names:
        if name.name == "summary.json":
            mine, theirs = (json.loads((d / name).read_text()) for d in (found, expected))
            for place in ("input", "seal"):
                mine.pop(place, None), theirs.pop(place, None)
            assert mine == theirs, name
        else:
            assert (found / name).read_bytes() == (expected / name).read_bytes(), name


@pytest.fixture(scope="session")
def imputed(cohort):
    """Three imputed data sets, one below the other, in which every seventh value of two covariates differs."""
    pd = pytest.importorskip("pandas")
    draw = np.random.default_rng(2)

    def one(m):
        gap = np.arange(len(cohort)) % 7 == 0
        noise = {x: cohort[x] + gap * draw.normal(size=len(cohort)) for x in ("x11", "x12")}
        return cohort.assign(**noise, m=m)

    return pd.concat([one(m) for m in (1, 2, 3)], ignore_index=True)


def test_imputed_data_sets_are_pooled_to_the_same_bytes(imputed, command, tmp_path):
    imputed.to_csv(tmp_path / "long.csv", index=False)
    command("fit", tmp_path / "long.csv", *BY_PAPER, "-k", 20, "--imputation", "m", "--by", "x1", "-o", tmp_path / "cli")
    given = dict(**PAPER, horizon=800, group_size=20, by="x1")
    p = dvim.fit(imputed, imputation="m", **given)
    assert isinstance(p, dvim.Pooled) and list(p) == ["m 1", "m 2", "m 3"] and 3 in p and 4 not in p
    p.save(tmp_path / "python")
    same_directories(tmp_path / "python", tmp_path / "cli")
    for name, values in read_csv(tmp_path / "cli" / "effects.csv").items():
        assert values == listed(p.effects[name]), name
    averages = read_csv(tmp_path / "cli" / "averages.csv")
    assert averages["estimate"] == listed(p.average_effects().estimate) and list(averages) == list(p.average_effects().columns)
    # One data set is the analysis that it is by itself.
    alone = dvim.fit(imputed[imputed.m == 2].drop(columns="m").reset_index(drop=True), **given)
    assert alone.effects.reset_index(drop=True).equals(p[2].effects) and p["m 2"] is p[2]
    # As a list of frames, and as a list of files.
    tables = [imputed[imputed.m == m].drop(columns="m") for m in (1, 2, 3)]
    assert dvim.fit(tables, **given).effects.equals(p.effects.set_axis(tables[0].index[p.effects.id - 1]))
    files = [tmp_path / f"set{m}.csv" for m in (1, 2, 3)]
    for file, table in zip(files, tables):
        table.to_csv(file, index=False)
    command("fit", *files, *BY_PAPER, "-k", 20, "--by", "x1", "-o", tmp_path / "cli-files")
    of_files = dvim.fit([str(f) for f in files], **given)
    of_files.save(tmp_path / "python-files")
    same_directories(tmp_path / "python-files", tmp_path / "cli-files")
    # Opened, it is the same; saved again, too.
    again = dvim.open(tmp_path / "cli", frame="pandas")
    assert again.effects.equals(p.effects) and again[1].effects.equals(p[1].effects) and repr(again) == repr(p)
    again.save(tmp_path / "copied")
    same_directories(tmp_path / "copied", tmp_path / "cli")
    with pytest.raises(dvim.Exists):
        again.save(tmp_path / "copied")
    again.save(tmp_path / "copied", force=True)
    assert "<table" in again._repr_html_() and "Rubin" in repr(again)


def test_every_arm_against_one_control_to_the_same_bytes(untidy, command, tmp_path):
    untidy.to_csv(tmp_path / "cohort.csv", index=False)
    flags = [f if f != "Lev+5FU" else "all" for f in UNTIDY_FLAGS]
    command("fit", tmp_path / "cohort.csv", *flags, "-o", tmp_path / "cli")
    arms = dvim.fit(untidy, **{**UNTIDY, "treated": "all"})
    assert isinstance(arms, dvim.Arms) and sorted(arms) == ["Lev+5FU", "Obs"]
    arms.save(tmp_path / "python")
    same_directories(tmp_path / "python", tmp_path / "cli")
    found, written = arms.average_effects(), read_csv(tmp_path / "cli" / "arms.csv")
    assert list(written) == list(found.columns)
    assert all(values == listed(found[name]) for name, values in written.items())
    assert arms["Lev+5FU"].effects.equals(dvim.fit(untidy, **UNTIDY).effects)
    again = dvim.open(tmp_path / "cli", frame="pandas")
    assert isinstance(again, dvim.Arms) and again.average_effects().equals(found)
    with pytest.raises(KeyError, match="Lev"):
        arms["5FU"]


def test_what_several_data_sets_refuse(imputed, untidy):
    given = dict(**PAPER, horizon=800, group_size=20)
    with pytest.raises(dvim.Refused, match="do not have the same patients") as refused:
        dvim.fit(imputed[imputed.index != 5], imputation="m", **given)
    assert refused.value.problems[0].code == "bad_imputation" and "`6`" in str(refused.value)
    for wrong, words in (
        (dict(imputation="imp"), "no such column"),
        (dict(imputation="m", audit=False), "audit"),
        (dict(imputation="m", treated="all", control=0), "one pair of arms"),
        (dict(imputation="x11"), "different values"),
    ):
        with pytest.raises(dvim.Refused, match=words):
            dvim.fit(imputed, **{**given, **wrong})
    with pytest.raises(dvim.Refused, match="there is no table"):
        dvim.fit([], **given)
    with pytest.raises(dvim.Refused, match="in `m 2`"):
        dvim.fit(imputed.assign(time=imputed.time.where(imputed.m != 2, -1.0)), imputation="m", **given)
    with pytest.raises(dvim.Refused, match="none of its values is the control `Levo`"):
        dvim.fit(untidy, **{**UNTIDY, "treated": "all", "control": "Levo"})
    with pytest.warns(dvim.Warning, match="before imputation"):
        import pandas as pd

        dvim.fit(pd.concat([imputed, imputed[imputed.m == 1].assign(m=0)]), imputation="m", **given)


def test_effects_are_those_of_the_file(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    written = read_csv(tmp_path / "run" / "effects.csv")
    assert list(written) == list(fitted.effects.columns)
    for name, values in written.items():
        assert values == listed(fitted.effects[name]), name
    written = read_csv(tmp_path / "run" / "weights.csv")
    for name, values in written.items():
        assert values == listed(fitted.weights[name]), name


def test_one_thread_and_many(cohort, fitted):
    again = dvim.fit(cohort.sample(frac=1, random_state=1).reset_index(drop=True), **PAPER, horizon=800, group_size=20,
                     threads=1)
    assert again.effects.equals(fitted.effects.set_axis(again.effects.index))


def test_predict_match_audit_and_compare_are_those_of_the_command_line(cohort, fitted, command, tmp_path):
    fitted.save(tmp_path / "run")
    new = dvim.simulate("both-overlap", n=50, seed=99, frame="pandas")
    new.to_csv(tmp_path / "new.csv", index=False)
    command("predict", tmp_path / "run", tmp_path / "new.csv", "-o", tmp_path / "out.csv", "--groups", tmp_path / "members.csv")
    written = read_csv(tmp_path / "out.csv")
    found, members = fitted.predict(new, groups=True)
    for name in ("id", "cure_effect", "time_effect", "cure_effect_low", "time_effect_high", "cure_diameter_treated"):
        assert written[name] == listed(found[name]), name
    expected = read_csv(tmp_path / "members.csv")
    assert expected["distance"] == listed(members.distance) and list(expected) == list(members.columns)
    assert fitted.predict(str(tmp_path / "new.csv")).equals(found)

    one = str(fitted.effects.id.iloc[3])
    assert json.loads(command("match", tmp_path / "run", one, "--json").stdout) == fitted.match_group(one).to_dict()
    assert command("match", tmp_path / "run", one, "--all").stdout.rstrip() == repr(fitted.match_group(one))

    said = json.loads(command("audit", tmp_path / "run", "--by", "x1", "--json").stdout)
    audit = fitted.audit(by="x1")
    assert said["audit"] == audit.to_dict()
    by = fitted.average_effects(by="x1")
    assert len(by) == len(said["average_effects"])
    assert by.estimate.tolist() == pytest.approx([a["estimate"] for a in said["average_effects"]], abs=0, nan_ok=True)

    cohort.to_csv(tmp_path / "cohort.csv", index=False)
    command("compare", tmp_path / "cohort.csv", *SIMULATED, "-k", 20, "-o", tmp_path / "cli-compare")
    found = dvim.compare(cohort, **ROLES, horizon=800, group_size=20)
    found.save(tmp_path / "py-compare")
    for name in ("effects.csv", "summary.csv", "correlations.csv"):
        assert (tmp_path / "cli-compare" / name).read_bytes() == (tmp_path / "py-compare" / name).read_bytes(), name

    said = json.loads(command("check", tmp_path / "cohort.csv", *SIMULATED, "--json").stdout)
    assert said["arms"] == dvim.check(cohort, **ROLES, horizon=800).to_dict()["arms"]


def test_simulated_cohorts_are_those_of_the_command_line(command, tmp_path):
    for scenario, more in (("cure-only", ["--confounded"]), ("transplant", [])):
        command("simulate", "--scenario", scenario, "--n", 300, "--seed", 4, *more, "-o", tmp_path / f"{scenario}.csv",
                "--truth", tmp_path / "truth.csv", "--force")
        found, truth = dvim.simulate(scenario, n=300, seed=4, confounded=bool(more), truth=True, frame="pandas")
        for name, values in read_csv(tmp_path / f"{scenario}.csv").items():
            assert values == listed(found[name]), name
        assert read_csv(tmp_path / "truth.csv")["cure_effect"] == listed(truth.cure_effect)


def test_arguments_are_the_settings():
    """A setting that is new in the engine's list must come to Python too, with its default and its words."""
    import inspect
    import re

    from dvim._options import SETTINGS

    parameters = inspect.signature(dvim.fit).parameters
    # What becomes of the result is asked of the result: save() and report().
    expected = {a for a, s in SETTINGS.items() if s["topic"] != "command" and a != "ties"} | {"by", "audit", "threads"}
    assert set(parameters) == expected | {"data", "y", "names", "progress"}
    empty = {"columns": ((), None), "switch": (False, True), "number": (inspect.Parameter.empty,)}
    for name in expected:
        setting, given = SETTINGS[name], parameters[name].default
        if setting["default"] is None:
            assert any(given is usual or given == usual for usual in empty.get(setting["kind"], (None,))), name
        elif name == "folds":
            assert given is None  # to say ten would ask for one deal
        else:
            assert str(given) == setting["default"], name
        assert all(f'"{word}"' in dvim.fit.__doc__ for word in setting["words"]), name
    # Nor is there an argument that is none: in the documentation every one has its line.
    shown = re.findall(r"^    ([a-z_, ]+)\n        ", dvim.fit.__doc__.partition("Returns")[0], re.M)
    assert {name for line in shown for name in line.split(", ")} == set(parameters)
    assert inspect.signature(dvim.check) == inspect.signature(dvim.fit)
    compared = inspect.signature(dvim.compare).parameters
    assert set(parameters) - set(compared) == {
        "imputation", "estimator", "splits", "folds", "latency", "learners", "penalty", "by", "audit"}
    assert set(compared) - set(parameters) == {"ties"} and compared["ties"].default == SETTINGS["ties"]["default"]
    # Flags of the result are arguments of the methods that write it.
    assert {"path", "force", "format"} <= set(inspect.signature(dvim.Analysis.save).parameters)
    assert {"path", "force", "title", "time_unit", "about"} <= set(inspect.signature(dvim.Analysis.report).parameters)


def test_defaults_are_the_engines():
    import inspect

    from dvim import _dvim

    given = {n: p.default for n, p in inspect.signature(dvim.fit).parameters.items()}
    engine = json.loads(_dvim.default_options(True))
    for name in ("train_fraction", "metric", "scale", "seed", "confidence", "estimator", "exclude_self"):
        assert given[name] == engine[name], name
    adjusted = json.loads(_dvim.default_options(True))["adjusted"]
    assert given["splits"] is None and adjusted["splits"] is None and given["folds"] is None and adjusted["latency"] is None and given["latency"] == "auto"
    import inspect as i

    sk = pytest.importorskip("sklearn")
    assert sk
    estimator = {n: p.default for n, p in i.signature(dvim.DoubleMatching).parameters.items()}
    assert all(given[n] == d for n, d in estimator.items() if n not in ("horizon",))
