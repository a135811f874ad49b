"""Why a whole table is left alone: what no executor can do, or icewright must not.

What one executor cannot do and another can is asked in :mod:`.executors`. Every check errs on the
side of leaving the table alone and says why. Not obstacles, on purpose: ``gc.enabled=false`` and files imported from
outside the table's location, since a rewrite deletes no file; branches and staged snapshots that main has left behind,
since a rewrite of main does not touch them (others: :mod:`.branches`); a mode other than ``auto``,
since plans are made in every mode.
"""

from __future__ import annotations

import re
from dataclasses import replace

from icewright.core import wording
from icewright.core.times import Instant
from icewright.model.actions.actions import Action
from icewright.model.iceberg.tables import Operation, Snapshot, TableMetadata
from icewright.model.iceberg.writer_settings import encryption_property
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import IGNORE_OTHER_OPTIMIZERS_KEY, Policy
from icewright.plans.branches import branch_obstacle

FOREIGN_REPLACE_WINDOW_MS = 7 * 86_400_000
"""How far before the table's latest commit a foreign rewrite counts: optimizers run weekly at the rarest."""

FORMAT_VERSIONS = (1, 2, 3)
_PROBLEMS_SAID_MAX = 5
_AMORO_KEY = "self-optimizing.enabled"
_HADOOP_METADATA = re.compile(r"/v\d+(\.gz|\.zst)?\.metadata\.json(\.gz|\.zst)?\Z", re.ASCII)
_RENAMING_SCHEMES = frozenset({"file", "hdfs", "viewfs"})


def recovery_action_obstacle(_action: Action, metadata: TableMetadata, policy: Policy, _now: Instant) -> Reason | None:
    """Of an action that takes another one back by metadata alone."""
    return recovery_obstacle(metadata, policy)


def insert_obstacle(_action: Action, metadata: TableMetadata, policy: Policy, now: Instant) -> Reason | None:
    """Of an action that takes another one back by inserting rows."""
    obstacle = recovery_obstacle(metadata, policy) or encryption_obstacle(metadata)
    return obstacle or branch_obstacle(metadata, policy, now)


def metadata_action_obstacle(_action: Action, metadata: TableMetadata, policy: Policy, _now: Instant) -> Reason | None:
    """Of an action that reads neither rows nor manifests by an executor."""
    return metadata_obstacle(metadata, policy)


def statistics_obstacle(_action: Action, metadata: TableMetadata, policy: Policy, _now: Instant) -> Reason | None:
    """Of an action that reads a snapshot and commits no other."""
    return manifests_obstacle(metadata, policy)


def manifests_action_obstacle(_action: Action, metadata: TableMetadata, policy: Policy, now: Instant) -> Reason | None:
    """Of an action that commits a snapshot of ``main`` and writes no rows."""
    return manifests_obstacle(metadata, policy) or branch_obstacle(metadata, policy, now)


def no_obstacle(_action: Action, _metadata: TableMetadata, _policy: Policy, _now: Instant) -> None:
    """Of an action that touches nothing which is the table's by now."""


def metadata_obstacle(metadata: TableMetadata, policy: Policy) -> Reason | None:
    """Why nothing can be done to this table, not even to its metadata, or None."""
    checks = (
        identity_obstacle(metadata),
        hadoop_obstacle(metadata),
        policy_obstacle(policy),
        format_obstacle(metadata),
        None if policy.ignore_other_optimizers else other_optimizer_obstacle(metadata),
    )
    return next((reason for reason in checks if reason is not None), None)


def recovery_obstacle(metadata: TableMetadata, policy: Policy) -> Reason | None:
    """Why nothing of this table can be taken back, or None. What another optimizer did may be the very reason to."""
    return metadata_obstacle(metadata, replace(policy, ignore_other_optimizers=True))


def manifests_obstacle(metadata: TableMetadata, policy: Policy) -> Reason | None:
    """Why nothing can be done that reads its manifests and no rows by ourselves, or None.

    That is to rewrite manifests, to remove entries, or to have Iceberg compute statistics. Of executors and workers
    nothing is asked.
    """
    return metadata_obstacle(metadata, policy) or snapshot_obstacle(metadata) or encryption_obstacle(metadata)


