"""What setting ``main`` back must do, shown on the catalog in memory and on real ones: SQL, REST, Hive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from icewright.core.errors import Conflict, NotAllowed, NotFound, TableReplaced, Unavailable
from icewright.model.actions.rollback import Rollback
from icewright.model.actions.undo import SIGNATURE_KEY
from icewright.model.iceberg.tables import TableMetadata
from tests.contracts.lakes import Lake, named
from tests.contracts.test_catalog_contract import EVENTS, KINDS, lake_begun

NAME = named(EVENTS)


def begin(lake: Lake) -> None:
    """A table of four snapshots, with a tag at the last."""
    lake.create(EVENTS)
    ids = [lake.append(EVENTS, ["Bonn"]) for _ in range(4)]
    lake.tag(EVENTS, "v1", ids[3])


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest) -> Lake:
    return lake_begun(str(request.param), request, begin)


def table(lake: Lake) -> TableMetadata:
    return lake.catalog.load(NAME)


def ids(lake: Lake) -> list[int]:
    return [one.snapshot_id for one in table(lake).snapshots]


def nothing() -> None:
    """What may happen between the look and the commit."""


def roll_back(lake: Lake, action: Rollback, between: Callable[[], object] = nothing, task_id: str = "task-1") -> None:
    left = [between]

    def may_commit() -> None:
        if left:
            left.pop()()

    lake.rollbacks.roll_back(NAME, table(lake).table_id, action, task_id=task_id, may_commit=may_commit)


def back(lake: Lake, place: int = 1) -> Rollback:
    return Rollback(ids(lake)[-1], ids(lake)[place])


def test_main_goes_back_and_nothing_else_changes(lake: Lake) -> None:
    before, action = table(lake), back(lake)
    roll_back(lake, action)
    after = table(lake)
    assert after.current_snapshot_id == action.snapshot_id
    assert {ref.name: ref.snapshot_id for ref in after.refs} == {
        "main": action.snapshot_id,
        "v1": action.base_snapshot_id,
    }
    assert after.snapshots == before.snapshots
    assert [one.snapshot_id for one in after.snapshot_log][-2:] == [action.base_snapshot_id, action.snapshot_id]
    assert after.snapshot_log[-1].at >= before.updated_at
    assert after.properties == {**before.properties, SIGNATURE_KEY: "task-1"}
    assert (after.schemas, after.specs, after.location) == (before.schemas, before.specs, before.location)
    assert lake.catalog.manifests(after, after.snapshots[1])


def test_writers_go_on_from_there(lake: Lake) -> None:
    action = back(lake)
    roll_back(lake, action)
    newest = lake.append(EVENTS, ["Bonn"])
    assert [one.snapshot_id for one in table(lake).ancestors()] == [newest, action.snapshot_id, ids(lake)[0]]


def test_it_goes_forward_again(lake: Lake) -> None:
    action = back(lake)
    roll_back(lake, action)
    forward = Rollback(action.snapshot_id, action.base_snapshot_id, "task-1")
    roll_back(lake, forward, task_id="task-2")
    assert table(lake).current_snapshot_id == action.base_snapshot_id
    assert len(table(lake).ancestors()) == 4


def test_w11_what_was_done_is_not_done_again(lake: Lake) -> None:
    action = back(lake)
    roll_back(lake, action)
    before = table(lake)
    roll_back(lake, action)
    assert table(lake) == before
    newest = lake.append(EVENTS, ["Bonn"])
    roll_back(lake, action)
    assert table(lake).current_snapshot_id == newest


def test_i4_a_commit_in_between_is_a_conflict_and_stays(lake: Lake) -> None:
    action, added = back(lake), []
    with pytest.raises(Conflict, match="main is at snapshot"):
        roll_back(lake, action, lambda: added.append(lake.append(EVENTS, ["Bonn"])))
    assert table(lake).current_snapshot_id == added[0]
    with pytest.raises(Conflict, match="main is at snapshot"):
        roll_back(lake, action)


def test_it_does_not_go_forward_over_a_commit(lake: Lake) -> None:
    action = back(lake)
    roll_back(lake, action)
    newest = lake.append(EVENTS, ["Bonn"])
    with pytest.raises(Conflict, match="main is at snapshot"):
        roll_back(lake, Rollback(action.snapshot_id, action.base_snapshot_id, "task-1"), task_id="task-2")
    with pytest.raises(Conflict, match="no ancestor"):
        roll_back(lake, Rollback(newest, action.base_snapshot_id, "task-1"), task_id="task-2")
    assert table(lake).current_snapshot_id == newest


def test_what_is_no_ancestor_is_refused(lake: Lake) -> None:
    action = back(lake)
    roll_back(lake, action)
    newest = lake.append(EVENTS, ["Bonn"])
    with pytest.raises(Conflict, match="no ancestor"):
        roll_back(lake, Rollback(newest, action.base_snapshot_id), task_id="task-2")
    with pytest.raises(Conflict, match="no longer exists"):
        roll_back(lake, Rollback(newest, 1), task_id="task-2")
    assert table(lake).current_snapshot_id == newest


def test_l4_another_table_of_the_name_is_not_touched(lake: Lake) -> None:
    action, table_id = back(lake), table(lake).table_id
    lake.drop(EVENTS)
    with pytest.raises(NotFound):
        lake.rollbacks.roll_back(NAME, table_id, action, task_id="task-1", may_commit=nothing)
    lake.create(EVENTS)
    lake.append(EVENTS, ["Bonn"])
    before = table(lake)
    with pytest.raises(TableReplaced):
        lake.rollbacks.roll_back(NAME, table_id, action, task_id="task-1", may_commit=nothing)
    assert table(lake) == before


def test_a_catalog_that_is_gone_is_unavailable(lake: Lake) -> None:
    action, table_id = back(lake), table(lake).table_id
    lake.go_away()
    with pytest.raises(Unavailable):
        lake.rollbacks.roll_back(NAME, table_id, action, task_id="task-1", may_commit=nothing)


def test_whoever_must_not_commit_does_not(lake: Lake) -> None:
    before = table(lake)

    def forbid() -> None:
        raise NotAllowed("not any more")

    with pytest.raises(NotAllowed):
        roll_back(lake, back(lake), forbid)
    assert table(lake) == replace(before)
