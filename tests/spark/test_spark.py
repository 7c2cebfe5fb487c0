"""dvim.spark against dvim on one machine: the same effects to the last bit, the same averages, the same refusals, whatever the
partitions, batches and executors, and when executors are killed.

    python -m unittest discover -s tests/spark -v
"""

import hashlib
import os
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

sys.path.insert(0, str(Path(__file__).parent))
from cluster import Cluster, java, settings  # noqa: E402

import dvim  # noqa: E402

try:
    import pyspark  # noqa: F401
    from pyspark.sql import SparkSession

    import dvim.spark
except ImportError:
    SparkSession = None

WHY = "PySpark and a Java are needed"
ASKED = {"time": "time", "event": "event", "treatment": "treatment", "horizon": 800, "splits": 10, "progress": False}


def arrow(frame):
    return frame if isinstance(frame, pa.Table) else pa.table(dict(frame)) if isinstance(frame, dict) else pa.Table.from_pandas(frame, preserve_index=False)


def patients(n, seed=3):
    return arrow(dvim.simulate("both-overlap", n=n, seed=seed))


def digest(effects):
    """Of the effects of all patients, to the last bit."""
    table = effects.toArrow().sort_by("id").combine_chunks()
    out = hashlib.sha256()
    for column in table.columns:
        for value in column.to_pylist():
            out.update(repr(value).encode())
    return out.hexdigest()


def rows(frame):
    return arrow(frame).to_pylist()


