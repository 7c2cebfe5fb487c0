"""dvim on the 40 synthetic cells of SurvHTE-Bench (ICLR 2026), beside the published figures of its ten families.

    python bench/survhte.py CHECKOUT [--repeats 10] [--published ../shared/survhte/published_rmse.csv] [--out table.csv]
                            [--dvim target/release/dvim] [--workers 2] [--cells A:RCT_0_5,B:e_X] [--write docs/survhte.md]

CHECKOUT is a copy of github.com/Shahriarnz14/SurvHTE-Bench. It has no licence: its generator (`data.py`) and its split
(`data/synthetic/idx_split.csv`) are called from there, and nothing of it is kept here. The published figures are decoded from
its own plots (scenario, config, method, repeat, cate_rmse), each family with its best variant in every cell.

A cell is a scenario (A to E) and a configuration of treatment and censoring. In each repeat 5,000 patients are fitted with all
defaults, H being the smaller of the arms' largest times, and `dvim predict` gives the RMST effect of 2,500 others. The published
score is the root mean squared error against T1 - T0, which carries each patient's own noise. Beside it stands the error against the
effect without noise, which has a closed form, and what giving everybody the true average would score.

Needs numpy, scipy and pandas. Every finished repeat is kept in --out, and a second call goes on where the first stopped.
"""

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
RCT = dict(RCT=True, unobserved=False, overlap=True)
OBS = dict(RCT=False, unobserved=False, overlap=True)
LOST = dict(informative_censoring=True, info_censor_baseline=0.1, info_censor_alpha=0.05)
CONFIGURATIONS = {
    "RCT_0_5": dict(RCT, treatment_proportion=0.5),
    "RCT_0_05": dict(RCT, treatment_proportion=0.05),
    "e_X": OBS,
    "e_X_U": dict(OBS, unobserved=True),
    "e_X_no_overlap": dict(OBS, overlap=False),
    "e_X_info_censor": dict(OBS, **LOST),
    "e_X_U_info_censor": dict(OBS, unobserved=True, **LOST),
    "e_X_no_overlap_info_censor": dict(OBS, overlap=False, **LOST),
}
X = ["X1", "X2", "X3", "X4", "X5"]


def true_effect(scenario, configuration, x):
    """E[T1 - T0 | x], over the unobserved confounder U1 (uniform) where there is one."""
    x1, x2, x3 = x["X1"].to_numpy(), x["X2"].to_numpy(), x["X3"].to_numpy()
    hidden = configuration.get("unobserved")
    if scenario == "A":
        # T = (E e^-l)^2 with E exponential: its mean is 2 e^-2l.
        confounder = np.exp(x2) * -np.expm1(-1.0) if hidden else 1.0
        return 2.0 * confounder * (np.exp(-2.0 * (x1 + x2 - 0.5)) - np.exp(-2.0 * x1))
    if scenario in "CE":
        return 2.0 * (np.sqrt(x1) - 0.3)
    low = x1 < 0.5
    if scenario == "B":
        location, change = -1.85 - 0.8 * low + 0.7 * np.sqrt(x2) + 0.2 * x3, 0.7 - 0.4 * low - 0.4 * np.sqrt(x2)
    else:
        location, change = 0.3 - 0.5 * low + 0.5 * np.sqrt(x2) + 0.2 * x3, 1.0 - 0.8 * low - 0.8 * np.sqrt(x2)
    confounder = np.exp(-0.5 * x2) * 2.0 * np.expm1(0.5) if hidden else 1.0
    return confounder * np.exp(location + 0.5) * np.expm1(change)


