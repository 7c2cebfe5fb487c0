"""How fast executors are: patients for each core-second, as a ratio to `dvim predict` on one machine.

    python bench/spark.py [--patients 2000000] [--sample 100000] [--workers 2] [--folder target/spark-bench]

Draws the patients of the paper's scenario (both effects, overlap) into Parquet files, once. Fits a sample on the driver; a
standalone cluster on loopback, with a worker process for each core, makes effects and averages in one pass. Then `dvim predict`
of the same environment estimates some of the same patients by the saved run, on as many threads. Both are built alike, so the
ratio says what Spark and the sums cost. Core-seconds are processor time of the executors' JVMs and Python workers, and of
`dvim predict`, so that other work on the machine does not count. Prints seconds, patients for each core-second, the ratio, and the
largest memory of a Python worker, an executor and the driver.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "spark"))
from cluster import Cluster, settings  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

import dvim  # noqa: E402
import dvim.spark  # noqa: E402

PART = 250_000
ASKED = {"time": "time", "event": "event", "treatment": "treatment", "horizon": 800, "splits": 10}


def draw(folder, n):
    """Parquet files of so many patients, drawn in parts."""
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(-(-n // PART)):
        file = folder / f"part-{k:04}.parquet"
        if not file.exists():
            part = dvim.simulate("both-overlap", n=min(PART, n - k * PART), seed=k + 1, frame="pyarrow")
            ids = pa.array(range(k * PART, k * PART + part.num_rows), pa.int64())
            pq.write_table(part.set_column(0, "id", ids), file.with_suffix(".partial"), row_group_size=50_000)
            file.with_suffix(".partial").rename(file)


TICK = os.sysconf("SC_CLK_TCK")


class Looking(threading.Thread):
    """Looks at the memory and the processor time of processes by what their command says."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.used, self.stopped = {}, {}, False

    def seconds(self):
        """Processor time of the executors and their Python workers so far."""
        time.sleep(1.5)
        return {kind: sum(used for (of, _), used in self.used.items() if of == kind) for kind in ("executor", "python worker")}

    def run(self):
        while not self.stopped:
            for status in Path("/proc").glob("[0-9]*/status"):
                try:
                    command = Path(status.parent, "cmdline").read_bytes()
                    kind = ("executor" if b"CoarseGrainedExecutorBackend" in command else
                            "python worker" if b"pyspark.daemon" in command else "driver" if int(status.parent.name) == os.getpid() else None)
                    if kind in ("executor", "python worker"):
                        fields = Path(status.parent, "stat").read_text().rpartition(")")[2].split()
                        self.used[kind, int(status.parent.name)] = (int(fields[11]) + int(fields[12])) / TICK
                    if kind:
                        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
                        self.most[kind] = max(self.most.get(kind, 0), int(peak.split()[1]) // 1024)
                except (OSError, StopIteration, ValueError):
                    pass
            time.sleep(0.5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--patients", type=int, default=2_000_000)
    parser.add_argument("--sample", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--predicted", type=int, default=250_000, help="patients that `dvim predict` estimates")
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "spark-bench")
    a = parser.parse_args()
    data = a.folder / f"both-overlap-{a.patients}"
    draw(data, a.patients)
    looking = Looking()
    looking.start()
    more = {"spark.executor.memory": "1g", "spark.driver.memory": "3g", "spark.driver.maxResultSize": "3g"}
    with Cluster(workers=a.workers, memory="1g") as cluster:
        spark = settings(SparkSession.builder.master(cluster.url).appName("dvim"), **more).getOrCreate()
        df = spark.read.parquet(str(data))
        start = time.time()
        found = dvim.spark.fit(df, sample=a.sample, **ASKED)
        fitted, before = time.time(), looking.seconds()
        started = time.time()
        effects = a.folder / "effects"
        averages = found.averages
        done, used = time.time(), looking.seconds()
        used = {kind: used[kind] - before[kind] for kind in used}
        start_of_writing = time.time()
        found.effects.write.mode("overwrite").parquet(str(effects))
        written = time.time()
        run = a.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        found.save(run)
        n = spark.read.parquet(str(effects)).count()
        spark.stop()
    looking.stopped = True
    n_sample = len(found.sample.effects)
    print(f"{a.patients:,} patients, sample of {n_sample:,}, {a.workers} workers of a core")
    print(f"  checks, sample and fit on the driver  {fitted - start:8.1f} s")
    print(f"  effects and averages by executors     {done - started:8.1f} s, of processors: "
          + ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in used.items()))
    print(f"  effects written to Parquet            {written - start_of_writing:8.1f} s")
    each = a.patients / sum(used.values())
    print(f"  patients for each core-second         {each:8.0f}")
    assert n == a.patients, n
    print("  memory at most, MB:", ", ".join(f"{kind} {mb}" for kind, mb in sorted(looking.most.items())))
    row = next(r for r in (averages.to_dict("records") if hasattr(averages, "to_dict") else averages.to_pylist())
               if r["estimand"] == "cure_effect" and r["population"] == "all")
    print(f"  cure effect over {row['n_units']:,}: {row['estimate']:.6f} (se {row['se']:.6f})")
    # The same work on one machine, of patients who are no more often of the sample.
    table = pq.read_table(data / "part-0000.parquet").slice(0, a.predicted)
    few = a.folder / "few.csv"
    pv.write_csv(table, few)
    command = [str(Path(sys.executable).parent / "dvim"), "predict", str(run), str(few), "-o", str(a.folder / "few-effects.csv"), "--force", "--threads", str(a.workers)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    alone = table.num_rows / took
    print(f"dvim predict, {table.num_rows:,} patients: {took:.1f} s of processors, {alone:.0f} patients for each core-second")
    print(f"ratio {each / alone:.2f}")


if __name__ == "__main__":
    main()
