"""What is true right before files go: what their table needs, whose their place is, and what time it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from icewright.actions.remove_files.may_delete import Facts
from icewright.catalogs.objects import Objects
from icewright.core.completeness import Gap, Known, Partial
from icewright.core.errors import NotFound
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.deletion import DeletionRun, Intent, Needs
from icewright.model.iceberg.locations import Aliases, CanonicalPath, checksummed, storage_and_key
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.objects import prefix_of
from icewright.ownership.model import Place
from icewright.ownership.needed_files import NeedsOf

FRESH_MS: Final = 5_000
"""How long reading a table may take for the answer to be taken for that of now."""
LOOKS_MAX: Final = 3

PlaceOf = Callable[[TableName], Known[Place]]
"""What a table alone owns; the registry of all places tells."""


@dataclass(frozen=True, slots=True)
class Never:
    """Why nothing of a run may be done any more."""

    reason: Reason


class FactsNow:
    """Gathers the facts about files of one catalog's tables."""

    def __init__(
        self,
        needs: NeedsOf,
        place: PlaceOf,
        objects: Objects,
        store_now: Callable[[], Instant],
        quarantines: Sequence[CanonicalPath],
        aliases: Aliases,
        graces_since: Callable[[], Instant],
    ) -> None:
        self._needs, self._place, self._objects = needs, place, objects
        self._store_now, self._quarantines, self._aliases = store_now, quarantines, aliases
        self._graces_since = graces_since

    def fresh(self, run: DeletionRun, intents: Sequence[Intent]) -> Facts | Reason | Never:
        """As :meth:`now`, also of a table whose metadata takes long to read: it is looked at once more behind that.

        The second answer costs little where nothing was committed meanwhile. A table that is written to faster than
        it can be read is looked at :data:`LOOKS_MAX` times; what its latest commits need is put back behind the batch.
        """
        for _ in range(LOOKS_MAX):
            asked_at = self._store_now()
            facts = self.now(run, intents, run.table_name)
            if not isinstance(facts, Facts) or self._store_now() - asked_at <= FRESH_MS:
                break
        return facts

    def now(self, run: DeletionRun, intents: Sequence[Intent], name: TableName) -> Facts | Reason | Never:
        """What is true now; or why it cannot be told now, or that it will never be true for this run."""
        paths = [intent.object.path for intent in intents]
        try:
            place = self._place(name)
            known = self._needs(name, with_checksummed(paths))
        except NotFound as error:
            return Never(Reason("table-gone", error.message))
        if isinstance(known, Partial):
            return partial_knowledge("what the table needs is not known in full", known.gaps)
        if isinstance(place, Partial):
            return partial_knowledge("whose place it is is not known in full", place.gaps)
        return self._judged(run, known.value, place.value, paths)

    def _judged(
        self, run: DeletionRun, needs: Needs, place: Place, paths: Sequence[CanonicalPath]
    ) -> Facts | Reason | Never:
        if needs.table_id != run.table_id:
            return Never(Reason("table-replaced", "another table has its name now"))
        if not needs.collects_garbage:
            return Never(Reason("gc-disabled", "gc.enabled is false: another table may need its files"))
        if any(_overlap(root, own) for root in self._quarantines for own in place.roots):
            return Reason("quarantine-in-table", "the quarantine overlaps the table's place; configure another one")
        now, latest = self.clocks(paths)
        return Facts(needs, place, self._quarantines, self._aliases, now, latest, self._graces_since())

    def clocks(self, paths: Iterable[CanonicalPath]) -> tuple[Instant, Instant]:
        """The earliest and the latest of all clocks concerned: one that is wrong makes nothing old."""
        by_storage = {storage_and_key(path)[0]: path for path in paths}
        clocks = [self._store_now(), *(self._objects.now(path) for path in by_storage.values())]
        return min(clocks), max(clocks)


def with_checksummed(paths: Iterable[CanonicalPath]) -> list[CanonicalPath]:
    """Files, and those that they are the checksums of."""
    return [one for path in paths for one in (path, checksummed(path)) if one is not None]


def partial_knowledge(text: str, gaps: Sequence[Gap]) -> Reason:
    """Why nothing goes while something is not known; what that is comes first."""
    return Reason("partial-knowledge", f"{gaps[0].what}: {gaps[0].reason.text}: {text}" if gaps else text)


def _overlap(quarantine: CanonicalPath, root: str) -> bool:
    prefix = prefix_of(quarantine)
    return prefix.startswith(root) or root.startswith(prefix)