def generator(checkout):
    """Their generator, from the checkout."""
    spec = importlib.util.spec_from_file_location("survhte_data", checkout / "data.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SyntheticDataGenerator


def run(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr[-3000:]}")


def repeat(options, train, test, folder):
    """The RMST effects that dvim gives to the patients of `test`."""
    horizon = min(train.loc[train["W"] == z, "observed_time"].max() for z in (0, 1))
    columns = ["id", "observed_time", "event", "W", *X]
    train[columns].to_csv(folder / "train.csv", index=False)
    test[["id", *X]].to_csv(folder / "test.csv", index=False)
    roles = ["--id", "id", "--time", "observed_time", "--event", "event", "--treatment", "W", "--horizon", repr(float(horizon))]
    run([options.dvim, "fit", folder / "train.csv", *roles, "--zero-time", "shift", "--threads", 1, "--no-audit",
         "-o", folder / "run", *options.flags])
    run([options.dvim, "predict", folder / "run", folder / "test.csv", "-o", folder / "new.csv", "--threads", 1])
    found = pd.read_csv(folder / "new.csv").set_index("id").loc[test["id"]]
    return found["rmst_effect"].to_numpy()


def rmse(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


def measure(options, done):
    """A row for each cell and repeat that is not done yet."""
    make = generator(options.checkout)
    split = pd.read_csv(options.checkout / "data" / "synthetic" / "idx_split.csv")
    cells = [(s, c) for s in "ABCDE" for c in CONFIGURATIONS]
    if options.cells:
        cells = [tuple(cell.split(":")) for cell in options.cells.split(",")]
    for scenario, name in cells:
        left = [r for r in range(options.repeats) if (scenario, name, r) not in done]
        if not left:
            continue
        data = make(scenario=scenario, n_samples=50_000, random_state=2025, **CONFIGURATIONS[name])
        data = data.generate_datasets()["data"].set_index("id", drop=False)

        def one(r):
            ids = split[f"random_idx{r}"].to_numpy()
            train, last = data.loc[ids[:5000]], np.sort(ids[-5000:])
            test = data.loc[last[2500:]]
            seen, truth = (test["T1"] - test["T0"]).to_numpy(), true_effect(scenario, CONFIGURATIONS[name], test)
            with tempfile.TemporaryDirectory() as folder:
                found = repeat(options, train, test, Path(folder))
            everybody = np.full_like(truth, truth.mean())
            return dict(scenario=scenario, config=name, repeat=r, cate_rmse=rmse(found, seen), rmse=rmse(found, truth),
                        average_rmse=rmse(everybody, truth), average=found.mean(), true_average=truth.mean())

        with ThreadPoolExecutor(options.workers) as pool:
            for row in pool.map(one, left):
                print("{scenario} {config} {repeat}: {cate_rmse:.4f}, without noise {rmse:.4f} (average {average_rmse:.4f})".format(**row), flush=True)
                yield row


def ranks(found, published):
    """Rank of each method in each cell, by the mean over repeats."""
    ours = found.groupby(["scenario", "config"])["cate_rmse"].mean().rename("dvim").reset_index()
    ours = ours.melt(id_vars=["scenario", "config"], var_name="method", value_name="cate_rmse")
    theirs = published[published["repeat"].isin(found["repeat"].unique())]
    theirs = theirs.groupby(["scenario", "config", "method"])["cate_rmse"].mean().reset_index()
    cells = ours[["scenario", "config"]].drop_duplicates()
    both = pd.concat([ours, theirs.merge(cells, on=["scenario", "config"])])
    both["rank"] = both.groupby(["scenario", "config"])["cate_rmse"].rank(method="min")
    return both


def report(found, published):
    """The tables in Markdown."""
    both = ranks(found, published)
    overall = both.groupby("method")["rank"].agg(["mean", lambda r: int((r == 1).sum())]).sort_values("mean")
    n, repeats = both[["scenario", "config"]].drop_duplicates().shape[0], found["repeat"].nunique()
    lines = [f"{n} cells, {repeats} repeats each.", "", "| method | mean rank of 11 | first in |", "| --- | ---: | ---: |"]
    lines += [f"| {'**dvim**' if m == 'dvim' else m} | {row.iloc[0]:.2f} | {int(row.iloc[1])} |" for m, row in overall.iterrows()]
    mean = found.groupby(["scenario", "config"], sort=False)[["cate_rmse", "rmse", "average_rmse"]].mean()
    below = int((mean["rmse"] < mean["average_rmse"]).sum())
    lines += ["", f"Without noise, the error is below that of giving everybody the true average in {below} of {len(mean)} cells.", "",
              "| cell | rank | dvim | best published | without noise | true average for everybody |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for (scenario, name), row in mean.iterrows():
        cell = both[(both["scenario"] == scenario) & (both["config"] == name)]
        rank = cell.loc[cell["method"] == "dvim", "rank"].iloc[0]
        best = cell[cell["method"] != "dvim"].nsmallest(1, "cate_rmse").iloc[0]
        lines.append(f"| {scenario} {name} | {int(rank)} | {row['cate_rmse']:.3f} | {best['cate_rmse']:.3f} ({best['method']}) "
                     f"| {row['rmse']:.3f} | {row['average_rmse']:.3f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--published", type=Path, default=ROOT.parent / "shared" / "survhte" / "published_rmse.csv")
    parser.add_argument("--out", type=Path, default=Path("survhte.csv"))
    parser.add_argument("--dvim", type=Path, default=ROOT / "target" / "release" / "dvim")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cells", help="only these, as SCENARIO:CONFIGURATION,…")
    parser.add_argument("--write", type=Path, help="a page with <!-- survhte --> … <!-- /survhte -->, between which the tables go")
    parser.add_argument("--flags", nargs=argparse.REMAINDER, default=[], help="further flags of dvim fit, last")
    options = parser.parse_args()
    options.dvim = options.dvim.resolve()
    found = pd.read_csv(options.out) if options.out.exists() else pd.DataFrame(columns=["scenario", "config", "repeat"])
    done = set(zip(found["scenario"], found["config"], found["repeat"]))
    for row in measure(options, done):
        found = pd.concat([found, pd.DataFrame([row])], ignore_index=True)
        found.to_csv(options.out, index=False)
    text = report(found, pd.read_csv(options.published))
    print(text)
    if options.write:
        page = options.write.read_text()
        if "<!-- survhte -->" not in page:
            sys.exit(f"{options.write} has no line <!-- survhte -->")
        before, rest = page.split("<!-- survhte -->", 1)
        after = rest.split("<!-- /survhte -->", 1)[1]
        options.write.write_text(f"{before}<!-- survhte -->\n{text}<!-- /survhte -->{after}")


if __name__ == "__main__":
    main()
