"""What Python adds to the command line: processor time and peak memory of both on one cohort.

    cargo build --release -p dvim-cli; pip install the wheel (make wheel) and pandas
    python bench/python.py target/release/dvim [--n 100000] [--reps 3]

Each measurement is a process of its own. "fit" is the time inside `dvim.fit`; the command line's is all it does, reading and writing the
run too, so the Python side saves the run as well. Reading the CSV by pandas and importing pandas are shown apart: they are not dvim's.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

SCRIPT = """
import json, resource, sys, time
def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime
out = {}
a = cpu()
import pandas as pd
b = cpu(); out["import pandas"] = b - a
import dvim
c = cpu(); out["import dvim"] = c - b
source = sys.argv[1]
df = source if sys.argv[3] == "path" else pd.read_csv(source, float_precision="round_trip")
d = cpu(); out["read by pandas"] = d - c
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = dvim.fit(df, time="time", event="event", treatment="treatment", horizon=800, estimator="paper", progress=False, threads=2)
e = cpu(); out["fit"] = e - d
found.save(sys.argv[2], force=True)
f = cpu(); out["save"] = f - e
found.effects
out["effects"] = cpu() - f
out["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
out["MB before the fit"] = before / 1024
print(json.dumps(out))
"""


def children() -> float:
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dvim")
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--reps", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        cohort = os.path.join(place, "cohort.csv")
        subprocess.run([args.dvim, "simulate", "--scenario", "both-overlap", "--n", str(args.n), "-o", cohort], check=True, capture_output=True)
        flags = ["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", "800", "--estimator", "paper", "--threads", "2", "--force"]
        command, frame, path = [], [], []
        for _ in range(args.reps):
            start = children()
            subprocess.run([args.dvim, "fit", cohort, *flags, "-o", os.path.join(place, "cli")], check=True, capture_output=True)
            command.append(children() - start)
            for kind, found in (("frame", frame), ("path", path)):
                done = subprocess.run([sys.executable, "-c", SCRIPT, cohort, os.path.join(place, kind), kind], check=True, capture_output=True, text=True)
                found.append(json.loads(done.stdout))
        for name in ("effects.csv", "weights.csv", "run.dvim"):
            with open(os.path.join(place, "cli", name), "rb") as a, open(os.path.join(place, "frame", name), "rb") as b:
                assert a.read() == b.read(), name
    middle = {key: statistics.median(f[key] for f in frame) for key in frame[0]}
    cli = statistics.median(command)
    python = middle["fit"] + middle["save"]
    print(f"n = {args.n:,}, processor seconds, median of {args.reps}")
    print(f"  dvim fit, reading and writing:    {cli:.2f}")
    print(f"  dvim.fit of a pandas frame, save: {python:.2f}  ({100 * (python / cli - 1):+.1f} %)")
    own = statistics.median(f["fit"] + f["save"] for f in path)
    print(f"  dvim.fit of the path, save:       {own:.2f}  ({100 * (own / cli - 1):+.1f} %)")
    for key, value in middle.items():
        print(f"    {key}: {value:.2f}")


if __name__ == "__main__":
    main()
