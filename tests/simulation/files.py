"""All files of a simulated lakehouse as objects, and what must hold of each of them whatever removes files.

What a table needs is told from the metadata of the catalog in memory, by nothing of icewright's. The door through which
files go is watched: what is done there is compared with what is true at that moment, by the true clock.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from icewright.core.times import Instant
from icewright.model.actions.deletion import Cause, DeletionRun, Intent, IntentState, Step, same_object
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.objects import prefix_of
from icewright.ports.deletions import DeletionStore
from tests.builders.lakehouse import HELD, HOUR_MS, Lakehouse
from tests.doubles.objects import MemoryStorage
from tests.simulation.writers import Broken

DAY_MS = 24 * HOUR_MS
CLOCKS_MS = 3 * HOUR_MS
"""How far clocks are set, each against the other, and some more."""
FLOORS_MS = {Cause.ORPHAN: 3 * DAY_MS, Cause.EXPIRED: DAY_MS}
WINDOW_MS = 7 * DAY_MS
PERCENT = 100


@dataclass
class Files:
    """What is at which place, what it was, and who needs it. All instants are of the true time."""

    house: Lakehouse
    names: list[TableName]
    store: DeletionStore
    counted: Counter[str]
    content: dict[CanonicalPath, bytes] = field(default_factory=dict)
    """What was in each file when a table came to need it, or when it went."""
    placed: dict[CanonicalPath, Instant] = field(default_factory=dict)
    """When files came that say that they are older."""
    unneeded_since: dict[CanonicalPath, Instant] = field(default_factory=dict)
    """When nothing needed files for the first time, and when they came back from quarantine. Nobody looks again before
    the next pass, so that being needed for a while in between does not count."""
    expired_at: dict[CanonicalPath, Instant] = field(default_factory=dict)
    """When an expiry of icewright's last took a snapshot that needs a file."""
    expired_by_others: set[tuple[TableId, int]] = field(default_factory=set)
    raced: set[CanonicalPath] = field(default_factory=set)
    """Files that somebody committed days after writing them, while a server was at work: it cannot know in time, and
    puts them back."""
    approved: set[str] = field(default_factory=set)
    """Plans that a person has said yes to."""
    lent: set[str] = field(default_factory=set)
    """Locations of tables in whose places other tables have had files: nothing more goes there while they may."""
    gone: set[CanonicalPath] = field(default_factory=set)
    """What was moved away and did not come back."""
    slowest_ms: int = 0
    """The longest that a writer took from a file to its commit."""
    broken: Broken | None = None
    """The loop logs what it catches and goes on; this is what the run ends with."""
    _needed: dict[TableName, tuple[str, frozenset[CanonicalPath]]] = field(default_factory=dict)
    _of_snapshots: dict[tuple[TableId, int], frozenset[CanonicalPath]] = field(default_factory=dict)
    _kept: dict[TableId, set[tuple[TableId, int]]] = field(default_factory=dict)
    _touched: bool = True
    _held_since: dict[tuple[str, CanonicalPath], Instant] = field(default_factory=dict)

    @property
    def storage(self) -> MemoryStorage:
        """Where all of them are."""
        assert self.house.storage is not None
        return self.house.storage

    def needed(self) -> frozenset[CanonicalPath]:
        """What any retained snapshot of any table needs, and the metadata files that the tables name."""
        for name in [name for name in self._needed if name not in self.names]:
            del self._needed[name]  # renamed, or another table
        for name in self.names:
            self._see(name)
        return frozenset().union(*(paths for _, paths in self._needed.values()))

    def check(self) -> None:
        """All that is needed is there, byte for byte; files on their way through the door aside. Raises ``Broken``."""
        if self.broken is not None:
            raise self.broken
        before = {name: location for name, (location, _) in self._needed.items()}
        needed = self.needed()
        if not self._touched and before == {name: location for name, (location, _) in self._needed.items()}:
            return
        self._touched = False
        for path in needed:
            if not self._is_there(path) and not self._is_raced(path):
                raise Broken(f"{path} is needed, and not there as it was")

    def settled(self) -> None:
        """At the end of a quiet time: files that somebody raced for are back as well, and nothing is left open."""
        self.raced.clear()
        self._touched = True
        self.check()
        for run in self.store.runs(limit=10_000):
            tally = self.store.count_intents(run.run_id)
            if run.is_open or tally[IntentState.UNKNOWN].files or tally[IntentState.PLANNED].files:
                raise Broken(f"run {run.run_id} has no end: {tally}")

    def garbage(self, but_of: TableName) -> set[CanonicalPath]:
        """Files in the places of all tables but one that nobody needs and that should be gone by now.

        Metadata files stay for other reasons. Where writers take long, files stay for three times as long.
        """
        needed, now = self.needed(), self.house.clock.now()
        older_than_ms = 8 * DAY_MS + max(4 * DAY_MS, 3 * self.slowest_ms)
        places = {self.house.metadata_of(name).location for name in self.names if name != but_of} - self.lent
        roots = tuple(prefix_of(CanonicalPath(location)) for location in places)
        return {
            path
            for path, stored in self.storage.objects.items()
            if path not in needed
            and path.startswith(roots)
            and not path.endswith(".json")
            and max(stored.listed.modified_at or 0, self.unneeded_since.get(path, 0)) < now - older_than_ms
        }

    def held(self) -> dict[CanonicalPath, Instant]:
        """What is in quarantine, and since when."""
        return {
            path: stored.listed.modified_at or 0
            for path, stored in self.storage.objects.items()
            if path.startswith(prefix_of(HELD))
        }

    def at_the_door(self, step: Step, when: str, path: CanonicalPath) -> None:
        """Something is about to be done with a file, or was done."""
        self._touched = True
        try:
            match step, when:
                case Step.QUARANTINE, "before" if self._is_what_it_was(path):  # or the door will say so
                    self._may_go(path)
                    self.content.setdefault(path, self.storage.objects[path].content)
                case Step.QUARANTINE, "after":
                    run, _intent = self._intent(step, path)
                    self._require((run.run_id, path) not in self._held_since, f"{path} was moved away twice")
                    self._held_since[run.run_id, path] = self.house.clock.now()
                    self.gone.add(path)
                    self.counted[f"file moved: {run.cause}"] += 1
                case Step.PURGE, "before":
                    self._may_be_purged(path)
                case Step.PURGE, "after":
                    self.counted["file purged"] += 1
                case Step.RESTORE, "after":
                    self.gone.discard(path)
                    self.counted["file came back"] += 1
                    self.unneeded_since[path] = self.house.clock.now()
                    same = self.storage.objects[path].content == self.content[path]
                    self._require(same, f"{path} came back as something else")
        except Broken as error:
            self.broken = self.broken or error
            raise

    def _require(self, holds: bool, what: str) -> None:  # noqa: FBT001 - a condition
        if not holds:
            raise Broken(what)

    def _is_what_it_was(self, path: CanonicalPath) -> bool:
        _, intent = self._intent(Step.QUARANTINE, path)
        stored = self.storage.objects.get(path)
        return stored is not None and same_object(intent.object, stored.listed)

    def _may_go(self, path: CanonicalPath) -> None:
        run, intent = self._intent(Step.QUARANTINE, path)
        now = self.house.clock.now()
        if intent.checked is None or intent.checked.epoch != self.store.epoch():
            raise Broken(f"nobody has written down by what {path} goes")
        if path in self.needed() and path not in self.raced:
            raise Broken(f"{path} is about to go, and a table needs it")
        owners = [name for name in self.names if path.startswith(f"{self.house.metadata_of(name).location}/")]
        if not owners or self.house.metadata_of(owners[0]).table_id != run.table_id or len(owners) > 1:
            raise Broken(f"{path} is about to go with the files of {run.table_name}, and is in the place of {owners}")
        alone_ms = now - self._left_alone_since(path, run.cause)
        if alone_ms < FLOORS_MS[run.cause] - CLOCKS_MS:
            raise Broken(f"{path} ({run.cause}) is about to go after {alone_ms / HOUR_MS:.1f} hours of no need")
        self._is_allowed(run)

    def _left_alone_since(self, path: CanonicalPath, cause: Cause) -> Instant:
        if cause is Cause.EXPIRED:
            return self.expired_at.get(path, self.house.clock.now())
        modified_at = self.storage.objects[path].listed.modified_at or 0
        return max(self.placed.get(path, 0), modified_at, self.unneeded_since.get(path, 0))

    def _is_allowed(self, run: DeletionRun) -> None:
        earlier = [one for one in self.store.runs(table_id=run.table_id, limit=10_000) if one.run_id < run.run_id]
        size_bytes = sum(tally.bytes for tally in self.store.count_intents(run.run_id).values())
        too_much = run.cause is Cause.ORPHAN and size_bytes * PERCENT > run.table_bytes
        if (too_much or not earlier) and run.plan_id not in self.approved:
            raise Broken(f"nobody has said that the files of plan {run.plan_id} may go")
        self.counted["removal beyond the budget"] += too_much

    def _may_be_purged(self, path: CanonicalPath) -> None:
        run, intent = self._intent(Step.PURGE, path)
        since = self._held_since.get((run.run_id, path))
        if since is None or self.house.clock.now() - since < WINDOW_MS - CLOCKS_MS:
            raise Broken(f"{path} is purged before its time is over")
        if path in self.needed() and not self._is_there(path):
            raise Broken(f"{path} is purged, and a table needs it")
        if intent.held is None:
            raise Broken(f"{path} is purged from nowhere")

    def _intent(self, step: Step, path: CanonicalPath) -> tuple[DeletionRun, Intent]:
        """What is written down of this very step. Raises ``Broken`` where nothing is."""
        for run in self.store.runs(limit=10_000):
            for intent in self.store.intents(run.run_id, frozenset({IntentState.UNKNOWN}), limit=10_000):
                if intent.object.path == path and intent.step is step:
                    return run, intent
        raise Broken(f"{step} of {path} is written down nowhere")

    def _see(self, name: TableName) -> None:
        metadata = self.house.metadata_of(name)
        before = self._needed.get(name, ("", frozenset[CanonicalPath]()))
        if before[0] == metadata.metadata_location:
            return
        kept = {(metadata.table_id, snapshot.snapshot_id) for snapshot in metadata.snapshots}
        for key in kept - self._of_snapshots.keys():
            self._of_snapshots[key] = self._paths(name, key[1])
        own = {metadata.metadata_location, *(entry.location for entry in metadata.metadata_log)}
        paths = frozenset(map(CanonicalPath, own)).union(*(self._of_snapshots[key] for key in kept))
        self._needed[name] = metadata.metadata_location, paths
        now = self.house.clock.now()
        for path in before[1] - paths:
            self.unneeded_since.setdefault(path, now)
        for key in self._kept.get(metadata.table_id, set()) - kept - self.expired_by_others:
            self.expired_at.update(dict.fromkeys(self._of_snapshots[key], now))
        self._kept[metadata.table_id] = kept
        for path in paths - before[1]:
            if path not in self.content and path in self.storage.objects:
                self.content[path] = self.storage.objects[path].content

    def _paths(self, name: TableName, snapshot_id: int) -> frozenset[CanonicalPath]:
        metadata = self.house.metadata_of(name)
        snapshot = metadata.snapshot(snapshot_id)
        assert snapshot is not None
        available, self.house.catalog.available = self.house.catalog.available, True
        manifests = self.house.catalog.manifests_of(metadata, snapshot)
        self.house.catalog.available = available
        files = {entry.file.path for manifest in manifests for entry in manifest.live}
        return frozenset(
            map(CanonicalPath, {snapshot.manifest_list, *(manifest.key.path for manifest in manifests), *files})
        )

    def _is_there(self, path: CanonicalPath) -> bool:
        stored = self.storage.objects.get(path)
        return stored is not None and stored.content == self.content.get(path)

    def _is_raced(self, path: CanonicalPath) -> bool:
        return path in self.raced and any(
            stored.content == self.content[path] for at, stored in self.storage.objects.items() if at.startswith(HELD)
        )
