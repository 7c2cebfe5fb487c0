"""The peer of a whole `dvim fit`: the same analysis, written with care in NumPy, SciPy, FAISS and Numba.

    python bench/pipeline.py cohort.csv effects.csv --horizon 800 [--threads 2] [--effects-only] [--same-split run/effects.csv]

Split, one mixture cure model for each arm, weights, the exact K nearest of each arm under each metric, a Kaplan–Meier
curve for each group, and the table of `dvim fit`, with its standard errors and intervals; without them under --effects-only.
Like `dvim fit` without its certificates, flags, and record of the run: it does less. With --same-split, the units that are rows of that table are estimated and the others train, so that answers can be compared;
without, each arm is split at random. Stages and their seconds go to standard error.
"""

import os
import sys
import time

START = time.perf_counter()
THREADS = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "2"
for variable in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"]:
    os.environ[variable] = THREADS  # before the libraries load: they read these once
# OpenMP threads that wait spin by default, which on a machine with other work to do doubles the time of FAISS.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import argparse

import faiss
import numba
import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr, ndtr, ndtri

TRAIN_FRACTION = 0.35
SQRT_2PI = np.sqrt(2 * np.pi)


def density(x):
    return np.exp(-0.5 * x * x) / SQRT_2PI


def cure_fit(time, event, x, horizon):
    """Coefficients of the cure part and of the latency: the maximum of the paper's likelihood, by L-BFGS with the
    analytic gradient. Covariates and log times are standardised within the arm, which L-BFGS likes."""
    n, p = x.shape
    at_horizon = time >= horizon
    events = event & ~at_horizon
    lost = ~event & ~at_horizon
    # Units in the order event, lost, at the horizon: their blocks are slices, and nothing is gathered in the loop.
    order = np.concatenate([np.flatnonzero(events), np.flatnonzero(lost), np.flatnonzero(at_horizon)])
    e, l = int(events.sum()), int(events.sum() + lost.sum())
    center, scale = x.mean(0), x.std(0)
    z = np.empty((n, p + 1))
    z[:, 0] = 1
    z[:, 1:] = (x[order] - center) / scale
    zl = z[:l]
    log_time = np.log(time[order[:l]])
    middle, spread = log_time[:e].mean(), log_time[:e].std()
    u = (log_time - middle) / spread
    u_horizon = (np.log(horizon) - middle) / spread
    d = p + 1

    def objective(theta):
        a = z @ theta[:d]
        m = zl @ theta[d : 2 * d]
        t = theta[2 * d]
        s = np.exp(t)
        q = (u - m) / s
        h = (u_horizon - m) / s
        log_cdf = log_ndtr(h)
        r = np.exp(-0.5 * h * h - log_cdf) / SQRT_2PI
        softplus = np.logaddexp(0, a)
        chance = expit(a)
        da = -chance
        da[l:] += 1
        # Events.
        qe, he, re = q[:e], h[:e], r[:e]
        value = -0.5 * (qe @ qe) - e * t - log_cdf[:e].sum()
        dm, dt = np.empty(l), np.empty(l)
        dm[:e] = (qe + re) / s
        dt[:e] = qe * qe - 1 + he * re
        # Lost: D = Φ(h) − Φ(q), from the side where it keeps its digits.
        qc, hc, rc = q[e:], h[e:], r[e:]
        flip = np.where(qc > 0, -1.0, 1.0)
        gap = np.maximum(flip * (ndtr(flip * hc) - ndtr(flip * qc)), 1e-300)
        log_k = np.log(gap) - log_cdf[e:]
        big_a, big_b = density(qc) / gap, density(hc) / gap
        ac = a[e:l]
        value += np.logaddexp(ac, log_k).sum()
        v = expit(log_k - ac)
        da[e:l] += 1 - v
        dm[e:] = v * (big_a - big_b + rc) / s
        dt[e:] = v * (qc * big_a - hc * big_b + hc * rc)
        value += a[l:].sum() - softplus.sum()
        gradient = np.concatenate([da @ z, dm @ zl, [dt.sum()]])
        return -value / n, -gradient / n

    start = np.zeros(2 * d + 1)
    share = np.clip((n - e) / n, 0.01, 0.99)
    start[0] = np.log(share / (1 - share))
    start[d : 2 * d] = np.linalg.solve(z[:e].T @ z[:e] + np.eye(d), z[:e].T @ u[:e])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000, "maxcor": 30, "ftol": 1e-14, "gtol": 1e-7})
    return found.x[1:d] / scale, found.x[d + 1 : 2 * d] * spread / scale


