"""The history as an Iceberg table: what readers find, what its users may change, and what a crash or a race leaves."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.types import StringType

from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.errors import Conflict, OutcomeUnknown, Unavailable, Unreadable, Unsupported
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policy import Mode
from icewright.model.work.history import END_KEY, FIELDS_KEY
from icewright.policy.effective import effective_policy
from icewright.retention import history_table as module
from icewright.retention.history_table import PyIcebergHistory
from tests.contracts.test_history_contract import ROW, row
from tests.lakes.house import files
from tests.lakes.sqlite import append, make_lake, make_table, writer

NAME = TableName("lake", ("icewright",), "tasks")


@pytest.fixture
def entry(tmp_path: Path) -> CatalogEntry:
    return make_lake(tmp_path)


@pytest.fixture
def history(entry: CatalogEntry) -> PyIcebergHistory:
    return PyIcebergHistory(entry, NAME)


def table(entry: CatalogEntry) -> Table:
    return writer(entry).load_table(("icewright", "tasks"))


def ids(entry: CatalogEntry) -> list[str]:
    return sorted(table(entry).scan().to_arrow()["task_id"].to_pylist())


def test_readers_find_rows_by_day(entry: CatalogEntry, history: PyIcebergHistory) -> None:
    history.append([row(1), row(2), row(3, day=1)], None)
    found = table(entry).scan(row_filter="task_id == 'task-1'").to_arrow().to_pylist()
    expected = {name: getattr(row(1), name) for name in found[0]}
    for name in ("created_at", "ended_at"):
        expected[name] = datetime.fromtimestamp(expected[name] / 1_000, UTC)
    assert found == [expected]
    days = {str(file.file.partition) for file in table(entry).scan().plan_files()}
    assert len(days) == 2
    assert table(entry).properties[END_KEY] == str(row(3, day=1).ending)
    assert table(entry).properties["icewright.mode"] == "auto"


def test_what_it_says_of_itself_keeps_nobody_from_looking_after_it(
    entry: CatalogEntry, history: PyIcebergHistory
) -> None:
    history.append([row(1)], None)
    policy = effective_policy(PyIcebergCatalog(entry).load(NAME), ())
    assert (policy.problems, policy.mode) == ((), Mode.AUTO)


def test_a_name_that_utf_8_cannot_say_does_not_end_the_history(entry: CatalogEntry, history: PyIcebergHistory) -> None:
    history.append([replace(row(1), table="lake.db.\ud800🧊")], None)
    assert table(entry).scan().to_arrow()["table"].to_pylist() == ["lake.db.\\ud800🧊"]


def test_w11_an_answer_that_was_lost_adds_nothing_twice(
    entry: CatalogEntry, history: PyIcebergHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = SqlCatalog.commit_table

    def lost(self: SqlCatalog, *arguments: Any) -> None:
        true(self, *arguments)
        raise OSError("the answer is lost")

    history.end()
    monkeypatch.setattr(SqlCatalog, "commit_table", lost)
    with pytest.raises(OutcomeUnknown):
        history.append([row(1)], None)
    monkeypatch.undo()
    assert history.end() == row(1).ending  # rows and end came together, and the table says so
    with pytest.raises(Conflict):
        history.append([row(1)], None)
    assert ids(entry) == ["task-1"]


def test_w11_a_crash_before_the_commit_adds_nothing(
    entry: CatalogEntry, history: PyIcebergHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: Any) -> None:
        raise Killed

    history.end()
    monkeypatch.setattr(SqlCatalog, "commit_table", killed)
    with pytest.raises(Killed):
        history.append([row(1)], None)
    monkeypatch.undo()
    assert history.end() is None
    history.append([row(1)], None)
    assert ids(entry) == ["task-1"]


def test_c1_of_two_servers_at_once_one_wins_and_nobody_removes_files(
    entry: CatalogEntry, history: PyIcebergHistory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    true = SqlCatalog.commit_table
    written: dict[str, bytes] = {}

    def second(self: SqlCatalog, *arguments: Any) -> Any:
        monkeypatch.undo()
        PyIcebergHistory(entry, NAME).append([row(1), row(2)], None)
        written.update(files(tmp_path / "warehouse"))
        return true(self, *arguments)

    history.end()
    monkeypatch.setattr(SqlCatalog, "commit_table", second)
    with pytest.raises(Conflict):
        history.append([row(1)], None)
    assert ids(entry) == ["task-1", "task-2"]
    assert written.keys() <= files(tmp_path / "warehouse").keys()


def test_another_commit_in_between_is_a_conflict_and_stays(
    entry: CatalogEntry, history: PyIcebergHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a merge of its files would be: the rows come with the next try."""
    history.append([row(1)], None)
    true = SqlCatalog.commit_table

    def after_another(self: SqlCatalog, *arguments: Any) -> Any:
        monkeypatch.undo()
        table(entry).delete("task_id == 'task-1'")
        return true(self, *arguments)

    monkeypatch.setattr(SqlCatalog, "commit_table", after_another)
    with pytest.raises(Conflict):
        history.append([row(2)], row(1).ending)
    assert (ids(entry), history.end()) == ([], row(1).ending)
    history.append([row(2)], row(1).ending)
    assert ids(entry) == ["task-2"]


