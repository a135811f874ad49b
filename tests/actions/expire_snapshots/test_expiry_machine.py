"""Histories of a table at random, with expiries and their undoing in between: whatever is retained stays readable.

Every snapshot's files are written down when it is committed. Files are deleted as they would be later: those that no
snapshot needs any more. A snapshot that is there must never miss one of its own. Wrong variants of the pieces are put
in, and each is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from icewright.actions.expire_snapshots import staying_files as expiry_staying
from icewright.actions.expire_snapshots.check import check_expiry
from icewright.actions.expire_snapshots.commit import problem_of_expiry
from icewright.actions.expire_snapshots.plan import decide_expiry
from icewright.core.errors import Conflict, IcewrightError
from icewright.model.actions.expire_snapshots import ExpireSnapshots, ExpiryRule, Hold
from icewright.model.iceberg.files import UNPARTITIONED, Partition
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.reachable_files import Roots
from icewright.model.iceberg.tables import MAIN_BRANCH, Ref, RefKind, Snapshot, TableMetadata
from icewright.policy.effective import effective_policy
from tests.builders.observations import HOUR_MS
from tests.conftest import CAMPAIGN
from tests.contracts.undoing import Shelf, decided
from tests.doubles import expiry as memory_expiry
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.doubles.expiry import MemoryExpiry
from tests.doubles.lake import MemoryFile, MemoryTable
from tests.narrowing import not_none

NAME = TableName("lake", ("db",), "t")
WHOLE = Partition(0, UNPARTITIONED)
places = st.integers(0, 1_000)


class Histories(RuleBasedStateMachine):
    """Everything that happens to the snapshots of a table."""

    steps: ClassVar[int] = 0
    """Over all examples."""

    @initialize(version=st.sampled_from([2, 3]))
    def begin(self, version: int) -> None:
        self.clock = ManualClock()
        self.catalog = MemoryCatalog("lake", self.clock)
        self.table_id = self.catalog.create(NAME, format_version=version)
        self.expiry = MemoryExpiry(self.catalog)
        self.files = 0
        self.written: dict[int, frozenset[str]] = {}
        self.stored: set[str] = set()
        self.done: list[tuple[ExpireSnapshots, bytes]] = []
        self.shelf, self.undos = Shelf(), 0
        self.holds: list[Hold] = []
        for _ in range(4):
            self.append(MAIN_BRANCH)

    def now(self) -> TableMetadata:
        return self.catalog.load(NAME)

    def pick(self, place: int) -> Snapshot:
        snapshots = self.now().snapshots
        return snapshots[place % len(snapshots)]

    def branches(self) -> list[str]:
        return [ref.name for ref in self.now().refs if ref.kind is RefKind.BRANCH]

    def live(self, branch: str) -> list[str]:
        return [file.path for file in self.catalog.live_files(NAME, branch=branch)]

    def new_file(self) -> MemoryFile:
        self.files += 1
        path = f"file:///memory/f{self.files}"
        self.stored.add(path)
        return MemoryFile(path, WHOLE, 100, 1)

    def note(self, snapshot: Snapshot) -> None:
        self.written[snapshot.snapshot_id] = self.needed(snapshot)

    def needed(self, snapshot: Snapshot) -> frozenset[str]:
        manifests = self.catalog.manifests_of(self.now(), snapshot)
        return frozenset(entry.file.path for manifest in manifests for entry in manifest.live)

    def append(self, branch: str) -> None:
        self.clock.advance(HOUR_MS)
        self.note(self.catalog.append(NAME, [self.new_file()], branch=branch))

    @rule(place=places)
    def append_somewhere(self, place: int) -> None:
        self.append(self.branches()[place % len(self.branches())])

    @rule(place=places)
    def overwrite(self, place: int) -> None:
        branch = self.branches()[place % len(self.branches())]
        self.clock.advance(HOUR_MS)
        remove = self.live(branch)[:1]
        self.note(self.catalog.overwrite(NAME, add=[self.new_file()], remove=remove, branch=branch))

    @precondition(lambda self: self.live(MAIN_BRANCH))
    @rule()
    def delete(self) -> None:
        self.clock.advance(HOUR_MS)
        self.note(self.catalog.delete(NAME, self.live(MAIN_BRANCH)[:1]))

    @precondition(lambda self: self.live(MAIN_BRANCH))
    @rule()
    def rewrite(self) -> None:
        self.clock.advance(HOUR_MS)
        base = not_none(self.now().current_snapshot_id)
        paths = self.live(MAIN_BRANCH)
        self.note(self.catalog.commit_rewrite(NAME, base_snapshot_id=base, remove=paths, add=[self.new_file()]))

    @rule()
    def rewrite_manifests(self) -> None:
        self.clock.advance(HOUR_MS)
        self.note(self.catalog.rewrite_manifests(NAME))

    @rule(place=places, name=st.sampled_from("ab"), hours=st.one_of(st.none(), st.integers(1, 30)))
    def tag(self, place: int, name: str, hours: int | None) -> None:
        age_ms = None if hours is None else hours * HOUR_MS
        chosen = self.pick(place).snapshot_id
        self.catalog.set_ref(NAME, f"tag-{name}", chosen, kind=RefKind.TAG, max_ref_age_ms=age_ms)

    @rule(place=places, name=st.sampled_from("ab"))
    def branch(self, place: int, name: str) -> None:
        self.catalog.set_ref(NAME, f"branch-{name}", self.pick(place).snapshot_id)

    @rule(name=st.sampled_from(["tag-a", "tag-b", "branch-a", "branch-b"]))
    def drop_ref(self, name: str) -> None:
        self.catalog.drop_ref(NAME, name)

    @rule(place=places)
    def go_to(self, place: int) -> None:
        """A rollback, a fast-forward, or the current snapshot set anywhere."""
        self.clock.advance(HOUR_MS)
        self.catalog.set_ref(NAME, MAIN_BRANCH, self.pick(place).snapshot_id)

    @rule(place=places)
    def cherry_pick(self, place: int) -> None:
        """What a snapshot added, staged ones too, is committed to main once more: the same files."""
        chosen, live = self.pick(place), self.live(MAIN_BRANCH)
        entries = [entry for manifest in self.catalog.manifests_of(self.now(), chosen) for entry in manifest.live]
        added = [one.file for one in entries if one.snapshot_id == chosen.snapshot_id and one.file.path not in live]
        if added:
            self.clock.advance(HOUR_MS)
            self.note(self.catalog.append(NAME, added))

    @rule(place=places)
    def add_again(self, place: int) -> None:
        """A path that main left, or that nothing needs any more, as long as its file is there."""
        paths = sorted(self.stored.difference(self.live(MAIN_BRANCH)))
        if paths:
            self.clock.advance(HOUR_MS)
            self.note(self.catalog.append(NAME, [MemoryFile(paths[place % len(paths)], WHOLE, 100, 1)]))

    @rule()
    def stage(self) -> None:
        """As write-audit-publish does: a commit that no ref leads to."""
        current = not_none(self.now().current_snapshot_id)
        self.catalog.set_ref(NAME, "staging", current)
        self.append("staging")
        self.catalog.drop_ref(NAME, "staging")

    @rule(place=places, reads=st.booleans())
    def read_on(self, place: int, reads: bool) -> None:  # noqa: FBT001 - drawn
        self.holds = [Hold("task", self.pick(place).snapshot_id)] if reads else []

    @rule(
        hours=st.sampled_from([0, 0, 1, 3, 10]),
        last=st.integers(1, 3),
        place=places,
        meanwhile=st.sampled_from(["", "", "tag", "go"]),
    )
    def expire(self, hours: int, last: int, place: int, meanwhile: str) -> None:
        before = self.now()
        self.clock.advance(1)
        policy, now = effective_policy(before, ()), self.clock.now()
        wanted = ExpiryRule(hours * HOUR_MS, last)
        action = decide_expiry(before, policy, wanted, now, can_put_back=True, holds=self.holds).action
        if action is None:
            return
        held = {hold.snapshot_id for hold in self.holds}
        assert check_expiry(action, before, policy, now=now, first_seen=None, held=held) == ()
        left = [meanwhile]

        def between() -> None:
            did = left.pop() if left else ""
            if did == "tag":
                self.catalog.set_ref(NAME, "late", self.pick(place).snapshot_id, kind=RefKind.TAG)
            elif did == "go":
                self.catalog.set_ref(NAME, MAIN_BRANCH, self.pick(place).snapshot_id)

        refs = {}

        def may_commit() -> None:
            between()
            refs.update({ref.name: ref for ref in self.now().refs})

        try:
            self.expiry.expire(
                NAME, self.table_id, action, may_commit=may_commit, keep=self.shelf.keep, holds=self.holds
            )
        except Conflict:
            return
        self.done.append((action, self.shelf.content))
        found = not_none(self.expiry.commit_of(NAME, self.table_id, action))
        assert problem_of_expiry(found.before, found.after, action) is None
        self.check_refs(refs, action)

    def check_refs(self, before: dict[str, Ref], action: ExpireSnapshots) -> None:
        """No ref is lost or moved but by its own age."""
        gone = {ref.name for ref in action.refs_removed}
        assert {ref.name: ref for ref in self.now().refs} == {n: ref for n, ref in before.items() if n not in gone}

    @precondition(lambda self: self.done)
    @rule(place=places)
    def undo(self, place: int) -> None:
        expired, content = self.done[place % len(self.done)]
        before = self.now()
        found = decided(self.expiry, before, expired, content)
        if found.action is None:
            return
        action, self.undos = found.action, self.undos + 1

        def first_missing(table: Roots) -> str | None:
            back = [one for one in table.metadata.snapshots if one.snapshot_id in action.snapshot_ids]
            wanted = {path for one in back for path in self.written[one.snapshot_id]}
            return min(wanted - self.stored, default=None)

        try:
            self.expiry.put_back(
                NAME,
                self.table_id,
                action,
                content,
                task_id=f"undo-{self.undos}",
                may_commit=lambda: None,
                first_missing=first_missing,
            )
        except Conflict:
            return
        known = {one.snapshot_id for one in self.now().snapshots}
        assert known.issuperset(expired.snapshot_ids)
        assert {ref.name: ref for ref in self.now().refs}.items() >= {ref.name: ref for ref in before.refs}.items()

    @rule()
    def delete_files(self) -> None:
        """What is reachable from nothing: the difference of two sets, computed in full."""
        self.stored = set().union(*(self.needed(one) for one in self.now().snapshots))

    @invariant()
    def every_retained_snapshot_keeps_its_files(self) -> None:
        metadata = self.now()
        for snapshot in metadata.snapshots:
            found = self.needed(snapshot)
            assert found == self.written[snapshot.snapshot_id]
            assert found <= self.stored

    @invariant()
    def every_ref_leads_somewhere(self) -> None:
        Histories.steps += 1
        metadata = self.now()
        known = {one.snapshot_id for one in metadata.snapshots}
        assert metadata.current_snapshot_id in known
        assert {ref.snapshot_id for ref in metadata.refs} <= known
        assert {entry.snapshot_id for entry in metadata.snapshot_log} <= known


EXAMPLES_MIN = 100

OFTEN = settings(
    stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@pytest.mark.timeout(3600 if CAMPAIGN else 300)
def test_g5_e1_e2_e4_e5_e6_whatever_is_retained_keeps_its_files_and_no_ref_is_lost() -> None:
    """The goal is 2,000 steps, and 50,000 in the long form, which has as many examples as all properties."""
    often = settings(OFTEN, max_examples=max(EXAMPLES_MIN, settings.default.max_examples if settings.default else 0))
    Histories.steps = 0
    run_state_machine_as_test(Histories, settings=often)
    print(f"G5, in memory: {Histories.steps:,} steps")  # noqa: T201 - the figure of docs/bad-days.md
    assert Histories.steps >= (50_000 if CAMPAIGN else 2_000)


@contextmanager
def instead(patch: pytest.MonkeyPatch, *changes: tuple[Any, str, Any]) -> Iterator[None]:
    with patch.context() as context:
        for where, name, what in changes:
            context.setattr(where, name, what)
        yield


def only_main(metadata: TableMetadata, rule: ExpiryRule, now: int) -> frozenset[int]:
    """As if all branches were the past of main."""
    del now
    return frozenset(one.snapshot_id for one in metadata.ancestors()[: rule.retain_last])


def parents_made_none(action: ExpireSnapshots, table: MemoryTable) -> MemoryTable:
    """As one client leaves the children of what it removes."""
    after = WITHOUT(action, table)
    gone = set(action.snapshot_ids)
    snapshots = tuple(
        replace(one, parent_id=None) if one.parent_id in gone else one for one in after.metadata.snapshots
    )
    return replace(after, metadata=replace(after.metadata, snapshots=snapshots))


def dropping_dangling_refs(action: ExpireSnapshots, table: MemoryTable) -> MemoryTable:
    """As a catalog does that asserts the uuid alone."""
    after = WITHOUT(action, table)
    known = {one.snapshot_id for one in after.metadata.snapshots}
    refs = tuple(ref for ref in after.metadata.refs if ref.snapshot_id in known)
    return replace(after, metadata=replace(after.metadata, refs=refs))


def swap_without_compare(
    catalog: MemoryCatalog, name: TableName, _: str, change: Callable[[MemoryTable], MemoryTable]
) -> tuple[MemoryTable, MemoryTable]:
    before = catalog._table(name)
    catalog._change(name, change)
    return before, catalog._table(name)


def unasked(expiry: MemoryExpiry, *arguments: Any, **more: Any) -> None:
    PUT_BACK(expiry, *arguments, **{**more, "first_missing": lambda *_: None})


WITHOUT, PUT_BACK = memory_expiry._without, MemoryExpiry.put_back
MUTATIONS: dict[str, tuple[tuple[Any, str, Any], ...]] = {
    "e1_branches_taken_for_the_past_of_main": (
        (expiry_staying, "retained_snapshots", only_main),
        (expiry_staying, "retained_refs", lambda metadata, _: metadata.refs),
    ),
    "e2_parents_made_none": ((memory_expiry, "_without", parents_made_none),),
    "e13_readers_not_asked": ((expiry_staying, "_held", lambda *_: {}),),
    "e6_refs_dropped_and_nothing_compared": (
        (memory_expiry, "_without", dropping_dangling_refs),
        (MemoryCatalog, "swap", swap_without_compare),
    ),
    "e6_the_rule_not_asked_again": (
        (memory_expiry, "expiry_conflict", lambda *_: None),
        (MemoryCatalog, "swap", swap_without_compare),
    ),
    "e5_a_log_with_gaps": (
        (
            memory_expiry,
            "trimmed",
            lambda log, of, gone: [entry for entry in log if of(entry) not in gone] if len(gone) > 3 else list(log),
        ),
    ),
    "undo_without_asking_for_files": ((MemoryExpiry, "put_back", unasked),),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_wrong_variants_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is drawn depends on which modules are loaded beside this one: enough to be found in any company.
    often = settings(OFTEN, max_examples=5_000, database=None, derandomize=True, phases=[Phase.generate])
    with instead(monkeypatch, *MUTATIONS[name]), pytest.raises((AssertionError, IcewrightError)):
        run_state_machine_as_test(Histories, settings=often)