@numba.njit(parallel=True, cache=True, nogil=True)
def group_curves(members, rank, sorted_time, sorted_event, horizon):
    """Of each group Ŝ(H), the mean event time before H (NaN without event), the number at risk at H, the events before H,
    Greenwood's sum G, and the mean and spread, weighted by its terms, of the areas under the curve before each event time."""
    n, k = members.shape
    survival, mean, at_risk, n_events = np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    greenwood, area_mean, area_spread = np.empty(n), np.empty(n), np.empty(n)
    for i in numba.prange(n):
        ranks = np.empty(k, np.int32)
        for j in range(k):
            ranks[j] = rank[members[i, j]]
        ranks.sort()
        s, area, j = 1.0, 0.0, 0
        total, under, start, g, b, spread = 0, 0.0, 0.0, 0.0, 0.0, 0.0
        while j < k:
            t = sorted_time[ranks[j]]
            if t >= horizon:
                break
            left, deaths = k - j, 0
            while j < k and sorted_time[ranks[j]] == t:
                deaths += sorted_event[ranks[j]]
                j += 1
            if deaths > 0:
                total += deaths
                under += s * (t - start)
                start = t
                if left > deaths:
                    term = deaths / (left * (left - deaths))
                    off = under - b
                    b += off * term / (g + term)
                    spread += g * term / (g + term) * off * off
                    g += term
                after = s * ((left - deaths) / left)
                area += t * (s - after)
                s = after
        survival[i], at_risk[i], n_events[i] = s, k - j, total
        greenwood[i], area_mean[i], area_spread[i] = g, b, spread
        mean[i] = area / (1.0 - s) if total > 0 else np.nan
    return survival, mean, at_risk, n_events, greenwood, area_mean, area_spread


Z = ndtri(0.975)


def of_share(s, at_risk, n_events, greenwood):
    """Greenwood's standard error of Ŝ(H), and Wilson's interval with the effective size."""
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(n_events == 0, np.maximum(at_risk, 1), np.where(s <= 0, n_events, (1 - s) / (s * greenwood)))
        centre, shrink = s + Z * Z / (2 * size), 1 + Z * Z / size
        half = Z * np.sqrt(s * (1 - s) / size + Z * Z / (4 * size * size))
        low, high = np.clip((centre - half) / shrink, 0, s), np.clip((centre + half) / shrink, s, 1)
        return np.where(s > 0, s * np.sqrt(greenwood), np.nan), low, high


