"""Recomputes rows of effects.csv from weights.csv and the cohort alone: no code of dvim, thirty lines of NumPy.

    python tests/python/recompute.py cohort.csv RUN HORIZON K     prints the largest differences
"""

import sys

import numpy as np
import pandas as pd


def kaplan_meier(time, event, share, horizon):
    """S(H) and the mean event time before H, straight from the definitions; each unit counts by its share."""
    survival, area, last = 1.0, 0.0, 0.0
    for t in np.unique(time[event]):
        area += survival * (t - last)
        survival *= 1 - np.sum(share[event & (time == t)]) / np.sum(share[time >= t])
        last = t
    area += survival * (horizon - last)
    return survival, (area - horizon * survival) / (1 - survival) if survival < 1 else np.nan


def numbers(table, weights):
    """Each row of weights.csv as a column: a number, or whether the value is a level, or was missing."""
    out = []
    for row in weights.itertuples():
        values = table[row.covariate]
        known = values.fillna(row.fill)
        out.append(values.isna() if row.level == "(missing)" else known == row.level if row.level else known.astype(float))
    return np.column_stack(out).astype(float)


def effects(cohort, run, horizon, k, rows):
    """`cohort`: a table of texts with columns id, time, event, treatment (1 and 0) and the covariates."""
    cohort = cohort.assign(id=pd.to_numeric(cohort.id)).set_index("id").sort_index()
    found = pd.read_csv(f"{run}/effects.csv").set_index("id")
    texts = {"covariate": str, "level": str, "fill": str}
    weights = pd.read_csv(f"{run}/weights.csv", dtype=texts, float_precision="round_trip").fillna({"level": ""})
    pool = cohort.loc[found.index]  # the units that were estimated are the units that groups are drawn from
    x = (numbers(pool, weights) - weights.center.to_numpy()) / weights.scale.to_numpy()
    pool = pool[["time", "event", "treatment"]].astype(float)
    event = (pool.event.to_numpy() == 1) & (pool.time.to_numpy() < horizon)
    time = np.minimum(pool.time.to_numpy(), horizon)
    for i in rows:
        result = {}
        for name, arm in [("treated", 1), ("control", 0)]:
            members = np.flatnonzero(pool.treatment.to_numpy() == arm)
            for metric in ["cure", "time"]:
                placed = x * np.sqrt(weights[f"{metric}_weight"].to_numpy())
                # Added column by column, as docs/methods/groups.md says: ties are ties of this very number, to 1e-12.
                squared = np.add.accumulate((placed[members] - placed[i]) ** 2, axis=1)[:, -1]
                last = np.sort(squared)[k - 1]
                nearer, tied = squared < last * (1 - 1e-12), np.isclose(squared, last, rtol=1e-12, atol=0)
                # Who is as far as the last shares the places that are left.
                share = np.where(nearer, 1.0, np.where(tied, (k - nearer.sum()) / tied.sum(), 0.0))
                group = share > 0
                nearest = members[group]
                result[metric, name] = kaplan_meier(time[nearest], event[nearest], share[group], horizon)
        cure = result["cure", "treated"][0] - result["cure", "control"][0]
        delay = result["time", "treated"][1] - result["time", "control"][1]
        yield found.iloc[i], cure, delay


if __name__ == "__main__":
    cohort, run, horizon, k = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    n = len(pd.read_csv(f"{run}/effects.csv"))
    cohort = pd.read_csv(cohort, dtype=str)
    rows = list(effects(cohort, run, horizon, k, range(0, n, max(1, n // 200))))
    cure = np.array([abs(row.cure_effect - value) for row, value, _ in rows])
    time = np.array([abs(row.time_effect - value) for row, _, value in rows])
    undefined = any(np.isnan(row.time_effect) != np.isnan(value) for row, _, value in rows)
    print(f"{len(rows)} rows: largest difference {cure.max():.1e} (cure effect), {np.nanmax(time):.1e} (time effect)")
    sys.exit(bool(cure.max() > 1e-9 or np.nanmax(time) > 1e-9 * horizon or undefined))
