"""What the README promises, with real processes: the loop closes, and no death of one loses or repeats anything.

All tests share one lake and its processes, and each has a table of its own: a Spark session costs more than its work.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from icewright.api_client.client import Client
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.tables import TASK_ID_KEY, Json
from tests.e2e.asked import check_asked, make_aged
from tests.e2e.processes import Processes, wait_for
from tests.lakes.sqlite import BY_CITY, append, current_snapshot_id, make_lake, make_table, table_name, writer

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(600)]

CITIES = tuple(f"city {number}" for number in range(8))
COMMITS = 6
ROWS_PER_COMMIT = 2400
TERMINAL = ("succeeded", "failed")


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """A server and an optimizer that have just been started."""
    folder = tmp_path_factory.mktemp("loop")
    found = Processes(folder, make_lake(folder))
    writer(found.entry).create_namespace("db")
    try:
        found.start("serve")
        found.start("optimizer")
        yield found
    finally:
        found.end()


def filled(processes: Processes, client: Client, name: str) -> Table:
    """A table that is worth a rewrite, written where the server does not look and registered once it is whole.

    And once the last files are as old as commits lie apart, so that they are not too young to be merged.
    """
    written = make_table(make_lake(processes.folder, "unseen"), ("db", name), spec=BY_CITY)
    for number in range(COMMITS):
        append(written, range(number * ROWS_PER_COMMIT, (number + 1) * ROWS_PER_COMMIT), CITIES)
    times_ms = [snapshot.timestamp_ms for snapshot in written.metadata.snapshots]
    time.sleep(max(later - earlier for earlier, later in pairwise(times_ms)) / 1000)
    table = writer(processes.entry).register_table(("db", name), written.metadata_location)
    client.notify(CommitEvent(table_name(table), current_snapshot_id(table)))
    return table


def expected_rows() -> Counter[tuple[int, str]]:
    return Counter(
        (number * ROWS_PER_COMMIT + i, CITIES[i % len(CITIES)])
        for number in range(COMMITS)
        for i in range(ROWS_PER_COMMIT)
    )


def contents(table: Table) -> Counter[tuple[int, str]]:
    """The multiset of rows, read from bytes by a reader that is not ours."""
    rows = table.refresh().scan().to_arrow()
    return Counter(zip(rows["id"].to_pylist(), rows["city"].to_pylist(), strict=True))


def commits_by_task(table: Table) -> Counter[str]:
    snapshots = table.refresh().metadata.snapshots
    return Counter(str(s.summary[TASK_ID_KEY]) for s in snapshots if s.summary and s.summary[TASK_ID_KEY])


def live_files(table: Table) -> int:
    return int(table.refresh().inspect.data_files().num_rows)


def task_in(client: Client, table: Table, *states: str) -> Json | None:
    name = str(table_name(table))
    tasks = client.tasks(limit=1000).items
    return next((task for task in tasks if task["table"] == name and task["state"] in states), None)


def ended(processes: Processes, client: Client, table: Table) -> Json:
    return wait_for(lambda: task_in(client, table, *TERMINAL), "a task ends", processes)


def at_work(processes: Processes, client: Client, name: str) -> tuple[Table, Json]:
    """A table whose task runs, and the task; another table where it was over before anybody saw it run."""
    table = filled(processes, client, name)
    task = wait_for(lambda: task_in(client, table, "running", "committed", *TERMINAL), "a task runs", processes)
    return (table, task) if task["state"] == "running" else at_work(processes, client, f"{name}_again")


def test_nothing_is_left_of_an_optimizer_whose_supervisor_is_killed_and_its_task_is_done_once(
    processes: Processes,
) -> None:
    with processes.client() as client:
        table, running = at_work(processes, client, "optimizer_killed")
        supervisor = psutil.Process(processes.running["optimizer"].pid)
        left = supervisor.children(recursive=True)
        assert len(left) >= 2
        supervisor.kill()
        processes.running.pop("optimizer").wait()
        _, alive = psutil.wait_procs(left, timeout=60)
        assert alive == []

        processes.start("optimizer")
        task = ended(processes, client, table)
        attempts = client.task(task["task_id"])["attempts"]

    assert task["state"] == "succeeded", task
    assert task["task_id"] == running["task_id"]
    assert attempts[0]["state"] in {"lost", "committed"}
    assert commits_by_task(table) == {task["task_id"]: 1}
    assert contents(table) == expected_rows()
    assert live_files(table) == len(CITIES)


def test_a_process_whose_starter_is_gone_or_that_gets_no_settings_does_not_run() -> None:
    command = [sys.executable, "-m", "icewright_spark"]
    orphan = subprocess.run([*command, "1"], input=b"{}", capture_output=True, timeout=60, check=False)  # noqa: S603 - our own
    assert orphan.returncode < 0, orphan
    mine = str(psutil.Process().pid)
    empty = subprocess.run([*command, mine], input=b"", capture_output=True, timeout=60, check=False)  # noqa: S603 - our own
    assert empty.returncode == 2, empty
    assert b"invalid-message" in empty.stdout + empty.stderr


def test_a_server_killed_in_the_middle_finds_out_what_happened(processes: Processes) -> None:
    with processes.client() as client:
        table, running = at_work(processes, client, "server_killed")
    processes.kill("serve")
    processes.start("serve")
    with processes.client() as client:
        task = ended(processes, client, table)

    assert task["state"] == "succeeded", task
    assert task["task_id"] == running["task_id"]
    assert commits_by_task(table) == {task["task_id"]: 1}
    assert contents(table) == expected_rows()


def test_plain_pyspark_appends_while_rewrites_run_and_no_row_is_lost(processes: Processes) -> None:
    script = Path(__file__).parents[2] / "examples" / "append_with_pyspark.py"
    entry = processes.entry
    with processes.client() as client:
        table, _ = at_work(processes, client, "appended")
        arguments = ["--uri", entry.uri, "--warehouse", entry.warehouse_uri, "--table", str(table_name(table))]
        appended = subprocess.Popen(  # noqa: S603 - our own example, as a list
            [sys.executable, str(script), *arguments, "--commits", "4"], stdout=subprocess.PIPE, text=True
        )
        stop = threading.Event()
        more: list[int] = []

        def go_on_writing() -> None:
            while not stop.wait(0.5):
                table.refresh()
                more.append(10_000_000 + len(more))
                append(table, more[-1:], ["elsewhere"])

        other = threading.Thread(target=go_on_writing)
        other.start()
        said, _ = appended.communicate(timeout=300)
        stop.set()
        other.join()
        assert appended.returncode == 0, said
        wait_for(lambda: True if task_in(client, table, "queued", "running") is None else None, "idle", processes)

    found = contents(table)
    assert found.total() == expected_rows().total() + 4 * 10 + len(more)
    assert not expected_rows() - found
    assert found - expected_rows() >= Counter({(number, "elsewhere"): 1 for number in more})
    assert max(commits_by_task(table).values()) == 1


def test_a_commit_is_followed_by_a_better_table_and_what_is_asked_for_is_done(
    processes: Processes, spark: SparkSession
) -> None:
    """The last of this file: it ends the processes."""
    aged = make_aged(processes, spark)
    with processes.client() as client:
        client.notify(CommitEvent(table_name(aged.table()), current_snapshot_id(aged.table())))
        table = filled(processes, client, "better")
        task = ended(processes, client, table)
        assert task["state"] == "succeeded", task
        document = client.task(task["task_id"])

    assert [entry["state"] for entry in document["history"]] == ["queued", "running", "committed", "succeeded"]
    assert contents(table) == expected_rows()
    assert live_files(table) == len(CITIES)
    check_asked(aged)

    processes.end()
    assert {name: process.returncode for name, process in processes.running.items()} == {"serve": 0, "optimizer": 0}
    assert not (processes.folder / "state" / "server.json").exists()
