"""Python and the command line give the same bits."""

import json

import pytest
from conftest import ROLES, listed, read_csv

import dvim

UNTIDY = dict(
    start="begin", end="stop", event="status", treatment="rx", horizon=800, id="patient", treated="Lev+5FU",
    control="Lev", where={"etype": 1}, drop=["junk"], missing="indicator", zero_time="shift", group_size=15,
)
UNTIDY_FLAGS = [
    "--start", "begin", "--end", "stop", "--event", "status", "--treatment", "rx", "--horizon", 800, "--id", "patient",
    "--treated", "Lev+5FU", "--control", "Lev", "--where", "etype=1", "--drop", "junk", "--missing", "indicator",
    "--zero-time", "shift", "-k", 15,
]
SIMULATED = ["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", 800]
CASES = {
    "plain": ("cohort", dict(**ROLES, horizon=800), SIMULATED),
    "size-and-seed": ("cohort", dict(**ROLES, horizon=500, group_size=35, seed=7, train_fraction=0.5),
                      [*SIMULATED[:-1], 500, "-k", 35, "--seed", 7, "--train-fraction", 0.5]),
    "raw-combined": ("cohort", dict(**ROLES, horizon=800, metric="combined", scale="none", confidence=0.8),
                     [*SIMULATED, "--metric", "combined", "--scale", "none", "--confidence", 0.8]),
    "constrained": ("cohort", dict(**ROLES, horizon=800, group_size=5, exact="x2", caliper={"x11": "1.5sd", "x12": 3},
                                   exclude_self=True),
                    [*SIMULATED, "-k", 5, "--exact", "x2", "--caliper", "x11=1.5sd", "--caliper", "x12=3", "--exclude-self"]),
    "weighted": ("further", dict(**ROLES, horizon=800, group_size=20, drop="why", weights="w", cluster="site", entry="late"),
                 [*SIMULATED, "-k", 20, "--drop", "why", "--weights", "w", "--cluster", "site", "--entry", "late"]),
    "cause": ("further", dict(time="time", event="why", treatment="treatment", horizon=800, group_size=20, cause=1,
                              drop=["w", "site", "late", "event"]),
              ["--time", "time", "--event", "why", "--treatment", "treatment", "--horizon", 800, "-k", 20, "--cause", 1,
               "--drop", "w,site,late,event"]),
    "no-audit": ("cohort", dict(**ROLES, horizon=800, audit=False), [*SIMULATED, "--no-audit"]),
    "adjusted": ("cohort", dict(**ROLES, horizon=800, estimator="adjusted", folds=3, latency="weibull", group_size=30),
                 [*SIMULATED, "--estimator", "adjusted", "--folds", 3, "--latency", "weibull", "-k", 30]),
    "adjusted-auto": ("cohort", dict(**ROLES, horizon=800, estimator="adjusted", group_size="auto", folds=3, splits=2,
                                     covariates=["x1", "x2", "x11"]),
                      [*SIMULATED, "--estimator", "adjusted", "--group-size", "auto", "--folds", 3, "--splits", 2,
                       "--covariates", "x1,x2,x11"]),
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
    found.pop("input"), expected.pop("input")
    assert found == expected


def test_a_path_is_read_as_the_command_line_reads_it(untidy, command, tmp_path):
    untidy.to_csv(tmp_path / "cohort.csv", index=False)
    command("fit", tmp_path / "cohort.csv", *UNTIDY_FLAGS, "-o", tmp_path / "cli")
    dvim.fit(tmp_path / "cohort.csv", **UNTIDY).save(tmp_path / "python")
    for name in ("effects.csv", "weights.csv", "run.dvim", "summary.json"):
        assert (tmp_path / "cli" / name).read_bytes() == (tmp_path / "python" / name).read_bytes(), name


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
    again = dvim.fit(cohort.sample(frac=1, random_state=1).reset_index(drop=True), **ROLES, horizon=800, group_size=20,
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


def test_every_option_of_fit_can_be_asked_for(command):
    """A flag that is new on the command line must come to Python too."""
    import inspect
    import re

    flags = set(re.findall(r"--([a-z][a-z-]+)", command("fit", "--help").stdout)) - {"help", "version"}
    # What becomes of the result is asked of the result: save() and report().
    # Several imputed data sets are one command, and several fits in Python.
    flags -= {"imputation"}
    flags -= {"output", "force", "format", "report", "title", "time-unit"}
    arguments = set(inspect.signature(dvim.fit).parameters)
    assert {f.removeprefix("no-").replace("-", "_") for f in flags} - arguments == set()
    for other in (dvim.check, dvim.compare):
        taken = set(inspect.signature(other).parameters)
        only_fit = {"by", "audit", "progress", "estimator", "splits", "folds", "latency"}
        assert arguments - taken <= only_fit, (other, arguments - taken)


def test_defaults_are_the_engines():
    import inspect

    from dvim import _dvim

    given = {n: p.default for n, p in inspect.signature(dvim.fit).parameters.items()}
    engine = json.loads(_dvim.default_options(False))
    for name in ("train_fraction", "metric", "scale", "seed", "confidence", "estimator", "exclude_self"):
        assert given[name] == engine[name], name
    adjusted = json.loads(_dvim.default_options(True))["adjusted"]
    assert given["splits"] == adjusted["splits"] and given["folds"] == adjusted["folds"] and adjusted["latency"] is None and given["latency"] == "auto"
    import inspect as i

    sk = pytest.importorskip("sklearn")
    assert sk
    estimator = {n: p.default for n, p in i.signature(dvim.DoubleMatching).parameters.items()}
    assert all(given[n] == d for n, d in estimator.items() if n not in ("horizon",))
