"""Public cohorts from their raw tables, with one command each and nothing prepared by hand."""

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

import recompute
from test_cli import DATA, DVIM, dvim

# R's survival 3.5-3 on the same tables: survfit at H with Greenwood's standard error, RMST and CMET by exact sums; treated, control.
ORACLE = {
    "colon": dict(n=[304, 315], S=[0.5994, 0.4339], se=[0.0286, 0.0285], RMST=[1550.7856, 1257.6902], CMET=[594.4747, 542.9571]),
    "gbsg": dict(n=[246, 440], S=[0.5812, 0.4368], se=[0.0362, 0.0297], RMST=[1413.4221, 1264.1181], CMET=[842.2211, 829.1057]),
    "e1684": dict(n=[144, 140], S=[0.3676, 0.2604], se=[0.0406, 0.0374], RMST=[2.519, 1.9975], CMET=[1.0766, 0.9405]),
}

# Recurrence after colon cancer: two rows for each patient, three arms, missing nodes and differentiation, coded categories.
COMMANDS = {
    "colon": "--where etype=1 --time time --event status --treatment rx --treated Lev+5FU --control Obs --horizon 2190 "
    "--drop study,node4 --categorical differ,extent --missing indicator",
    "gbsg": "--id pid --time rfstime --event status --treatment hormon --horizon 1825 --categorical grade",
    "e1684": "--time FAILTIME --event FAILCENS --treatment TRT --horizon 5",
}


def command(name):
    return [Path(DATA) / f"{name}.csv", *COMMANDS[name].split(), "--estimator", "paper", "-k", 20]


@unittest.skipUnless(DATA, "DVIM_DATA is not set: NO PUBLIC COHORTS, agreement with R was not tested")
class Cohorts(unittest.TestCase):
    def test_check_agrees_with_r(self):
        for name, oracle in ORACLE.items():
            found = json.loads(dvim("check", *command(name), "--json"))
            self.assertEqual(found["flow"]["n_units"], sum(oracle["n"]), name)
            for i, arm in enumerate(["treated", "control"]):
                a = found["arms"][arm]
                self.assertEqual(a["n_units"], oracle["n"][i], name)
                self.assertAlmostEqual(a["cure_probability"]["estimate"], oracle["S"][i], delta=5e-5)
                self.assertAlmostEqual(a["cure_probability"]["se"], oracle["se"][i], delta=5e-5)
                self.assertAlmostEqual(a["restricted_mean"]["estimate"], oracle["RMST"][i], delta=5e-5)
                self.assertAlmostEqual(a["mean_event_time"]["estimate"], oracle["CMET"][i], delta=5e-5)

    def test_shared_oracles_are_these(self):
        path = Path("/work/shared/oracles.json")
        if not path.exists():
            self.skipTest("oracles.json is not on this machine")
        shared = json.loads(path.read_text())["km_horizon_contrasts"]
        for name, key in [("colon", "colon_lev5fu_vs_obs"), ("gbsg", "gbsg"), ("e1684", "e1684")]:
            for field, values in ORACLE[name].items():
                self.assertEqual(shared[key][field], values)

    def test_flow_of_numbers(self):
        steps = [(s["reason"], s["n_dropped"]) for s in json.loads(dvim("check", *command("colon"), "--json"))["flow"]["steps"]]
        self.assertEqual(steps, [("etype is not 1", 929), ("in another arm", 310)])

    def test_missing_values_are_refused_by_default(self):
        args = [a for a in command("colon") if a not in ("--missing", "indicator")]
        done = subprocess.run([DVIM, "check", *map(str, args)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        for word in ["`nodes`: 12 missing values", "`differ`: 13 missing values", "--missing drop", "--missing indicator"]:
            self.assertIn(word, done.stderr)
        dropped = json.loads(dvim("check", *args, "--missing", "drop", "--json"))
        self.assertEqual(dropped["flow"]["n_units"], 619 - 25)

    def test_effects_can_be_recomputed(self):
        """Categories, fillings and all: from weights.csv and the raw table, without dvim."""
        import pandas as pd

        def colon(t):
            t = t[(t.etype == "1") & t.rx.isin(["Lev+5FU", "Obs"])]
            return t.assign(event=t.status, treatment=(t.rx == "Lev+5FU").astype(int).astype(str))

        prepare = {
            "colon": colon,
            "gbsg": lambda t: t.assign(id=t.pid, time=t.rfstime, event=t.status, treatment=t.hormon),
            "e1684": lambda t: t.assign(id=[str(i + 1) for i in range(len(t))], time=t.FAILTIME, event=t.FAILCENS, treatment=t.TRT),
        }
        for name, make in prepare.items():
            with tempfile.TemporaryDirectory() as folder:
                dvim("fit", *command(name), "-o", f"{folder}/run")
                table = make(pd.read_csv(Path(DATA) / f"{name}.csv", dtype=str))
                horizon = json.loads(Path(folder, "run/summary.json").read_text())["horizon"]
                n = len(pd.read_csv(f"{folder}/run/effects.csv"))
                self.assertGreater(n, 150)
                for row, cure, time in recompute.effects(table, f"{folder}/run", horizon, 20, range(0, n, 3)):
                    self.assertAlmostEqual(row.cure_effect, cure, delta=1e-9, msg=name)
                    if pd.notna(row.time_effect):
                        self.assertAlmostEqual(row.time_effect, time, delta=1e-9 * horizon, msg=name)
                self.assertTrue(dvim("rerun", f"{folder}/run", Path(DATA) / f"{name}.csv").startswith("identical"))

    def test_a_new_patient(self):
        with tempfile.TemporaryDirectory() as folder:
            dvim("fit", *command("colon"), "-o", f"{folder}/run", "--exact", "sex", "--caliper", "age=10")
            new = Path(folder, "new.csv")
            new.write_text("sex,age,obstruct,perfor,adhere,nodes,differ,extent,surg\n1,60,0,0,0,NA,2.0,3,0\n0,55,0,0,0,4,NA,3,1\n")
            lines = dvim("predict", f"{folder}/run", new).splitlines()
            self.assertEqual(len(lines), 3)
            new.write_text("sex,age,obstruct,perfor,adhere,nodes,differ,extent,surg\n1,60,0,0,0,3,9,3,0\n")
            done = dvim("predict", f"{folder}/run", new, code=2)
            self.assertEqual(done, "")


if __name__ == "__main__":
    unittest.main()
