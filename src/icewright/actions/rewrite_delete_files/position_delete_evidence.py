"""What a rewrite of position delete files did, read by our own reader from what is in the table: no report is asked.

The planned files went; each group's new file came, for what the plan says and with its sequence number; no data file
and no other delete file came or went. That the new files delete the same rows the job has proved from their contents,
which the server does not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from icewright.actions.rewrite_delete_files.evidence import data_problem, listed_after, went_problem
from icewright.catalogs.port import Catalog
from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.inventory.applied_deletes import delete_costs, only_data_file
from icewright.model.actions.rewrite_delete_files import POSITIONS_METHOD, RewritePositionDeletes
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat, Partition
from icewright.model.iceberg.inventory import DeleteCosts
from icewright.model.iceberg.tables import PROOF_KEY, Snapshot, TableMetadata
from icewright.plans.evidence.service import Changes


@dataclass(frozen=True, slots=True)
class Measured:
    """What deletes cost a scan of the partitions that were touched, before and after."""

    before: DeleteCosts
    after: DeleteCosts


def problem_of_position_deletes(action: RewritePositionDeletes, snapshot: Snapshot, changes: Changes) -> str | None:
    """Why what a snapshot changed is not what the action says, None when it is."""
    planned = {delete.path for delete in action.deletes}
    lost = tuple(delete for delete in changes.lost_deletes if delete.path not in planned)
    return (
        data_problem(snapshot, changes)
        or went_problem(action.deletes, replace(changes, lost_deletes=lost))
        or _came_problem(action, changes)
        or _proof_problem(action, snapshot, changes)
    )


def _came_problem(action: RewritePositionDeletes, changes: Changes) -> str | None:
    """Each new file is a group's, and each group for one data file has one."""
    wanted = Counter((group.partition, group.data_file, group.sequence_number) for group in action.groups)
    most = Counter[tuple[Partition, str | None, int]]()
    for group in action.groups:
        place = (group.partition, group.data_file, group.sequence_number)
        most[place] = max(most[place], group.record_count)
    for new in changes.added_deletes:
        place = (new.partition, only_data_file(new), new.data_sequence_number)
        if new.content is not FileContent.POSITION_DELETES or new.file_format is not FileFormat.PARQUET:
            return f"{new.path} holds {new.content.value} in {new.file_format.value}"
        if not wanted[_of(place, wanted)]:
            return f"{new.path} is of no group: {place[1] or 'any data file'}, sequence number {place[2]}"
        wanted[_of(place, wanted)] -= 1
        if not 0 < new.record_count <= most[_of(place, most)]:
            return f"{new.path} has {new.record_count} positions, those replaced {most[_of(place, most)]}"
    without = next((place for place, times in wanted.items() if times and place[1] is not None), None)
    return None if without is None else f"no new delete file came for {without[1]}"


def _of(place: tuple[Partition, str | None, int], groups: Iterable[object]) -> tuple[Partition, str | None, int]:
    """The group's place that a new file's is: one for any data file may happen to delete from one alone."""
    anywhere = (place[0], None, place[2])
    return place if place in set(groups) else anywhere


def _proof_problem(action: RewritePositionDeletes, snapshot: Snapshot, changes: Changes) -> str | None:
    said = snapshot.summary.get(PROOF_KEY, "")
    positions = sum(new.record_count for new in changes.added_deletes)
    files = len(changes.added_deletes)
    right = f"{POSITIONS_METHOD};groups={len(action.groups)};files={files};positions={positions};digest="
    return None if said.startswith(right) else f"its proof says {wording.quoted(said)}, and not {right}"


def measured_costs(
    catalog: Catalog, metadata: TableMetadata, parent: Snapshot, snapshot: Snapshot, action: RewritePositionDeletes
) -> Measured:
    """What deletes cost readers of the partitions of an action, by the manifests of both snapshots."""
    partitions = frozenset(group.partition for group in action.groups)

    def costs(at: Snapshot) -> DeleteCosts:
        keys = catalog.manifests(metadata, at)
        deletes: tuple[DeleteFile, ...] = tuple(catalog.delete_files(metadata, at, keys, partitions))
        return delete_costs(metadata, deletes, catalog.data_files(metadata, at, keys, partitions))

    return Measured(costs(parent), costs(snapshot))


def verified_position_deletes(
    action: RewritePositionDeletes, parent: Snapshot, snapshot: Snapshot, changes: Changes, measured: Measured
) -> Reason:
    """What a commit brought that is as it should be."""
    before, after = measured.before, measured.after
    text = (
        f"{wording.count(len(action.deletes), 'position delete file')} became {len(changes.added_deletes):,}, and "
        f"delete the same rows; a scan of their partitions opens {after.opened:,} delete files instead of "
        f"{before.opened:,}"
    )
    figures: dict[str, int | float | str] = {
        "delete_files_removed": len(action.deletes),
        "delete_files_added": len(changes.added_deletes),
        "opened_before": before.opened,
        "opened_after": after.opened,
        "opened_bytes_before": before.opened_bytes,
        "opened_bytes_after": after.opened_bytes,
        **listed_after(parent, snapshot),
    }
    return Reason("verified", text, figures)
