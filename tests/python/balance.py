"""Recomputes the balance of `dvim audit` from its exported weights (--uses) and the cohort: NumPy only, no code of dvim.

    python tests/python/balance.py cohort.csv uses.csv audit.json     prints the largest difference
"""

import json
import sys

import numpy as np
import pandas as pd


def moments(x, w):
    mean = (w * x).sum() / w.sum()
    return mean, (w * (x - mean) ** 2).sum() / (w.sum() - (w**2).sum() / w.sum())


def distance(x1, w1, x0, w0):
    """Largest distance of two weighted distribution functions."""
    at = np.unique(np.concatenate([x1, x0]))
    cdf = lambda x, w: np.array([w[x <= t].sum() for t in at]) / w.sum()
    return np.abs(cdf(x1, w1) - cdf(x0, w0)).max()


def largest_difference(cohort, uses, audit):
    cohort = pd.read_csv(cohort).set_index("id")
    uses = pd.read_csv(uses).set_index("id")
    balance = json.load(open(audit))["audit"]["balance"]
    treated = uses.treatment.to_numpy() == 1
    worst = 0.0
    for row in balance["covariates"]:
        x = cohort.loc[uses.index, row["covariate"]].to_numpy(float)
        spread = np.sqrt((x[treated].var(ddof=1) + x[~treated].var(ddof=1)) / 2)
        for name, w in [("before", np.ones(len(x))), ("cure", uses.cure_uses.to_numpy(float)), ("time", uses.time_uses.to_numpy(float))]:
            (m1, v1), (m0, v0) = moments(x[treated], w[treated]), moments(x[~treated], w[~treated])
            found = row[name]
            worst = max(worst, abs(found["difference"] - (m1 - m0) / spread), abs(found["variance_ratio"] - v1 / v0))
            worst = max(worst, abs(found["ks"] - distance(x[treated], w[treated], x[~treated], w[~treated])))
    for u in balance["uses"]:
        w = uses[f"{u['metric']}_uses"].to_numpy(float)[treated if u["arm"] == "treated" else ~treated]
        worst = max(worst, abs(u["effective_size"] - w.sum() ** 2 / (w**2).sum()) / u["effective_size"])
    return worst


if __name__ == "__main__":
    worst = largest_difference(*sys.argv[1:4])
    print(f"largest difference {worst:.1e}")
    sys.exit(int(worst > 1e-9))