def identity_obstacle(metadata: TableMetadata) -> Reason | None:
    """Whether it has no uuid."""
    if metadata.has_uuid:
        return None
    text = "the table has no uuid, so it cannot be distinguished from another one of its name; it is only observed"
    return Reason("no-uuid", f"{text}. Any commit by a current writer gives it one")


def hadoop_obstacle(metadata: TableMetadata) -> Reason | None:
    """A table without a catalog commits by renaming a file, which takes away others' commits on an object store."""
    scheme, separator, _ = metadata.metadata_location.partition(":")
    if not _HADOOP_METADATA.search(metadata.metadata_location) or not separator or scheme in _RENAMING_SCHEMES:
        return None
    return Reason(
        "hadoop-table",
        f"its metadata is kept as a Hadoop table's ({wording.quoted(metadata.metadata_location)}), and on an object "
        "store two such commits at once can both succeed, so that one is lost",
    )


def policy_obstacle(policy: Policy) -> Reason | None:
    """Whether a setting of its policy cannot be used."""
    if not policy.problems:
        return None
    first = policy.problems[:_PROBLEMS_SAID_MAX]
    said = "; ".join(f"{wording.name(problem.key)} ({problem.origin}): {problem.problem}" for problem in first)
    more = len(policy.problems) - len(first)
    said += f"; and {more:,} more" if more else ""
    return Reason("policy-problem", f"a setting cannot be used: {said}", {"problems": len(policy.problems)})


def snapshot_obstacle(metadata: TableMetadata) -> Reason | None:
    """Whether it has no current snapshot."""
    if metadata.current_snapshot_id is None:
        return Reason("no-snapshots", "nothing has been committed to the table yet")
    if metadata.current_snapshot is None:
        return Reason(
            "snapshot-missing",
            f"the metadata names {metadata.current_snapshot_id} as the current snapshot and does not have it",
        )
    return None


def format_obstacle(metadata: TableMetadata) -> Reason | None:
    """Whether its format version is another one than those known here."""
    if metadata.format_version in FORMAT_VERSIONS:
        return None
    text = f"tables of format version {metadata.format_version} cannot be rewritten yet, only 1 to 3"
    return Reason("format-version", text, {"format_version": metadata.format_version})


def encryption_obstacle(metadata: TableMetadata) -> Reason | None:
    """Whether its files are encrypted."""
    key = encryption_property(metadata.properties)
    if key is None:
        return None
    return Reason("encryption", f"the table is encrypted ({wording.name(key)}), which nothing here can do")


def other_optimizer_obstacle(metadata: TableMetadata) -> Reason | None:
    """Whether another optimizer works on it."""
    way_out = f"set {IGNORE_OTHER_OPTIMIZERS_KEY}=true on the table if icewright shall work on it nevertheless"
    if metadata.properties.get(_AMORO_KEY, "").strip().lower() == "true":
        return Reason("other-optimizer", f"Amoro maintains it ({_AMORO_KEY}=true); {way_out}")
    lineage = metadata.ancestors()
    for snapshot in lineage:
        recent = lineage[0].committed_at - snapshot.committed_at <= FOREIGN_REPLACE_WINDOW_MS
        if recent and is_foreign_rewrite(snapshot):
            engine = wording.name(snapshot.summary.get("engine-name", "another-program"))
            return Reason(
                "other-optimizer",
                f"{engine} rewrote its files at {wording.instant(snapshot.committed_at)} "
                f"(snapshot {snapshot.snapshot_id}), and two optimizers get in each other's way; {way_out}",
                {"snapshot_id": snapshot.snapshot_id},
            )
    return None


def is_foreign_rewrite(snapshot: Snapshot) -> bool:
    """Whether somebody else rewrote data or delete files here; a rewrite of manifests alone says so and is none."""
    if snapshot.operation is not Operation.REPLACE or snapshot.task_id is not None:
        return False
    files_changed = any(
        snapshot.summary.get(key, "0") != "0"
        for key in ("deleted-data-files", "added-data-files", "removed-delete-files")
    )
    return files_changed or "manifests-replaced" not in snapshot.summary
