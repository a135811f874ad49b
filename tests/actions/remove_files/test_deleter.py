"""The Deleter, sentence by sentence: what goes, what stays, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pytest

from icewright.actions.remove_files.deleter import BATCH_FILES, BATCH_MS_MAX, OUTDATED
from icewright.actions.remove_files.may_delete import Facts, may_be_purged, why_kept, why_not
from icewright.core import fault_points as faults
from icewright.core.completeness import Complete, Known, Partial
from icewright.core.errors import (
    Conflict,
    IcewrightError,
    LeaseLost,
    NotAllowed,
    NotFound,
    OutcomeUnknown,
    StorageUnavailable,
    StoreTaken,
    StoreUnavailable,
    Unavailable,
)
from icewright.core.fault_points import Fault
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.deletion import (
    BUDGET_FILES,
    FILES_PER_MINUTE,
    FUTURE_MAX_MS,
    GRACE_FLOOR_MS,
    WINDOW_FLOOR_MS,
    Candidate,
    Cause,
    DeletePlan,
    DeleteSettings,
    DeletionRun,
    Intent,
    IntentState,
    Needs,
    Step,
    plan_deletes,
)
from icewright.model.iceberg.locations import Aliases, CanonicalPath, declared
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.objects import ListedObject
from icewright.model.plans.approvals import Approval
from icewright.ownership.model import Place
from tests.builders.deletions import (
    DAY_MS,
    GAP,
    HELD,
    HOUR_MS,
    NAME,
    ROOT,
    TABLE,
    Died,
    World,
    at,
    dying_at,
    tended,
    undone,
)
from tests.doubles.clock import ManualClock
from tests.doubles.deletion_store import MemoryDeletionStore
from tests.doubles.objects import MemoryObjects
from tests.doubles.quarantine import AFTER, BEFORE, MemoryQuarantine
from tests.narrowing import not_none, of_type

CAREFREE = DeleteSettings(
    orphan_grace_ms=0, expired_grace_ms=0, window_ms=0, budget_files=10**9, files_per_minute=10**9
)
"""What somebody would say to have no floors at all."""


@pytest.fixture
def world() -> World:
    found = World()
    live = found.garbage(3, "live")
    found.commit(*live)
    return found


def contents(world: World) -> dict[CanonicalPath, bytes]:
    return {path: stored.content for path, stored in world.storage.objects.items() if path.startswith(ROOT)}


def quarantine_of(world: World) -> MemoryQuarantine:
    assert isinstance(world.quarantine, MemoryQuarantine)
    return world.quarantine


def approve(world: World, plan: DeletePlan) -> None:
    world.store.approve(Approval(plan.plan_hash, "somebody", 0))


def store_of(world: World) -> MemoryDeletionStore:
    assert isinstance(world.store, MemoryDeletionStore)
    return world.store


class TestARun:
    def test_garbage_goes_into_quarantine_and_is_purged_after_the_window(self, world: World) -> None:
        paths = world.garbage(5)
        run = world.deleter().begin(world.plan(paths), "run-1")
        assert run.is_open
        assert set(paths) <= world.storage.objects.keys()
        world.run_to_its_end()
        assert set(world.states().values()) == {"quarantined"}
        assert contents(world).keys() == world.refs.keys()
        world.clock.advance(WINDOW_FLOOR_MS)
        assert world.deleter().tend("run-1").kept is None
        assert set(world.states().values()) == {"purged"}
        assert world.storage.objects.keys() == world.refs.keys()
        assert not world.store.run("run-1").is_open

    def test_undo_brings_everything_back_byte_for_byte(self, world: World) -> None:
        paths, before = world.garbage(5), contents(world)
        world.carry_out(world.plan(paths))
        assert contents(world) != before
        undone(world)
        assert contents(world) == before
        assert set(world.states().values()) == {"restored"}

    def test_what_was_undone_does_not_go_on(self, world: World) -> None:
        paths, before = world.garbage(BATCH_FILES + 5), contents(world)
        world.deleter().begin(world.plan(paths), "run-1")
        world.deleter().advance("run-1")
        undone(world)
        assert contents(world) == before
        world.clock.advance(DAY_MS)
        assert world.deleter().advance("run-1").is_done
        assert contents(world) == before
        assert sorted(set(world.states().values())) == ["restored", "skipped: undone"]

    def test_files_go_in_batches_no_faster_than_the_settings_allow(self, world: World) -> None:
        world.settings = DeleteSettings(files_per_minute=BATCH_FILES)
        world.deleter().begin(world.plan(world.garbage(2 * BATCH_FILES)), "run-1")
        assert world.deleter().advance("run-1").count(IntentState.QUARANTINED) == BATCH_FILES
        resting = world.deleter().advance("run-1")
        assert (resting.changed, resting.waits and resting.waits.code) == ((), "resting")
        world.clock.advance(60_000)
        assert world.deleter().advance("run-1").count(IntentState.QUARANTINED) == BATCH_FILES

    def test_beginning_again_changes_nothing(self, world: World) -> None:
        plan = world.plan(world.garbage(3))
        first = world.deleter().begin(plan, "run-1")
        world.run_to_its_end()
        world.clock.advance(1)
        assert world.deleter().begin(plan, "run-1").begun_at == first.begun_at
        assert set(world.states().values()) == {"quarantined"}

    def test_a_table_has_one_run_at_a_time(self, world: World) -> None:
        world.deleter().begin(world.plan(world.garbage(3)), "run-1")
        with pytest.raises(Conflict):
            world.deleter().begin(world.plan(world.garbage(3, "h")), "run-2")

    def test_i7_every_intent_has_its_evidence(self, world: World) -> None:
        plan = world.plan(world.garbage(1))
        world.deleter().begin(plan, "run-1", fencing_token=9)
        world.run_to_its_end()
        run, (intent,) = world.store.run("run-1"), world.intents().values()
        assert (run.table_id, run.plan_hash, run.cause) == (plan.table_id, plan.plan_hash, Cause.ORPHAN)
        assert (run.fencing_token, run.epoch) == (9, 1)
        assert run.metadata_location == plan.metadata_location
        assert intent.object == plan.candidates[0].object
        assert not_none(intent.checked).metadata_location == f"{ROOT}metadata/v1.json"


class TestFloors:
    @pytest.mark.parametrize("cause", Cause)
    def test_o15_nothing_lowers_the_age_of_what_goes(self, world: World, cause: Cause) -> None:
        world.settings = CAREFREE
        paths = world.garbage(2)
        world.deleter().begin(world.plan(paths, cause, seen_ms=GRACE_FLOOR_MS[cause] - 1), "run-1")
        world.deleter().advance("run-1")
        assert set(world.states().values()) == {"skipped: too-young"}
        assert set(paths) <= world.storage.objects.keys()
        world.run_to_its_end()
        world.carry_out(world.plan(paths, cause, seen_ms=GRACE_FLOOR_MS[cause]), "run-2")
        assert set(world.states("run-2").values()) == {"quarantined"}

    def test_nothing_shortens_the_time_in_which_a_file_can_be_taken_back(self, world: World) -> None:
        world.settings = CAREFREE
        before = (world.garbage(2), contents(world))[1]
        world.carry_out(world.plan(world.garbage(2)))
        held_at = max(one.held_at or 0 for one in world.intents().values())
        world.clock.advance(held_at + WINDOW_FLOOR_MS - 1 - world.clock.now())
        tended(world)
        assert set(world.states().values()) == {"quarantined"}
        undone(world)
        assert contents(world) == before

    def test_o15_nothing_lifts_the_limits_of_a_run(self) -> None:
        assert (CAREFREE.files_budget, CAREFREE.pace) == (BUDGET_FILES, FILES_PER_MINUTE)
        assert (DeleteSettings(budget_files=1).files_budget, DeleteSettings(files_per_minute=2).pace) == (1, 2)
        assert DeleteSettings(files_per_minute=0).pace == 1

    def test_settings_can_ask_for_more(self, world: World) -> None:
        world.settings = DeleteSettings(orphan_grace_ms=60 * DAY_MS, window_ms=20 * DAY_MS, budget_files=1)
        with pytest.raises(NotAllowed):
            world.deleter().begin(world.plan(world.garbage(2)), "run-1")
        world.carry_out(world.plan(world.garbage(1)))
        assert set(world.states().values()) == {"skipped: too-young"}

    def test_o3_what_a_slow_writer_has_just_written_stays(self, world: World) -> None:
        paths = world.garbage(2, age_ms=GRACE_FLOOR_MS[Cause.ORPHAN] - 1)
        world.settings = CAREFREE
        world.carry_out(world.plan(paths))
        assert set(world.states().values()) == {"skipped: too-young"}

    @pytest.mark.parametrize("modified_at", [None, 0, -1, -(10**15), FUTURE_MAX_MS + 1, 10**15, 1 << 62])
    def test_o4_a_time_that_cannot_be_is_no_reason_to_delete(self, world: World, modified_at: int | None) -> None:
        (path,) = world.garbage(1)
        if modified_at is not None and modified_at > 0:
            modified_at += world.clock.now()
        stored = world.storage.objects[path]
        world.storage.objects[path] = replace(stored, listed=replace(stored.listed, modified_at=modified_at))
        world.carry_out(world.plan([path]))
        assert world.states() == {path: "skipped: bad-time"}

    def test_o4_nothing_is_old_by_a_time_before_the_clock_jumped(self, world: World) -> None:
        floor_ms, world.settings = GRACE_FLOOR_MS[Cause.ORPHAN], CAREFREE
        for ago_ms, state in ((floor_ms - 1, "skipped: too-young"), (floor_ms, "quarantined")):
            run_id, world.graces_since = f"run-{ago_ms}", world.clock.now() - ago_ms
            world.deleter().begin(world.plan(world.garbage(1, run_id), plan_id=run_id), run_id)
            world.deleter().advance(run_id)
            assert list(world.states(run_id).values()) == [state]
            assert world.deleter().advance(run_id).is_done
        world.graces_since = world.clock.now() + DAY_MS
        world.clock.advance(DAY_MS)
        for left_ms, state in ((WINDOW_FLOOR_MS - 1, "quarantined"), (1, "purged")):
            world.clock.advance(left_ms)
            tended(world, run_id)
            assert list(world.states(run_id).values()) == [state]

    def test_what_our_own_commits_replaced_may_have_been_written_just_now(self, world: World) -> None:
        (path,) = world.garbage(1, age_ms=-FUTURE_MAX_MS)
        world.deleter().begin(world.plan([path], Cause.EXPIRED), "run-1")
        world.deleter().advance("run-1")
        assert world.states() == {path: "quarantined"}

    @pytest.mark.parametrize("ahead", ["server", "storage"])
    def test_o4_one_clock_that_is_years_ahead_makes_nothing_old(self, world: World, ahead: str) -> None:
        (path,) = world.garbage(1, age_ms=HOUR_MS)
        plan = world.plan([path], seen_ms=HOUR_MS)
        far = ManualClock(world.clock.now() + 3650 * DAY_MS)
        if ahead == "server":
            world.store = MemoryDeletionStore(far)
        else:
            world.objects = AheadObjects(world.storage)
        world.deleter().begin(plan, "run-1")
        world.deleter().advance("run-1")
        assert world.states() == {path: "skipped: too-young"}

    @pytest.mark.parametrize(
        "name",
        [
            "00007-x.metadata.json",
            "v7.gz.metadata.json",
            "v7.metadata.json.gz",
            "V7.Metadata.JSON.zst",
            "version-hint.text",
        ],
    )
    def test_o9_metadata_files_of_the_last_month_stay(self, world: World, name: str) -> None:
        path = CanonicalPath(f"{ROOT}metadata/{name}")
        for age, state in ((30 * DAY_MS - 1, "skipped: young-metadata"), (30 * DAY_MS, "quarantined")):
            world.storage.write(path, b"{}", modified_at=world.clock.now() - age)
            world.carry_out(world.plan([path], seen_ms=29 * DAY_MS), f"run-{age}")
            assert world.states(f"run-{age}") == {path: state}


class AheadObjects(MemoryObjects):
    def now(self, path: CanonicalPath) -> Instant:
        return super().now(path) + 3650 * DAY_MS


class TestGuards:
    def test_o8_a_plan_that_is_older_than_a_commit_takes_nothing_that_the_commit_needs(self, world: World) -> None:
        paths = world.garbage(4)
        plan = world.plan(paths)
        world.commit(paths[0])
        world.deleter().begin(plan, "run-1")
        world.commit(paths[1])
        world.run_to_its_end()
        assert world.missing() == set()
        assert [world.states()[path] for path in paths] == [*["skipped: needed"] * 2, *["quarantined"] * 2]

    def test_o8_what_is_committed_while_a_large_table_is_read_is_not_even_moved(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        paths = world.garbage(3)
        plan = world.plan(paths)
        needs, asked = world.needs, list[int]()
        moved: list[CanonicalPath] = []
        quarantine = of_type(MemoryQuarantine, world.quarantine)
        quarantine.trouble = lambda _step, _when, path: moved.append(path)
        world.deleter().begin(plan, "run-1")

        def slow(name: TableName, wanted: Iterable[CanonicalPath]) -> Known[Needs]:
            known = needs(name, wanted)
            asked.append(1)
            if len(asked) == 1:  # it took half a minute, and somebody committed meanwhile
                world.clock.advance(30_000)
                world.commit(paths[0])
            return known

        monkeypatch.setattr(world, "needs", slow)
        world.deleter().advance("run-1")
        assert (paths[0] in moved, set(moved), world.missing()) == (False, set(paths[1:]), set())

    def test_the_checksum_of_a_file_that_is_needed_is_needed(self, world: World) -> None:
        paths = [CanonicalPath(f"{ROOT}data/.live{number}.crc") for number in range(2)]
        for path in paths:
            world.storage.write(path, b"crc", modified_at=world.clock.now() - 30 * DAY_MS)
        first = world.refs.pop(at("live1"))
        world.carry_out(world.plan(paths))
        assert world.states() == {paths[0]: "skipped: needed", paths[1]: "quarantined"}
        world.refs[at("live1")] = first
        world.clock.advance(2 * WINDOW_FLOOR_MS)
        tended(world)
        assert world.states()[paths[1]] == "restored"

    def test_what_another_table_needs_comes_back_and_so_do_checksums_of_that(self, world: World) -> None:
        path, checksum, other = (CanonicalPath(f"{ROOT}data/{name}") for name in ("x", ".theirs.crc", "theirs"))
        for written in (path, checksum):
            world.storage.write(written, b"x", modified_at=world.clock.now() - 30 * DAY_MS)
        world.carry_out(world.plan([path, checksum, *world.garbage(1)]))
        world.elsewhere = {path, other}
        world.clock.advance(2 * WINDOW_FLOOR_MS)
        batch = world.deleter().tend("run-1")
        assert batch.waits is None
        assert list(world.states().values()) == [*["restored: needed-elsewhere"] * 2, "purged"]

    def test_e3_what_comes_to_be_needed_while_it_is_moved_comes_back_with_its_checksum(self, world: World) -> None:
        checksums = [CanonicalPath(f"{ROOT}data/.{name}.crc") for name in ("ours", "theirs")]
        for path in checksums:
            world.storage.write(path, b"crc", modified_at=world.clock.now() - 30 * DAY_MS)

        def commit(_step: Step, _when: str, _path: CanonicalPath) -> None:
            world.refs[at("ours")], world.elsewhere = b"", {at("theirs")}

        world.deleter().begin(world.plan(checksums), "run-1")
        quarantine_of(world).trouble = commit
        world.deleter().advance("run-1")
        assert list(world.states().values()) == ["restored", "restored: needed-elsewhere"]

    @pytest.mark.parametrize(
        ("asked", "error"),
        [
            ("_needs", NotFound("it was dropped")),
            ("_needs", StorageUnavailable("no answer")),
            ("_others", StorageUnavailable("no answer")),
        ],
    )
    def test_what_cannot_be_told_behind_a_batch_is_left_to_whoever_looks_after_it(
        self, world: World, asked: str, error: IcewrightError
    ) -> None:
        def fails(*_: object) -> None:
            raise error

        deleter = world.deleter()
        deleter.begin(world.plan(world.garbage(3)), "run-1")
        quarantine_of(world).trouble = lambda *_: setattr(deleter, asked, fails)
        batch = deleter.advance("run-1")
        assert (batch.waits, batch.count(IntentState.QUARANTINED)) == (None, 3)

    def test_e3_a_path_that_is_needed_again_while_files_are_moved_comes_back_at_once(self, world: World) -> None:
        paths = world.garbage(3)

        def commit(step: Step, when: str, path: CanonicalPath) -> None:
            if (step, when, path) == (Step.QUARANTINE, BEFORE, paths[1]):
                world.commit(paths[1])

        quarantine_of(world).trouble = commit
        world.deleter().begin(world.plan(paths), "run-1")
        world.deleter().advance("run-1")
        assert world.missing() == set()
        assert world.states()[paths[1]] == "restored"

    def test_s1_a_file_that_is_needed_again_is_put_back_and_not_purged(self, world: World) -> None:
        paths = world.garbage(3)
        content = world.storage.objects[paths[1]].content
        world.carry_out(world.plan(paths))
        world.refs[paths[1]] = content  # a commit that took longer than any we have seen
        world.clock.advance(2 * WINDOW_FLOOR_MS)
        tended(world)
        assert world.missing() == set()
        assert [world.states()[path] for path in paths] == ["purged", "restored", "purged"]

    @pytest.mark.parametrize("gap", ["gap", "place_gap"])
    def test_o13_by_partial_knowledge_nothing_goes_and_nothing_is_purged(self, world: World, gap: str) -> None:
        paths = world.garbage(3)
        world.deleter().begin(world.plan(paths), "run-1")
        setattr(world, gap, GAP)
        batch = world.deleter().advance("run-1")
        assert (batch.changed, batch.waits and batch.waits.code) == ((), "partial-knowledge")
        assert set(paths) <= world.storage.objects.keys()
        setattr(world, gap, None)
        world.run_to_its_end()
        setattr(world, gap, GAP)
        world.clock.advance(2 * WINDOW_FLOOR_MS)
        tended(world)
        assert set(world.states().values()) == {"quarantined"}
        undone(world)
        assert set(paths) <= world.storage.objects.keys()

    def test_while_it_is_not_known_what_all_others_need_nothing_is_purged(self, world: World) -> None:
        """The place is known to be the table's; a table of a catalog that lies elsewhere may have imported files."""
        paths = world.garbage(3)
        world.carry_out(world.plan(paths))
        world.elsewhere, world.others_gap = {paths[1]}, GAP
        world.clock.advance(2 * WINDOW_FLOOR_MS)
        tended(world)
        assert [world.states()[path] for path in paths] == [
            "quarantined",
            "restored: needed-elsewhere",
            "quarantined",
        ]
        world.others_gap = None
        tended(world)
        assert [world.states()[path] for path in paths] == ["purged", "restored: needed-elsewhere", "purged"]

    def test_nothing_is_purged_of_a_place_that_is_not_the_tables_alone_any_more(self, world: World) -> None:
        paths = world.garbage(3)
        world.carry_out(world.plan(paths))
        world.roots = ()
        world.clock.advance(2 * WINDOW_FLOOR_MS)
        batch = world.deleter().tend("run-1")
        assert (batch.kept and batch.kept.code, batch.changed) == ("not-owned", ())
        assert set(world.states().values()) == {"quarantined"}

    def test_l4_a_table_that_was_dropped_and_made_anew_keeps_everything(self, world: World) -> None:
        paths = world.garbage(3)
        world.deleter().begin(world.plan(paths), "run-1")
        world.table_id = TableId("lake", "uuid-2")
        world.run_to_its_end()
        assert set(world.states().values()) == {"skipped: table-replaced"}
        assert set(paths) <= world.storage.objects.keys()

    def test_l4_a_table_that_was_dropped_keeps_everything(self, world: World) -> None:
        world.deleter().begin(world.plan(world.garbage(3)), "run-1")
        world.is_there = False
        world.run_to_its_end()
        assert set(world.states().values()) == {"skipped: table-gone"}

    def test_l4_nothing_is_purged_of_a_table_that_is_another_one_or_gone(self, world: World) -> None:
        world.carry_out(world.plan(world.garbage(3)))
        world.clock.advance(2 * WINDOW_FLOOR_MS)
        world.table_id = TableId("lake", "uuid-2")
        tended(world)
        world.is_there = False
        tended(world)
        assert set(world.states().values()) == {"quarantined"}

    def test_l5_what_others_may_need_stays(self, world: World) -> None:
        paths = world.garbage(3)
        plan = world.plan(paths)
        world.collects_garbage = False
        with pytest.raises(NotAllowed):
            world.plan(paths)
        world.carry_out(plan)
        assert set(world.states().values()) == {"skipped: gc-disabled"}

    def test_l5_imported_files_outside_of_the_tables_own_place_stay(self, world: World) -> None:
        outside = CanonicalPath("s3://b/wh/t_2/data/x")
        world.storage.write(outside, b"imported", modified_at=world.clock.now() - 30 * DAY_MS)
        world.carry_out(world.plan([outside]))
        assert world.states() == {outside: "skipped: not-owned"}

    def test_o5_a_place_that_several_tables_share_belongs_to_none_of_them(self, world: World) -> None:
        paths = world.garbage(3)
        world.deleter().begin(world.plan(paths), "run-1")
        world.roots = ()
        world.run_to_its_end()
        assert set(world.states().values()) == {"skipped: not-owned"}

    def test_l4_a_place_that_another_table_owns_by_now_is_not_this_ones(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (path,) = world.garbage(1)
        world.deleter().begin(world.plan([path]), "run-1")
        another = Complete(Place(NAME, "uuid-2", world.roots, ()))
        monkeypatch.setattr(world, "place", lambda _name: another)
        world.run_to_its_end()
        assert world.states() == {path: "skipped: not-owned"}

    def test_l6_a_uuid_is_the_same_however_its_metadata_spells_it(self, world: World) -> None:
        world.table_id = TableId("lake", "UUID-1 ")
        (path,) = world.garbage(1)
        world.carry_out(world.plan([path]))
        assert world.states() == {path: "quarantined"}

    @pytest.mark.parametrize("uuid", ["uuid-2", None])
    def test_l4_nothing_is_purged_of_a_place_that_another_table_or_none_known_owns_by_now(
        self, world: World, monkeypatch: pytest.MonkeyPatch, uuid: str | None
    ) -> None:
        (path,) = world.garbage(1)
        world.carry_out(world.plan([path]))
        world.clock.advance(2 * WINDOW_FLOOR_MS)
        own = world.place
        monkeypatch.setattr(world, "place", lambda _name: Complete(Place(NAME, uuid, world.roots, ())))
        batch = world.deleter().tend("run-1")
        assert (batch.kept and batch.kept.code, batch.changed) == ("not-owned", ())
        assert world.states() == {path: "quarantined"}
        monkeypatch.setattr(world, "place", own)
        tended(world)
        assert world.states() == {path: "purged"}

    @pytest.mark.parametrize(("uuid", "spelled", "is_its"), [(TABLE.uuid, "UUID-1 ", True), (None, "", False)])
    def test_l6_a_purge_asks_for_the_uuid_however_its_metadata_spells_it(
        self, world: World, uuid: str | None, spelled: str, *, is_its: bool
    ) -> None:
        file = ListedObject(at("x"), 1, modified_at=1)
        needs = Needs(TableId("lake", spelled), "m", True, 1, frozenset({file.path}), frozenset())
        facts = Facts(needs, Place(NAME, uuid, (ROOT,), ()), [], Aliases(), now := world.clock.now(), now)
        intent = Intent("run-1", 0, file, 1, IntentState.QUARANTINED, 1, 1, held_at=now - WINDOW_FLOOR_MS)
        assert may_be_purged(intent, facts, DeleteSettings()) is is_its
        assert (why_kept([intent], facts, DeleteSettings()) is None) is is_its

    @pytest.mark.parametrize(("alias", "may"), [("s3://of-others", True), ("s3://b", False)])
    def test_e8_nothing_is_purged_by_a_name_of_a_storage_that_stands_for_another_one_by_now(
        self, world: World, alias: str, *, may: bool
    ) -> None:
        """As of a table that is gone: its place is where its files were, as their storage was called then."""
        file = ListedObject(at("x"), 1, modified_at=1)
        needs, place = Needs(TABLE, "m", True, 1, frozenset({file.path}), frozenset()), world.place(NAME)
        assert isinstance(place, Complete)
        aliases = declared({alias: "s3://bucket"})
        facts = Facts(needs, place.value, [], aliases, now := world.clock.now(), now)
        intent = Intent("run-1", 0, file, 1, IntentState.QUARANTINED, 1, 1, held_at=now - WINDOW_FLOOR_MS)
        assert may_be_purged(intent, facts, DeleteSettings()) is may
        assert (why_kept([intent], facts, DeleteSettings()) is None) is may

    @pytest.mark.parametrize(("is_held", "state"), [(False, "skipped: not-asked"), (True, "quarantined")])
    def test_o13_a_file_that_nobody_was_asked_about_neither_goes_nor_is_purged(
        self, world: World, monkeypatch: pytest.MonkeyPatch, *, is_held: bool, state: str
    ) -> None:
        paths = world.garbage(3)
        world.deleter().begin(world.plan(paths), "run-1")
        if is_held:
            world.run_to_its_end()
        needs = world.needs
        monkeypatch.setattr(world, "needs", lambda name, wanted: needs(name, set(wanted) - {paths[1]}))
        world.run_to_its_end()
        world.clock.advance(2 * WINDOW_FLOOR_MS)
        tended(world)
        assert list(world.states().values()) == ["purged", state, "purged"]

    def test_e8_a_path_that_is_not_the_one_name_of_its_object_stays(self, world: World) -> None:
        paths = [CanonicalPath(f"s3a://b/wh/t/data/{name}") for name in ("a", "b")]
        world.roots = ("s3a://b/wh/t/", ROOT)
        for path in paths:
            world.storage.write(path, b"x", modified_at=world.clock.now() - 30 * DAY_MS)
        world.carry_out(world.plan(paths))
        assert set(world.states().values()) == {"skipped: ambiguous-location"}

    def test_o14_a_quarantine_is_no_garbage_and_is_in_no_table(self, world: World) -> None:
        held = CanonicalPath(f"{HELD}/run-0/x")
        world.storage.write(held, b"x", modified_at=world.clock.now() - 30 * DAY_MS)
        world.deleter().begin(world.plan([held]), "run-1")
        for root in (f"{HELD}/run-0/", "s3://b/"):
            world.roots = (root,)
            batch = world.deleter().advance("run-1")
            assert not_none(batch.waits).code == "quarantine-in-table"
        world.quarantine = MemoryQuarantine(world.storage, CanonicalPath("s3://other/held"))
        assert world.deleter().advance("run-1").count(IntentState.QUARANTINED) == 1

    def test_o14_nor_is_what_lies_in_one_whatever_is_said_of_the_place(self, world: World) -> None:
        held = ListedObject(CanonicalPath(f"{HELD}/run-0/x"), 1, modified_at=1)
        intent = Intent("run-1", 0, held, 1, IntentState.PLANNED, 1, 1)
        needs = Needs(TABLE, "m", True, 1, frozenset({held.path}), frozenset())
        place = Place(NAME, TABLE.uuid, ("s3://b/",), ())
        facts = Facts(needs, place, [HELD], Aliases(), now := world.clock.now(), now)
        why = not_none(why_not(intent, Cause.ORPHAN, facts, DeleteSettings()))
        assert why.code == "in-quarantine"
        assert why_not(intent, Cause.ORPHAN, replace(facts, quarantines=[]), DeleteSettings()) is None

    def test_nothing_is_purged_of_which_nobody_knows_since_when_it_is_held(self, world: World) -> None:
        file = ListedObject(at("x"), 1, modified_at=1)
        needs = Needs(TABLE, "m", True, 1, frozenset({file.path}), frozenset())
        facts = Facts(needs, Place(NAME, TABLE.uuid, (ROOT,), ()), [], Aliases(), now := world.clock.now(), now)
        intent = Intent("run-1", 0, file, 1, IntentState.QUARANTINED, 1, 1)
        for held_at, may in ((None, False), (now - WINDOW_FLOOR_MS + 1, False), (now - WINDOW_FLOOR_MS, True)):
            assert may_be_purged(replace(intent, held_at=held_at), facts, DeleteSettings()) is may

    def test_a_file_that_was_written_anew_since_stays(self, world: World) -> None:
        paths = world.garbage(3)
        world.deleter().begin(world.plan(paths), "run-1")
        old = world.storage.objects[paths[1]]
        world.storage.write(paths[1], old.content, modified_at=old.listed.modified_at)  # the etag alone tells
        world.storage.remove(paths[2])
        world.run_to_its_end()
        assert [world.states()[path] for path in paths] == ["quarantined", *["skipped: file-changed"] * 2]
        assert paths[1] in world.storage.objects

    def test_undo_puts_nothing_over_what_is_there_now(self, world: World) -> None:
        paths = world.garbage(2)
        world.carry_out(world.plan(paths))
        world.storage.write(paths[0], b"somebody's")
        undone(world)
        assert world.storage.objects[paths[0]].content == b"somebody's"
        assert [world.states()[path] for path in paths] == ["quarantined: file-changed", "restored"]
        world.storage.remove(paths[0])
        undone(world)
        assert world.states()[paths[0]] == "restored"

    def test_a_storage_without_quarantine_is_refused_before_anything_is_written(self, world: World) -> None:
        world.quarantine = MemoryQuarantine(world.storage, None)
        with pytest.raises(NotAllowed):
            world.deleter().begin(world.plan(world.garbage(2)), "run-1")
        assert world.store.runs(limit=9) == []

    def test_whoever_must_stop_is_asked_right_before_the_first_file(self, world: World) -> None:
        def stop() -> None:
            raise LeaseLost("somebody else has it")

        paths = world.garbage(2)
        world.deleter().begin(world.plan(paths), "run-1")
        with pytest.raises(LeaseLost):
            world.deleter().advance("run-1", stop)
        assert set(world.states().values()) == {"planned"}
        assert set(paths) <= world.storage.objects.keys()


class TestPlans:
    def test_a_plan_is_of_what_is_left_when_all_that_is_needed_is_subtracted(self, world: World) -> None:
        live, garbage = next(iter(world.refs)), world.garbage(1)[0]
        listed = {path: stored.listed for path, stored in world.storage.objects.items()}
        known = of_type(Complete, world.needs(NAME, [live, garbage]))
        for paths in ([live], [garbage, live], [garbage, garbage], [at("live1")]):
            with pytest.raises(NotAllowed):
                plan_deletes(
                    known,
                    Cause.ORPHAN,
                    [Candidate(listed[path], 1) for path in paths],
                    plan_id="p",
                    table_name=NAME,
                    planned_at=1,
                )

    def test_a_plan_is_known_by_all_that_goes_and_not_by_what_the_table_was(self, world: World) -> None:
        plan = world.plan(world.garbage(2))
        others = [
            replace(plan, candidates=plan.candidates[:1]),
            replace(plan, plan_id="another"),
            replace(plan, candidates=(replace(plan.candidates[0], first_seen_at=1), plan.candidates[1])),
        ]
        assert len({one.plan_hash for one in (plan, replace(plan, table_bytes=1), *others)}) == 4

    def test_a_plan_beyond_the_budget_needs_somebodys_word_for_this_very_plan(self, world: World) -> None:
        paths = world.garbage(3)
        world.table_bytes = 100 * sum(world.storage.objects[path].listed.size_bytes for path in paths)
        within = world.plan(paths, plan_id="plan-0")
        world.table_bytes -= 1
        beyond = world.plan(paths)
        with pytest.raises(NotAllowed):
            world.deleter().begin(beyond, "run-1")
        approve(world, replace(beyond, plan_id="another"))
        with pytest.raises(NotAllowed):
            world.deleter().begin(beyond, "run-1")
        approve(world, beyond)
        assert world.deleter().begin(beyond, "run-1").approved_by == "somebody"
        world.run_to_its_end()
        undone(world)
        world.deleter().begin(within, "run-2")

    def test_more_files_than_the_budget_need_somebodys_word_too(self, world: World) -> None:
        plan = world.plan(world.garbage(1))
        (one,) = plan.candidates
        many = [
            replace(one, object=replace(one.object, path=CanonicalPath(f"{ROOT}x{n}"), size_bytes=0))
            for n in range(BUDGET_FILES + 1)
        ]
        world.deleter().begin(replace(plan, candidates=tuple(many[1:])), "run-1")
        with pytest.raises(NotAllowed):
            world.deleter().begin(replace(plan, candidates=tuple(many)), "run-2")

    def test_files_that_may_be_somebody_elses_need_somebodys_word_too(self, world: World) -> None:
        plan = world.plan(world.garbage(3))
        with pytest.raises(NotAllowed):
            world.deleter().begin(replace(plan, doubtful=1), "run-1")
        world.deleter().begin(plan, "run-1")

    def test_what_our_own_commits_replaced_needs_no_approval(self, world: World) -> None:
        world.table_bytes = 0
        world.carry_out(replace(world.plan(world.garbage(3), Cause.EXPIRED), doubtful=1))
        assert set(world.states().values()) == {"quarantined"}


class TestOutcomes:
    @pytest.mark.parametrize("when", [BEFORE, AFTER])
    @pytest.mark.parametrize(
        "error", [OutcomeUnknown("no answer"), StorageUnavailable("no answer"), StoreUnavailable("no answer")]
    )
    @pytest.mark.parametrize("step", Step)
    def test_c1_what_nobody_knows_is_looked_for_and_never_repeated_blindly(
        self, world: World, when: str, error: IcewrightError, step: Step
    ) -> None:
        paths, before = world.garbage(3), contents(world)
        done: list[tuple[Step, CanonicalPath]] = []
        troubled = [True]

        def trouble(now: Step, moment: str, path: CanonicalPath) -> None:
            if moment == AFTER:
                done.append((now, path))
            if troubled[0] and (now, moment, path) == (step, when, paths[1]):
                troubled[0] = False
                raise error

        quarantine_of(world).trouble = trouble
        world.carry_out(world.plan(paths))
        if step is Step.PURGE:
            world.clock.advance(WINDOW_FLOOR_MS)
            tended(world)
            tended(world)
            tended(world)
            assert set(world.states().values()) == {"purged"}
        else:
            for _ in range(3):
                undone(world)
            assert contents(world) == before
            assert set(world.states().values()) == {"restored"}
        assert not troubled[0]
        assert len(done) == len(set(done)) == 6

    def test_c1_after_a_lost_answer_nothing_else_is_touched_before_it_is_known(self, world: World) -> None:
        paths = world.garbage(3)
        quarantine_of(world).trouble = raising(OutcomeUnknown("no answer"))
        world.deleter().begin(world.plan(paths), "run-1")
        batch = world.deleter().advance("run-1")
        assert not_none(batch.waits).code == "unknown"
        assert sorted(world.states().values()) == ["planned", "planned", "unknown"]
        assert set(paths) <= world.storage.objects.keys()

    @pytest.mark.parametrize(
        ("call", "rest"), [("advance", "planned"), ("undo", "skipped: undone"), ("leave", "skipped: task-ended")]
    )
    def test_c1_nor_as_long_as_it_is_nowhere_and_the_run_stays_open(self, world: World, call: str, rest: str) -> None:
        """Two files are needed while they are moved, and somebody dies as they come back; one of them is lost."""
        paths = world.garbage(BATCH_FILES + 1)
        found = {path: world.storage.objects[path].content for path in paths[:2]}
        quarantine_of(world).trouble = lambda *_: world.refs.update(found)
        world.deleter().begin(world.plan(paths), "run-1")
        faults.arm(dying_at(Fault.DELETION_STEP_BEGUN, 2))
        with pytest.raises(Died):
            world.deleter().advance("run-1")
        for held in [path for path, stored in world.storage.objects.items() if stored.content == found[paths[0]]]:
            world.storage.remove(held)
        for _ in range(3):
            world.clock.advance(DAY_MS)
            match call:
                case "advance":
                    batch = world.deleter().advance("run-1")
                case "undo":
                    batch = world.deleter().undo("run-1")
                case _:
                    batch = world.deleter().leave("run-1", Reason("task-ended", "its task has ended"))
        assert (batch.waits and batch.waits.code, batch.is_done) == ("not-found", False)
        assert world.store.run("run-1").is_open
        assert (world.states()[paths[0]], world.states()[paths[-1]]) == ("unknown: not-found", rest)

    def test_what_is_nowhere_stays_unknown_and_is_said(self, world: World) -> None:
        paths = world.garbage(1)
        world.carry_out(world.plan(paths))
        quarantine_of(world).trouble = raising(OutcomeUnknown("no answer"))
        world.deleter().undo("run-1")
        quarantine_of(world).trouble = lambda _step, _when, _path: None
        for place in [path for path in world.storage.objects if path.startswith(HELD)]:
            world.storage.remove(place)
        batch = world.deleter().undo("run-1")
        assert not_none(batch.waits).code == "not-found"
        assert world.states() == {paths[0]: "unknown: not-found"}

    @pytest.mark.parametrize("call", range(8))
    def test_t12_a_store_that_fails_lets_nothing_be_deleted_that_it_does_not_know_of(
        self, world: World, call: int
    ) -> None:
        paths, before = world.garbage(3), contents(world)
        plan = world.plan(paths)
        failing = FailingStore(world.clock, call)
        world.store = failing
        for _ in range(3):
            try:
                world.carry_out(plan)
            except (Unavailable, OutcomeUnknown):
                held = [path for path in world.storage.objects if path.startswith(HELD)]
                known = {one.object.path for one in failing._intents.get("run-1", {}).values()}
                assert set(before) - contents(world).keys() <= known
                assert len(held) == len(set(before) - contents(world).keys())
        assert set(world.states().values()) == {"quarantined"}
        undone(world)
        assert contents(world) == before

    def test_q1_whoever_was_replaced_touches_nothing_more(self, world: World) -> None:
        paths = world.garbage(3)
        old = world.deleter()
        old.begin(world.plan(paths), "run-1")
        store_of(world).server += 1
        for call in (old.advance, old.undo):
            with pytest.raises(StoreTaken):
                call("run-1")
        assert set(paths) <= world.storage.objects.keys()
        world.run_to_its_end()  # the new server goes on
        assert set(world.states().values()) == {"quarantined"}
        with pytest.raises(StoreTaken):
            old.undo("run-1")
        assert not set(paths) & world.storage.objects.keys()

    def test_q1_whoever_is_replaced_in_the_middle_of_a_batch_touches_no_further_file(self, world: World) -> None:
        paths = world.garbage(5)
        old = world.deleter()
        old.begin(world.plan(paths), "run-1")

        def replaced(_step: Step, when: str, path: CanonicalPath) -> None:
            if (when, path) == (AFTER, paths[1]):
                store_of(world).server += 1

        quarantine_of(world).trouble = replaced
        with pytest.raises(StoreTaken):
            old.advance("run-1")
        assert [path in world.storage.objects for path in paths] == [False, False, True, True, True]
        quarantine_of(world).trouble = lambda _step, _when, _path: None
        world.commit(paths[4])
        world.run_to_its_end()
        undone(world)
        assert set(paths) <= world.storage.objects.keys()

    def test_q1_a_file_that_hung_on_its_way_is_known_to_be_in_quarantine(self, world: World) -> None:
        (path,) = paths = world.garbage(1)
        old, content = world.deleter(), world.storage.objects[world.garbage(1)[0]].content
        old.begin(world.plan(paths), "run-1")

        def hangs(_step: Step, when: str, _path: CanonicalPath) -> None:
            """The new server looks for it, finds it where it was, and begins with it: now the old one moves it."""
            if when != BEFORE:
                return
            quarantine_of(world).trouble = moves
            store_of(world).server += 1
            world.deleter().advance("run-1")

        def moves(_step: Step, when: str, _path: CanonicalPath) -> None:
            if when == BEFORE:
                quarantine_of(world).trouble = lambda _step, _when, _path: None
                stored = world.storage.objects[path]
                quarantine_of(world).quarantine("run-1", stored.listed)

        quarantine_of(world).trouble = hangs
        with pytest.raises(StoreTaken):
            old.advance("run-1")
        world.run_to_its_end()
        assert world.states() == {path: "quarantined"}
        undone(world)
        assert world.storage.objects[path].content == content

    @pytest.mark.parametrize("step", [Step.QUARANTINE, Step.PURGE])
    @pytest.mark.parametrize("for_ms", [BATCH_MS_MAX + 1, -1])
    def test_q1_a_machine_that_was_halted_in_a_batch_asks_again_what_the_table_needs(
        self, world: World, step: Step, for_ms: int
    ) -> None:
        paths = world.garbage(3)
        world.deleter().begin(world.plan(paths), "run-1")
        if step is Step.PURGE:
            world.run_to_its_end()
            world.clock.advance(8 * DAY_MS)

        def halted(_step: Step, when: str, path: CanonicalPath) -> None:
            if (when, path) == (AFTER, paths[0]):
                world.clock.advance(for_ms)  # or its clock was put back
                world.refs[paths[1]] = b""
                world.commits += 1

        quarantine_of(world).trouble = halted
        batch = world.deleter().advance("run-1") if step is Step.QUARANTINE else world.deleter().tend("run-1")
        assert not_none(batch.waits).code == OUTDATED
        quarantine_of(world).trouble = lambda _step, _when, _path: None
        if step is Step.QUARANTINE:
            world.run_to_its_end()
            assert list(world.states().values()) == ["quarantined", "skipped: needed", "quarantined"]
        else:
            tended(world)
            assert list(world.states().values()) == ["purged", "restored", "purged"]

    def test_q1_what_comes_back_needs_to_know_nothing(self, world: World) -> None:
        paths, before = world.garbage(3), contents(world)
        world.carry_out(world.plan(paths))

        def halted(*_: object) -> None:
            world.clock.advance(BATCH_MS_MAX + 1)

        quarantine_of(world).trouble = halted
        assert world.deleter().undo("run-1").waits is None
        assert contents(world) == before

    def test_o3_a_plan_has_its_own_grace_and_never_less_than_the_floor(self, world: World) -> None:
        paths = world.garbage(1, age_ms=100 * HOUR_MS)
        for number, grace_ms in enumerate((None, 99 * HOUR_MS)):
            plan = world.plan(paths, plan_id=f"plan-{number}", seen_ms=100 * HOUR_MS)
            world.carry_out(replace(plan, grace_ms=grace_ms), f"run-{number}")
            undone(world, f"run-{number}")
            world.clock.advance(-world.clock.now() + plan.planned_at)
        assert [list(world.states(f"run-{number}").values()) for number in range(2)] == [
            ["skipped: too-young"],
            ["restored"],
        ]
        (young,) = world.garbage(1, "young", age_ms=71 * HOUR_MS)
        plan = world.plan([young], plan_id="plan-9", seen_ms=71 * HOUR_MS)
        world.carry_out(replace(plan, grace_ms=1), "run-9")
        assert list(world.states("run-9").values()) == ["skipped: too-young"]

    @pytest.mark.parametrize("dies", [False, True])
    def test_o4_the_window_begins_by_the_latest_clock(self, world: World, *, dies: bool) -> None:
        """A store whose clock was behind by a month, and is put right, has not kept anything for a month."""
        behind = ManualClock(world.clock.now() - 30 * DAY_MS)
        world.store = MemoryDeletionStore(behind)
        (path,) = paths = world.garbage(1, age_ms=60 * DAY_MS)
        world.deleter().begin(world.plan(paths, seen_ms=60 * DAY_MS), "run-1")
        if dies:
            faults.arm(dying_at(Fault.DELETION_RECORD_BEFORE))
            with pytest.raises(Died):
                world.deleter().advance("run-1")
        world.deleter().advance("run-1")
        assert world.states() == {path: "quarantined"}
        behind.advance(30 * DAY_MS)
        tended(world)
        assert world.states() == {path: "quarantined"}
        for clock in (behind, world.clock):
            clock.advance(WINDOW_FLOOR_MS)
        tended(world)
        assert world.states() == {path: "purged"}


class FailingStore(MemoryDeletionStore):
    """Fails one writing call, having done its work or not."""

    def __init__(self, clock: ManualClock, call: int) -> None:
        super().__init__(clock)
        self._left = call

    def _fails(self, *, done: bool) -> None:
        self._left -= 1
        if self._left == -1:
            raise (
                OutcomeUnknown("the store went away in the middle of a commit")
                if done
                else StoreUnavailable("no answer")
            )

    def begin(self, run: DeletionRun, intents: Sequence[Intent]) -> DeletionRun:
        self._fails(done=False)
        found = super().begin(run, intents)
        self._fails(done=True)
        return found

    def change(self, epoch: int, changes: Sequence[Intent]) -> Sequence[Intent]:
        self._fails(done=False)
        found = super().change(epoch, changes)
        self._fails(done=True)
        return found


def raising(error: IcewrightError) -> Callable[[Step, str, CanonicalPath], None]:
    def trouble(_step: Step, _when: str, _path: CanonicalPath) -> None:
        raise error

    return trouble


def test_partial_knowledge_makes_no_plan() -> None:
    """By its type already: this line would not pass mypy without being told to."""
    needs = Needs(TableId("lake", "u"), "m", True, 1, frozenset(), frozenset())
    known: Partial[Needs] = Partial(needs, (GAP,), 1)
    candidate = Candidate(ListedObject(at("x"), 1), 1)
    with pytest.raises(AttributeError):
        plan_deletes(
            known,  # type: ignore[arg-type]  # what is shown
            Cause.ORPHAN,
            [candidate],
            plan_id="p",
            table_name=NAME,
            planned_at=1,
        )
