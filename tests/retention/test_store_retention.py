"""How much of the past a store keeps, from the command line, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from icewright.model.work.retention import RowKind
from icewright.retention.prunings_sql import SqlPrunings
from icewright.store.engine import open_store
from icewright.work.store.task_store import SqlTaskStore
from tests.builders.command_line import icewright
from tests.contracts.samples import REASON, new_task


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    text = f'[server]\nstate_dir = "{tmp_path}/state"\nkeep_tasks_days = 12\nkeep_plans = 7\n'
    (tmp_path / "icewright.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ICEWRIGHT_CONFIG", raising=False)
    return tmp_path / "state" / "icewright.db"


def test_each_kind_with_its_setting_and_what_there_is(store: Path) -> None:
    engine = open_store(f"sqlite:///{store}")
    tasks = SqlTaskStore(engine)
    tasks.enqueue(new_task("task-1"))
    ended_at = tasks.request_cancel("task-1", REASON).updated_at
    SqlPrunings(engine).note({RowKind.TASKS: 41}, {})
    pruned_at = SqlPrunings(engine).pruned()[RowKind.TASKS].pruned_at
    engine.dispose()
    found = {item["kind"]: item for item in icewright("store", "retention", "--json").json["items"]}
    assert list(found) == [kind.value for kind in RowKind]
    assert found["tasks"] == {
        "kind": "tasks",
        "setting": "server.keep_tasks_days",
        "kept_days": 12,
        "kept_count": None,
        "rows": 1,
        "oldest_at": ended_at,
        "pruned_at": pruned_at,
        "removed": 41,
    }
    assert (found["plans"]["kept_days"], found["plans"]["kept_count"]) == (None, 7)
    assert (found["audit"]["kept_days"], found["audit"]["setting"]) == (None, "server.keep_audit_days")
    assert (found["kept"]["kept_days"], found["kept"]["setting"]) == (8, "")
    assert (found["feed"]["pruned_at"], found["feed"]["removed"]) == (None, 0)
    said = icewright("store", "retention").out
    for words in ("12 days", "7 of each table", "forever", "as long as it can be undone", "server.keep_feed_days"):
        assert words in said


def test_without_a_store_it_says_so(store: Path) -> None:
    found = icewright("store", "retention")
    assert (found.status, store.exists()) == (2, False)
