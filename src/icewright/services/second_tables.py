"""Expiries taken back as a second table, where a catalog takes no old snapshots: planned, carried out, verified.

Each step is looked for before it is taken, so that whoever goes on behind a death takes none twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from icewright.domain.errors import Conflict, NotAllowed, NotFound, TableReplaced, Unavailable, Unknown, Unreadable
from icewright.domain.expire_snapshots import ExpireSnapshots
from icewright.domain.names import TableName
from icewright.domain.plans import Reason
from icewright.domain.policy import Policy
from icewright.domain.tables import Instant, TableMetadata
from icewright.domain.tasks import Task
from icewright.domain.undo import SecondTable
from icewright.planning import wording
from icewright.planning.expiry_undo import UndoDecision
from icewright.planning.second_table import (
    FIRST_GUARD,
    decide_second,
    has_all,
    is_guarded,
    second_conflict,
    second_guard,
    second_name,
    with_what_came_since,
)
from icewright.ports.second_tables import SecondTables
from icewright.ports.table_files import TableFiles
from icewright.scheduling.breaker import UNVERIFIED, VERIFICATION_FAILED
from icewright.services.missing_files import first_missing
from icewright.services.observer import Observer
from icewright.services.registry import Registry


@dataclass(frozen=True, slots=True)
class SecondTabler:
    """Takes expiries back beside their tables. ``doors`` and ``files`` are by the names of their catalogs."""

    doors: Mapping[str, SecondTables]
    files: Mapping[str, TableFiles]
    observer: Observer
    registry: Registry

    def decide(
        self,
        task_id: str,
        expiry: ExpireSnapshots,
        kept: TableMetadata,
        now: TableMetadata,
        policy: Policy,
        until: Instant,
    ) -> UndoDecision:
        """What comes back. Raises :class:`NotAllowed` where the metadata file of then is not there any more."""
        there = self._found(second_name(now.name, expiry.as_of))
        before = None if there is not None else self._before(now, kept.metadata_location)
        return decide_second(task_id, expiry, kept, now, before, there, policy, until)

    def carry_out(self, task: Task, kept: TableMetadata, second: SecondTable, may_commit: Callable[[], None]) -> None:
        """Register the second table, and have both say that nothing may be deleted for either.

        Raises ``Conflict`` for anything that is not as it was planned, ``NotAllowed`` where the catalog refuses, and
        ``Unavailable``, by which it is tried again, also where the answer to a step was lost.
        """
        first = self._first(task)
        there = self._found(second.name)
        self._check_names(task, second.name)
        if there is not None and has_all(kept, there) and is_guarded(first, there) and task.attempt == 1:
            raise Conflict(f"somebody else registered {second.name}")
        self._check(second_conflict(kept, first, None, there))
        door = self._door(first)
        if there is None:
            self._check_files(first, kept, second)
            may_commit()
            door.register(second.name, second.metadata_location)
            there = self.observer.catalog(second.name.catalog).load(second.name)
            self._check(second_conflict(kept, first, None, there))
        else:
            may_commit()
        self.registry.saw(there)  # before anything else is asked whose a place is
        try:
            door.say(second.name, task.table_id, second_guard(task.task_id))
            door.say(first.name, task.table_id, FIRST_GUARD)
        except (Conflict, Unknown) as error:  # registered it is, and the next attempt goes on from there
            raise Unavailable(f"{second.name} is registered, and not all is said yet: {error.message}") from error

    def problem(self, kept: TableMetadata, second: SecondTable, first: TableMetadata) -> Reason | None:
        """What is not as it should be of the second table; None where it can be read and both are guarded."""
        there, name = self._found(second.name), wording.cut(str(second.name))
        if there is None:
            return Reason(UNVERIFIED, f"it was reported as registered, and {name} is not there (any more)")
        if not has_all(kept, there):
            return Reason(VERIFICATION_FAILED, f"{name} does not have what the expiry took")
        if there.current_snapshot is not None:
            try:
                self.observer.catalog(second.name.catalog).manifests(there, there.current_snapshot)
            except Unreadable as error:
                return Reason(VERIFICATION_FAILED, f"{name} cannot be read: {error.message}")
        if not is_guarded(first, there):
            return Reason(UNVERIFIED, f"{name} is there; that nothing may be deleted is not said on both (any more)")
        return None

    def _first(self, task: Task) -> TableMetadata:
        first = self.observer.catalog(task.table_name.catalog).load(task.table_name)
        if first.table_id != task.table_id:
            raise TableReplaced(f"{task.table_name} is another table by now")
        return first

    def _door(self, first: TableMetadata) -> SecondTables:
        door = self.doors.get(first.name.catalog)
        if door is None:
            raise NotFound(f"no catalog {first.name.catalog!r} is configured")
        return door

    def _found(self, name: TableName) -> TableMetadata | None:
        try:
            return self.observer.catalog(name.catalog).load(name)
        except NotFound:
            return None

    def _before(self, now: TableMetadata, location: str) -> TableMetadata:
        try:
            return self._door(now).read(now, location).metadata
        except Unreadable as error:
            raise NotAllowed(
                f"it cannot be undone any more: {location}, which has what expired, cannot be read ({error.message})",
                hint="writers delete old metadata files where write.metadata.delete-after-commit.enabled says so",
            ) from error

    def _check_names(self, task: Task, second: TableName) -> None:
        """Other names are fine that say themselves that nothing may be deleted: those of other undos do."""
        for name in sorted(self.registry.namesakes(task.table_name, task.table_id.uuid) - {second}):
            other = self._found(name)
            if other is not None and other.table_id.uuid == task.table_id.uuid and other.collects_garbage:
                raise Conflict(f"the table is also known as {name} by now")

    def _check_files(self, first: TableMetadata, kept: TableMetadata, second: SecondTable) -> None:
        """Whether the metadata file is what was recorded, and all is there that no present snapshot keeps."""
        name = first.name
        try:
            before = self._door(first).read(first, second.metadata_location)
        except Unreadable as error:
            raise Conflict(f"{second.metadata_location} cannot be read any more: {error.message}") from error
        self._check(second_conflict(kept, first, before.metadata, None))
        table, gone = with_what_came_since(before, self.files[name.catalog].roots(name))
        missing = first_missing(self.files[name.catalog], table, gone)
        if missing is not None:
            said = f"nothing is registered beside {name}: {missing} is not there any more"
            raise Conflict(f"{said}; undo first whatever it went with since: an expiry, or a removal of orphans")

    @staticmethod
    def _check(conflict: Reason | None) -> None:
        if conflict is not None:
            raise Conflict(f"no second table: {conflict.text}")