@unittest.skipUnless(SparkSession and java(), WHY)
class Local(unittest.TestCase):
    """On a local session of two threads."""

    @classmethod
    def setUpClass(cls):
        cls.spark = settings(SparkSession.builder.master("local[2]").appName("dvim")).getOrCreate()
        cls.table = patients(1200)
        cls.df = cls.spark.createDataFrame(cls.table).repartition(3)
        cls.few = dvim.spark.fit(cls.df, sample=600, **ASKED)
        cls.effects = arrow(cls.few.effects.toArrow())

    @classmethod
    def tearDownClass(cls):
        cls.spark.stop()

    def compared(self, ours, theirs):
        """The columns of two tables of effects, row by row, to the last bit."""
        ours, theirs = ({str(r["id"]): r for r in rows(of)} for of in (ours, theirs))
        for id, row in theirs.items():
            for name, value in row.items():
                if name not in ("id", "treatment"):
                    value = None if value != value else value
                    self.assertEqual(ours[id][name], value, f"{id} {name}")
        return len(theirs)

    def test_patients_have_the_effects_of_one_machine(self):
        sample = self.few.sample
        ids = set(pc.cast(arrow(sample.effects)["id"], pa.string()).to_pylist())
        self.assertTrue(500 < len(ids) < 700, len(ids))
        # Those of the sample, out of fold.
        self.assertEqual(self.compared(self.effects, sample.effects), len(ids))
        # All of them as `predict` gives them, which knows who was in the cohort.
        self.assertEqual(self.compared(self.effects, sample.predict(self.table)), 1200)

    def test_a_sample_is_what_a_plain_fit_makes_of_it(self):
        ids = pc.cast(arrow(self.few.sample.effects)["id"], pa.int64())
        mine = self.table.filter(pc.is_in(self.table["id"], ids))
        plain = dvim.fit(mine, **ASKED)
        self.compared(self.few.sample.effects, plain.effects)

    def test_everybody_in_the_sample_is_an_ordinary_fit(self):
        plain = dvim.fit(self.table, **ASKED)
        found = dvim.spark.fit(self.df, **ASKED)
        self.assertEqual(self.compared(found.effects.toArrow(), plain.effects), 1200)
        for a, b in zip(rows(plain.average_effects()), rows(found.averages), strict=True):
            for name, value in a.items():
                if isinstance(value, float) and value == value:
                    self.assertAlmostEqual(b[name], value, delta=1e-9 * max(abs(value), 1e-3), msg=f"{a['estimand']} {name}")
                elif not isinstance(value, float):
                    self.assertEqual(b[name], value)

    def test_averages_are_over_all_patients(self):
        all_of = [r for r in rows(self.few.averages) if r["population"] == "all"]
        self.assertEqual({r["n_units"] for r in all_of}, {1200})
        of = {r["estimand"]: r for r in all_of}
        alone = {r["estimand"]: r for r in rows(self.few.sample.average_effects()) if r["population"] == "all"}
        for estimand in ("cure_effect", "rmst_effect"):
            ratio = alone[estimand]["se"] / of[estimand]["se"]
            self.assertTrue(1.1 < ratio < 1.8, f"{estimand} {ratio}")

    def test_partitions_and_batches_change_nothing(self):
        expected = (digest(self.few.effects), self.few._sums)
        for parts, batch, keep in [(1, 20_000, True), (7, 97, False)]:
            again = dvim.spark.fit(self.df.repartition(parts), sample=600, batch=batch, keep=keep, **ASKED)
            self.assertEqual((digest(again.effects), again._sums), expected, f"{parts} partitions, batches of {batch}")
            again.unpersist()

    def test_a_run_that_was_saved_is_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run")
            self.few.save(path)
            opened = dvim.open(path)
            self.assertEqual(rows(opened.average_effects()), rows(self.few.averages))
            self.assertIn("all 1,200 patients", repr(opened))
            self.assertIn("all else is of a sample", repr(self.few))
            opened.match_group(arrow(self.few.sample.effects)["id"][0].as_py())
            self.compared(opened.predict(self.table.slice(0, 50)), self.effects.filter(
                pc.is_in(self.effects["id"], pc.cast(self.table["id"].slice(0, 50), pa.string()))))
            self.few.report(os.path.join(folder, "page.html"))
            self.assertIn("outside this sample", Path(folder, "page.html").read_text())

    def test_a_file_carries_what_executors_need(self):
        with tempfile.TemporaryDirectory() as folder:
            found = dvim.spark.fit(self.df, sample=600, shared=folder, **ASKED)
            self.assertEqual(digest(found.effects), digest(self.few.effects))
            self.assertEqual(len(os.listdir(folder)), 1)

    def test_text_ids_categories_weights_and_subgroups(self):
        n = self.table.num_rows
        site = [("north", "south", "west")[i % 3] for i in range(n)]
        table = self.table.set_column(0, "id", pa.array([f"pä{i:05}" for i in range(n)]))
        table = table.append_column("site", pa.array(site)).append_column("w", pa.array([1.0 + i % 4 for i in range(n)]))
        asked = {**ASKED, "weights": "w", "by": "site", "drop": ["x3"]}
        plain = dvim.fit(table, **asked)
        found = dvim.spark.fit(self.spark.createDataFrame(table), **asked)
        few = dvim.spark.fit(self.spark.createDataFrame(table), sample=700, **asked)
        self.assertEqual(self.compared(found.effects.toArrow(), plain.effects), n)
        for a, b in zip(rows(plain.average_effects()), rows(found.averages), strict=True):
            self.assertEqual((a["estimand"], a["population"], a["n_units"]), (b["estimand"], b["population"], b["n_units"]))
            if a["se"] is not None and a["se"] == a["se"]:
                self.assertAlmostEqual(a["se"], b["se"], delta=1e-9 * a["se"])
        counts = {r["population"]: r["n_units"] for r in rows(few.averages) if r["estimand"] == "cure_effect"}
        self.assertEqual(counts["site = north"], 400)
        self.assertEqual(counts["all"], n)

    def test_rows_are_left_out_as_on_one_machine(self):
        table = self.table
        gone = pa.array([None if i % 10 == 0 else v for i, v in enumerate(table["x18"].to_pylist())])
        table = table.set_column(table.column_names.index("x18"), "x18", gone)
        table = table.append_column("country", pa.array(["a" if i % 4 else "b" for i in range(table.num_rows)]))
        asked = {**ASKED, "missing": "drop", "where": {"country": "a"}}
        plain = dvim.fit(table, **asked)
        found = dvim.spark.fit(self.spark.createDataFrame(table), **asked)
        self.assertEqual(self.compared(found.effects.toArrow(), plain.effects), found.n_patients)

    def refused(self, change, *words, **asked):
        table = change(self.table)
        with self.assertRaises(dvim.Refused) as caught:
            dvim.spark.fit(self.spark.createDataFrame(table), sample=600, **{**ASKED, **asked})
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_every_row_passes_the_door(self):
        place = self.table.column_names.index

        def changed(column, at, value):
            def change(table):
                values = table[column].to_pylist()
                values[at] = value
                return table.set_column(place(column), column, pa.array(values))
            return change

        # Rows that the sample need not have; the words are the engine's.
        inside = {int(i) for i in arrow(self.few.sample.effects)["id"].to_pylist()}
        out = next(i for i, id in enumerate(self.table["id"].to_pylist()) if id not in inside)
        self.refused(changed("time", out, None), "the time", "missing: 1 row")
        self.refused(changed("time", out, -3.0), "column `time`", "not a positive number: 1 row")
        self.refused(changed("event", out, 2), "is not an event indicator", "neither 0 nor 1: 1 row")
        self.refused(changed("treatment", out, 7), "distinct values", "another value than")
        self.refused(changed("id", out, self.table["id"][out - 1].as_py()), "column `id`", "in several rows")
        self.refused(changed("x18", out, None), "column `x18`", "missing: 1 row")
        self.refused(changed("x18", out, 1e6), "absurd")
        self.refused(lambda t: t, "there is no such column", time="tme")
        self.refused(lambda t: t.drop_columns(["id"]), "no column of ids")
        self.refused(lambda t: t, "cluster= was given", cluster="x1")
        self.refused(lambda t: t, "estimator= was given", estimator="paper")


