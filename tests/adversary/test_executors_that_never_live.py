"""Clusters that give an application no executor that lives: the task fails with what the cluster said of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from icewright.model.iceberg.tables import Json
from tests.builders.command_line import icewright
from tests.e2e.processes import Processes, wait_for
from tests.lakes.sqlite import append, make_lake, make_table
from tests.servers.spark_cluster import SparkCluster, spark_cluster

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(300)]

WAIT_MS = 6_000
STARVES_AFTER = "2s"
"""When Spark itself says that nobody accepts its job; 15 s by default."""
WORKER_MEMORY = "512m"


@contextmanager
def lake_on(folder: Path, cluster: SparkCluster, conf: dict[str, str]) -> Iterator[Processes]:
    """A lake with a task that waits, its server, and a submitter of one application at a time."""
    conf = {"spark.driver.host": "127.0.0.1", "spark.starvation.timeout": STARVES_AFTER, **conf}
    environ = {
        "ICEWRIGHT_OPTIMIZER__MASTER": cluster.master,
        "ICEWRIGHT_OPTIMIZER__JARS": "[]",
        "ICEWRIGHT_OPTIMIZER__LAUNCHER": "spark-submit",
        "ICEWRIGHT_OPTIMIZER__APPLICATIONS": "1",
        "ICEWRIGHT_OPTIMIZER__MEMORY": "512m",
        "ICEWRIGHT_OPTIMIZER__EXECUTORS_WAIT_MS": str(WAIT_MS),
        "ICEWRIGHT_OPTIMIZER__SPARK_CONF": json.dumps(conf),
    }
    found = Processes(folder, make_lake(folder), environ=environ)
    text = found.configuration.read_text().replace("lease_ms = 4000", "lease_ms = 30000")
    found.configuration.write_text(
        text.replace('master = "local[2]"\n', 'spark_conf_keys = ["spark.starvation.timeout"]\n')
    )
    table = make_table(found.entry, ("db", "events"))
    for number in range(6):
        append(table, range(10 * number, 10 * number + 10))
    try:
        found.start("serve")
        found.client()
        found.start("optimizer")
        yield found
    finally:
        if "optimizer" in found.running:
            found.kill("optimizer")  # what it has submitted would wait for its time
        found.end()


def failed_try(processes: Processes) -> Json:
    """The task, once a try of it has failed."""
    client = processes.client()

    def look() -> Json | None:
        for task in client.tasks().items:
            if task["attempt"] and task["outcome"] is not None and task["state"] in ("queued", "failed"):
                return task
        return None

    return wait_for(look, "a try has failed", processes, 120.0)


def said_of(processes: Processes, *arguments: str) -> str:
    said = icewright("--config", str(processes.configuration), *arguments)
    assert said.status == 0, said.err
    return " ".join(said.out.split())


def test_s6_executors_larger_than_every_worker_fail_the_task_with_what_the_cluster_says(tmp_path: Path) -> None:
    (tmp_path / "spark").mkdir()
    with (
        spark_cluster(tmp_path / "spark", cores=1, memory=WORKER_MEMORY) as cluster,
        lake_on(tmp_path, cluster, {"spark.executor.memory": "2g", "spark.executor.cores": "1"}) as lake,
    ):
        task = failed_try(lake)
        reason = task["outcome"]["reason"]
        assert (task["outcome"]["cause"], reason["code"]) == ("away", "no-executors")
        for part in (
            "waited for 6 s",
            "Initial job has not accepted any resources",
            "spark.executor.memory=2g",
            "1 live workers: 127.0.0.1 with 1 cores (1 free) and 512 MiB (512 MiB free)",
        ):
            assert part in reason["text"]
        # The place of the application is free, and the next one waits for its turn.
        wait_for(lambda: "application failed" in lake.log("optimizer") or None, "the application ended", lake, 60.0)
        told = said_of(lake, "why", "lake.db.events")
        assert "no executor of this application lived" in told
        assert "Initial job has not accepted any resources" in told
        assert "no-executors" in said_of(lake, "tasks", "show", task["task_id"], "--json")
        (folder,) = list((lake.folder / "state" / "applications").iterdir())[:1]
        assert "no executors: jobs are cancelled" in (folder / "log.txt").read_text()


class Killer(threading.Thread):
    """Kills each executor that a worker starts, as a machine does that is short of memory."""

    def __init__(self, cluster: SparkCluster) -> None:
        super().__init__(daemon=True)
        self._work, self.killed, self.over = str(cluster.work), set[int](), threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.05):
            for process in psutil.process_iter(["pid", "cmdline", "cwd"]):
                found: dict[str, Any] = process.info
                is_executor = "CoarseGrainedExecutorBackend" in " ".join(found["cmdline"] or [])
                if is_executor and str(found["cwd"] or "").startswith(self._work):
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
                        self.killed.add(process.pid)


@pytest.mark.campaign
def test_s6_executors_that_are_killed_again_and_again_fail_the_task_with_how_they_ended(tmp_path: Path) -> None:
    (tmp_path / "spark").mkdir()
    with spark_cluster(tmp_path / "spark", cores=1, memory="1g") as cluster:
        killer = Killer(cluster)
        killer.start()
        try:
            with lake_on(tmp_path, cluster, {"spark.executor.memory": WORKER_MEMORY}) as lake:
                reason = failed_try(lake)["outcome"]["reason"]
                # Where one has registered in time, its task is lost with it, and Spark's own limit ends the job.
                assert reason["code"] in ("no-executors", "out-of-memory")
                assert "137" in reason["text"]
                assert "137" in said_of(lake, "why", "lake.db.events")
                assert len(killer.killed) > 1 or reason["code"] == "out-of-memory"
        finally:
            killer.over.set()
            killer.join()
