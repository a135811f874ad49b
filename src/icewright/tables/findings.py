"""What is wrong with a table, in words and figures: what a scan says of each one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.footprint.unneeded_views import UnneededView
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan, Verdict
from icewright.model.policy.policy import Policy
from icewright.model.work.figures import FiguresView

SNAPSHOTS_MANY: Final = 100
"""Snapshots from which on that is said: each commit writes them all into the next metadata file again."""
PARTITIONS_MANY: Final = 500
"""Partitions from which on small ones are said: a merge stays within its partition, and does not help them."""
METADATA_MANY_BYTES: Final = 1 << 20
METADATA_SHARE: Final = 0.1
"""Metadata that is said: so many bytes, and more than this share of the data."""
DELETED_SHARE_SHOWN: Final = 0.1
"""From this share of deleted rows on, deletes are said to be something wrong with a table."""

MANY_SNAPSHOTS: Final = "many-snapshots"
SMALL_PARTITIONS: Final = "small-partitions"
MUCH_METADATA: Final = "much-metadata"
ORPHANS: Final = "orphans"
DELETES: Final = "deletes"
POLICY_PROBLEM: Final = "policy-problem"


def findings(figures: FiguresView, policy: Policy, plan: Plan) -> tuple[Reason, ...]:
    """What is wrong with the files of a table, worst first; empty when all is well.

    Settings that cannot be used; files to merge, now, later or not yet; deletes that every reader has to apply.
    """
    found = [
        Reason(POLICY_PROBLEM, f"{problem.origin}, {problem.key}: {problem.problem}") for problem in policy.problems
    ]
    delayed = any(plan.verdict_counts.get(verdict) for verdict in (Verdict.WAIT, Verdict.REFUSE))
    untouchable = not plan.verdict_counts and not policy.problems and figures.small_files >= policy.min_input_files
    if not plan.is_empty or delayed or untouchable:
        found.append(plan.reason)
    many = figures.deleted_records >= DELETED_SHARE_SHOWN * figures.records
    if figures.equality_delete_files or (figures.deleted_records and many):
        text = f"readers apply {wording.count(figures.delete_files, 'delete file')}"
        counted = {"delete_files": figures.delete_files, "equality_delete_files": figures.equality_delete_files}
        found.append(Reason(DELETES, text, counted))
    return tuple(found)


def layout_findings(figures: FiguresView, small_file_size_bytes: int) -> tuple[Reason, ...]:
    """Partitions that are too many for what is in them: a small file each, on average."""
    mean_bytes = figures.size_bytes // max(1, figures.partitions)
    if figures.partitions < PARTITIONS_MANY or mean_bytes >= small_file_size_bytes:
        return ()
    files = wording.count(round(figures.data_files / figures.partitions), "file")
    text = f"{figures.partitions:,} partitions of {files} and {wording.size(mean_bytes)} each: a coarser partition spec"
    return (Reason(SMALL_PARTITIONS, text, {"partitions": figures.partitions, "mean_bytes": mean_bytes}),)


def snapshot_findings(snapshots: int) -> tuple[Reason, ...]:
    """Snapshots that are too many."""
    if snapshots < SNAPSHOTS_MANY:
        return ()
    return (Reason(MANY_SNAPSHOTS, f"{snapshots:,} snapshots", {"snapshots": snapshots}),)


def metadata_findings(
    observation: Observation, figures: FiguresView, file_bytes: Callable[[], int]
) -> tuple[Reason, ...]:
    """Snapshots that are too many, and metadata that is too much for the data.

    ``file_bytes`` is asked for the size of the present metadata file where that may matter; those before it that are
    still kept are taken to be as large.
    """
    metadata, found = observation.metadata, list[Reason]()
    found.extend(snapshot_findings(len(metadata.snapshots)))
    manifests, kept = observation.inventory.manifests, 1 + len(metadata.metadata_log)
    manifest_bytes = sum(key.length_bytes for key in manifests)
    total = manifest_bytes + kept * file_bytes()
    if total >= METADATA_MANY_BYTES and total > METADATA_SHARE * figures.size_bytes:
        text = (
            f"about {wording.size(total)} of metadata for {wording.size(figures.size_bytes)} of data: "
            f"{wording.count(len(manifests), 'manifest')} and {wording.count(kept, 'metadata file')}"
        )
        counted = {
            "bytes": total,
            "manifest_bytes": manifest_bytes,
            "manifests": len(manifests),
            "metadata_files": kept,
            "snapshots": len(metadata.snapshots),
            "data": figures.size_bytes,
        }
        found.append(Reason(MUCH_METADATA, text, counted))
    return tuple(found)


def orphan_findings(unneeded: UnneededView) -> tuple[Reason, ...]:
    """Files that nothing needs, where a pass of the server has found some."""
    orphans = unneeded.orphans
    if orphans is None or orphans.files <= orphans.moved_since.files:
        return ()
    files, size_bytes = orphans.files - orphans.moved_since.files, orphans.size_bytes - orphans.moved_since.size_bytes
    seen_at = wording.instant(orphans.finished_at)
    text = f"{wording.count(files, 'orphan file')} ({wording.size(size_bytes)}), as of {seen_at}"
    return (Reason(ORPHANS, text, {"files": files, "bytes": size_bytes}),)


def _less_metadata(reason: Reason, table: str) -> str:
    """What most of the metadata needs: manifests are rewritten, and metadata files are smaller with fewer snapshots.

    With few snapshots they are as large as they can be, and there are fewer of them by a property of the table.
    """
    figures = reason.figures
    if 2 * int(figures["manifest_bytes"]) >= int(figures["bytes"]):
        return f"icewright plan {table} --action rewrite-manifests"
    if int(figures["snapshots"]) >= SNAPSHOTS_MANY:
        return f"icewright expire-snapshots {table}"
    return (
        "ALTER TABLE ... SET TBLPROPERTIES (\n"
        "  'write.metadata.delete-after-commit.enabled' = 'true',\n"
        "  'write.metadata.previous-versions-max' = '10')"
    )


def help_with(reason: Reason, table: str) -> str:
    """The command to begin with, in one line or several; ``table`` is its name as a shell reads it.

    Those of icewright only show.
    """
    if reason.code == MUCH_METADATA:
        return _less_metadata(reason, table)
    commands = {
        POLICY_PROBLEM: f"icewright policy show {table}",
        SMALL_PARTITIONS: (
            f"ALTER TABLE ... REPLACE PARTITION FIELD ... WITH ..., then\nicewright plan {table} --migrate spec"
        ),
        MANY_SNAPSHOTS: f"icewright expire-snapshots {table}",
        ORPHANS: f"icewright orphans {table}",
        "shared-location": f"icewright table show {table}",
        "shared-uuid": f"icewright table show {table}",
    }
    return commands.get(reason.code, f"icewright plan {table}")
