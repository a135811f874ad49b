"""Which of the unneeded files go, and what is remembered of the others: from a survey's findings to an action.

A file's first sighting only begins its time. What goes is what was the same object in every pass since then.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from icewright.actions.remove_files.orphans.rules import Kept, OrphanRules
from icewright.actions.remove_files.orphans.survey import Survey, counts
from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.inventory.footprint import Amount
from icewright.model.actions.orphans import FoundFile, SeenFiles, SeenOrphans, Sighting
from icewright.model.actions.remove_files import (
    FILES_MAX,
    PASSES_MIN,
    Doubt,
    OrphanBudget,
    OrphanFile,
    RemoveOrphanFiles,
    RemoveOrphanFilesPrediction,
)
from icewright.model.iceberg.locations import CanonicalPath, checksummed
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policy import Policy
from icewright.plans.procedure_call import procedure_call

SIGHTINGS_MAX: Final = 1_000_000
"""Of one table: some 35 MB in the store. Those that are remembered stay so; others come when there is room."""

DOUBTFUL: Final = "doubtful-files"
"""Why a removal waits of which some files may be anybody's."""
_DOUBTS: Final = {
    Doubt.UNFAMILIAR: "no writer of tables calls files so",
    Doubt.GONE_TABLE: "another table lay here before",
    Doubt.NOTHING_KNOWN: "nothing of the table is known where they are",
    Doubt.BEFORE_TABLE: "older than any file that is known of the table",
}


@dataclass(slots=True)
class Selection:
    """Goes through the unneeded files of a survey once; then has what goes.

    ``seen_at`` is what new sightings begin at: the latest of the clocks at hand. ``room`` is for how many new ones.
    """

    survey: Survey
    rules: OrphanRules
    seen_at: Instant
    room: int
    graces_since: Instant = 0
    """When the clock jumped last: what was seen before it counts as seen first then, in no pass."""
    orphans: Amount = field(default_factory=Amount)
    once: Amount = field(default_factory=Amount)
    waiting: Amount = field(default_factory=Amount)
    first_seen_at: Instant | None = None
    _chosen: list[OrphanFile] = field(default_factory=list)

    def sightings(self, unneeded: Iterable[FoundFile | Sighting]) -> Iterator[Sighting]:
        """What is to be remembered of all unneeded files, each as :meth:`Survey.part` gives it."""
        counted = 1 if self.survey.listing_is_complete else 0
        last: CanonicalPath | None = None
        is_chosen = False
        for found, before in _paired(unneeded):
            if found is None:
                if before is not None:
                    yield before
                continue
            file = checksummed(found.path)
            is_alone = file is None or file != last  # a checksum comes right behind its file
            if is_alone:
                last, is_chosen = found.path, False
            if (why := self.rules.stays(found)) is not None:
                self.survey.keep(why)
                continue
            if before is not None and before.is_of(found.listed):
                sighting = before.since(self.graces_since, self.seen_at).again(self.seen_at, counted)
            elif self.room > 0:
                self.room -= 1
                sighting = Sighting.first(found.path, found.listed, self.seen_at, counted)
            else:
                self.survey.keep(Kept.TOO_MANY)
                continue
            why = self.rules.waits(found, sighting)
            if why is None and not is_alone and not is_chosen:
                why = Kept.CHECKSUM
            if is_alone:
                is_chosen = why is None
            self._judge(found, sighting, why)
            yield sighting

    @property
    def remembered(self) -> Amount:
        """All that was seen now."""
        return self.once + self.waiting + self.orphans

    @property
    def seen(self) -> SeenOrphans:
        """How far each of them is."""
        once, waiting, removable = (SeenFiles(a.files, a.size_bytes) for a in (self.once, self.waiting, self.orphans))
        return SeenOrphans(once, waiting, removable, self.first_seen_at)

    @property
    def files(self) -> tuple[OrphanFile, ...]:
        """What goes, first seen first; at most as many as one action may have, and no checksum before its file."""
        chosen = sorted(self._chosen, key=_order)[:FILES_MAX]
        if self.orphans.files <= FILES_MAX:
            return tuple(chosen)
        paths = {file.path for file in chosen}
        return tuple(one for one in chosen if (checksummed(CanonicalPath(one.path)) or one.path) in paths)

    def _judge(self, found: FoundFile, sighting: Sighting, why: Kept | None) -> None:
        listed = found.listed
        one = Amount(1, listed.size_bytes)
        first = self.first_seen_at
        self.first_seen_at = sighting.first_seen_at if first is None else min(first, sighting.first_seen_at)
        if why is not None or listed.modified_at is None:
            self.survey.keep(why or Kept.NO_TIME)
            if sighting.passes < PASSES_MIN:
                self.once += one
            else:
                self.waiting += one
            return
        self.orphans += one
        self._chosen.append(
            OrphanFile(
                path=listed.path,
                size_bytes=listed.size_bytes,
                modified_at=listed.modified_at,
                etag=listed.etag,
                version_id=listed.version_id,
                first_seen_at=sighting.first_seen_at,
                passes=sighting.passes,
                doubt=self.rules.doubt(found),
            )
        )
        if len(self._chosen) >= 2 * FILES_MAX:
            self._chosen = heapq.nsmallest(FILES_MAX, self._chosen, key=_order)


