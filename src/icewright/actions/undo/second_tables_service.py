"""Expiries taken back as a second table, where a catalog takes no old snapshots: planned, carried out, verified.

Each step is looked for before it is taken, so that whoever goes on behind a death takes none twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from icewright.actions.undo.expiry_undo import UndoDecision
from icewright.actions.undo.missing_files import first_missing
from icewright.actions.undo.second_table import (
    FIRST_GUARD,
    decide_second,
    has_all,
    is_guarded,
    second_conflict,
    second_guard,
    second_name,
    with_what_came_since,
)
from icewright.actions.undo.second_tables_port import SecondTables
from icewright.catalogs.table_files_port import TableFiles
from icewright.core import wording
from icewright.core.errors import (
    Conflict,
    IcewrightError,
    NotAllowed,
    NotFound,
    TableReplaced,
    Unavailable,
    Unreadable,
)
from icewright.core.times import Instant
from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.actions.undo import SecondTable
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.reachable_files import Roots
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.model.work.breaker import UNVERIFIED, VERIFICATION_FAILED
from icewright.model.work.tasks import Task
from icewright.observation.observer import Observer
from icewright.ownership.registry import Registry


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

    def go_on(self, task: Task, kept: TableMetadata, second: SecondTable, may_commit: Callable[[], None]) -> bool:
        """Whether the second table is there already: then both say now that nothing may be deleted for either.

        It comes before anything that may end the task, and is never too late. Raises as :meth:`register`.
        """
        first, there = self._first(task), self._found(second.name)
        if there is not None and has_all(kept, there) and is_guarded(first, there) and task.attempt == 1:
            raise Conflict(f"another client registered {second.name}")
        self._check(second_conflict(kept, first, None, there))
        if there is None:
            return False
        may_commit()
        self._guard(task, kept, first, second.name)
        return True

    def check(self, task: Task, second: SecondTable) -> None:
        """What is asked of a second table that was there already, and is guarded by now. Raises ``Conflict``."""
        self._check_names(task, second.name)
        said = f"{second.name} is registered, and both tables say that nothing may be deleted"
        self._check_files(self._first(task), self.files[second.name.catalog].roots(second.name), said)

    def register(self, task: Task, kept: TableMetadata, second: SecondTable, may_commit: Callable[[], None]) -> None:
        """Register the second table, and have both say that nothing may be deleted for either.

        Raises ``Conflict`` for anything that is not as it was planned, and ``NotAllowed`` where the catalog refuses to
        register: then neither table has changed. ``Unavailable``, by which it is tried again, also where the answer to
        a step was lost, and where it is registered and anything else fails.
        """
        first = self._first(task)
        self._check_names(task, second.name)
        try:
            before = self._door(first).read(first, second.metadata_location)
        except Unreadable as error:
            raise Conflict(f"{second.metadata_location} cannot be read any more: {error.message}") from error
        self._check(second_conflict(kept, first, before.metadata, None))
        self._check_files(first, before, f"no second table is registered for {first.name}")
        may_commit()
        try:
            self._door(first).register(second.name, second.metadata_location)
        except Conflict as error:  # so is what was asked twice on the way: whether it is ours is told by what is in it
            there = self._found(second.name)
            if there is None:
                raise Unavailable(f"{error.message}; the catalog shows no table of that name") from error
            self._check(second_conflict(kept, first, None, there))
        self._guard(task, kept, first, second.name)

    def _guard(self, task: Task, kept: TableMetadata, first: TableMetadata, second: TableName) -> None:
        """Have both tables say it, the first also where the second does not.

        Whatever fails is ``Unavailable``, since the second is registered: the next attempt goes on from there. A
        catalog may not show it yet, or not let it be changed.
        """
        door, left = self._door(first), list[IcewrightError]()
        try:
            there = self.observer.catalog(second.catalog).load(second)
        except IcewrightError as error:
            left.append(error)
        else:
            self._check(second_conflict(kept, first, None, there))
            self.registry.saw(there)  # before anything else is asked whose a place is
        for name, said in ((second, second_guard(task.task_id)), (first.name, FIRST_GUARD)):
            try:
                door.say(name, task.table_id, said)
            except IcewrightError as error:
                left.append(error)
        if left:
            raise Unavailable(f"{second} is registered, and not all that follows is done: {left[0].message}") from left[
                0
            ]

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
            raise TableReplaced(f"{task.table_name} is another table now")
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
                raise Conflict(f"the table is now also known as {name}")

    def _check_files(self, first: TableMetadata, second: Roots, said: str) -> None:
        """Whether all is there that the second table shows and no present snapshot of the first keeps."""
        files = self.files[first.name.catalog]
        table, gone = with_what_came_since(second, files.roots(first.name))
        missing = first_missing(files, table, gone)
        if missing is not None:
            instead = "first undo what removed it: an expiry, or a removal of orphans"
            raise Conflict(f"{said}; {missing} is not there any more; {instead}")

    @staticmethod
    def _check(conflict: Reason | None) -> None:
        if conflict is not None:
            raise Conflict(f"no second table: {conflict.text}")
