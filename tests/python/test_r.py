"""Agreement with R's survival where R has the same quantity: curves of the arms as they are, their restricted means, causes;
and standardised curves where there is nothing to standardise."""

import csv
import io
import json
import random
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from test_cli import dvim

R = shutil.which("Rscript")

# Prints arm, survival at H and its standard error, the restricted mean and its standard error, then survival at the times asked for.
CURVES = """
suppressMessages(library(survival)); options(digits = 15)
a <- commandArgs(TRUE)
d <- read.csv(a[1]); H <- as.numeric(a[2]); at <- as.numeric(strsplit(a[3], ",")[[1]])
for (z in c(1, 0)) {
  fit <- survfit(Surv(time, event == 1) ~ 1, data = d[d$treatment == z, ])
  s <- summary(fit, times = H * (1 - 1e-12), extend = TRUE)
  m <- survival:::survmean(fit, rmean = H)$matrix
  cat(c(z, s$surv, s$std.err, m["rmean"], m["se(rmean)"], summary(fit, times = at, extend = TRUE)$surv), sep = ",")
  cat("\\n")
}
"""
# Prints arm and one less the cumulative incidence of cause 1 before H, its standard error, and the area under that.
CAUSES = """
suppressMessages(library(survival)); options(digits = 15)
a <- commandArgs(TRUE)
d <- read.csv(a[1]); H <- as.numeric(a[2])
for (z in c(1, 0)) {
  s <- d[d$treatment == z, ]
  fit <- survfit(Surv(s$time, factor(s$event, 0:2, c("none", "one", "two"))) ~ 1)
  j <- which(fit$states == "one"); before <- fit$time < H
  area <- sum(diff(c(0, fit$time[before], H)) * c(1, 1 - fit$pstate[before, j]))
  cat(c(z, 1 - fit$pstate[sum(before), j], fit$std.err[sum(before), j], area), sep = ",")
  cat("\\n")
}
"""
COLUMNS = "--time time --event event --treatment treatment --horizon 10".split()


def in_r(script, *args):
    done = subprocess.run([R, "-e", script, *map(str, args)], capture_output=True, text=True, check=True)
    rows = [line.split(",") for line in done.stdout.split()]
    return {arm: [float(v) for v in row[1:]] for row in rows for arm in [{"1": "treated", "0": "control"}[row[0]]]}


def cohort(folder, causes=False, n=600, seed=5):
    """A randomised trial in which no covariate matters: cure 30 and 50 %, event times as they come, tied to a tenth."""
    draw = random.Random(seed)
    rows = []
    for i in range(n):
        treated = draw.randint(0, 1)
        event = 99 if draw.random() < (0.5 if treated else 0.3) else draw.expovariate(1 / (4 if treated else 3))
        lost, other = draw.uniform(4, 25), draw.expovariate(1 / 20) if causes else 99
        time = max(0.1, round(min(event, lost, other, 30), 1))
        kind = 1 if event <= min(lost, other) else 2 if other <= lost else 0
        rows.append({"id": i, "time": time, "event": kind if event < 99 or kind != 1 else 0, "treatment": treated}
                    | {f"x{k}": round(draw.gauss(0, 1), 3) for k in range(1, 4)})
    path = Path(folder) / "trial.csv"
    with open(path, "w", newline="") as file:
        out = csv.DictWriter(file, rows[0].keys())
        out.writeheader()
        out.writerows(rows)
    return path


@unittest.skipUnless(R, "Rscript IS NOT INSTALLED: agreement with R was not tested")
class AgreesWithR(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_curves_of_the_arms(self):
        path = cohort(self.folder)
        found = json.loads(dvim("check", path, *COLUMNS, "--json"))["arms"]
        for arm, (survival, se, rmst, rmst_se, _) in in_r(CURVES, path, 10, "5").items():
            a = found[arm]
            self.assertAlmostEqual(a["cure_probability"]["estimate"], survival, delta=1e-9)
            self.assertAlmostEqual(a["cure_probability"]["se"], se, delta=1e-9)
            self.assertAlmostEqual(a["restricted_mean"]["estimate"], rmst, delta=1e-9)
            self.assertAlmostEqual(a["restricted_mean"]["se"], rmst_se, delta=1e-9)

    def test_causes(self):
        path = cohort(self.folder, causes=True)
        found = json.loads(dvim("check", path, *COLUMNS, "--cause", "1", "--json"))["arms"]
        for arm, (survival, se, rmst) in in_r(CAUSES, path, 10).items():
            a = found[arm]
            self.assertAlmostEqual(a["cure_probability"]["estimate"], survival, delta=1e-9)
            self.assertAlmostEqual(a["cure_probability"]["se"], se, delta=1e-9)
            self.assertAlmostEqual(a["restricted_mean"]["estimate"], rmst, delta=1e-9)

    def test_nothing_to_standardise(self):
        """Where treatment is drawn and no covariate matters, the adjusted curve is Kaplan and Meier's, up to a third of its standard error."""
        path = cohort(self.folder, n=1500)
        run = self.folder / "run"
        dvim("fit", path, *COLUMNS, "-o", run)
        rows = [r for r in csv.DictReader(io.StringIO(dvim("curves", run))) if r["population"] == "all" and float(r["time"]) > 0]
        times = sorted({float(r["time"]) for r in rows if float(r["time"]) < 10})
        of_r = in_r(CURVES, path, 10, ",".join(map(repr, times)))
        for arm in ("treated", "control"):
            curve = {float(r["time"]): r for r in rows if r["arm"] == arm}
            for t, km in zip([*times, 10.0], [*of_r[arm][4:], of_r[arm][0]]):
                self.assertLess(abs(float(curve[t]["survival"]) - km), 0.006, f"{arm} at {t}")
            # The same with its standard error: nothing is won or lost by adjusting for nothing.
            ratio = float(curve[10.0]["se"]) / of_r[arm][1]
            self.assertTrue(0.95 < ratio < 1.05, f"{arm}: {ratio}")


if __name__ == "__main__":
    unittest.main()
