"""What every history of tasks must do, sentence by sentence of the port."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from icewright.core.errors import Conflict
from icewright.model.iceberg.names import TableName
from icewright.model.work.history import EndedTask, Ending
from icewright.retention.history import History
from icewright.retention.history_table import PyIcebergHistory
from tests.doubles.history import MemoryHistory
from tests.lakes.sqlite import make_lake

DAY_MS = 86_400_000
ROW = EndedTask(
    "task-1",
    "lake",
    "lake.db.events",
    "uuid-1",
    "rewrite_data_files",
    "succeeded",
    2,
    "default",
    "plan-1",
    "verified",
    "it is as it should be: 🧊",
    '{"files": 12}',
    7_000_000_000_000_000_001,
    1_700_000_000_123,
    1_700_000_060_456,
)


def row(number: int, *, day: int = 0) -> EndedTask:
    """One of several that ended one after the other."""
    return replace(ROW, task_id=f"task-{number}", ended_at=ROW.ended_at + day * DAY_MS + number)


@pytest.fixture(params=["memory", "pyiceberg"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], History]:
    """Opens one history, as several servers would."""
    if request.param == "memory":
        one = MemoryHistory()
        return lambda: one
    entry = make_lake(tmp_path)
    return lambda: PyIcebergHistory(entry, TableName("lake", ("icewright",), "tasks"))


def test_it_begins_with_nothing(opened: Callable[[], History]) -> None:
    assert opened().end() is None
    assert opened().end() is None


def test_it_ends_with_the_last_row_for_everybody(opened: Callable[[], History]) -> None:
    opened().append([row(1), row(2)], None)
    end = opened().end()
    assert end == row(2).ending
    opened().append([row(3)], end)
    assert opened().end() == row(3).ending


@pytest.mark.parametrize("after", [None, Ending(1, "task-1"), row(3).ending])
def test_what_was_added_meanwhile_is_not_added_again(opened: Callable[[], History], after: Ending | None) -> None:
    opened().append([row(1), row(2)], None)
    with pytest.raises(Conflict):
        opened().append([row(1), row(2)], after)
    assert opened().end() == row(2).ending
