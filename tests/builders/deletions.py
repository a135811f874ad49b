"""A table, its storage and its garbage as plain sets, for showing what the Deleter does and what it must never do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from icewright.actions.remove_files.deleter import Batch, Deleter
from icewright.actions.remove_files.quarantine_port import Quarantine
from icewright.core import fault_points as faults
from icewright.core.completeness import Complete, Gap, Gaps, Known
from icewright.core.errors import NotFound
from icewright.core.fault_points import Fault
from icewright.core.times import Instant
from icewright.model.actions.deletion import (
    Candidate,
    Cause,
    DeletePlan,
    DeleteSettings,
    Intent,
    IntentState,
    Needs,
    plan_deletes,
)
from icewright.model.iceberg.locations import Aliases, CanonicalPath
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Reason
from icewright.ownership.model import Place
from icewright.ports.deletions import DeletionStore
from tests.doubles.clock import ManualClock
from tests.doubles.deletion_store import MemoryDeletionStore
from tests.doubles.objects import MemoryObjects, MemoryStorage
from tests.doubles.quarantine import MemoryQuarantine

T = TypeVar("T")
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NAME = TableName("lake", ("db",), "t")
OTHER = TableName("pond", ("db",), "other")
TABLE = TableId("lake", "uuid-1")
ROOT = "s3://b/wh/t/"
HELD = CanonicalPath("s3://b/held")
ALL = frozenset(IntentState)


class Died(BaseException):
    """The process is gone."""


def at(name: str) -> CanonicalPath:
    return CanonicalPath(f"{ROOT}data/{name}")


def no_other(_name: TableName, _paths: Sequence[CanonicalPath]) -> Known[Mapping[CanonicalPath, TableName]]:
    """As if there were no other table."""
    return _judged(dict[CanonicalPath, TableName](), None)


@dataclass
class World:
    """One table. ``refs`` are the paths that it needs, with what was in them when it came to need them."""

    clock: ManualClock = field(default_factory=ManualClock)
    settings: DeleteSettings = field(default_factory=DeleteSettings)
    refs: dict[CanonicalPath, bytes] = field(default_factory=dict)
    table_id: TableId = TABLE
    collects_garbage: bool = True
    is_there: bool = True
    gap: Gap | None = None
    place_gap: Gap | None = None
    elsewhere: set[CanonicalPath] = field(default_factory=set)
    """What another table needs."""
    others_gap: Gap | None = None
    roots: tuple[str, ...] = (ROOT,)
    table_bytes: int = 10**9
    graces_since: Instant = 0
    """When the clock jumped last."""

    def __post_init__(self) -> None:
        self.storage = MemoryStorage(self.clock)
        self.objects = MemoryObjects(self.storage)
        self.quarantine: Quarantine = MemoryQuarantine(self.storage, HELD)
        self.store: DeletionStore = MemoryDeletionStore(self.clock)
        self.commits = 0

    def needs(self, name: TableName, paths: Iterable[CanonicalPath]) -> Known[Needs]:
        if not self.is_there:
            raise NotFound(f"no table {name}")
        asked = frozenset(paths)
        location = f"{ROOT}metadata/v{self.commits}.json"
        needed = asked & self.refs.keys()
        return _judged(Needs(self.table_id, location, self.collects_garbage, self.table_bytes, asked, needed), self.gap)

    def place(self, name: TableName) -> Known[Place]:
        return _judged(Place(name, TABLE.uuid, self.roots, ()), self.place_gap)

    def other_tables(
        self, _name: TableName, paths: Sequence[CanonicalPath]
    ) -> Known[Mapping[CanonicalPath, TableName]]:
        found = {path: OTHER for path in paths if path in self.elsewhere}
        return _judged(found, self.others_gap)

    def deleter(self) -> Deleter:
        """A process of its own."""
        return Deleter(
            self.store,
            self.objects,
            self.quarantine,
            self.needs,
            self.place,
            self.other_tables,
            aliases=Aliases(),
            settings=self.settings,
            graces_since=lambda: self.graces_since,
        )

    def garbage(self, count: int, prefix: str = "g", *, age_ms: int = 30 * DAY_MS) -> list[CanonicalPath]:
        """Files that nobody needs, as old as is said."""
        paths = [at(f"{prefix}{number}") for number in range(count)]
        for path in paths:
            self.storage.write(path, f"content of {path}".encode(), modified_at=self.clock.now() - age_ms)
        return paths

    def commit(self, *paths: CanonicalPath) -> None:
        """The table comes to need files that are there."""
        self.commits += 1
        for path in paths:
            self.refs[path] = self.storage.objects[path].content

    def plan(
        self,
        paths: Iterable[CanonicalPath],
        cause: Cause = Cause.ORPHAN,
        *,
        plan_id: str = "plan-1",
        seen_ms: int = 30 * DAY_MS,
    ) -> DeletePlan:
        """A plan as of now."""
        listed = [stored.listed for path in paths if (stored := self.storage.objects.get(path)) is not None]
        known = self.needs(NAME, [one.path for one in listed])
        assert isinstance(known, Complete)
        return plan_deletes(
            known,
            cause,
            [Candidate(one, self.clock.now() - seen_ms) for one in listed],
            plan_id=plan_id,
            table_name=NAME,
            planned_at=self.clock.now(),
        )

    def carry_out(self, plan: DeletePlan, run_id: str = "run-1") -> None:
        """Begin a run, and see it to its end."""
        self.deleter().begin(plan, run_id)
        self.run_to_its_end(run_id)

    def run_to_its_end(self, run_id: str = "run-1") -> list[Batch]:
        """Batches until nothing is left, with time going on between them."""
        batches = []
        for _ in range(200):
            batches.append(self.deleter().advance(run_id))
            if batches[-1].is_done:
                return batches
            self.clock.advance(60_000)
        raise AssertionError(batches[-1])

    def intents(self, run_id: str = "run-1") -> dict[CanonicalPath, Intent]:
        return {one.object.path: one for one in self.store.intents(run_id, ALL, limit=10**6)}

    def states(self, run_id: str = "run-1") -> dict[CanonicalPath, str]:
        """State of each file, with the reason of those that were left."""
        return {
            path: f"{one.state.value}: {one.why.code}" if one.why else one.state.value
            for path, one in self.intents(run_id).items()
        }

    def missing(self) -> set[CanonicalPath]:
        """Files that the table needs and that are not there as they were."""
        return {
            path
            for path, content in self.refs.items()
            if (stored := self.storage.objects.get(path)) is None or stored.content != content
        }


def _judged(value: T, gap: Gap | None) -> Known[T]:
    gaps = Gaps()
    if gap is not None:
        gaps.add(gap)
    return gaps.judge(value)


GAP = Gap("s3://b/wh/t/metadata/m.avro", Reason("unreadable", "it is cut off"))


def undone(world: World, run_id: str = "run-1") -> None:
    """Take all of a run back."""
    after: int | None = None
    for _ in range(100):
        batch = world.deleter().undo(run_id, after)
        if batch.is_done or batch.waits is not None:
            return
        after = batch.after
    raise AssertionError("undoing comes to no end")


def tended(world: World, run_id: str = "run-1") -> None:
    """Look after all that a run holds, once."""
    after: int | None = None
    for _ in range(100):
        batch = world.deleter().tend(run_id, after)
        if batch.is_done:
            return
        after = batch.after
    raise AssertionError("tending comes to no end")


def dying_at(point: Fault, occurrence: int = 1) -> Callable[[Fault], None]:
    """A hook that lets the process die when it comes by a place for the so-manieth time."""
    left = [occurrence]

    def hook(found: Fault) -> None:
        if found is point:
            left[0] -= 1
            if left[0] == 0:
                faults.arm(None)
                raise Died(point.value)

    return hook
