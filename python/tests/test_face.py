"""What a user sees: displays, errors, warnings, progress, Ctrl-C, runs on disk, figures, estimators."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import PAPER, ROLES

import dvim

GIVEN = dict(**PAPER, horizon=800, group_size=20)


def test_display(fitted):
    text, html = repr(fitted), fitted._repr_html_()
    assert "of 100 patients are event-free at time" in text and "Average effects over the estimated patients" in text
    for part in ("<svg", "difference in points", "Time to event", "1,200 patients", "intervals"):
        assert part in html, part
    for outside in ("http:", "https:", "src=", "@import", "<script"):
        assert outside not in html.replace("http://www.w3.org/2000/svg", ""), outside


def test_averages_models_balance_and_uses(fitted):
    averages = fitted.average_effects()
    cure = averages.query("estimand == 'cure_effect' and population == 'all'").iloc[0]
    assert cure.low < cure.estimate < cure.high
    assert cure.estimate == pytest.approx(fitted.effects.cure_effect.mean())
    by = fitted.average_effects(by="x1")
    assert {"x1 = 0", "x1 = 1"} <= set(by.population) or any("x1" in p for p in by.population)
    assert fitted.models.treated.certificate.converged in (True, False)
    assert len(fitted.models.treated.cure.coefficients) == len(fitted.weights)
    assert len(fitted.balance()) == 20 and "difference_before" in fitted.balance()
    assert set(fitted.uses().columns) >= {"id", "cure_uses", "time_uses"}
    audit = fitted.audit()
    assert audit.follow_up[0].population == "all" and "Follow-up" in repr(audit)
    assert audit.average_effects().shape == averages.shape


def test_an_audit_can_come_later(cohort, fitted):
    a = dvim.fit(cohort, **GIVEN, audit=False)
    assert a.effects.equals(fitted.effects)
    assert a.average_effects().se.isna().all()
    assert a.balance().equals(fitted.balance())
    assert a.audit().to_dict()["balance"] == fitted.audit().to_dict()["balance"]


def test_match_group(fitted):
    group = fitted.match_group(int(fitted.effects.id.iloc[0]))
    row = fitted.effects.iloc[0]
    assert group.cure_effect == row.cure_effect and group.id == str(row.id)
    assert len(group.cure) == 40 and set(group.cure.arm) == {"treated", "control"}
    shares = group.cure.filter(like="share_").sum(axis=1)
    assert np.allclose(shares[group.cure.distance > 0], 1)
    assert {"matched_for", "arm", "survival"} <= set(group.curves.columns)
    curve = group.curves.query("matched_for == 'cure' and arm == 'treated' and time < 800")
    assert curve.survival.iloc[-1] == pytest.approx(row.cure_treated)


@pytest.mark.parametrize("estimator", ["adjusted", "paper"])
def test_curves_and_what_is_read_off_them(cohort, estimator):
    more = {"splits": 10} if estimator == "adjusted" else {"group_size": 30}
    a = dvim.fit(cohort, **ROLES, estimator=estimator, horizon=800, **more)
    table, effects = a.curves("all"), a.effects.set_index(a.effects.id.astype(str))
    wide = {arm: table[table.arm == arm].pivot(index="id", columns="time", values="survival") for arm in ("treated", "control")}
    for arm, survival in wide.items():
        of = effects.loc[survival.index.astype(str)]
        assert len(of) > 700 and list(survival.columns[[0, -1]]) == [0, 800]
        assert np.allclose(survival[800], of[f"cure_{arm}"], atol=1e-12)
        times, values = survival.columns.to_numpy(), survival.to_numpy()
        area = (0.5 * (values[:, 1:] + values[:, :-1]) * np.diff(times)).sum(axis=1)
        assert np.allclose(area, of[f"rmst_{arm}"], atol=800e-7)
    parts = effects.rmst_from_cure + effects.rmst_from_time
    assert np.allclose(parts, effects.rmst_effect, atol=1e-9, equal_nan=True)
    if estimator == "paper":
        with pytest.raises(dvim.Refused, match="no curves of the arms"):
            a.curves()


def test_who_has_no_curve_is_said(cohort):
    a = dvim.fit(cohort[:300], **ROLES, horizon=800, splits=10, group_size=8, exact=["x1", "x2", "x3", "x4"])
    without = a.effects[a.effects.cure_effect.isna()]
    assert 0 < len(without) < 300
    with pytest.warns(UserWarning, match=f"{len(without)} patients have no curve"):
        assert a.curves("all").id.nunique() == 300 - len(without)
    with pytest.raises(dvim.Refused, match="1 patient has no curve"):
        a.curves(int(without.id.iloc[0]))


def test_save_open_and_report(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    again = dvim.open(tmp_path / "run", frame="pandas")
    assert again.effects.reset_index(drop=True).equals(fitted.effects.reset_index(drop=True))
    assert repr(again) == repr(fitted) and again.summary["options"] == fitted.summary["options"]
    with pytest.raises(FileExistsError, match="force=True"):
        fitted.save(tmp_path / "run")
    fitted.save(tmp_path / "run", force=True)
    again.save(tmp_path / "copy")
    assert (tmp_path / "copy" / "effects.csv").read_bytes() == (tmp_path / "run" / "effects.csv").read_bytes()
    (tmp_path / "copy" / "effects.csv").write_text("edited")
    with pytest.warns(dvim.Warning, match="effects.csv"):
        dvim.open(tmp_path / "copy")
    for bad in (tmp_path / "nothing", tmp_path):
        with pytest.raises(dvim.OpenError, match="run"):
            dvim.open(bad)
    fitted.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!") and "pandas.DataFrame" in page
    with pytest.raises(dvim.Exists):
        fitted.report(tmp_path / "report.html")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy", "report.html", "run"]


@pytest.mark.skipif(os.name != "posix", reason="modes and links")
def test_save_and_report_leave_other_files_alone(fitted, tmp_path):
    run, page = tmp_path / "run", tmp_path / "page.html"
    fitted.save(run)
    fitted.report(page)
    modes = [p.stat().st_mode & 0o777 for p in (run, *sorted(run.iterdir()), page)]
    assert modes == [0o700, *[0o600] * 4, 0o600]
    (run / "thesis.tex").write_text("years of work")
    with pytest.raises(dvim.Exists, match="`thesis.tex`"):
        fitted.save(run, force=True)
    (run / "thesis.tex").unlink()
    # A file of the run is an input of what was opened from it.
    again = dvim.open(run)
    before = (run / "run.dvim").read_bytes()
    with pytest.raises(dvim.Exists, match="is an input"):
        again.report(run / "run.dvim", force=True)
    assert (run / "run.dvim").read_bytes() == before
    link = tmp_path / "link.html"
    link.symlink_to(tmp_path / "nowhere.html")
    for force in (False, True):
        with pytest.raises(dvim.Exists, match="is a symbolic link"):
            fitted.report(link, force=force)
        with pytest.raises(dvim.Exists, match="is a symbolic link"):
            fitted.save(link, force=force)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.html", "page.html", "run"]


def test_a_fit_that_fails_leaves_nothing(cohort, tmp_path):
    with pytest.raises(dvim.Refused):
        dvim.fit(cohort, **{**GIVEN, "group_size": 5000})
    assert list(tmp_path.iterdir()) == []


def test_errors_are_typed_and_speak_python(cohort, fitted):
    with pytest.raises(dvim.Refused) as refused:
        dvim.fit(cohort, time="tme", event="event", treatment="treatment", horizon=-1)
    assert {p.code for p in refused.value.problems} == {"no_such_column", "bad_horizon"}
    assert "did you mean `time`" in str(refused.value) and isinstance(refused.value, ValueError)
    assert isinstance(refused.value, dvim.Error)
    with pytest.raises(KeyError) as missing:
        fitted.match_group(123456)
    assert isinstance(missing.value, dvim.NoSuchUnit) and missing.value.id == 123456
    assert "123456" in str(missing.value)
    with pytest.raises(dvim.Refused, match=r'estimator="adjusted"'):
        dvim.fit(cohort, **{**GIVEN, "group_size": "auto"})
    for idle in (dict(splits=3), dict(estimator="adjusted", scale="none"), dict(penalty="ridge"), dict(latency="weibull")):
        for call in (dvim.fit, dvim.check):
            with pytest.raises(dvim.Refused, match="this option belongs to the"):
                call(cohort, **{**GIVEN, **idle})
    for bad in (dict(estimator="best"), dict(missing="guess"), dict(metric="mine"), dict(seed=-1), dict(group_size=2.5),
                dict(horizon="long"), dict(caliper={"x1": "wide"}), dict(start="time"), dict(latency="gamma", estimator="adjusted")):
        with pytest.raises(dvim.Refused):
            dvim.fit(cohort, **{**GIVEN, **bad})
    for bad in (dict(event=None), dict(y=cohort.time)):
        with pytest.raises(dvim.Refused, match="remedy"):
            dvim.fit(cohort, **{**GIVEN, **bad})
    with pytest.raises(dvim.Refused, match="scenarios are"):
        dvim.simulate("nowhere")
    with pytest.raises(TypeError):
        dvim.fit(cohort, **GIVEN, windows=3)
    assert pickle.loads(pickle.dumps(str(refused.value))) == str(refused.value)


SPOKEN = [
    (dict(group_size=0), "use group_size=50, or 35"),
    (dict(confidence=2), "use confidence=0.95"),
    (dict(train_fraction=1), "use train_fraction=0.35, the paper's choice"),
    (dict(estimator="adjusted", group_size=None, splits=5, folds=2), "use splits=6, or more folds="),
    (dict(estimator="adjusted", penalty=2.0), 'use penalty="elastic-net:0.5"'),
    (dict(splits=3), "splits= with the paper's estimator"),
    (dict(group_size="auto"), 'group_size="auto" with the paper'),
    (dict(treated="new drug"), "use treated=0 or treated=1"),
    (dict(numeric="time"), "numeric= and categorical= say how one covariate is read"),
    (dict(cause=7), "cause= names the value of the event of interest"),
    (dict(caliper={"x1": -1}), 'write caliper={"x1": 5} or caliper={"x1": "0.2sd"}'),
    (dict(exact="nobody"), "exact= names it"),
    (dict(by="nobody"), "asked for by by="),
    (dict(treated="all"), 'treated="all" without control='),
    (dict(imputation="nobody"), "imputation= names the column"),
]


@pytest.mark.parametrize("given, words", SPOKEN, ids=[str(given) for given, _ in SPOKEN])
def test_messages_name_arguments_as_python_writes_them(cohort, given, words):
    with pytest.raises(dvim.Refused) as refused:
        dvim.fit(cohort, **{**GIVEN, **given})
    assert words in str(refused.value)
    assert "--" not in str(refused.value)


def test_warnings(untidy):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        a = dvim.fit(untidy, start="begin", end="stop", event="status", treatment="rx", horizon=800, id="patient",
                     treated="Lev+5FU", control="Lev", drop=["junk"], missing="indicator", zero_time="shift", estimator="paper",
                     group_size=15)
    ours = [w for w in caught if issubclass(w.category, dvim.Warning)]
    assert ours and ours[0].filename == __file__, "a warning points at the user's line"
    filled = next(w.message for w in ours if w.message.problem.code == "filled_values")
    assert 'missing="drop"' in str(filled) and filled.problem.column == "grade"
    assert [str(w) for w in a.warnings] == [str(w.message) for w in ours]


def test_progress_is_called_and_its_failure_is_passed_on(cohort):
    big = dvim.simulate("both-overlap", n=20_000, frame="pandas")
    stages = []
    dvim.fit(big, **PAPER, horizon=800, progress=lambda *now: stages.append(now))
    assert stages and all(isinstance(s, str) and 0 <= d <= t for s, d, t in stages)

    def stop(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        dvim.fit(big, **PAPER, horizon=800, progress=stop)


def test_ctrl_c_stops_a_long_fit():
    # A shell that runs the tests in the background has its children ignore the signal: the script listens again.
    script = """