@unittest.skipUnless(SparkSession and java(), WHY)
class Processes(unittest.TestCase):
    """On a cluster of two workers, which are processes of their own."""

    def test_killed_executors_change_nothing(self):
        with Cluster(workers=2) as cluster:
            more = {"spark.executor.memory": "512m", "spark.task.maxFailures": "20", "spark.deploy.maxExecutorRetries": "-1"}
            spark = settings(SparkSession.builder.master(cluster.url).appName("dvim"), **more).getOrCreate()
            try:
                df = spark.createDataFrame(patients(2500)).repartition(6)
                calm = dvim.spark.fit(df, sample=500, **ASKED)
                expected = (digest(calm.effects), calm._sums)
                calm.unpersist()
                self.assertEqual(len(cluster.executors()), 2)
                again = dvim.spark.fit(df, sample=500, **ASKED)
                killed = []

                def kill():
                    time.sleep(1.5)
                    for pid in cluster.executors()[:1]:
                        cluster.kill(pid)
                        killed.append(pid)

                assassin = threading.Thread(target=kill)
                assassin.start()
                found = (digest(again.effects), again._sums)
                assassin.join()
                self.assertTrue(killed)
                self.assertEqual(found, expected)
            finally:
                spark.stop()


@unittest.skipUnless(SparkSession and java(), WHY)
class Connect(unittest.TestCase):
    """By Spark Connect, whose client is no part of the driver."""

    def test_spark_connect(self):
        try:
            import grpc  # noqa: F401
            import grpc_status  # noqa: F401
        except ImportError:
            self.skipTest("Spark Connect needs grpcio and grpcio-status")
        code = """
import os, sys
sys.path.insert(0, sys.argv[1])
from cluster import settings
from test_spark import ASKED, digest, patients
import dvim.spark
from pyspark.sql import SparkSession
settings(SparkSession.builder)
spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert "connect" in type(spark).__module__, type(spark)
found = dvim.spark.fit(spark.createDataFrame(patients(1200)), sample=600, **ASKED)
print("digest", digest(found.effects), len(found._sums))
"""
        import subprocess

        here = str(Path(__file__).parent)
        out = subprocess.run([sys.executable, "-c", code, here], capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr[-3000:])
        spark = settings(SparkSession.builder.master("local[2]")).getOrCreate()
        try:
            found = dvim.spark.fit(spark.createDataFrame(patients(1200)), sample=600, **ASKED)
            self.assertIn(f"digest {digest(found.effects)}", out.stdout)
        finally:
            spark.stop()


if __name__ == "__main__":
    unittest.main()
