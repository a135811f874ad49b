"""A simulated lakehouse in which files may go: days pass, and people approve, take back and set back.

Writers leave garbage behind or commit late, and the server dies over all of it.

What must hold of the files is told in :mod:`tests.simulation.files`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from icewright.actions.expire_snapshots.settings import EXPIRES_KEY, MAX_AGE_KEY, MIN_KEPT_KEY, REMOVES_FILES_KEY
from icewright.actions.remove_files.orphans.settings import ORPHAN_AGE_KEY, REMOVES_KEY
from icewright.actions.remove_files.removals_port import CatalogFiles, RemovalPorts
from icewright.catalogs.local_spool import open_disk_spool
from icewright.core.errors import Conflict, NotFound, Rejected, StorageUnavailable
from icewright.core.fault_points import Fault
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.deletion import Step
from icewright.model.actions.rollback import RollbackRequest
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import RefKind, TableMetadata
from icewright.model.plans.plans import Plan
from tests.builders.lakehouse import HELD, HOUR_MS, MINUTE_MS, SECOND_MS
from tests.doubles.lake import MemoryFile
from tests.doubles.objects import MemoryObjects
from tests.doubles.quarantine import BEFORE, MemoryQuarantine
from tests.doubles.rollback import MemoryRollbacks
from tests.doubles.sightings import MemorySightings
from tests.doubles.table_files import MemoryTableFiles
from tests.simulation.files import CLOCKS_MS, DAY_MS, FLOORS_MS, WINDOW_MS, Files
from tests.simulation.trouble import Killed, Moody, Mortal
from tests.simulation.world import OF_THE_SERVICES, World
from tests.simulation.writers import MODE_KEY, Broken

OF_THE_DELETER = tuple(point for point in Fault if point.startswith("deleter."))
QUIET_DAYS = 16
"""So long after the last fault, garbage must be gone: two passes, the longest age that is asked for, and the window."""
GC_KEY = "gc.enabled"
UNDOABLE = (
    ActionKind.EXPIRE_SNAPSHOTS,
    ActionKind.REMOVE_ORPHAN_FILES,
    ActionKind.REMOVE_EXPIRED_FILES,
    ActionKind.ROLLBACK_TO_SNAPSHOT,
)


@dataclass
class Late:
    """A file whose writer commits it some time."""

    table_id: TableId
    file: MemoryFile
    placed_at: Instant
    due_at: Instant


class NotifyingCatalog:
    """The catalog as those see it who set tables back: the writers hear of it."""

    def __init__(self, catalog: Any, hear: Callable[[Any], None]) -> None:
        self._catalog, self._hear = catalog, hear

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def swap(self, name: TableName, location: str, change: Any) -> Any:
        """As the catalog's."""
        swapped = self._catalog.swap(name, location, change)
        if swapped is not None:
            self._hear(swapped[1].metadata)
        return swapped


