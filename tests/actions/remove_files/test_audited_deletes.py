"""I26: as many files are in the audit as were moved and purged; and none goes that cannot be written down there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from icewright.actions.remove_files.adapters import deletion_store
from icewright.audit.model import AuditEntry, digest_of, verify
from icewright.audit.sql import SqlAudit
from icewright.core.errors import Conflict, Unavailable
from icewright.model.actions.deletion import IntentState
from tests.lakes.house import House, files, litter, location

NAMES = ("one.parquet", "two.parquet", "three.parquet")


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path, rounds_a_day=0.5)


def audited(house: House, action: str) -> int:
    """How many files the audit has of an action."""
    return sum(int(entry.detail["files"]) for entry in entries(house) if entry.action == action)


def entries(house: House) -> list[AuditEntry]:
    return list(SqlAudit(house.engine, house.clock).entries(limit=10_000, after=0))


def removed(house: House, *, undone: bool = False) -> str:
    """A table with garbage, of which some was let go; the id of the run."""
    litter(house.table(), *NAMES)
    house.days(10)
    (waiting,) = house.control.tables.waiting(limit=9)
    task = house.control.dispatcher.approve(waiting.plan_id, "Ada")
    house.round()
    if undone:
        house.undo(task.task_id)
    return task.task_id


def test_i26_t12_each_file_that_goes_is_in_the_audit_before_and_after(house: House) -> None:
    run_id = removed(house)
    tally = house.control.deletions.count_intents(run_id)
    assert tally[IntentState.QUARANTINED].files == len(NAMES)
    assert audited(house, "files.quarantine-begun") == audited(house, "files.quarantined") == len(NAMES)
    house.days(9)
    assert house.control.deletions.count_intents(run_id)[IntentState.PURGED].files == len(NAMES)
    assert audited(house, "files.purge-begun") == audited(house, "files.purged") == len(NAMES)
    found = entries(house)
    assert verify(found).broken_at is None
    (begun,) = [entry for entry in found if entry.action == "deletion.begun"]
    assert (begun.principal, begun.detail["files"]) == ("icewright", len(NAMES))
    paths = [one.object.path for one in house.control.deletions.intents(run_id, frozenset(IntentState), limit=9)]
    gone = [entry for entry in found if entry.action == "files.purged"]
    assert {entry.detail["paths"] for entry in gone} == {digest_of(paths)}


def test_i26_files_that_come_back_are_in_the_audit(house: House) -> None:
    run_id = removed(house, undone=True)
    assert house.control.deletions.count_intents(run_id)[IntentState.RESTORED].files == len(NAMES)
    assert audited(house, "files.restored") == len(NAMES)
    assert "plan.approved" in {entry.action for entry in entries(house)}


def test_t12_no_file_is_touched_where_the_audit_cannot_be_written(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = house.table()
    litter(table, *NAMES)
    house.days(10)
    (waiting,) = house.control.tables.waiting(limit=9)
    house.control.dispatcher.approve(waiting.plan_id, "Ada")
    before = files(location(table))

    def full(*_: Any) -> None:
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(deletion_store, "record", full)
        house.days(2)
        assert files(location(table)) == before
        assert audited(house, "files.quarantined") == 0
    house.days(4)
    assert len(files(location(table))) == len(before) - len(NAMES)
    assert audited(house, "files.quarantined") == len(NAMES)


def test_t12_no_purge_is_done_where_the_audit_cannot_be_written(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = removed(house)
    held = files(house.held)

    def full(*_: Any) -> None:
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(deletion_store, "record", full)
        house.days(9)
        assert files(house.held) == held
    assert house.control.deletions.count_intents(run_id)[IntentState.QUARANTINED].files == len(NAMES)


def test_i11_nothing_of_its_kind_is_removed_by_itself_behind_a_refusal(house: House) -> None:
    table = house.table()
    litter(table, *NAMES)
    house.days(10)
    (first,) = house.control.tables.waiting(limit=9)
    house.control.dispatcher.approve(first.plan_id, "Ada")
    house.round()
    doubtful = location(table) / "data" / "report.parquet"
    doubtful.write_bytes(b"")
    house.days(9)
    (sure,) = litter(table, "later.parquet")
    house.days(3)
    (waiting,) = house.control.tables.waiting(limit=9)
    house.control.approvals.refuse(waiting.plan_id, "Bob", "these are ours")
    house.days(6)
    assert (doubtful.exists(), sure.exists()) == (True, True)
    house.days(9)
    assert (doubtful.exists(), sure.exists()) == (True, False)


def test_i11_nothing_of_what_was_refused_is_removed_for_a_week_and_then_a_person_is_asked_again(house: House) -> None:
    table = house.table()
    litter(table, *NAMES)
    house.days(10)
    (waiting,) = house.control.tables.waiting(limit=9)
    house.control.approvals.refuse(waiting.plan_id, "Bob", "these are ours")
    before = files(location(table))
    with pytest.raises(Conflict, match="was refused by Bob"):
        house.control.dispatcher.approve(waiting.plan_id, "Ada")
    house.days(6)
    assert list(house.control.tables.waiting(limit=9)) == []
    house.days(3)
    (again,) = house.control.tables.waiting(limit=9)
    assert again.plan_id != waiting.plan_id
    assert files(location(table)) == before
    assert audited(house, "files.quarantine-begun") == 0
