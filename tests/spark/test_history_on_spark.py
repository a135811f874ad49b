"""The history of tasks is kept in order as any table is, by tasks that are themselves in it."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.tables import TASK_ID_KEY
from icewright.model.plans.plans import Reason
from icewright.model.work.history import END_KEY
from icewright.model.work.tasks import TaskState
from icewright.retention import history as module
from icewright.retention.history import SETTLED_MS, HistoryWriter
from icewright.retention.history_table import PyIcebergHistory
from tests.contracts.samples import new_task
from tests.lakes.sqlite import writer
from tests.spark.loop import SparkLoop
from tests.spark.tables import missing_files, sql_name

pytestmark = pytest.mark.spark

ROUNDS_MAX = 5
PATH = ("icewright", "tasks")


class Kept:
    """A lake with a history, and the loop that looks after both."""

    def __init__(self, spark: SparkSession, lake: CatalogEntry) -> None:
        self.loop, self.lake = SparkLoop(spark, lake), lake
        self.name = self.loop.name(*PATH)
        self.writer = HistoryWriter(self.loop.control.tasks, PyIcebergHistory(lake, self.name))
        self.count = 0

    def end(self, count: int) -> None:
        """Have tasks end, and let it be long enough ago for them to be copied."""
        tasks = self.loop.control.tasks
        for _ in range(count):
            self.count += 1
            tasks.enqueue(new_task(f"task-{self.count:03}", table=self.count))
            tasks.request_cancel(f"task-{self.count:03}", Reason("cancelled", "cancelled on request"))
        self.settle()

    def settle(self) -> None:
        self.loop.clock.ahead_ms += SETTLED_MS + 1_000

    def copy_all(self) -> None:
        while self.writer.copy():
            pass

    def files(self) -> int:
        return len(writer(self.lake).load_table(PATH).inspect.data_files())

    def ended(self) -> Counter[tuple[str, str]]:
        """What the store says has ended, each end once."""
        tasks = self.loop.control.tasks
        return Counter((task.task_id, task.state.value) for task in tasks.ended(None, tasks.now(), 1_000))


@pytest.fixture
def kept(spark: SparkSession, lake: CatalogEntry, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """With a history of eight files of one row."""
    monkeypatch.setattr(module, "ROWS_MAX", 1)
    made = Kept(spark, lake)
    made.end(8)
    made.copy_all()
    assert made.files() == 8
    return made


def test_its_files_are_merged_while_it_grows_and_that_comes_to_an_end(kept: Kept, spark: SparkSession) -> None:
    loop, name = kept.loop, kept.name
    kept.end(1)
    loop.before_commit = kept.copy_all
    task = loop.rewrite(name)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    merged = writer(kept.lake).load_table(PATH)
    snapshot = merged.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary[TASK_ID_KEY] == task.task_id
    assert kept.files() == 2  # what was there, and what came meanwhile

    ours = [task.task_id]
    for _ in range(ROUNDS_MAX):
        kept.settle()
        kept.copy_all()  # also of what merged it
        spec = loop.claim_if_any(name)
        if spec is None:
            break
        loop.verified(loop.attempt(spec))
        ours.append(spec.task_id)
    else:
        pytest.fail(f"it is merged again and again for its own tasks: {ours}")

    rows = spark.sql(f"SELECT task_id, state FROM {sql_name(name)}").collect()  # noqa: S608 - a test
    found = Counter((row["task_id"], row["state"]) for row in rows)
    assert found == kept.ended()
    assert set(ours) <= {task_id for task_id, _ in found}
    assert max(found.values()) == 1
    assert missing_files(spark, name) == []
    end = kept.writer.history.end()
    assert end is not None
    assert writer(kept.lake).load_table(PATH).properties[END_KEY] == str(end)
    assert end.task_id == kept.loop.control.tasks.ended(None, kept.loop.control.tasks.now(), 1_000)[-1].task_id


def test_each_time_enough_has_come_it_is_merged_once_more(kept: Kept) -> None:
    for _ in range(2):
        before = kept.files()
        task = kept.loop.rewrite(kept.name)
        assert task.state is TaskState.SUCCEEDED, task.outcome
        assert kept.files() < before
        kept.end(8)
        kept.copy_all()
    found = writer(kept.lake).load_table(PATH).scan(selected_fields=("task_id", "state")).to_arrow().to_pylist()
    assert Counter((row["task_id"], row["state"]) for row in found) == kept.ended()
