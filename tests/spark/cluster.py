"""A standalone cluster of Spark on this machine: a master and some workers, each a process of its own, on loopback alone."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def java():
    """Whether there is a Java that Spark runs on."""
    return shutil.which("java") is not None


def settings(builder, **more):
    """What every session here has: loopback, few partitions, no page, this Python."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    usual = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": tempfile.gettempdir(),
        "spark.log.level": "OFF",
    }
    for name, value in {**usual, **more}.items():
        builder = builder.config(name, value)
    return builder


class Cluster:
    """A context. ``url`` is what a session connects to."""

    def __init__(self, workers=2, cores=1, memory="1g"):
        self.workers, self.cores, self.memory = workers, cores, memory

    def __enter__(self):
        import pyspark

        self.home = Path(pyspark.__file__).parent
        self.folder = tempfile.mkdtemp(prefix="dvim-spark-")
        self.processes = []
        try:
            self.url = self._start("Master", r"Starting Spark master at (spark://\S+)", ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"])
            for _ in range(self.workers):
                own = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", "-c", str(self.cores), "-m", self.memory,
                       "-d", self.folder, self.url]
                self._start("Worker", r"Successfully registered with master", own)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, kind, sign, arguments):
        name = f"{kind}-{len(self.processes)}"
        log = Path(self.folder, f"{name}.log")
        command = [str(self.home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}", *arguments]
        surroundings = {**os.environ, "SPARK_HOME": str(self.home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m",
                        "PYSPARK_PYTHON": sys.executable}
        with open(log, "w") as out:
            self.processes.append(subprocess.Popen(command, stdout=out, stderr=out, env=surroundings, start_new_session=True))
        for _ in range(600):
            if found := re.search(sign, log.read_text()):
                return found.group(found.re.groups)
            if self.processes[-1].poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"Spark's {kind} did not start:\n{log.read_text()[-2000:]}")

    def executors(self):
        """The process of each executor."""
        out = []
        ours = {p.pid for p in self.processes}
        for status in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int(status.read_text().rpartition(")")[2].split()[1])
                if parent in ours and b"CoarseGrainedExecutorBackend" in Path(status.parent, "cmdline").read_bytes():
                    out.append(int(status.parent.name))
        return out

    def kill(self, pid):
        """Ends an executor at once, as a machine that fails does."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def __exit__(self, *_):
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