def of_mean(m, s, n_events, greenwood, area_mean, area_spread, horizon):
    """The standard error of the mean event time by the delta method, and its interval on the logit scale of m/H."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        se = np.where(n_events > 1, np.sqrt(area_spread + greenwood * (m - area_mean) ** 2) / (1 - s), np.nan)
        reach = Z * se * horizon / (m * (horizon - m))
        low, high = (horizon * expit(np.log(m / (horizon - m)) + shift) for shift in [-reach, reach])
        return se, np.minimum(low, m), np.maximum(high, m)


def of_difference(a, of_a, b, of_b):
    """MOVER: the interval of a difference from those of its parts."""
    (se_a, low_a, high_a), (se_b, low_b, high_b) = of_a, of_b
    d = a - b
    low = np.minimum(np.maximum(d - np.hypot(a - low_a, high_b - b), low_a - high_b), d)
    high = np.maximum(np.minimum(d + np.hypot(high_a - a, b - low_b), high_a - low_b), d)
    return np.hypot(se_a, se_b), low, high


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("output")
    parser.add_argument("--horizon", type=float, required=True)
    parser.add_argument("--group-size", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--same-split")
    parser.add_argument("--effects-only", action="store_true")
    args = parser.parse_args()
    stages = [("start", time.perf_counter() - START)]

    def stage(name):
        stages.append((name, time.perf_counter() - START - sum(s for _, s in stages)))

    faiss.omp_set_num_threads(args.threads)
    table = pd.read_csv(args.table)
    ids, treated = table["id"].to_numpy(), table["treatment"].to_numpy() == 1
    times, events = table["time"].to_numpy(), table["event"].to_numpy() == 1
    x = np.ascontiguousarray(table.iloc[:, 4:].to_numpy(np.float64))
    events = events & (times < args.horizon)
    times = np.minimum(times, args.horizon)
    stage("read")

    if args.same_split:
        training = ~np.isin(ids, pd.read_csv(args.same_split, usecols=["id"])["id"].to_numpy())
    else:
        rng = np.random.default_rng(1)
        training = np.zeros(len(ids), bool)
        for arm in [~treated, treated]:
            units = np.flatnonzero(arm)
            training[rng.permutation(units)[: round(TRAIN_FRACTION * len(units))]] = True
    z = (x - x.mean(0)) / x.std(0, ddof=1)
    stage("split")

    fits = [cure_fit(times[a], events[a], z[a], args.horizon) for a in [~treated & training, treated & training]]
    weights = [0.5 * (np.abs(fits[0][part]) + np.abs(fits[1][part])) for part in [0, 1]]
    stage("fit")

    estimated = np.flatnonzero(~training)
    out = {"id": ids[estimated], "treatment": treated[estimated].astype(int)}
    pools = {}
    for arm, name in [(treated, "treated"), (~treated, "control")]:
        units = np.flatnonzero(arm & ~training)
        order = np.argsort(times[units], kind="stable")
        rank = np.empty(len(units), np.int32)
        rank[order] = np.arange(len(units), dtype=np.int32)
        pools[name] = (units, rank, times[units][order], events[units][order].astype(np.int64))
    found = {}
    for part, weight in zip(["cure", "time"], weights):
        points = (z * np.sqrt(weight)).astype(np.float32)
        queries = points[estimated]
        for name, (units, *_) in pools.items():
            index = faiss.IndexFlatL2(points.shape[1])
            index.add(points[units])
            squared, members = index.search(queries, args.group_size)
            found[part, name] = members
            out[f"{part}_diameter_{name}"] = np.sqrt(np.maximum(squared[:, -1], 0)).astype(np.float64)
    stage("search")

    intervals = {}
    for (part, name), members in found.items():
        survival, mean, at_risk, *further = group_curves(members, *pools[name][1:], args.horizon)
        if part == "cure":
            out[f"cure_{name}"], out[f"cure_at_risk_{name}"] = survival, at_risk
            intervals[f"cure_{name}"] = of_share(survival, at_risk, *further[:2])
        else:
            out[f"mean_event_time_{name}"] = mean
            intervals[f"mean_event_time_{name}"] = of_mean(mean, survival, *further, args.horizon)
    for effect, part in [("cure_effect", "cure"), ("time_effect", "mean_event_time")]:
        a, b = f"{part}_treated", f"{part}_control"
        out[effect] = out[a] - out[b]
        intervals[effect] = of_difference(out[a], intervals[a], out[b], intervals[b])
    stage("curves")

    columns = ["id", "treatment", "cure_effect", "time_effect", "cure_treated", "cure_control", "mean_event_time_treated", "mean_event_time_control"]
    columns += [f"cure_at_risk_{a}" for a in pools] + [f"{part}_diameter_{a}" for part in ["cure", "time"] for a in pools]
    if not args.effects_only:
        for value in columns[2:8]:
            for end, of_value in zip(["se", "low", "high"], intervals[value]):
                out[f"{value}_{end}"] = of_value
                columns.append(f"{value}_{end}")
    pd.DataFrame(out)[columns].to_csv(args.output, index=False)
    stage("write")
    print(" ".join(f"{name} {seconds:.3f}" for name, seconds in stages), file=sys.stderr)


if __name__ == "__main__":
    main()
