"""Both launchers on a real Spark cluster: tables become better, every byte is read, and nothing is left running.

Spark resolves its packages itself here, as it does by default; in most other tests it is given their jars.
"""

from __future__ import annotations

import json
import os
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from icewright.model.actions.actions import OPTIMIZER_ACTIONS
from icewright.model.iceberg.tables import TASK_ID_KEY
from icewright.model.work.optimizers import BacklogRequest
from icewright.work.launch.pack import pack
from tests.e2e.processes import WAIT_S, Processes, below, wait_for
from tests.lakes.sqlite import BY_CITY, append, make_lake, make_table, writer
from tests.servers.java import QUICK, SPARK_JARS
from tests.servers.spark_cluster import SparkCluster, spark_cluster
from tests.servers.yarn import yarn

LONG = bool(os.environ.get("ICEWRIGHT_ACCEPTANCE"))
ROUNDS = 4 if LONG else 1
"""How often the table is made worse again for each launcher."""

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(900)]

TABLE = ("db", "events")
CITIES = ("a city", "another city")
COMMITS = 6
ROWS = 40
SMALL = {
    "spark.driver.host": "127.0.0.1",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.cores.max": "2" if LONG else "1",
    "spark.driver.defaultJavaOptions": f" {' '.join(QUICK)}",
}
"""One executor to an application in CI: each is a JVM, and Python workers. An application inherits no
``SPARK_SUBMIT_OPTS``, and no value may begin with a hyphen."""
SPARK_CONF_KEYS = 'spark_conf_keys = ["spark.driver.defaultJavaOptions", "spark.yarn.jars", "spark.yarn.stagingDir"]'
"""Spark's own jars are on this machine, and need not be copied to a YARN."""
IDLE_SOON = {"spark.dynamicAllocation.executorIdleTimeout": "10s"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture
def lake(tmp_path: Path, cluster: SparkCluster) -> Iterator[Processes]:
    """Processes whose optimizers run on the cluster, and a server that gives them time."""
    environ = {
        "ICEWRIGHT_SERVER__LEASE_MS": "30000",
        "ICEWRIGHT_OPTIMIZER__MASTER": cluster.master,
        "ICEWRIGHT_OPTIMIZER__MEMORY": "1g",
        "ICEWRIGHT_OPTIMIZER__JARS": "[]",
    }
    found = Processes(tmp_path, make_lake(tmp_path), environ=environ)
    text = found.configuration.read_text()
    found.configuration.write_text(
        text.replace("lease_ms = 4000\n", "").replace('master = "local[2]"', SPARK_CONF_KEYS)
    )
    try:
        yield found
    finally:
        found.end()


class Filled:
    """One table; ``fill`` makes it worse again."""

    def __init__(self, processes: Processes) -> None:
        self.processes, self.rows, self.tasks = processes, 0, 0
        self.table = make_table(processes.entry, TABLE, spec=BY_CITY)

    def fill(self) -> None:
        for _ in range(COMMITS):
            append(self.table, range(self.rows, self.rows + ROWS), CITIES)
            self.rows += ROWS

    def await_better(self, timeout_s: float = WAIT_S) -> None:
        wait_for(self._better, "the table is better", self.processes, timeout_s)
        table = writer(self.processes.entry).load_table(TABLE)
        assert table.inspect.data_files().num_rows == len(CITIES)
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(self.rows))
        self.tasks += 1
        done = {s.summary[TASK_ID_KEY] for s in table.metadata.snapshots if s.summary and s.summary[TASK_ID_KEY]}
        assert len(done) == self.tasks

    def _better(self) -> bool | None:
        snapshot = self.table.refresh().current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        return True if int(snapshot.summary["total-data-files"] or 0) == len(CITIES) else None


def optimizer(processes: Processes, launcher: str, conf: dict[str, str]) -> None:
    processes.environ |= {
        "ICEWRIGHT_OPTIMIZER__LAUNCHER": launcher,
        "ICEWRIGHT_OPTIMIZER__SPARK_CONF": json.dumps(SMALL | conf),
    }
    processes.start("optimizer")


def stop(processes: Processes) -> None:
    process = processes.running.pop("optimizer")
    process.terminate()
    assert process.wait(60) == 0


def bare_python(folder: Path) -> str:
    """A Python like ours with no packages at all, as a cluster's own."""
    venv.create(folder / "bare", symlinks=True)
    python = folder / "bare" / "bin" / "python"
    found = subprocess.run([python, "-c", "import pyarrow"], capture_output=True, check=False)  # noqa: S603 - our own
    assert b"ModuleNotFoundError" in found.stderr
    return str(python)


