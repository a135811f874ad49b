"""What every expiry of snapshots must do, shown on the one in memory and on real catalogs: SQL, REST, Hive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from icewright.actions.expire_snapshots.commit import problem_of_expiry
from icewright.actions.expire_snapshots.plan import decide_expiry
from icewright.actions.undo.expiry_undo import is_back
from icewright.core.errors import Conflict, NotAllowed, NotFound, TableReplaced, Unavailable, Unreadable, Unsupported
from icewright.model.actions.expire_snapshots import ExpireSnapshots, ExpiryRule, Hold
from icewright.model.actions.undo import SIGNATURE_KEY, UndoExpiry
from icewright.model.iceberg.reachable_files import Roots
from icewright.model.iceberg.tables import TableMetadata
from icewright.policy.effective import effective_policy
from tests.contracts.lakes import Lake, named
from tests.contracts.test_catalog_contract import EVENTS, KINDS, lake_begun
from tests.contracts.undoing import UNDOING, Shelf, decided, whole_undo
from tests.narrowing import not_none

NAME = named(EVENTS)
EVERYTHING = ExpiryRule(0, 1)
SHELF = Shelf()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def begin(lake: Lake) -> None:
    """A table of four snapshots: a tag at the second, one past its age at the first."""
    lake.create(EVENTS)
    ids = [lake.append(EVENTS, ["Bonn"]) for _ in range(4)]
    lake.tag(EVENTS, "v1", ids[1])
    lake.tag(EVENTS, "old", ids[0], max_age_ms=1)


@pytest.fixture
def lake(kind: str, request: pytest.FixtureRequest) -> Lake:
    return lake_begun(kind, request, begin)


def table(lake: Lake) -> TableMetadata:
    return lake.catalog.load(NAME)


def planned(lake: Lake, rule: ExpiryRule = EVERYTHING) -> ExpireSnapshots:
    metadata = table(lake)
    policy = effective_policy(metadata, ())
    return not_none(decide_expiry(metadata, policy, rule, metadata.updated_at + 60_000, can_put_back=True).action)


def nothing() -> None:
    """What may happen between the look and the commit."""


def expire(
    lake: Lake, action: ExpireSnapshots, between: Callable[[], object] = nothing, holds: tuple[Hold, ...] = ()
) -> None:
    """``between`` happens once, after the last look before the first try."""
    left = [between]

    def may_commit() -> None:
        if left:
            left.pop()()

    lake.expiry.expire(NAME, table(lake).table_id, action, may_commit=may_commit, keep=SHELF.keep, holds=holds)


def problem(lake: Lake, action: ExpireSnapshots) -> str | None:
    """What is found to be wrong with the commit of an action."""
    found = not_none(lake.expiry.commit_of(NAME, table(lake).table_id, action))
    reason = problem_of_expiry(found.before, found.after, action)
    return None if reason is None else reason.code


def ids(metadata: TableMetadata) -> list[int]:
    return [one.snapshot_id for one in metadata.snapshots]


def put_back(
    lake: Lake,
    action: ExpireSnapshots,
    between: Callable[[], object] = nothing,
    missing: str | None = None,
    *,
    content: bytes | None = None,
    undo: UndoExpiry | None = None,
    task_id: str = UNDOING,
) -> None:
    left, kept = [between], SHELF.content if content is None else content
    wanted = whole_undo(table(lake), action) if undo is None else undo

    def may_commit() -> None:
        if left:
            left.pop()()

    def first_missing(found: Roots) -> str | None:
        assert {one.snapshot_id for one in found.metadata.snapshots} >= set(wanted.snapshot_ids)
        return missing

    lake.expiry.put_back(
        NAME,
        table(lake).table_id,
        wanted,
        kept,
        task_id=task_id,
        may_commit=may_commit,
        first_missing=first_missing,
    )


def unsigned(metadata: TableMetadata) -> TableMetadata:
    properties = {key: text for key, text in metadata.properties.items() if key != SIGNATURE_KEY}
    return replace(metadata, properties=properties)


def same_but_for_its_log(one: TableMetadata, other: TableMetadata) -> bool:
    as_other = {"metadata_location": other.metadata_location, "metadata_log": other.metadata_log}
    return replace(one, updated_at=other.updated_at, **as_other) == other  # type: ignore[arg-type]  # two fields


def test_snapshots_and_refs_go_and_nothing_else_does(lake: Lake) -> None:
    before, action = table(lake), planned(lake)
    first, second, third, fourth = ids(before)
    assert action.snapshot_ids == (first, third)
    assert [ref.name for ref in action.refs_removed] == ["old"]
    expire(lake, action)
    after = table(lake)
    expected = replace(
        before,
        snapshots=(before.snapshots[1], before.snapshots[3]),
        refs=tuple(ref for ref in before.refs if ref.name != "old"),
        snapshot_log=before.snapshot_log[3:],
    )
    assert same_but_for_its_log(expected, after)
    assert after.updated_at >= before.updated_at
    assert problem(lake, action) is None
    assert [one.parent_id for one in after.snapshots] == [first, third]
    for snapshot in after.snapshots:
        assert lake.catalog.manifests(after, snapshot)
    assert (second, fourth) == tuple(ids(after))


def test_writers_go_on_from_it(lake: Lake) -> None:
    action = planned(lake)
    expire(lake, action)
    newest = lake.append(EVENTS, ["Köln"])
    assert ids(table(lake)) == [*action.retained_snapshot_ids, newest]
    assert problem(lake, action) is None
    expire(lake, planned(lake))


def test_what_is_gone_already_is_not_committed(lake: Lake) -> None:
    action = planned(lake)
    expire(lake, action)
    before = table(lake)
    expire(lake, action)
    assert table(lake) == before


def test_commits_in_between_stay(lake: Lake) -> None:
    action, added = planned(lake), []
    added.append(lake.append(EVENTS, ["Köln"]))
    expire(lake, action, lambda: added.append(lake.append(EVENTS, ["Bonn"])))
    assert ids(table(lake)) == [*action.retained_snapshot_ids, *added]
    assert problem(lake, action) is None


def test_l4_another_table_of_the_name_is_not_touched(lake: Lake) -> None:
    action, table_id = planned(lake), table(lake).table_id
    lake.drop(EVENTS)
    with pytest.raises(NotFound):
        lake.expiry.expire(NAME, table_id, action, may_commit=nothing, keep=SHELF.keep)
    lake.create(EVENTS)
    lake.append(EVENTS, ["Bonn"])
    before = table(lake)
    with pytest.raises(TableReplaced):
        lake.expiry.expire(NAME, table_id, action, may_commit=nothing, keep=SHELF.keep)
    assert table(lake) == before


def test_a_catalog_that_is_gone_is_unavailable(lake: Lake) -> None:
    action, table_id = planned(lake), table(lake).table_id
    lake.go_away()
    with pytest.raises(Unavailable):
        lake.expiry.expire(NAME, table_id, action, may_commit=nothing, keep=SHELF.keep)


def test_whoever_must_not_commit_does_not(lake: Lake) -> None:
    before, action = table(lake), planned(lake)

    def forbid() -> None:
        raise NotAllowed("not any more")

    with pytest.raises(NotAllowed):
        expire(lake, action, forbid)
    assert table(lake) == before


def test_e13_what_a_task_goes_on_from_stays(lake: Lake) -> None:
    before, action = table(lake), planned(lake)
    with pytest.raises(Conflict, match="is needed"):
        expire(lake, action, holds=(Hold("task T", ids(before)[2]),))
    assert table(lake) == before


class TestRaces:
    """Between the look and the commit; who looks once more sees the rest."""

    def test_e6_a_rollback_is_a_conflict(self, lake: Lake) -> None:
        action, third = planned(lake), ids(table(lake))[2]
        with pytest.raises(Conflict, match="is needed"):
            expire(lake, action, lambda: lake.roll_back(EVENTS, third))
        assert table(lake).current_snapshot_id == third
        assert len(table(lake).snapshots) == 4

    def test_e6_a_ref_that_goes_is_a_conflict(self, lake: Lake) -> None:
        action = planned(lake)
        with pytest.raises(Conflict, match="v1"):
            expire(lake, action, lambda: lake.drop_tag(EVENTS, "v1"))
        assert len(table(lake).snapshots) == 4

    def test_e6_a_ref_that_is_made_anew_elsewhere_is_a_conflict(self, lake: Lake) -> None:
        action, first = planned(lake), ids(table(lake))[0]

        def move() -> None:
            lake.drop_tag(EVENTS, "v1")
            lake.tag(EVENTS, "v1", first)

        with pytest.raises(Conflict, match="is needed"):
            expire(lake, action, move)
        assert len(table(lake).snapshots) == 4

    @pytest.mark.parametrize("made", ["tag", "branch"])
    def test_e6_a_new_ref_is_a_conflict_or_an_alarm(self, lake: Lake, kind: str, made: str) -> None:
        """A REST catalog cannot be asked that there be no other refs, and drops those of what it removes."""
        action, third = planned(lake), ids(table(lake))[2]
        make = lake.tag if made == "tag" else lake.branch
        if kind == "rest":
            expire(lake, action, lambda: make(EVENTS, "new", third))
            assert problem(lake, action) == "refs-lost"
            lake.append(EVENTS, ["Köln"])
            assert problem(lake, action) == "refs-lost"
            return
        with pytest.raises(Conflict, match="is needed"):
            expire(lake, action, lambda: make(EVENTS, "new", third))
        assert {ref.name for ref in table(lake).refs} == {"main", "old", "v1", "new"}
        assert len(table(lake).snapshots) == 4

    @pytest.mark.parametrize("made", ["tag", "branch"])
    def test_e6_a_ref_that_was_made_before_the_look_is_a_conflict(self, lake: Lake, made: str) -> None:
        action, third = planned(lake), ids(table(lake))[2]
        (lake.tag if made == "tag" else lake.branch)(EVENTS, "new", third)
        before = table(lake)
        with pytest.raises(Conflict, match="is needed"):
            expire(lake, action)
        assert table(lake) == before

    def test_e6_a_new_ref_at_what_stays_is_harmless(self, lake: Lake) -> None:
        action, second = planned(lake), ids(table(lake))[1]
        expire(lake, action, lambda: lake.tag(EVENTS, "new", second))
        assert {ref.name for ref in table(lake).refs} == {"main", "v1", "new"}
        assert problem(lake, action) is None


@pytest.mark.parametrize("kind", ["rest"], indirect=True)
def test_a_rest_catalog_takes_nothing_back_and_says_so(lake: Lake) -> None:
    before, action = table(lake), planned(lake)
    expire(lake, action)
    assert not lake.catalog.takes_snapshots_back
    taken = lake.expiry.read_taken(NAME, SHELF.content)
    assert (taken.metadata_location, taken.snapshots) == (
        before.metadata_location,
        before.snapshots[:1] + before.snapshots[2:3],
    )
    with pytest.raises(NotAllowed, match="no old snapshots"):
        put_back(lake, action)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "rest"], indirect=True)
class TestUndo:
    def test_all_that_expired_comes_back_as_it_was(self, lake: Lake) -> None:
        before, action = table(lake), planned(lake)
        expire(lake, action)
        assert lake.catalog.takes_snapshots_back
        put_back(lake, action)
        after = table(lake)
        assert after.properties[SIGNATURE_KEY] == UNDOING
        assert same_but_for_its_log(before, unsigned(after))
        for snapshot in after.snapshots:
            assert lake.catalog.manifests(after, snapshot)
        put_back(lake, action)
        assert table(lake) == after
        assert [ref.name for ref in lake.expiry.read_taken(NAME, SHELF.content).refs] == ["old"]

    def test_what_is_not_kept_is_not_taken(self, lake: Lake) -> None:
        before, action = table(lake), planned(lake)

        def full(_: bytes) -> None:
            raise Unsupported("too much")

        with pytest.raises(Unsupported):
            lake.expiry.expire(NAME, before.table_id, action, may_commit=nothing, keep=full)
        assert table(lake) == before

    def test_what_was_not_kept_by_it_is_not_read(self, lake: Lake) -> None:
        for content in (b"", b"{}", b"[1]"):
            with pytest.raises(Unreadable):
                lake.expiry.read_taken(NAME, content)

    def test_commits_since_stay(self, lake: Lake) -> None:
        before, action = table(lake), planned(lake)
        expire(lake, action)
        added = [lake.append(EVENTS, ["Köln"])]
        lake.tag(EVENTS, "v2", added[0])
        put_back(lake, action, lambda: added.append(lake.append(EVENTS, ["Bonn"])))
        after = table(lake)
        assert ids(after) == [*ids(before), *added]
        assert after.current_snapshot_id == added[-1]
        assert {ref.name for ref in after.refs} == {"main", "old", "v1", "v2"}
        assert [entry.snapshot_id for entry in after.snapshot_log] == ids(after)
        newest = lake.append(EVENTS, ["Bonn"])
        assert ids(table(lake))[-1] == newest

    def test_i4_nothing_is_put_over_a_ref_that_came_since(self, lake: Lake) -> None:
        """Not when all was to come back, and what is planned then leaves that ref out."""
        action = planned(lake)
        expire(lake, action)
        mine = action.retained_snapshot_ids[0]
        lake.tag(EVENTS, "old", mine)
        before = table(lake)
        with pytest.raises(Conflict, match="old"):
            put_back(lake, action)
        assert table(lake) == before
        found = decided(lake.expiry, before, action, SHELF.content)
        assert found.action is not None
        assert [note.code for note in found.notes] == ["ref-taken"]
        put_back(lake, action, undo=found.action)
        assert {ref.name: ref.snapshot_id for ref in table(lake).refs}["old"] == mine
        assert set(action.snapshot_ids) <= set(ids(table(lake)))

    def test_i4_a_ref_that_is_made_in_the_moment_of_the_commit_stays(self, lake: Lake) -> None:
        action = planned(lake)
        expire(lake, action)
        mine = action.retained_snapshot_ids[0]
        with pytest.raises(Conflict, match="old"):
            put_back(lake, action, lambda: lake.tag(EVENTS, "old", mine))
        assert {ref.name: ref.snapshot_id for ref in table(lake).refs}["old"] == mine
        assert set(action.snapshot_ids).isdisjoint(ids(table(lake)))

    def test_nothing_comes_back_whose_files_are_gone(self, lake: Lake) -> None:
        action = planned(lake)
        expire(lake, action)
        before = table(lake)
        with pytest.raises(Conflict, match=r"m0\.avro"):
            put_back(lake, action, missing="m0.avro")
        assert table(lake) == before

    def test_an_expiry_that_came_later_is_no_obstacle(self, lake: Lake) -> None:
        first = planned(lake)
        expire(lake, first)
        of_first = SHELF.content
        lake.append(EVENTS, ["Bonn"])
        second = planned(lake)
        expire(lake, second)
        put_back(lake, first, content=of_first)
        after = table(lake)
        assert set(first.snapshot_ids) <= set(ids(after))
        assert set(second.snapshot_ids).isdisjoint(ids(after))
        put_back(lake, second, task_id="task-other")
        assert len(table(lake).snapshots) == 5
        known = set(ids(table(lake)))
        assert {entry.snapshot_id for entry in table(lake).snapshot_log} <= known

    def test_w11_what_has_gone_again_since_is_not_put_back_twice_by_one_task(self, lake: Lake) -> None:
        """As an attempt that was thought dead leaves it, and somebody expires it all once more."""
        action = planned(lake)
        expire(lake, action)
        undo, content = whole_undo(table(lake), action), SHELF.content
        put_back(lake, action)
        expire(lake, planned(lake))
        before = table(lake)
        assert not is_back(undo, before)
        put_back(lake, action, content=content, undo=undo)
        assert table(lake) == before

    def test_l4_nothing_comes_back_into_another_table_of_the_name(self, lake: Lake) -> None:
        action, table_id = planned(lake), table(lake).table_id
        expire(lake, action)
        lake.drop(EVENTS)
        lake.create(EVENTS)
        lake.append(EVENTS, ["Bonn"])
        before, undo = table(lake), whole_undo(table(lake), action)
        more = {"task_id": UNDOING, "may_commit": nothing, "first_missing": lambda _: None}
        with pytest.raises(TableReplaced):
            lake.expiry.put_back(NAME, table_id, undo, SHELF.content, **more)  # type: ignore[arg-type] # its three
        with pytest.raises(Conflict, match="another table"):
            lake.expiry.put_back(NAME, before.table_id, undo, SHELF.content, **more)  # type: ignore[arg-type] # its three
        assert table(lake) == before

    def test_whoever_must_not_put_back_does_not(self, lake: Lake) -> None:
        action = planned(lake)
        expire(lake, action)
        before = table(lake)

        def forbid() -> None:
            raise NotAllowed("not any more")

        with pytest.raises(NotAllowed):
            put_back(lake, action, forbid)
        assert table(lake) == before