def test_columns_are_known_by_their_ids(entry: CatalogEntry, history: PyIcebergHistory) -> None:
    history.append([row(1)], None)
    with table(entry).update_schema() as columns:
        columns.rename_column("reason", "why")
        columns.delete_column("figures")
    with table(entry).update_schema() as columns:
        columns.add_column("reason", StringType())
    history.append([row(2)], row(1).ending)
    found = {each["task_id"]: each for each in table(entry).scan().to_arrow().to_pylist()}
    assert [found[name]["why"] for name in ("task-1", "task-2")] == [ROW.reason] * 2
    assert found["task-2"]["reason"] is None
    assert "figures" not in found["task-2"]


def test_a_column_of_a_newer_release_comes_behind_the_others(
    entry: CatalogEntry, history: PyIcebergHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = {name: kind for name, kind in module._COLUMNS.items() if name != "snapshot_id"}
    with monkeypatch.context() as before:
        before.setattr(module, "_COLUMNS", older)
        history.append([row(1)], None)
    history.append([row(2)], row(1).ending)
    found = {each["task_id"]: each["snapshot_id"] for each in table(entry).scan().to_arrow().to_pylist()}
    assert found == {"task-1": None, "task-2": ROW.snapshot_id}
    assert table(entry).schema().fields[-1].name == "snapshot_id"


def test_a_table_of_somebody_else_is_left_alone(entry: CatalogEntry) -> None:
    append(make_table(entry, ("db", "theirs")), range(3))
    theirs = PyIcebergHistory(entry, TableName("lake", ("db",), "theirs"))
    for ask in (theirs.end, lambda: theirs.append([row(1)], None)):
        with pytest.raises(Unsupported, match="does not say where it ends"):
            ask()
    assert writer(entry).load_table(("db", "theirs")).schema().column_names == ["id", "city"]


@pytest.mark.parametrize("said", ["", "x", "1", "1/", "/task-1", "-1/task-1", "\u0661/task-1"])
def test_what_is_no_end_is_not_guessed(entry: CatalogEntry, history: PyIcebergHistory, said: str) -> None:
    history.append([row(1)], None)
    with table(entry).transaction() as change:
        change.set_properties({END_KEY: said})
    with pytest.raises(Unreadable):
        history.end()
    with table(entry).transaction() as change:
        change.set_properties({END_KEY: str(row(1).ending), FIELDS_KEY: "[]"})
    with pytest.raises(Unsupported, match="fields"):
        history.append([row(2)], row(1).ending)


def test_a_catalog_that_is_away_is_unavailable(tmp_path: Path) -> None:
    entry = make_lake(tmp_path)
    (tmp_path / "lake.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(Unavailable):
        PyIcebergHistory(entry, NAME).end()
