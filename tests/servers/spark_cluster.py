"""A standalone Spark cluster, one master and one worker, of the Spark that the optimizer's PySpark brings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.servers.java import QUICK, SPARK_JARS
from tests.servers.processes import HOST, accepts, free_port, running

_EXECUTOR = "CoarseGrainedExecutorBackend"
SPARK_HOME = SPARK_JARS.parent
_SMALL = {"SPARK_DAEMON_MEMORY": "256m", "JDK_JAVA_OPTIONS": " ".join(QUICK), "SPARK_DIST_CLASSPATH": ""}
"""Java's own variable, since executors inherit it from their worker; and no library that an application must bring."""


@dataclass(frozen=True)
class SparkCluster:
    """``master`` is what ``optimizer.master`` says; ``log`` is the master's, ``work`` where executors run."""

    master: str
    log: Path
    work: Path

    def applications(self) -> list[str]:
        """The names of all applications that have come to the cluster."""
        return re.findall(r"Registered app (.*) with ID", self.log.read_text(errors="replace"))

    def executors(self) -> int:
        """How many executors run."""
        found = 0
        for process in psutil.process_iter(["cmdline", "cwd"]):
            is_executor = _EXECUTOR in " ".join(process.info["cmdline"] or [])
            found += is_executor and str(process.info["cwd"] or "").startswith(str(self.work))
        return found


@contextmanager
def spark_cluster(folder: Path, *, cores: int = 2, memory: str = "2g") -> Iterator[SparkCluster]:
    """The cluster while the block runs. Executors are children of the worker and end with it."""
    port = free_port()
    environ = {**_SMALL, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": HOST, "SPARK_NO_DAEMONIZE": "1"}
    start = [str(SPARK_HOME / "bin" / "spark-class")]
    deploy = "org.apache.spark.deploy"
    log = folder / "master.log"
    listen = ["--host", HOST, "--webui-port", "0"]
    master = [*start, f"{deploy}.master.Master", *listen, "--port", str(port)]
    worker = [*start, f"{deploy}.worker.Worker", *listen, "--cores", str(cores), "--memory", memory]
    work = folder / "work"
    with (
        running(master, log=log, ready=lambda: accepts(port), environ=environ),
        running(
            [*worker, "--work-dir", str(work), f"spark://{HOST}:{port}"],
            log=folder / "worker.log",
            ready=lambda: "Registering worker" in log.read_text(errors="replace"),
            environ={**environ, "PATH": os.environ["PATH"]},
        ),
    ):
        yield SparkCluster(f"spark://{HOST}:{port}", log, work)
