"""What a sample costs the averages: error and coverage of averages over everybody, beside those of the sample alone.

    python bench/spark_coverage.py [--scenario both-overlap] [--patients 20000] [--sample 2000] [--repeats 40] [--confounded]

Each repeat draws patients, fits a random sample of them, and averages over everybody as `dvim.spark` does; no Spark is
needed. The truth is the mean over the patients of two million drawn from the same world. Printed for the sample alone and for
everybody: the bias, the root mean squared error, the mean standard error and the share of 95 % intervals that hold the truth.
With --write the table is added to a CSV.
"""

import argparse
import csv
import json
import os
import time
import warnings
import zlib

import numpy as np
import pyarrow as pa

import dvim
import dvim.spark
from dvim import _dvim

warnings.simplefilter("ignore")
ESTIMANDS = ("cure_effect", "time_effect")


def arrow(frame):
    return frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)


def truth_of(world, confounded, n=2_000_000):
    """The mean true effects of the patients of a world."""
    sums, done = dict.fromkeys(ESTIMANDS, 0.0), 0
    while done < n:
        _, true = dvim.simulate(world, n=200_000, seed=10_000 + done, confounded=confounded, truth=True)
        for estimand in ESTIMANDS:
            sums[estimand] += arrow(true)[estimand].to_numpy().sum()
        done += 200_000
    return {estimand: total / done for estimand, total in sums.items()}


def everybody(table, size, horizon, seed):
    """The averages of the sample alone and over everybody."""
    rng = np.random.default_rng(seed)
    chosen = np.zeros(table.num_rows, dtype=bool)
    chosen[rng.permutation(table.num_rows)[:size]] = True
    asked = {"time": "time", "event": "event", "treatment": "treatment", "horizon": horizon, "splits": 10, "threads": 1}
    sample = dvim.fit(table.filter(pa.array(chosen)), **asked)
    kit, own = _dvim.kit(sample._run, [], 1, None)
    given = {**{name: p.default for name, p in dvim._fit.SIGNATURE.parameters.items()}, **asked, "id": "id"}
    work = dvim.spark._Work(kit, None, sample, "id", given, 20_000)
    *_, last = work.estimate(table, sums=True)
    sums = _dvim.merged([own, zlib.decompress(last.column(dvim.spark.SUMS)[0].as_py())])
    over = _dvim.over_everybody(sample._run, kit, bytes(sums))

    def of(run):
        all_of = json.loads(run.summary())["average_effects"]
        return {a["estimand"]: a for a in all_of if a["population"] == "all"}

    return of(sample._run), of(over)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenario", default="both-overlap")
    parser.add_argument("--patients", type=int, default=20_000)
    parser.add_argument("--sample", type=int, default=2_000)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--confounded", action="store_true")
    parser.add_argument("--write")
    a = parser.parse_args()
    horizon = dvim.scenarios()[a.scenario].horizon
    truth = truth_of(a.scenario, a.confounded)
    found = {"sample": [], "everybody": []}
    start = time.time()
    for seed in range(1, a.repeats + 1):
        table = arrow(dvim.simulate(a.scenario, n=a.patients, seed=seed, confounded=a.confounded))
        alone, over = everybody(table, a.sample, horizon, seed)
        found["sample"].append(alone)
        found["everybody"].append(over)
    print(f"{a.scenario}{', confounded' if a.confounded else ''}: {a.sample:,} of {a.patients:,} patients, {a.repeats} times, {time.time() - start:.0f} s")
    rows = []
    for estimand, true in truth.items():
        for who, all_of in found.items():
            each = [f[estimand] for f in all_of]
            error = np.array([e["estimate"] - true for e in each])
            se = np.array([e["se"] for e in each])
            held = np.mean([e["low"] <= true <= e["high"] for e in each])
            row = {"scenario": a.scenario, "confounded": a.confounded, "patients": a.patients, "sample": a.sample, "repeats": a.repeats,
                   "estimand": estimand, "over": who, "truth": true, "bias": error.mean(), "rmse": np.sqrt(np.mean(error**2)),
                   "mean_se": se.mean(), "coverage": held}
            rows.append(row)
            print(f"  {estimand:12} {who:10} bias {row['bias']:+.5g}  rmse {row['rmse']:.4g}  mean se {row['mean_se']:.4g}  coverage {100 * held:.0f} %")
    if a.write:
        fresh = not os.path.exists(a.write)
        with open(a.write, "a", newline="") as file:
            out = csv.DictWriter(file, list(rows[0]))
            if fresh:
                out.writeheader()
            out.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)


if __name__ == "__main__":
    main()
