"""Removing files as users have it: a real table on a real file system, a real store, a server but for its sockets.

Only the clock is moved. What is checked are bytes: every file below the table, and all that its metadata reaches.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table

from icewright.actions.remove_files import quarantine_scheduler as removal_rounds
from icewright.actions.remove_files.orphans.planner import ASKED_MAX
from icewright.actions.remove_files.orphans.service import OrphanFinder
from icewright.approvals.service import APPROVED_BY
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.errors import InvalidMessage, NotAllowed, Unavailable
from icewright.model.actions.deletion import IntentState
from icewright.model.actions.remove_files import RemoveOrphanFiles, RemoveOrphanFilesRequest
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableId
from icewright.model.work.tasks import Task, TaskState
from icewright.server.liveness import SILENT_MS_MAX
from tests.lakes.house import House, all_there, files, litter, location, rows
from tests.lakes.sqlite import table_name


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_s_2_left_alone_garbage_goes_after_its_time_and_a_persons_word_and_comes_back(house: House) -> None:
    table = house.table()
    house.table("events_2")
    before, ids = files(location(table)), rows(table)
    left = litter(table, "00000-aborted.parquet", "00001-aborted.parquet")
    house.days(7)
    assert (house.tasks(), [path.exists() for path in left]) == ([], [True, True])
    house.days(3)
    (waiting,) = house.control.tables.waiting(limit=10)
    assert (waiting.table_name, waiting.reason.code) == (table_name(table), "first-removal")
    assert [path.exists() for path in left] == [True, True]
    task = house.control.dispatcher.approve(waiting.plan_id, "Ada")
    assert task.reason.figures[APPROVED_BY] == "Ada"
    house.round()
    (task,) = house.tasks()
    assert (task.state, task.outcome and task.outcome.reason.figures["files_removed"]) == (TaskState.SUCCEEDED, 2)
    assert files(location(table)) == before
    assert (rows(table), all_there(table), house.control.tables.waiting(limit=10)) == (ids, True, [])
    back = house.undo(task.task_id)
    assert (back.state, back.outcome and back.outcome.reason.figures["files_back"]) == (TaskState.SUCCEEDED, 2)
    assert files(location(table)) == {**before, **{str(path): b"PAR1 nobody needs this" for path in left}}


def test_s_2_the_second_time_nobody_is_asked(house: House) -> None:
    table = house.table()
    litter(table, "first.parquet", content=b"")
    house.days(10)
    (waiting,) = house.control.tables.waiting(limit=10)
    house.control.dispatcher.approve(waiting.plan_id, "Ada")
    house.round()
    (left,) = litter(table, "second.parquet", content=b"")
    house.days(10)
    assert [task.state for task in house.tasks()] == [TaskState.SUCCEEDED, TaskState.SUCCEEDED]
    assert (left.exists(), all_there(table)) == (False, True)


def test_s_10_beyond_the_budget_a_person_is_asked_each_time(house: House) -> None:
    table = house.table()
    litter(table, "first.parquet", content=b"")
    house.days(10)
    house.control.dispatcher.approve(house.control.tables.waiting(limit=10)[0].plan_id, "Ada")
    house.round()
    (left,) = litter(table, "second.parquet", content=b"x" * 100_000)
    house.days(10)
    (waiting,) = house.control.tables.waiting(limit=10)
    assert (waiting.reason.code, left.exists(), len(house.tasks())) == ("beyond-budget", True, 1)
    with pytest.raises(NotAllowed, match="approved first"):
        house.control.dispatcher.apply(waiting.plan_id)
    with pytest.raises(InvalidMessage):
        house.control.dispatcher.approve(waiting.plan_id, " ")
    assert left.exists()
    house.control.dispatcher.approve(waiting.plan_id, "Ada")
    house.round()
    assert (left.exists(), all_there(table)) == (False, True)


def test_after_the_window_it_is_purged_and_cannot_come_back(house: House) -> None:
    table = house.table()
    (left,) = litter(table, "first.parquet")
    house.days(10)
    task = house.control.dispatcher.approve(house.control.tables.waiting(limit=10)[0].plan_id, "Ada")
    house.round()
    assert len(files(house.held)) == 1
    house.days(6)
    assert len(files(house.held)) == 1
    house.days(3)
    assert files(house.held) == {}
    with pytest.raises(NotAllowed, match="1 were purged"):
        house.undo(task.task_id)
    assert (left.exists(), all_there(table)) == (False, True)
    assert house.control.deletions.count_intents(task.task_id)[IntentState.PURGED].files == 1


def test_a_shorter_age_that_a_person_asks_for_holds_until_the_file_goes(house: House) -> None:
    table = house.table()
    (left,) = litter(table, "first.parquet", content=b"")
    house.days(0.5)
    asked = RemoveOrphanFilesRequest(older_than="PT96H")
    house.look(table_name(table), asked)
    house.days(5)
    house.control.dispatcher.apply(house.look(table_name(table), asked).plan_id)
    house.round()
    (task,) = house.tasks()
    assert (task.outcome and task.outcome.reason.figures["files_left"], left.exists()) == (0, False)


def test_o8_what_is_committed_meanwhile_refuses_the_plan(house: House) -> None:
    table = house.table()
    (left,) = litter(table, "first.parquet")
    house.days(10)
    plan_id = house.control.tables.waiting(limit=10)[0].plan_id
    action = house.control.tables.plan(plan_id).actions[0]
    assert isinstance(action, RemoveOrphanFiles)
    other = location(table) / "data" / "real.parquet"
    live = next(entry for entry in table.inspect.data_files()["file_path"].to_pylist())
    other.write_bytes(Path(live.removeprefix("file://")).read_bytes())
    other.replace(left)
    table.refresh().add_files([f"file://{left}"], check_duplicate_files=False)
    house.control.dispatcher.approve(plan_id, "Ada")
    house.round()
    (task,) = house.tasks()
    assert task.state is not TaskState.SUCCEEDED
    assert (left.exists(), all_there(table)) == (True, True)


def test_the_owner_who_changes_their_mind_stops_what_waits_in_the_queue(house: House) -> None:
    table = house.table()
    litter(table, "first.parquet", content=b"")
    house.days(10)
    house.control.dispatcher.approve(house.control.tables.waiting(limit=10)[0].plan_id, "Ada")
    house.round()
    (left,) = litter(table, "second.parquet", content=b"")
    house.days(7)
    with table.refresh().transaction() as change:
        change.set_properties({"icewright.remove-orphan-files.enabled": "false"})
    house.days(5)
    assert (left.exists(), len(house.tasks())) == (True, 1)


def test_nothing_is_ever_removed_without_a_quarantine(tmp_path: Path) -> None:
    house = House(tmp_path, quarantine=False)
    table = house.table()
    (left,) = litter(table, "first.parquet")
    house.days(0.5)
    house.look(table_name(table))
    house.days(10)
    plan = house.look(table_name(table))
    assert plan.actions
    house.control.dispatcher.apply(plan.plan_id)
    house.round()
    (task,) = house.tasks()
    assert (task.state, task.outcome and task.outcome.reason.code) == (TaskState.FAILED, "not-allowed")
    assert left.exists()


def test_a_quarantine_on_another_file_system_is_told_by_the_first_pass(house: House, other_file_system: Path) -> None:
    table = house.table()
    litter(table, "first.parquet")
    assert "no-quarantine" not in {rule.code for rule in house.look(table_name(table)).rules}
    house.entry = replace(house.entry, quarantine=(str(other_file_system),))
    house.restart()
    (told,) = [rule for rule in house.look(table_name(table)).rules if rule.code == "no-quarantine"]
    assert "file system" in told.text


def test_w10_a_server_that_dies_between_two_files_is_followed_by_one_that_goes_on(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = house.table()
    left = litter(table, *(f"{number}.parquet" for number in range(5)))
    house.days(10)
    house.control.dispatcher.approve(house.control.tables.waiting(limit=10)[0].plan_id, "Ada")

    class Dead(BaseException):
        pass

    done: list[CanonicalPath] = []
    real = os.rename

    def dies(source: object, target: object, **more: object) -> None:
        real(source, target, **more)  # type: ignore[arg-type]  # as the adapter calls it
        done.append(CanonicalPath(str(source)))
        if len(done) == 2:
            raise Dead

    monkeypatch.setattr(os, "rename", dies)
    with pytest.raises(Dead):
        house.control.loop.round()
    monkeypatch.setattr(os, "rename", real)
    house.restart()
    house.days(1, a_day=4)
    assert [path.exists() for path in left] == [False] * 5
    (task,) = house.tasks()
    assert (task.state, task.attempt, all_there(table)) == (TaskState.SUCCEEDED, 2, True)
    house.undo(task.task_id)
    assert [path.read_bytes() for path in left] == [b"PAR1 nobody needs this"] * 5


def test_an_owner_who_changes_their_mind_stops_a_removal_that_is_under_way(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = house.table()
    left = litter(table, *(f"{number:03d}.parquet" for number in range(150)), content=b"")
    house.days(10)
    task = house.control.dispatcher.approve(house.control.tables.waiting(limit=10)[0].plan_id, "Ada")
    pause = house.pause

    def changes_their_mind(wait_ms: int) -> None:
        with table.refresh().transaction() as change:
            change.set_properties({"icewright.mode": "observe"})
        pause(wait_ms)

    monkeypatch.setattr(house, "pause", changes_their_mind)
    house.restart()
    house.round()
    task = house.control.tasks.get(task.task_id)
    assert (task.state, sum(path.exists() for path in left)) == (TaskState.CANCELLED, 50)
    assert house.control.deletions.runs(open_only=True, limit=10) == []


def test_an_owner_who_lets_the_table_only_be_observed_by_now_gets_the_files_back(house: House) -> None:
    table = house.table()
    (left,) = litter(table, "first.parquet")
    house.days(10)
    task = house.control.dispatcher.approve(house.control.tables.waiting(limit=10)[0].plan_id, "Ada")
    house.round()
    assert not left.exists()
    with table.refresh().transaction() as change:
        change.set_properties({"icewright.mode": "observe", "self-optimizing.enabled": "true"})
    assert house.undo(task.task_id).state is TaskState.SUCCEEDED
    assert (left.read_bytes(), all_there(table)) == (b"PAR1 nobody needs this", True)


def test_the_store_is_asked_for_quarantined_files_every_few_minutes_and_not_in_each_round(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = house.control.deletions.with_held

    def counted(*, table_id: TableId | None = None, limit: int, before: str | None = None) -> Sequence[str]:
        asked.append(limit)
        return real(table_id=table_id, limit=limit, before=before)

    monkeypatch.setattr(house.control.deletions, "with_held", counted)
    for _ in range(5):
        house.round()
    assert len(asked) == 1
    house.clock.advance(6 * 60_000)
    house.round()
    assert len(asked) == 2


def test_a_task_that_is_cancelled_on_the_way_leaves_the_rest(house: House) -> None:
    table = house.table()
    litter(table, "1.parquet")
    house.days(10)
    task = house.control.dispatcher.approve(house.control.tables.waiting(limit=10)[0].plan_id, "Ada")
    house.control.dispatcher.cancel(task.task_id)
    house.round()
    assert house.tasks()[0].state is TaskState.CANCELLED
    assert [run.is_open for run in house.control.deletions.runs(limit=10)] == []


def removed(house: House, table: Table) -> Task:
    """Let what waits for a person be removed."""
    waiting = [one for one in house.control.tables.waiting(limit=10) if one.table_name == table_name(table)]
    task = house.control.dispatcher.approve(waiting[0].plan_id, "Ada")
    house.round()
    return task


def test_what_was_taken_back_goes_again_only_by_a_persons_word(house: House) -> None:
    table = house.table()
    (first,) = litter(table, "first.parquet", content=b"")
    house.days(10)
    task = removed(house, table)
    (second,) = litter(table, "second.parquet", content=b"")
    house.days(8.5)
    assert len(house.tasks()) == 2  # the second went by itself; only then somebody misses the first
    litter(table, "third.parquet", content=b"")
    with pytest.raises(NotAllowed, match="purged"):
        house.undo(task.task_id)
    house.undo(house.tasks()[1].task_id)
    assert (first.exists(), second.exists()) == (False, True)
    house.days(12)
    (waiting,) = house.control.tables.waiting(limit=10)
    assert (waiting.reason.code, second.exists(), len(house.tasks())) == ("taken-back", True, 2)
    removed(house, table)
    assert (second.exists(), len(house.tasks())) == (False, 3)


def test_an_earlier_removal_that_is_taken_back_is_not_begun_again_either(house: House) -> None:
    table = house.table()
    (first,) = litter(table, "first.parquet", content=b"")
    house.days(4)
    (second,) = litter(table, "second.parquet", content=b"")
    house.days(5)
    task = removed(house, table)
    house.days(4)
    assert (len(house.tasks()), second.exists()) == (2, False)
    house.undo(task.task_id)
    house.days(12)
    (waiting,) = house.control.tables.waiting(limit=10)
    assert (waiting.reason.code, first.exists(), len(house.tasks())) == ("taken-back", True, 2)


def test_the_files_of_a_table_that_was_renamed_come_back_and_are_looked_after(house: House) -> None:
    table = house.table()
    left = litter(table, "first.parquet", "second.parquet", content=b"")
    house.days(10)
    task = removed(house, table)
    house.days(6)
    second = house.control.deletions.intents(task.task_id, frozenset(IntentState), limit=2)[1]
    assert second.held is not None
    catalog = PyIcebergCatalog(house.entry)
    table.catalog.rename_table(("db", "events"), ("db", "renamed"))
    house.days(0.5)
    back = house.undo(task.task_id)
    assert (back.state, str(back.table_name)) == (TaskState.SUCCEEDED, "lake.db.renamed")
    assert ([path.exists() for path in left], files(house.held)) == ([True, True], {})
    renamed = catalog.load(back.table_name)
    house.days(12)
    (waiting,) = house.control.tables.waiting(limit=10)
    assert waiting.table_id == renamed.table_id
    house.control.dispatcher.approve(waiting.plan_id, "Ada")
    house.round()
    table.catalog.rename_table(("db", "renamed"), ("db", "events"))
    house.days(10)
    assert ([path.exists() for path in left], files(house.held)) == ([False, False], {})


def test_an_undo_that_does_not_bring_everything_back_fails_and_says_so(house: House) -> None:
    table = house.table()
    left = litter(table, "first.parquet", "second.parquet", content=b"")
    house.days(10)
    task = removed(house, table)
    left[0].write_bytes(b"somebody's")
    undone = house.undo(task.task_id)
    assert undone.outcome is not None
    assert (undone.state, undone.outcome.reason.code) == (TaskState.FAILED, "not-all-back")
    assert f"1 file could not be put back: there is something at file://{left[0]} now" in undone.outcome.reason.text
    assert [path.read_bytes() for path in left] == [b"somebody's", b""]


def test_t13_searches_that_were_asked_for_do_not_take_all_threads_of_the_api(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = house.table()
    house.days(0.5)
    begun, goes_on, real = threading.Semaphore(0), threading.Event(), OrphanFinder.look

    def slow(*what: Any) -> Any:
        begun.release()
        goes_on.wait()
        return real(*what)

    monkeypatch.setattr(OrphanFinder, "look", slow)
    with ThreadPoolExecutor(ASKED_MAX) as people:
        asking = [people.submit(house.look, table_name(table)) for _ in range(ASKED_MAX)]
        for _ in asking:
            begun.acquire()
        with pytest.raises(Unavailable, match="under way already"):
            house.look(table_name(table))
        goes_on.set()
    assert house.look(table_name(table)).is_empty


def test_who_looks_for_files_and_removes_them_gives_signs_of_life(house: House) -> None:
    """Else a server that is long at a large table would be taken for one that hangs, and restarted again and again."""
    table, pulse = house.table(), house.control.loop._pulse
    litter(table, "first.parquet")

    def is_heard(act: Callable[[], object]) -> bool:
        pulse.begin("removals", "test")
        house.clock.advance(SILENT_MS_MAX + 1)
        asked_at = house.clock.now()
        act()
        return pulse.doing[0].heard_at >= asked_at

    assert is_heard(lambda: house.look(table_name(table)))
    house.days(10)
    assert is_heard(lambda: removed(house, table))
    (task,) = house.tasks()
    assert task.state is TaskState.SUCCEEDED
    assert is_heard(lambda: house.control.removal_rounds.tend(task.task_id))
    pulse.end()


def test_a_person_does_not_wait_for_ever_where_files_are_being_moved(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = house.table()
    litter(table, "first.parquet", content=b"")
    house.days(10)
    task = removed(house, table)
    monkeypatch.setattr(removal_rounds, "BUSY_WAIT_S", 0)
    hangs, goes_on = threading.Event(), threading.Event()
    real = os.link

    def hung(*places: object, **more: object) -> None:
        hangs.set()
        goes_on.wait()
        real(*places, **more)  # type: ignore[arg-type]  # as the adapter calls it

    monkeypatch.setattr(os, "link", hung)
    undoing = threading.Thread(target=house.undo, args=(task.task_id,))
    undoing.start()
    hangs.wait()
    with pytest.raises(Unavailable, match="being moved"):
        house.control.removal_rounds.tend(task.task_id)
    goes_on.set()
    undoing.join()
    assert files(house.held) == {}