import signal, sys, dvim
signal.signal(signal.SIGINT, signal.default_int_handler)
df = dvim.simulate("both-overlap", n=150_000)
print("ready", flush=True)
try:
    dvim.fit(df, time="time", event="event", treatment="treatment", horizon=800, estimator="adjusted", progress=False)
except KeyboardInterrupt:
    print("stopped", flush=True)
    sys.exit(7)
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(1.0)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "stopped\n"
        assert child.wait() == 7


def test_other_threads_of_python_go_on(cohort):
    import threading

    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(1)
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    dvim.fit(cohort, **GIVEN)
    done.set()
    ticking.join()
    assert len(ticks) > 10, "the interpreter lock was held"


def test_a_forked_child_can_fit_and_save(tmp_path):
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    script = f"""
import os, sys, dvim
df = dvim.simulate("both-overlap", n=1200, seed=5)
given = dict(time="time", event="event", treatment="treatment", horizon=800, estimator="paper", group_size=20)
first = dvim.fit(df, **given)
first.save(sys.argv[1] + "/parent")
here = first.effects.cure_effect.sum()
child = os.fork()
if child == 0:
    again = dvim.fit(df, **given)
    again.save(sys.argv[1] + "/child")
    os._exit(0 if again.effects.cure_effect.sum() == here else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script, str(tmp_path)], check=True, timeout=120)


def test_kaplan_meier_by_hand():
    # docs/validation.md: ties, a censoring at an event time, a lone censoring.
    curve = dvim.kaplan_meier([1, 2, 2, 3, 4, 5], [1, 1, 0, 0, 1, 0], horizon=4.5)
    s = [5 / 6, 5 / 6 * 4 / 5, 5 / 6 * 4 / 5 * 1 / 2]
    assert curve.at([1, 2, 3, 4]).tolist() == pytest.approx([s[0], s[1], s[1], s[2]])
    assert curve.horizon.survival == pytest.approx(s[2]) and curve.horizon.n_at_risk == 1
    mean = (1 * (1 - s[0]) + 2 * (s[0] - s[1]) + 4 * (s[1] - s[2])) / (1 - s[2])
    assert curve.horizon.mean_event_time == pytest.approx(mean)
    assert curve.median == 4
    frame = curve.frame
    assert (frame.low <= frame.survival).all() and (frame.survival <= frame.high).all()
    y = np.array([(True, 1.0), (False, 2.0)], dtype=[("e", "?"), ("t", "f8")])
    assert dvim.kaplan_meier(y).at(1.5) == 0.5
    for bad in (([1, 2], [1]), ([1, -2], [1, 0]), ([1, np.nan], [1, 0]), ([1, 2], [1, 2])):
        with pytest.raises(dvim.Refused):
            dvim.kaplan_meier(*bad)


def test_kaplan_meier_agrees_with_lifelines(cohort):
    lifelines = pytest.importorskip("lifelines")
    own = dvim.kaplan_meier(cohort.time, cohort.event)
    other = lifelines.KaplanMeierFitter().fit(cohort.time, cohort.event)
    assert np.allclose(own.frame.survival, other.predict(own.frame.time), atol=1e-12)


def test_mixture_cure(cohort):
    x = cohort[["x1", "x2", "x11"]]
    model = dvim.MixtureCure(horizon=800).fit(x, cohort.time, cohort.event)
    assert model.converged and model.log_likelihood < 0 and model.sigma > 0
    cure = model.predict_cure(x)
    survival = model.predict_survival(x, [0, 400, 800])
    assert np.allclose(survival[:, 2], cure) and np.all(survival[:, 0] == 1) and np.all(np.diff(survival, axis=1) <= 0)
    assert np.all((model.predict_mean_event_time(x) > 0) & (model.predict_mean_event_time(x) < 800))
    frame = model.coefficients
    assert frame.part.tolist() == ["cure"] * 4 + ["latency"] * 4
    b = frame[frame.part == "cure"].coefficient.to_numpy()
    assert np.allclose(1 / (1 + np.exp(-(b[0] + x.to_numpy() @ b[1:]))), cure)
    array = dvim.MixtureCure(horizon=800).fit(x.to_numpy(), cohort.time, cohort.event)
    assert array.predict_cure(x.to_numpy()).tolist() == cure.tolist()
    ridge = dvim.MixtureCure(horizon=800, cure_ridge=1e6).fit(x, cohort.time, cohort.event)
    assert abs(ridge.coefficients.coefficient[1:4]).max() < 0.01
    with pytest.raises(dvim.ModelError, match="event"):
        dvim.MixtureCure(horizon=800).fit(x, cohort.time, 0 * cohort.event)
    with pytest.raises(dvim.Refused):
        model.predict_cure(x.to_numpy()[:, :2])


def test_check_says_everything(cohort, untidy):
    fine = dvim.check(cohort, **GIVEN)
    assert not fine.refused and fine.arms.treated.n_units > 0 and "x11" in fine.columns.name.tolist()
    bad = dvim.check(untidy, start="begin", end="stop", event="status", treatment="rx", horizon=800)
    assert bad.refused and len([p for p in bad.problems if p.severity == "error"]) > 1
    assert "treated=" in repr(bad)


def test_figures(fitted, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from dvim._plot import INK

    assert INK["treated"] == "#174a84" and INK["control"] == "#de7a14"
    for name, n in (("effects", 2), ("curves", 1), ("balance", 1), ("plane", 1), ("horizon", 2), ("weights", 1)):
        axes = np.atleast_1d(getattr(fitted.plot, name)())
        assert len(axes) == n and all(a.get_xlabel() for a in axes), name
        axes[0].figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
    intervals = fitted.plot.effects()[0].collections
    assert len(intervals[0].get_segments()) == len(fitted.effects), "an interval for each patient"
    both = fitted.plot.curves(int(fitted.effects.id.iloc[0]))
    assert len(both) == 2 and "Patient" in both[0].get_title(loc="left")
    fig, ax = plt.subplots()
    assert fitted.plot.plane(ax=ax) is ax
    dvim.kaplan_meier([1, 2, 3], [1, 0, 1]).plot(ax=ax)
    fitted.match_group(int(fitted.effects.id.iloc[0])).plot()
    plt.close("all")
    adjusted = dvim.simulate("both-overlap", n=600, frame="pandas")
    a = dvim.fit(adjusted, **ROLES, horizon=800, estimator="adjusted", folds=2, group_size=20)
    for name in ("effects", "plane", "curves", "weights"):
        getattr(a.plot, name)()
    plt.close("all")


def test_scikit_learn(cohort):
    sklearn = pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    y = np.array(list(zip(cohort.event == 1, cohort.time)), dtype=[("event", "?"), ("time", "f8")])
    x = cohort.drop(columns=["id", "time", "event"])
    model = dvim.DoubleMatching(treatment="treatment", horizon=800, estimator="paper", group_size=20)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(seed=2).get_params()["seed"] == 2
    model.set_params(seed=1)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        model.predict(x)
    direct = dvim.fit(cohort.drop(columns="id"), **GIVEN)
    assert model.fit(x, y) is model
    assert np.array_equal(model.analysis_.effects.cure_effect, direct.effects.cure_effect)
    found = model.predict(x)
    assert found.shape == (len(x), 2)
    expected = direct.predict(cohort.drop(columns="id"))
    assert np.array_equal(found[:, 0], expected.cure_effect)
    assert model.n_features_in_ == x.shape[1] and list(model.feature_names_in_) == list(x.columns)
    # An array, the treatment by position; then beside it, through a pipeline.
    array = dvim.DoubleMatching(treatment=0, horizon=800, estimator="paper", group_size=20).fit(x.to_numpy(), y)
    assert np.array_equal(array.predict(x.to_numpy())[:, 0], found[:, 0])
    assert np.array_equal(array.predict(x.to_numpy()[:, 1:])[:, 0], found[:, 0])
    pipe = Pipeline([("scale", StandardScaler()), ("match", dvim.DoubleMatching(horizon=800, estimator="paper", group_size=20))])
    pipe.fit(x.drop(columns="treatment"), y, match__treatment=x.treatment.to_numpy())
    assert pipe.predict(x.drop(columns="treatment")).shape == (len(x), 2)
    keep = ColumnTransformer([("scale", StandardScaler(), [c for c in x if c != "treatment"])], remainder="passthrough",
                             verbose_feature_names_out=False).set_output(transform="pandas")
    piped = Pipeline([("scale", keep), ("match", clone(model))]).fit(x, y)
    assert piped.predict(x).shape == (len(x), 2)
    assert "DoubleMatching(" in repr(model)
    assert pickle.loads(pickle.dumps(clone(model))).get_params() == model.get_params()


def test_scikit_learns_own_checks():
    pytest.importorskip("sklearn")
    from sklearn.utils import estimator_checks as checks

    # Those that need no numeric y: an outcome of survival is an event and a time.
    for name in ("check_no_attributes_set_in_init", "check_parameters_default_constructible", "check_get_params_invariance",
                 "check_set_params", "check_estimator_repr", "check_estimator_cloneable", "check_do_not_raise_errors_in_init_or_set_param",
                 "check_estimator_tags_renamed", "check_valid_tag_types"):
        check = getattr(checks, name, None)
        if check is not None:
            check("DoubleMatching", dvim.DoubleMatching(horizon=1.0))


def test_stubs_and_types(tmp_path):
    pytest.importorskip("mypy")
    where = Path(dvim.__file__).parent
    # Beside other installed packages mypy takes them for the user's own.
    place = tmp_path if "site-packages" in where.parts else where.parent
    config = tmp_path / "mypy.ini"
    skipped = ",".join(f"{m}.*" for m in ("pandas", "polars", "pyarrow", "pyspark", "matplotlib", "sklearn", "narwhals", "IPython"))
    config.write_text(f"[mypy]\nignore_missing_imports = true\ncheck_untyped_defs = true\n[mypy-{skipped}]\nfollow_imports = skip\n")
    for check in (["mypy.stubtest", "dvim._dvim", "--ignore-disjoint-bases", "--mypy-config-file", config],
                  ["mypy", "-p", "dvim", "--config-file", config, "--cache-dir", tmp_path]):
        done = subprocess.run([sys.executable, "-m", *map(str, check)], capture_output=True, text=True, check=False,
                              cwd=place)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (where / "py.typed").exists()


def test_the_command_is_installed(tmp_path):
    beside = Path(sys.executable).with_name("dvim")
    start = [str(beside)] if beside.exists() else [sys.executable, "-m", "dvim"]
    said = subprocess.run([*start, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.strip() == f"dvim {dvim.__version__}"
    refused = subprocess.run([*start, "fit", "nowhere.csv"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "--horizon" in refused.stderr


def test_without_any_frame_library():
    script = """
import sys
for name in ("pandas", "polars", "pyarrow", "sklearn", "matplotlib", "narwhals"):
    sys.modules[name] = None
import dvim, numpy as np
import importlib.util
df = dvim.simulate("both-overlap", n=600, frame="")
a = dvim.fit(df, time="time", event="event", treatment="treatment", horizon=800, group_size=10)
assert isinstance(a.effects, dvim.Columns) and a.effects["cure_effect"].shape == (a.effects.n_rows,)
assert "cure_effect" in repr(a.effects)
try:
    a.plot.effects()
except ImportError as e:
    assert "dvim[plot]" in str(e)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)


def test_summary_is_json_all_the_way(fitted):
    assert json.loads(json.dumps(fitted.summary.to_dict()))["horizon"] == 800
