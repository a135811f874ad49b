"""Files of expired snapshots go a day after the last expiry that they were needed until; whatever else happens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from icewright.actions.expire_snapshots.settings import REMOVES_FILES_KEY
from icewright.actions.remove_files.orphans.settings import REMOVES_KEY
from icewright.core.errors import Conflict, Unreadable, Unsupported
from icewright.core.reasons import Reason
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import Listed
from icewright.model.work.tasks import Task
from icewright.ownership.model import Missing
from tests.builders.lakehouse import BONN, HOUR_MS, MINUTE_MS, NAME, Lakehouse
from tests.doubles.objects import MemoryObjects
from tests.narrowing import not_none

REMOVES = {"icewright.mode": "auto", REMOVES_FILES_KEY: "true"}


@pytest.fixture
def house() -> Lakehouse:
    return Lakehouse(has_files=True)


def commit(house: Lakehouse, *, remove: tuple[CanonicalPath, ...] = ()) -> CanonicalPath:
    """A file comes, and others go; the path of the one that came."""
    house.pass_time(MINUTE_MS)
    folder = f"{house.metadata().location}/data/"
    (file,) = (replace(one, path=folder + one.path) for one in house.files(1, BONN))
    house.put(file)
    house.catalog.overwrite(NAME, add=[file], remove=list(remove))
    return CanonicalPath(file.path)


def expire_all_but_the_last(house: Lakehouse) -> str:
    """The id of the task that did."""
    house.pass_time(MINUTE_MS)
    plan = house.control.maintainer.plan_asked(NAME, ExpireSnapshotsRequest("PT0S", 1))
    task = house.control.dispatcher.apply(plan.plan_id)
    house.rounds(4)
    assert len(house.metadata().snapshots) == 1
    return task.task_id


def with_an_expiry(house: Lakehouse) -> CanonicalPath:
    """A table of two commits, the first of which has expired: its manifest list, which nothing needs any more."""
    house.create(NAME, REMOVES)
    commit(house)
    first = CanonicalPath(house.metadata().snapshots[0].manifest_list)
    commit(house)
    expire_all_but_the_last(house)
    return first


def removal_waiting(house: Lakehouse) -> str:
    """A day later: the id of the plan to remove what expired, which waits for a person."""
    house.pass_time(25 * HOUR_MS)
    house.rounds(4, MINUTE_MS)
    (waiting,) = house.tables.waiting(limit=10)
    return waiting.plan_id


def objects(house: Lakehouse) -> Mapping[CanonicalPath, object]:
    """What lies on the storage."""
    return not_none(house.storage).objects


def hours(house: Lakehouse, count: int) -> None:
    """So many hours, in which people approve whatever waits."""
    for _ in range(count):
        house.pass_time(HOUR_MS)
        house.rounds(3, MINUTE_MS)
        for waiting in house.tables.waiting(limit=10):
            house.control.dispatcher.approve(waiting.plan_id, "Ada")
        house.rounds(2, MINUTE_MS)


def test_i1_i10_a_file_that_a_later_expiry_took_the_last_need_of_has_its_day_from_then(house: Lakehouse) -> None:
    house.create(NAME, REMOVES)
    file = commit(house)
    first = CanonicalPath(house.metadata().snapshots[0].manifest_list)
    commit(house)
    expire_all_but_the_last(house)  # what is left still needs the file
    house.pass_time(23 * HOUR_MS)
    commit(house, remove=(file,))
    expire_all_but_the_last(house)  # and now nothing does
    hours(house, 20)
    assert first not in objects(house)
    assert file in objects(house)
    hours(house, 48)
    assert file not in objects(house)


def test_i10_a_removal_that_waited_while_its_snapshots_came_back_and_expired_again_begins_anew(
    house: Lakehouse,
) -> None:
    house.create(NAME, REMOVES)
    commit(house)
    first = CanonicalPath(house.metadata().snapshots[0].manifest_list)
    commit(house)
    expiry = expire_all_but_the_last(house)
    plan_id = removal_waiting(house)
    house.control.dispatcher.apply(house.control.undoer.plan(expiry).plan_id)
    house.rounds(4)
    assert len(house.metadata().snapshots) == 2
    expire_all_but_the_last(house)
    house.control.dispatcher.approve(plan_id, "Ada")
    house.rounds(8, MINUTE_MS)
    assert first in objects(house)
    assert house.removals.store.runs(limit=10) == []
    hours(house, 48)
    assert first not in objects(house)


def test_i10_that_is_asked_before_each_batch(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    first = with_an_expiry(house)
    asked: list[str] = []

    def only_once(task: Task, _seen: object) -> None:
        asked.append(task.task_id)
        if len(asked) > 1:
            raise Conflict("needed until lately")

    monkeypatch.setattr(house.control.removal_rounds._remover, "_require_grace", only_once)
    hours(house, 26)
    assert len(asked) > 1
    assert first in objects(house)


def test_i10_nothing_goes_where_nobody_can_tell_what_was_needed_until_lately(house: Lakehouse) -> None:
    first = with_an_expiry(house)
    plan_id = removal_waiting(house)
    house.control.removal_rounds._plans.expired._doors.clear()
    house.control.dispatcher.approve(plan_id, "Ada")
    house.rounds(4, MINUTE_MS)
    assert first in objects(house)
    assert house.removals.store.runs(limit=10) == []


POND = Missing("", "catalog pond", Reason("catalog-elsewhere", "server b has it"))


def test_i2_nothing_goes_while_another_server_has_a_catalog_that_this_one_lacks(house: Lakehouse) -> None:
    first = with_an_expiry(house)
    house.elsewhere = [POND]
    hours(house, 48)
    assert first in objects(house)
    house.elsewhere = ()
    hours(house, 24)
    assert first not in objects(house)


def test_i2_what_was_planned_before_another_server_got_such_a_catalog_stays(house: Lakehouse) -> None:
    first = with_an_expiry(house)
    plan_id = removal_waiting(house)
    house.elsewhere = [POND]
    house.control.dispatcher.approve(plan_id, "Ada")
    hours(house, 24)
    assert first in objects(house)


def test_a_table_that_is_dropped_before_its_turn_is_no_trouble(house: Lakehouse) -> None:
    house.create(NAME, {**REMOVES, REMOVES_KEY: "true"})
    commit(house)
    commit(house)
    expire_all_but_the_last(house)
    house.pass_time(25 * HOUR_MS)
    house.control.loop.turn()  # the table wants both by now
    house.catalog.drop(NAME)
    with capture_logs() as logs:
        house.control.loop.round()
    assert [entry for entry in logs if entry["log_level"] == "error"] == []
    assert [entry["event"] for entry in logs].count("table gone") == 2


@pytest.mark.parametrize("around", [True, False])
def test_a_folder_that_nobody_may_list_keeps_what_expired_and_the_log_says_what_helps(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch, *, around: bool
) -> None:
    first = with_an_expiry(house)
    own, listing = f"{house.metadata().location}/", MemoryObjects.list

    def closed(objects: MemoryObjects, root: CanonicalPath) -> Iterator[Listed]:
        if around and not root.startswith(own):
            raise Unreadable("S3 denies access to it: AccessDenied")
        if not around and root.startswith(f"{own}metadata"):
            raise Unsupported("it is reached through a symbolic link")
        return listing(objects, root)

    monkeypatch.setattr(MemoryObjects, "list", closed)
    with capture_logs() as logs:
        hours(house, 48)
    assert first in objects(house)
    assert not [one for one in logs if one["event"] == "step failed"]
    (said, *_) = [one["detail"] for one in logs if one["event"] == "put off" and one["step"] == "look_for_expired"]
    assert f"files of expired snapshots of {NAME} stay" in said
    assert ("AccessDenied" if around else "symbolic link") in said
    assert ("name the `roots` of the catalog in the configuration" in said) is around
