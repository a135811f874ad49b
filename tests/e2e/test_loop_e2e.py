"""What the README promises, with real processes: the loop closes, and no death of one loses or repeats anything."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from icewright.api_client.client import Client
from icewright.model.iceberg.tables import TASK_ID_KEY, Json
from tests.e2e.asked import check_asked, make_aged
from tests.e2e.processes import Processes, wait_for
from tests.lakes.sqlite import BY_CITY, append, make_table, writer

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(600)]

CITIES = tuple(f"city {number}" for number in range(12))
COMMITS = 8
ROWS_PER_COMMIT = 2400


def fill(processes: Processes) -> Table:
    table = make_table(processes.entry, spec=BY_CITY)
    for number in range(COMMITS):
        append(table, range(number * ROWS_PER_COMMIT, (number + 1) * ROWS_PER_COMMIT), CITIES)
    return table


def expected_rows() -> Counter[tuple[int, str]]:
    return Counter(
        (number * ROWS_PER_COMMIT + i, CITIES[i % len(CITIES)])
        for number in range(COMMITS)
        for i in range(ROWS_PER_COMMIT)
    )


def contents(processes: Processes) -> Counter[tuple[int, str]]:
    """The multiset of rows, read from bytes by a reader that is not ours."""
    rows = writer(processes.entry).load_table("db.events").scan().to_arrow()
    return Counter(zip(rows["id"].to_pylist(), rows["city"].to_pylist(), strict=True))


def commits_by_task(processes: Processes) -> Counter[str]:
    snapshots = writer(processes.entry).load_table("db.events").metadata.snapshots
    return Counter(str(s.summary[TASK_ID_KEY]) for s in snapshots if s.summary and s.summary[TASK_ID_KEY])


def live_files(processes: Processes) -> int:
    return int(writer(processes.entry).load_table("db.events").inspect.data_files().num_rows)


def task_in(client: Client, *states: str) -> Json | None:
    return next((task for task in client.tasks().items if task["state"] in states), None)


def succeeded(processes: Processes, client: Client) -> Json:
    return wait_for(lambda: task_in(client, "succeeded", "failed"), "a task ends", processes)


def test_a_commit_is_followed_by_a_better_table_and_what_is_asked_for_is_done(
    processes: Processes, spark: SparkSession
) -> None:
    fill(processes)
    processes.start("serve")
    processes.start("optimizer")
    aged = make_aged(processes, spark)
    with processes.client() as client:
        task = succeeded(processes, client)
        assert task["state"] == "succeeded", task
        document = client.task(task["task_id"])

    assert [entry["state"] for entry in document["history"]] == ["queued", "running", "committed", "succeeded"]
    assert contents(processes) == expected_rows()
    assert live_files(processes) == len(CITIES)
    check_asked(aged)

    processes.end()
    assert {name: process.returncode for name, process in processes.running.items()} == {"serve": 0, "optimizer": 0}
    assert not (processes.folder / "state" / "server.json").exists()


def test_an_optimizer_killed_in_the_middle_neither_loses_nor_repeats_its_task(processes: Processes) -> None:
    fill(processes)
    processes.start("serve")
    processes.start("optimizer")
    with processes.client() as client:
        running = wait_for(lambda: task_in(client, "running"), "a task runs", processes)
        processes.kill("optimizer")
        processes.start("optimizer")
        task = succeeded(processes, client)
        attempts = client.task(task["task_id"])["attempts"]

    assert task["state"] == "succeeded", task
    assert task["task_id"] == running["task_id"]
    assert attempts[0]["state"] in {"lost", "committed"}
    assert commits_by_task(processes) == {task["task_id"]: 1}
    assert contents(processes) == expected_rows()
    assert live_files(processes) == len(CITIES)


def test_a_server_killed_in_the_middle_finds_out_what_happened(processes: Processes) -> None:
    fill(processes)
    processes.start("serve")
    processes.start("optimizer")
    with processes.client() as client:
        running = wait_for(lambda: task_in(client, "running"), "a task runs", processes)
    processes.kill("serve")
    processes.start("serve")
    with processes.client() as client:
        task = succeeded(processes, client)

    assert task["state"] == "succeeded", task
    assert task["task_id"] == running["task_id"]
    assert commits_by_task(processes) == {task["task_id"]: 1}
    assert contents(processes) == expected_rows()


def test_plain_pyspark_appends_while_rewrites_run_and_no_row_is_lost(processes: Processes) -> None:
    table = fill(processes)
    processes.start("serve")
    processes.start("optimizer")
    script = Path(__file__).parents[2] / "examples" / "append_with_pyspark.py"
    entry = processes.entry
    arguments = ["--uri", entry.uri, "--warehouse", entry.warehouse_uri, "--table", f"{entry.name}.db.events"]
    with processes.client() as client:
        wait_for(lambda: task_in(client, "running"), "a task runs", processes)
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
        wait_for(lambda: True if task_in(client, "queued", "running") is None else None, "idle", processes)

    found = contents(processes)
    assert found.total() == expected_rows().total() + 4 * 10 + len(more)
    assert not expected_rows() - found
    assert found - expected_rows() >= Counter({(number, "elsewhere"): 1 for number in more})
    assert max(commits_by_task(processes).values()) == 1
