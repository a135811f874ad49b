"""The optimizer's own deaths, with real processes: its JVM's, its supervisor's, and the ones it was told to die."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from icewright.model.iceberg.tables import TASK_ID_KEY
from tests.e2e.processes import Processes, wait_for
from tests.lakes.sqlite import BY_CITY, append, make_lake, make_table, writer

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(600)]

TABLE = ("db", "events")
CITIES = tuple(f"city {number}" for number in range(6))
COMMITS = 6
ROWS_PER_COMMIT = 60


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """A table that is worth a rewrite, a server and an optimizer, for one test after the other."""
    folder = tmp_path_factory.mktemp("optimizer")
    found = Processes(folder, make_lake(folder))
    table = make_table(found.entry, TABLE, spec=BY_CITY)
    for number in range(COMMITS):
        append(table, range(number * ROWS_PER_COMMIT, (number + 1) * ROWS_PER_COMMIT), CITIES)
    try:
        found.start("serve")
        found.start("optimizer")
        yield found
    finally:
        found.end()


def below(processes: Processes, command: str, name: str) -> list[psutil.Process]:
    """Processes of that name below one of ours; one that ends while it is looked at is not there."""
    found = []
    for process in psutil.Process(processes.running[command].pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.is_running() and process.name() == name:
                found.append(process)
    return found


def live_files(processes: Processes) -> int:
    return int(writer(processes.entry).load_table(TABLE).inspect.data_files().num_rows)


def test_a_jvm_that_dies_in_the_middle_is_replaced_and_the_task_is_done_once(processes: Processes) -> None:
    wait_for(lambda: True if "task started" in processes.log("optimizer") else None, "a task runs", processes)
    (jvm,) = below(processes, "optimizer", "java")
    jvm.kill()

    def another() -> psutil.Process | None:
        return next((found for found in below(processes, "optimizer", "java") if found.pid != jvm.pid), None)

    wait_for(another, "another JVM runs", processes)
    assert "Spark has ended" in processes.log("optimizer")
    wait_for(lambda: True if live_files(processes) == len(CITIES) else None, "the table is better", processes)
    table = writer(processes.entry).load_table(TABLE)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(COMMITS * ROWS_PER_COMMIT))
    assert len([s for s in table.metadata.snapshots if s.summary and s.summary[TASK_ID_KEY]]) == 1
    assert processes.running["optimizer"].poll() is None


def test_nothing_is_left_of_an_optimizer_whose_supervisor_was_killed(processes: Processes) -> None:
    wait_for(lambda: True if "ready" in processes.log("optimizer") else None, "the optimizer is ready", processes)
    supervisor = psutil.Process(processes.running["optimizer"].pid)
    left = supervisor.children(recursive=True)
    assert len(left) >= 2

    supervisor.kill()
    processes.running.pop("optimizer").wait()

    _, alive = psutil.wait_procs(left, timeout=60)
    assert alive == []


def test_a_process_whose_starter_is_gone_or_that_gets_no_settings_does_not_run() -> None:
    command = [sys.executable, "-m", "icewright_spark"]
    orphan = subprocess.run([*command, "1"], input=b"{}", capture_output=True, timeout=60, check=False)  # noqa: S603 - our own
    assert orphan.returncode < 0, orphan
    mine = str(psutil.Process().pid)
    empty = subprocess.run([*command, mine], input=b"", capture_output=True, timeout=60, check=False)  # noqa: S603 - our own
    assert empty.returncode == 2, empty
    assert b"invalid-message" in empty.stdout + empty.stderr
