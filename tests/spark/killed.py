"""Kills executors at random while they work, in some runs: effects and averages have the same bytes as without.

    python tests/spark/killed.py [--runs 10] [--patients 20000] [--sample 2000] [--seed 1]

A standalone cluster of two workers on loopback. In each run executors are killed (SIGKILL) one after the other, after random waits,
until the effects and sums are there; Spark starts new ones. Prints a line for each run; ends with 1 where a byte differs.
"""

import argparse
import random
import sys
import threading

from cluster import Cluster, settings
from pyspark.sql import SparkSession
from test_spark import ASKED, digest, patients

import dvim.spark


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--patients", type=int, default=20_000)
    parser.add_argument("--sample", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    chance, wrong = random.Random(a.seed), 0
    more = {"spark.executor.memory": "512m", "spark.task.maxFailures": "1000", "spark.stage.maxConsecutiveAttempts": "1000",
            "spark.deploy.maxExecutorRetries": "-1", "spark.excludeOnFailure.enabled": "false"}
    with Cluster(workers=2) as cluster:
        spark = settings(SparkSession.builder.master(cluster.url).appName("dvim"), **more).getOrCreate()
        df = spark.createDataFrame(patients(a.patients)).repartition(8)
        calm = dvim.spark.fit(df, sample=a.sample, **ASKED)
        expected = (digest(calm.effects), calm._sums)
        calm.unpersist()
        for run in range(1, a.runs + 1):
            found = dvim.spark.fit(df.repartition(4 + run), sample=a.sample, batch=chance.choice([500, 2_000, 20_000]), **ASKED)
            done, killed = threading.Event(), []

            def kill():
                while not done.wait(chance.uniform(1.0, 5.0)) and len(killed) < 4:
                    if there := cluster.executors():
                        killed.append(chance.choice(there))
                        cluster.kill(killed[-1])

            assassin = threading.Thread(target=kill)
            assassin.start()
            same = (digest(found.effects), found._sums) == expected
            done.set()
            assassin.join()
            found.unpersist()
            wrong += not same
            print(f"run {run}: {len(killed)} executors killed, {'the same bytes' if same else 'OTHER BYTES'}", flush=True)
        spark.stop()
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
