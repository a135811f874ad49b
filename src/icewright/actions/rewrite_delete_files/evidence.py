"""What work on delete files alone did, read by our own reader from what is in the table: no report is asked.

No data file came or went, no delete file came that was not planned, and none of those that went still applies.
"""

from __future__ import annotations

from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.model.actions.rewrite_delete_files import DANGLING_METHOD, RemoveDanglingDeletes
from icewright.model.iceberg.files import DeleteFile
from icewright.model.iceberg.tables import PROOF_KEY, Operation, Snapshot
from icewright.plans.evidence.service import Changes, Delta


def problem_of_dangling(action: RemoveDanglingDeletes, snapshot: Snapshot, changes: Changes) -> str | None:
    """Why what a snapshot changed is not what the action says, None when it is."""
    return (
        data_problem(snapshot, changes)
        or _came(changes)
        or went_problem(action.deletes, changes)
        or _proof_problem(action, snapshot)
    )


def data_problem(snapshot: Snapshot, changes: Changes) -> str | None:
    """No data file came or went, and the commit says of itself that it replaced."""
    if snapshot.operation is not Operation.REPLACE:
        return f"it is a snapshot of operation {snapshot.operation}"
    if changes.removed_files:
        return f"{sum(changes.removed_files.values())} data files were removed"
    for partition, delta in sorted(changes.deltas.items()):
        if delta != Delta(delete_files=delta.delete_files):
            where = f"partition {partition.values} of spec {partition.spec_id}"
            return f"{where} changed by {delta.data_files} data files and {delta.records} rows"
    return None


def went_problem(planned: tuple[DeleteFile, ...], changes: Changes) -> str | None:
    """The planned delete files went, and no other one that applies to anything.

    Iceberg drops delete files that are older than all data files with any commit that rewrites their manifest.
    """
    went = {delete.key: delete for delete in changes.removed_deletes}
    for delete in planned:
        found = went.get(delete.key)
        if found is None:
            return f"{delete.path} is still listed"
        if found != delete:
            return f"{delete.path} was another one by then: {found}"
    if changes.lost_deletes:
        return f"{len(changes.lost_deletes)} delete files are lost that still apply: {changes.lost_deletes[0].path}"
    return None


def verified_dangling(action: RemoveDanglingDeletes, parent: Snapshot, snapshot: Snapshot) -> Reason:
    """What a commit brought that is as it should be."""
    many = wording.count(len(action.deletes), "delete file")
    left = listed_after(parent, snapshot)
    figures: dict[str, int | float | str] = {"delete_files_removed": len(action.deletes), **left}
    text = f"{many} that applied to no data file were removed; each data file has the same deletes"
    return Reason("verified", text, figures)


def listed_after(parent: Snapshot, snapshot: Snapshot) -> dict[str, int | float | str]:
    """Delete files in the table before and after, as its snapshots say; nothing where they do not."""
    said = {
        "listed_before": parent.number("total-delete-files"),
        "listed_after": snapshot.number("total-delete-files"),
    }
    return {key: value for key, value in said.items() if value is not None}


def _came(changes: Changes) -> str | None:
    if changes.added_deletes:
        return f"{len(changes.added_deletes)} delete files were added, first {changes.added_deletes[0].path}"
    return None


def _proof_problem(action: RemoveDanglingDeletes, snapshot: Snapshot) -> str | None:
    said = snapshot.summary.get(PROOF_KEY, "")
    right = f"{DANGLING_METHOD};removed={len(action.deletes)};applying=0"
    return None if said.startswith(right) else f"its proof says {wording.quoted(said)}, and not {right}"