def words_of_processes() -> str:
    """Arguments and environments of all processes of this user, but for this one and those below it by its own hand."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            for name in ("cmdline", "environ"):
                try:
                    found.append((folder / name).read_text(errors="replace"))
                except OSError:
                    continue
    return "\n".join(found)


def test_q4_t5_both_launchers_make_a_table_better_on_a_real_cluster(lake: Processes, cluster: SparkCluster) -> None:
    table = Filled(lake)
    table.fill()
    lake.start("serve")
    client = lake.client()
    token = json.loads((lake.folder / "state" / "server.json").read_text())["token"]

    optimizer(lake, "spark-submit", {})
    wait_for(lambda: len(cluster.applications()) or None, "an application comes to the cluster", lake)
    assert token not in words_of_processes()
    table.await_better()
    for _ in range(ROUNDS - 1):
        table.fill()
        table.await_better()
    submitted = len(cluster.applications())
    assert submitted == 1 or LONG
    wait_for(lambda: lake.log("optimizer").count("application ended") == submitted or None, "all have ended", lake)
    folders = list((lake.folder / "state" / "applications").iterdir())
    assert token not in "".join(path.read_text() for folder in folders for path in folder.iterdir())
    stop(lake)

    table.fill()
    archive = lake.folder / "packages.zip"
    manifest = pack(archive)
    lake.environ |= {
        "ICEWRIGHT_OPTIMIZER__ARCHIVE": str(archive),
        "ICEWRIGHT_OPTIMIZER__EXECUTOR_PYTHON": bare_python(lake.folder),
    }
    optimizer(lake, "resident", IDLE_SOON)
    table.await_better()
    for _ in range(ROUNDS - 1):
        table.fill()
        table.await_better()
    workers = client.status()["optimizers"][0]["hello"]["workers"]
    assert workers["packages"].items() <= manifest.packages.items()
    assert workers["spark"] == "4.1.4"
    # Dynamic allocation is on without a setting: a resident optimizer lets go of what it does not need.
    wait_for(lambda: cluster.executors() == 0 or None, "executors without work end", lake)
    stop(lake)
    assert len(cluster.applications()) == submitted + 1
    assert client.backlog(BacklogRequest("default", actions=OPTIMIZER_ACTIONS), ["lake"])["tasks"] == 0


if LONG:

    def test_a_table_becomes_better_on_a_real_yarn(tmp_path: Path) -> None:
        """The driver runs in the cluster, a container of which has icewright from the archive alone."""
        with yarn(tmp_path / "yarn") as cluster:
            archive = tmp_path / "packages.zip"
            pack(archive)
            environ = {
                "HADOOP_CONF_DIR": str(cluster.conf_dir),
                "ICEWRIGHT_OPTIMIZER__MASTER": "yarn",
                "ICEWRIGHT_OPTIMIZER__JARS": "[]",
                "ICEWRIGHT_OPTIMIZER__DEPLOY_MODE": "cluster",
                "ICEWRIGHT_OPTIMIZER__MEMORY": "1g",
                "ICEWRIGHT_OPTIMIZER__ARCHIVE": str(archive),
                "ICEWRIGHT_OPTIMIZER__EXECUTOR_PYTHON": bare_python(tmp_path),
            }
            found = Processes(tmp_path, make_lake(tmp_path), environ=environ)
            text = found.configuration.read_text().replace("lease_ms = 4000", "lease_ms = 30000")
            found.configuration.write_text(text.replace('master = "local[2]"', SPARK_CONF_KEYS))
            try:
                table = Filled(found)
                table.fill()
                found.start("serve")
                found.client()
                jars = {"spark.yarn.jars": f"local:{SPARK_JARS}/*", "spark.yarn.stagingDir": f"file:{tmp_path}/staging"}
                optimizer(found, "spark-submit", jars)
                table.await_better(900.0)
                wait_for(lambda: "application ended" in found.log("optimizer") or None, "it ends", found, 300.0)
                token = json.loads((tmp_path / "state" / "server.json").read_text())["token"]
                logs = [path.read_text(errors="replace") for one in cluster.containers() for path in one.iterdir()]
                assert len(cluster.containers()) > 1  # a driver, and executors that dynamic allocation brought
                assert token not in "".join(logs)
                stop(found)
            finally:
                found.end()

    def test_q4_i18_a_driver_whose_jvm_is_stopped_ends_itself_and_another_does_the_work(processes: Processes) -> None:
        """The JVM hangs, and the server is away for longer than the lease: nobody can tell the driver anything."""
        table = Filled(processes)
        table.fill()
        processes.start("serve")
        processes.start("optimizer")
        wait_for(lambda: True if "task started" in processes.log("optimizer") else None, "a task runs", processes)
        (jvm,) = below(processes, "optimizer", "java")
        jvm.suspend()
        processes.kill("serve")
        gone = "this optimizer ends itself"
        wait_for(lambda: True if gone in processes.log("optimizer") else None, gone, processes, 30.0)
        _, alive = psutil.wait_procs([jvm], timeout=10)
        assert alive == []
        processes.start("serve")
        table.await_better()