class FilesWorld(World):
    """As a :class:`World`, with files."""

    has_files = True
    steps = 120
    drain_minutes = 30  # days follow
    traps = (*OF_THE_SERVICES, *OF_THE_DELETER * 4)
    files: Files
    quarantine: MemoryQuarantine

    def _open_files(self) -> None:
        house, trouble = self.house, self.trouble
        storage = house.storage
        assert storage is not None
        self._late: list[Late] = []
        self._is_quiet = False
        self._storage_away_until = 0
        self.files = Files(house, self.names, house.removals.store, self.counted)
        self.quarantine = MemoryQuarantine(storage, HELD, self._at_the_door)
        catalog: Any = Moody(house.catalog, trouble, may_lie=False)
        files = CatalogFiles(MemoryTableFiles(catalog), MemoryObjects(storage), self.quarantine)
        store: Any = Mortal(house.removals.store, trouble)
        sightings: Any = Mortal(MemorySightings(house.store_clock), trouble)
        house.removals = RemovalPorts(store, sightings, open_disk_spool, {"lake": files})
        told: Any = NotifyingCatalog(house.catalog, self._set_back)
        house.rollbacks["lake"] = MemoryRollbacks(told, house.writers_clock)

    def _set_back(self, metadata: TableMetadata) -> None:
        self.writers.set_back(metadata)

    def _start_server(self) -> None:
        self.files.expired_by_others = self.writers.expired
        self.trouble.store_away_until = 0  # it does not start without
        self.files.store.server += 1  # type: ignore[attr-defined]  # of the store in memory
        super()._start_server()

    def _more_properties(self) -> dict[str, str]:
        chance = self.chance
        return {
            REMOVES_KEY: "true",
            ORPHAN_AGE_KEY: chance.choice(["PT1H", "P3D", "P4D"]),
            EXPIRES_KEY: chance.choice(["true", "false"]),
            REMOVES_FILES_KEY: "true",
            MAX_AGE_KEY: str(chance.choice([DAY_MS, 2 * DAY_MS, 5 * DAY_MS])),
            MIN_KEPT_KEY: chance.choice(["1", "2", "5"]),
        }

    def _actions(self) -> dict[Callable[[], None], float]:
        return {
            **super()._actions(),
            self._optimize: 15,
            self._serve: 6,
            self._kill_server: 2,
            self._expire: 1,
            self._night: 13,
            self._leave_garbage: 4,
            self._commit_late: 6,
            self._import: 0.6,
            self._approve: 6,
            self._undo: 2.5,
            self._roll_back: 1,
            self._tag: 0.5,
            self._forbid: 0.3,
            self._lose_storage: 0.3,
            self._tend: 0.5,
        }

    def look(self) -> None:
        """See :class:`Files`."""
        self.files.check()

    def look_at_last(self) -> None:
        """The files are where they belong, and garbage is gone."""
        self.files.settled()
        left = self.files.garbage(self.writers.observed)
        self.counted["garbage left"] += len(left)
        self.counted["garbage gone"] += len(self.files.gone)
        for path, since in self.files.held().items():
            is_due = since < self.house.clock.now() - WINDOW_MS - 3 * DAY_MS
            if is_due and not self._is_dropped(path) and not self._is_lent(path):
                raise Broken(f"{path} stays in quarantine for ever")

    def drain(self) -> None:
        """As ever; and then quiet weeks in which people approve whatever waits."""
        self._is_quiet = True
        super().drain()
        for name in self.names:
            if name != self.writers.observed:
                self.house.catalog.set_properties(name, {MODE_KEY: "auto", GC_KEY: "true"})
        for _ in range(QUIET_DAYS):
            self.house.clock.advance(21 * HOUR_MS)
            for _ in range(len(self.names) + 2):
                self._go_on()
                self._approve_all(1)
        for _ in range(3):
            self._go_on()

    def _go_on(self) -> None:
        super()._go_on()
        self.files.check()

    def _serve(self) -> None:
        super()._serve()
        self.files.needed()  # so that it is known when files came to be of no need

    # What befalls files.

    def _night(self) -> None:
        """Hours pass, and the server goes on."""
        self.house.clock.advance(self.chance.randint(4, 30) * HOUR_MS)
        for _ in range(self.chance.randint(1, len(self.names) + 3)):
            self._serve()
            self.house.clock.advance(self.chance.randint(1, 90) * SECOND_MS)

    def _leave_garbage(self) -> None:
        """A write that came to nothing, or whose commit comes days later."""
        name = self.chance.choice(self.names)
        metadata, rows = self.house.metadata_of(name), self.writers.rows_of(name)
        now = self.house.clock.now()
        for _ in range(self.chance.randint(1, 4)):
            file = self.writers.written(rows, self.chance.randint(1, 5))
            path = CanonicalPath(file.path)
            self.files.unneeded_since[path] = now
            if self.chance.random() < 0.4:  # copied here with its time
                at = max(metadata.snapshots[0].committed_at if metadata.snapshots else now, now - 9 * DAY_MS)
                content = self.files.storage.objects[path].content
                self.files.storage.write(path, content, modified_at=at, size_bytes=file.size_bytes)
                self.files.placed[path] = now
            if self.chance.random() < 0.7:
                wait_ms = self.chance.choice([0, HOUR_MS, DAY_MS, 4 * DAY_MS, 5 * DAY_MS, 6 * DAY_MS])
                self._late.append(Late(metadata.table_id, file, now, now + wait_ms))
        number = self.house.ids.new("g")
        odd = self.chance.choice([f"{number}-m0.avro", f"snap-{number}.avro"])
        self.files.storage.write(CanonicalPath(f"{metadata.location}/metadata/{odd}"), b"left behind")
        self.counted["write came to nothing"] += 1

    def _commit_late(self) -> None:
        """A writer commits what it wrote a while ago, if it still finds all of it."""
        late = self._due()
        name = None if late is None else self._named(late.table_id)
        if late is not None and name is not None:
            self._commit_file(late, name)

    def _import(self) -> None:
        """Another table comes to need a file where it is, as by ``add_files``; then perhaps a tag of it alone."""
        late = self._due()
        name = None if late is None else self._named(late.table_id)
        if late is None or name is None:
            return
        others = [one for one in self.names if one not in (name, self.writers.observed)]
        if not others or CanonicalPath(late.file.path) not in self.files.storage.objects:
            return
        other = self.chance.choice(others)
        self.files.lent.add(self.house.metadata_of(name).location)
        self.writers.hand_over(name, other, late.file)
        self._commit_file(late, other)
        self.counted["imported elsewhere"] += 1
        if self.chance.random() < 0.5:
            imported = self.house.metadata_of(other)
            self.house.catalog.set_ref(other, "imported", imported.current_snapshot_id or 0, kind=RefKind.TAG)
            self.writers.remove_file(other, late.file)
            self.counted["imported, and kept by a tag alone"] += 1

    def _due(self) -> Late | None:
        due = [late for late in self._late if late.due_at <= self.house.clock.now()]
        if not due:
            return None
        late = self.chance.choice(due)
        self._late.remove(late)
        return late

    def _named(self, table_id: TableId) -> TableName | None:
        return next((one for one in self.names if self.house.metadata_of(one).table_id == table_id), None)

    def _commit_file(self, late: Late, name: TableName) -> None:
        path, now = CanonicalPath(late.file.path), self.house.clock.now()
        waited_ms = now - late.placed_at
        if path not in self.files.storage.objects:
            self.counted["late writer outrun"] += 1
            if waited_ms < min(FLOORS_MS.values()) * 3 - CLOCKS_MS:
                raise Broken(f"{path} was taken from its writer after {waited_ms / DAY_MS:.1f} days")
            return
        if self._depth:
            self.files.raced.add(path)
            self.counted["file raced for"] += 1
        modified_at = self.files.storage.objects[path].listed.modified_at or 0
        self.files.slowest_ms = max(self.files.slowest_ms, now - modified_at)
        self.writers.commit_late(name, late.file)
        self.counted["committed after days"] += waited_ms > DAY_MS

    def _tag(self) -> None:
        """An owner tags a snapshot, or takes a tag away."""
        name = self.chance.choice(self.names)
        metadata = self.house.metadata_of(name)
        tags = [ref.name for ref in metadata.refs if ref.kind is RefKind.TAG]
        if tags and self.chance.random() < 0.5:
            self.house.catalog.drop_ref(name, tags[0])
        elif metadata.snapshots:
            chosen = self.chance.choice(metadata.snapshots)
            self.house.catalog.set_ref(name, f"tag-{len(tags)}", chosen.snapshot_id, kind=RefKind.TAG)

    def _forbid(self) -> None:
        """An owner says that nobody may delete files of a table, or that one may."""
        name = self.chance.choice(self.names)
        allowed = self.house.metadata_of(name).properties.get(GC_KEY, "true") == "true"
        self.house.catalog.set_properties(name, {GC_KEY: "false" if allowed else "true"})

    def _lose_storage(self) -> None:
        self._storage_away_until = self.house.clock.now() + self.chance.randint(1, 30) * MINUTE_MS

    # What people do.

    def _approve(self) -> None:
        self._approve_all(0.5)

    def _approve_all(self, share: float) -> None:
        control = self.house.control
        for waiting in self.stores[0].waiting(limit=100):
            if self.chance.random() < share:
                self.files.approved.add(waiting.plan_id)
                self._asked("approved", partial(control.dispatcher.approve, waiting.plan_id, "Ada"))

    def _undo(self) -> None:
        """Somebody takes back what was done."""
        done = [task for task in self.all_tasks() if task.action.kind in UNDOABLE]
        if not done:
            return
        task, control = self.chance.choice(done[:8]), self.house.control
        plan = self._asked("undo planned", lambda: control.undoer.plan(task.task_id))
        if isinstance(plan, Plan) and plan.actions:
            self._asked(f"undo of {task.action.kind}", lambda: control.dispatcher.apply(plan.plan_id))

    def _roll_back(self) -> None:
        """Somebody sets a table back through icewright."""
        name, control = self.chance.choice(self.names), self.house.control
        known = [one.snapshot_id for one in self.house.metadata_of(name).ancestors()]
        if not known:
            return
        asked = RollbackRequest(to_snapshot=self.chance.choice(known[:5]))
        plan = self._asked("rollback planned", lambda: control.maintainer.plan_asked(name, asked))
        if isinstance(plan, Plan) and plan.actions:
            self._asked("rollback asked for", lambda: control.dispatcher.apply(plan.plan_id))

    def _tend(self) -> None:
        """Somebody has the quarantine looked after."""
        held = list(self.files.store.with_held(limit=100))
        if held:
            run_id, rounds = self.chance.choice(held), self.house.control.removal_rounds
            self._asked("quarantine tended", lambda: rounds.tend(run_id))

    def _asked(self, what: str, request: Callable[[], object]) -> object:
        try:
            answer = self._ask_server(request)
        except (Rejected, Conflict, NotFound):
            self.counted[f"{what}: refused"] += 1
            return None
        self.counted[what] += answer is not None
        return answer

    def _at_the_door(self, step: Step, when: str, path: CanonicalPath) -> None:
        self.files.at_the_door(step, when, path)
        if self._is_quiet:
            return
        chance = self.chance.random()
        if self.house.clock.now() < self._storage_away_until and chance < 0.5:
            self.counted[f"storage away {when} {step}"] += 1
            raise StorageUnavailable("the storage does not answer")
        if chance < 0.01:
            self.counted[f"killed {when} {step}"] += 1
            raise Killed
        if when == BEFORE and chance > 0.9 and self._depth == 1:
            self._depth += 1
            try:
                self.chance.choice([self._commit_late, self._write])()
            finally:
                self._depth -= 1
            self.counted["meanwhile at the door"] += 1

    def _is_lent(self, path: CanonicalPath) -> bool:
        """Whether another table has files where it was: what is garbage to one is not to the other, and it stays."""
        return any(place.removeprefix("file://") in path for place in self.files.lent)

    def _is_dropped(self, path: CanonicalPath) -> bool:
        """Whether what is in quarantine was a table's that is gone: nobody can tell any more what it needs."""
        return not any(self.house.metadata_of(name).table_id.uuid in path for name in self.names)
