"""The command line against software that nobody here wrote."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
DVIM = os.environ.get("DVIM", str(HERE.parent.parent / "target" / "debug" / "dvim"))
DATA = os.environ.get("DVIM_DATA")


def dvim(*args, code=0):
    done = subprocess.run([DVIM, *map(str, args)], capture_output=True, text=True)
    if done.returncode != code:
        raise AssertionError(f"dvim {' '.join(map(str, args))} exited {done.returncode}: {done.stderr}")
    return done.stdout


class Recompute(unittest.TestCase):
    """Anyone can recompute a row of effects.csv from weights.csv and the cohort."""

    def check(self, scenario, *options, n=1500, k=30):
        with tempfile.TemporaryDirectory() as folder:
            cohort, run = f"{folder}/cohort.csv", f"{folder}/run"
            dvim("simulate", "--scenario", scenario, "--n", n, "--seed", 5, "-o", cohort)
            columns = ["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", 800]
            dvim("fit", cohort, *columns, "--estimator", "paper", "-k", k, "-o", run, *options)
            done = subprocess.run([sys.executable, HERE / "recompute.py", cohort, run, "800", str(k)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_separate(self):
        self.check("both-overlap")

    def test_raw_covariates(self):
        self.check("cure-only", "--scale", "none")

    def test_combined(self):
        self.check("time-only", "--metric", "combined", "--seed", 3)

    def test_small_groups_with_undefined_effects(self):
        self.check("both-independent", k=3)


class Balance(unittest.TestCase):
    """Balance follows from the exported weights alone."""

    def test_from_exported_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            cohort, run, uses, audit = (f"{folder}/{name}" for name in ["cohort.csv", "run", "uses.csv", "audit.json"])
            dvim("simulate", "--scenario", "both-overlap", "--n", 1500, "--seed", 5, "--confounded", "-o", cohort)
            dvim("fit", cohort, "--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", 800, "--estimator", "paper",
                 "-k", 30, "-o", run)
            Path(audit).write_text(dvim("audit", run, "--uses", uses, "--json"))
            done = subprocess.run([sys.executable, HERE / "balance.py", cohort, uses, audit], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


@unittest.skipUnless(DATA, "DVIM_DATA is not set: NO REFERENCE DATA, agreement with R was not tested")
class Reference(unittest.TestCase):
    """Marginal curves of public cohorts against R's survival 3.5-3 (survfit, RMST and CMET by exact sums)."""

    def arms(self, table, time, event, treatment, horizon, covariates):
        import pandas as pd

        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/table.csv"
            pd.DataFrame(table)[[time, event, treatment, *covariates]].to_csv(path, index=False)
            out = dvim("check", path, "--time", time, "--event", event, "--treatment", treatment, "--horizon", horizon,
                       "--estimator", "paper", "-k", 5, "--json")
        return json.loads(out)["arms"]

    def assert_arm(self, arm, n, events, s, se, rmst, cmet):
        self.assertEqual((arm["n_units"], arm["n_events"]), (n, events))
        self.assertAlmostEqual(arm["cure_probability"]["estimate"], s, delta=5e-5)
        self.assertAlmostEqual(arm["cure_probability"]["se"], se, delta=5e-5)
        self.assertAlmostEqual(arm["restricted_mean"]["estimate"], rmst, delta=5e-5)
        self.assertAlmostEqual(arm["mean_event_time"]["estimate"], cmet, delta=5e-5)

    def read(self, name):
        import pandas as pd

        return pd.read_csv(Path(DATA) / f"{name}.csv")

    def test_colon(self):
        t = self.read("colon")
        t = t[(t.etype == 1) & t.rx.isin(["Obs", "Lev+5FU"])].assign(arm=lambda d: (d.rx == "Lev+5FU").astype(int))
        arms = self.arms(t, "time", "status", "arm", 2190, ["age", "sex"])
        self.assert_arm(arms["treated"], 304, 119, 0.5994, 0.0286, 1550.7856, 594.4747)
        # R counts 177 events over all follow-up, of which 175 before the horizon.
        self.assert_arm(arms["control"], 315, 175, 0.4339, 0.0285, 1257.6902, 542.9571)

    def test_gbsg(self):
        arms = self.arms(self.read("gbsg"), "rfstime", "status", "hormon", 1825, ["age", "nodes"])
        # Events of the oracle are counted over all follow-up, ours before the horizon.
        self.assertEqual((arms["treated"]["n_units"], arms["control"]["n_units"]), (246, 440))
        for arm, s, se, rmst, cmet in [("treated", 0.5812, 0.0362, 1413.4221, 842.2211), ("control", 0.4368, 0.0297, 1264.1181, 829.1057)]:
            self.assert_arm(arms[arm], arms[arm]["n_units"], arms[arm]["n_events"], s, se, rmst, cmet)

    def test_e1684(self):
        arms = self.arms(self.read("e1684"), "FAILTIME", "FAILCENS", "TRT", 5, ["AGE", "SEX"])
        for arm, n, s, se, rmst, cmet in [("treated", 144, 0.3676, 0.0406, 2.519, 1.0766), ("control", 140, 0.2604, 0.0374, 1.9975, 0.9405)]:
            self.assert_arm(arms[arm], n, arms[arm]["n_events"], s, se, rmst, cmet)

    def test_pbc_restricted_mean(self):
        """survRM2 1.0-4 vignette: 312 patients of pbc, times in years, tau = 10."""
        t = self.read("pbc").dropna(subset=["trt"]).assign(
            years=lambda d: d.time / 365.25, died=lambda d: (d.status == 2).astype(int), arm=lambda d: (d.trt == 1).astype(int)
        )
        arms = self.arms(t, "years", "died", "arm", 10, ["age"])
        for arm, value, se in [("treated", 7.146492996, 0.2827748496), ("control", 7.283415761, 0.2954780922)]:
            self.assertAlmostEqual(arms[arm]["restricted_mean"]["estimate"], value, delta=1e-8)
            self.assertAlmostEqual(arms[arm]["restricted_mean"]["se"], se, delta=1e-8)


if __name__ == "__main__":
    unittest.main()