def remove_orphan_files(
    selection: Selection, budget: OrphanBudget, listed_at: Instant, gone: tuple[str, ...] = ()
) -> RemoveOrphanFiles | None:
    """The action that a selection comes to; None when nothing goes. ``gone`` are uuids of tables of before."""
    survey, files = selection.survey, selection.files
    if not files:
        return None
    return RemoveOrphanFiles(
        base_metadata_location=survey.table.metadata_location,
        base_snapshot_id=survey.table.current_snapshot_id,
        roots=survey.place.roots,
        files=files,
        listed_at=listed_at,
        as_of=survey.as_of,
        age_min_ms=selection.rules.age_min_ms,
        orphan_files=selection.orphans.files,
        orphan_bytes=selection.orphans.size_bytes,
        budget_files=budget.files_max,
        budget_bytes=budget.bytes_of(min(survey.needed.size_bytes, survey.needed_listed.size_bytes)),
        gone=gone,
    )


def predict(selection: Selection, action: RemoveOrphanFiles) -> RemoveOrphanFilesPrediction:
    """What carrying out the action of a selection would bring."""
    survey = selection.survey
    return RemoveOrphanFilesPrediction(
        files=len(action.files),
        size_bytes=action.size_bytes,
        listed_files=survey.listed.files,
        listed_bytes=survey.listed.size_bytes,
        reachable_files=survey.needed.files,
        reachable_bytes=survey.needed.size_bytes,
        kept=counts(survey.kept),
        listing_is_complete=survey.listing_is_complete,
        left_for_later=selection.orphans.files - len(action.files),
        needs_approval=action.needs_approval,
        call=_nearest_call(survey.table.name, action.as_of - action.age_min_ms),
    )


def _paired(unneeded: Iterable[FoundFile | Sighting]) -> Iterator[tuple[FoundFile | None, Sighting | None]]:
    """Files with the sightings that follow them; None where there is but one of the two."""
    waiting: FoundFile | None = None
    for one in unneeded:
        if isinstance(one, Sighting) and waiting is not None and waiting.path == one.path:
            yield waiting, one
            waiting = None
            continue
        if waiting is not None:
            yield waiting, None
        waiting = None
        if isinstance(one, Sighting):
            yield None, one
        else:
            waiting = one
    if waiting is not None:
        yield waiting, None


def _nearest_call(name: TableName, older_than: Instant) -> str:
    """The Spark statement that comes nearest, and only lists: it knows neither sightings nor whose place it is."""
    at = datetime.fromtimestamp(older_than / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return procedure_call(name, "remove_orphan_files", f"older_than => TIMESTAMP '{at} UTC'", "dry_run => true")


def _order(file: OrphanFile) -> tuple[Instant, str, str]:
    """First seen first, and a checksum beside its file."""
    path = CanonicalPath(file.path)
    return file.first_seen_at, checksummed(path) or path, path


def wanted_less(action: RemoveOrphanFiles, policy: Policy) -> Reason | None:
    """Why the owner wants less to go by itself by now than an action removes."""
    if action.age_min_ms < policy.orphan_age_ms:
        return Reason("upkeep-changed", "the policy now keeps unneeded files longer")
    return None


def over_budget(action: RemoveOrphanFiles) -> Reason | None:
    """Why somebody has to approve a removal: it is beyond its budget, or some of its files may be anybody's."""
    if not action.needs_approval:
        return None
    if not action.is_beyond_budget:
        return _in_doubt(action)
    said = f"{wording.count(action.orphan_files, 'file')} ({wording.size(action.orphan_bytes)})"
    budget = f"{action.budget_files:,} files, or {wording.size(action.budget_bytes)}"
    figures = {"files": action.orphan_files, "bytes": action.orphan_bytes}
    return Reason("beyond-budget", f"{said} would be removed; without approval {budget} at a time at most", figures)


def _in_doubt(action: RemoveOrphanFiles) -> Reason:
    """Which files of a removal somebody has to look at, first those of names that nobody knows."""
    doubts = Counter(file.doubt for file in action.files if file.doubt is not None)
    first = next(doubt for doubt in Doubt if doubts[doubt])
    path = next(file.path for file in action.files if file.doubt is first)
    text = (
        f"{wording.count(sum(doubts.values()), 'file')} may not be the table's: {_DOUBTS[first]}, such as {path[-100:]}"
    )
    return Reason(DOUBTFUL, text, {doubt.value: doubts[doubt] for doubt in Doubt if doubts[doubt]})
