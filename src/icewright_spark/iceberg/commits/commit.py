"""The only place that commits to Iceberg.

A commit ends in one of three ways, and each asks for another next step: *committed*, *conflict* (the table is as it
was; observe and plan again) and *unknown* (look before anything else). Whatever happens, nothing here deletes a file,
nor may Iceberg: leftovers are the business of orphan removal.

Groups that met somebody else's commit are left out of ours (decision 0016). They are looked for before each try, which
only ever takes groups out: what is committed, Iceberg validates from the planned snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from icewright.core.errors import Conflict, Unavailable
from icewright.core.fault_points import Fault, fault
from icewright.model.actions.actions import RewriteDataFiles
from icewright.model.iceberg.tables import (
    ATTEMPT_KEY,
    GROUPS_KEY,
    LAYOUT_KEY,
    LEVEL_KEY,
    MAIN_BRANCH,
    PROOF_KEY,
    ROW_LINEAGE_SINCE,
    TASK_ID_KEY,
)
from icewright.model.plans.group_ids import group_ids_text
from icewright.model.work.jobs import Committed, CommitUnknown, Conflicted, TaskSpec
from icewright_spark.iceberg.java_api import SparkTable, first_line, iterate, java_class
from icewright_spark.iceberg.manifests import FoundDelete, lost_groups, remove_deletes

TRIES_MAX: Final = 20
"""Tries against writers that are merely faster. Each re-validates from the planned snapshot; no work is redone."""
_PAUSE_S_MAX: Final = 2.0
_STAGED_LOOKED_AT: Final = 20
"""Snapshots, the newest, among which one is looked for that was staged during a try."""
_TAG_SLACK_MS: Final = 3_600_000
"""A tag of an attempt that was tried again at once is left as it is."""

_EXCEPTIONS: Final = "org.apache.iceberg.exceptions."
_CONFLICT: Final = f"{_EXCEPTIONS}ValidationException"
_WAP_ID: Final = "wap.id"
_FASTER: Final = f"{_EXCEPTIONS}CommitFailedException"

CommitResult = Committed | Conflicted | CommitUnknown
"""How a commit ended."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file that takes the place of a file group, alone or with others: its rows, and Java's ``DataFile``."""

    group_id: int
    path: str
    record_count: int
    data_file: Any


@dataclass(frozen=True, slots=True)
class Swap:
    """A change of metadata: the catalog swaps what it was made on for what was made of it, or refuses.

    All three are Java's: ``TableOperations``, and twice ``TableMetadata``.
    """

    operations: Any
    base: Any
    updated: Any

    def commit(self) -> None:
        """Ask for it, once: Iceberg tries nothing again."""
        self.operations.commit(self.base, self.updated)


@dataclass(frozen=True, slots=True)
class Commit:
    """How a commit ended. ``lost`` are the groups that were left out of it, by id, and what they met."""

    result: CommitResult
    lost: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refused:
    """A commit that is not in the table: others came first, and maybe ``was_slower`` is all that was wrong with it."""

    why: Conflicted
    was_slower: bool


def commit_rewrite(
    table: SparkTable,
    spec: TaskSpec,
    outputs: Sequence[Rewritten],
    *,
    proof: Callable[[Collection[int]], str],
    format_version: int,
    may_commit: Callable[[], None],
    vectors: Sequence[FoundDelete] = (),
    pause: Callable[[float], None] = time.sleep,
    lost_since: Callable[[SparkTable, RewriteDataFiles], Mapping[int, str]] = lost_groups,
    sending: Callable[[], None] = lambda: None,
) -> Commit:
    """Replace the input files of every group that has outputs by these, validated from the planned snapshot.

    Deletes of any kind that came since and apply to an input file are a conflict: for its group alone, as long as
    there are others. ``proof`` is that of the groups of these ids.

    ``format_version`` is the one that the outputs were written for. ``vectors`` are the deletion vectors of the
    input files: in format version 3 none may stay without its data file. Position delete files stay, since they may
    delete from other files too; Iceberg's own rewrite leaves them as well.

    ``may_commit`` is called right before each try and raises :class:`~icewright.core.errors.LeaseLost` when the
    attempt has been fenced; that passes through, uncommitted, as does :class:`Conflict` when the schema is another by
    now, the table was upgraded meanwhile, its rows were given ids that the outputs lack, the planned snapshot has
    expired, or another attempt has committed other groups. The summary of the snapshot carries task id, attempt, proof
    and, unless they are all, the groups; by these the commit can be found again. ``sending`` is called right before a
    try is sent to the catalog. However a try ends, what the table says counts: a catalog may refuse a commit that it
    has made (a request that was sent twice on its way), and only the table knows.
    """
    group_ids, lost = {output.group_id for output in outputs}, dict[int, str]()
    refused: Conflicted | None = None
    for attempt in range(TRIES_MAX):
        table.refresh()
        _check_still_fitting(table, spec, format_version)
        met = lost_since(table, spec.rewrite.only(group_ids))
        if refused is not None and not met:
            return Commit(refused, lost)
        lost.update(met)
        group_ids -= met.keys()
        if not group_ids:
            return Commit(refused or Conflicted(said_of(lost)), lost)
        part = _part(table, spec, group_ids)
        operation = _rewrite(table, spec, part, outputs, vectors, proof(group_ids))
        tried = one_try(table, spec, operation, may_commit, sending=sending)
        if not isinstance(tried, Refused):
            return Commit(tried, lost)
        refused = None if tried.was_slower else tried.why
        if refused is None:
            pause(pause_s(attempt))
    return Commit(outrun(), lost)


def one_try(
    table: SparkTable,
    spec: TaskSpec,
    operation: Any,
    may_commit: Callable[[], None],
    *,
    found: Callable[[int | None], Committed | None] | None = None,
    sending: Callable[[], None] = lambda: None,
) -> CommitResult | Refused:
    """Commit an operation, once; what the table says of it counts, however that ends.

    ``found`` tells whether the table as it was last loaded has the commit, of that attempt where one is given; without
    it, the operation is signed with the task, and its snapshot is looked for. ``may_commit`` as in
    :func:`commit_rewrite`, and so is ``sending``. What is raised is raised before anything was sent:
    :class:`Conflict` when a branch came ahead of main since the table was last loaded, since what makes a snapshot
    there would keep it from being published, and whatever kept manifests from being written.
    """
    ahead = unpublished(table)
    look = partial(_look, table, found or partial(_snapshot_of, table, spec))
    fault(Fault.COMMIT_PREPARED)
    may_commit()
    fault(Fault.COMMIT_BEFORE)
    try:
        once = _once(table, operation, ahead)
    except Exception as error:
        kind = java_class(error)
        if kind not in (_CONFLICT, _FASTER):
            raise
        return Refused(Conflicted(first_line(error)), was_slower=kind == _FASTER)
    sending()
    try:
        once.commit()
        fault(Fault.COMMIT_AFTER)
    except Exception as error:  # noqa: BLE001 - py4j and PySpark raise several kinds, and each leaves doubt
        kind, detail = java_class(error), first_line(error)
    else:
        return look("the commit was reported as done, and is not in the table")
    if kind not in (_CONFLICT, _FASTER):
        return look(detail)
    seen = look(detail, attempt=spec.attempt, absent=Conflicted)
    return Refused(seen, was_slower=kind == _FASTER) if isinstance(seen, Conflicted) else seen


def unpublished(table: SparkTable) -> frozenset[tuple[str, int]]:
    """What a commit onto main would keep from being published, by name and snapshot.

    These are branches that main could be fast-forwarded to, and snapshots staged lately under a ``wap.id``, as of the
    metadata that the table was loaded with. The server judges which of them count.
    """
    head = table.java.currentSnapshot()
    if head is None:
        return frozenset()
    head_id, refs = int(head.snapshotId()), table.java.refs()
    is_ancestor = table.jvm.org.apache.iceberg.util.SnapshotUtil.isAncestorOf
    found = {
        (str(name), int(ref.snapshotId()))
        for name in iterate(refs.keySet())
        if name != MAIN_BRANCH and (ref := refs.get(name)).isBranch()
    }
    ahead = {one for one in found if one[1] == head_id or is_ancestor(table.java, one[1], head_id)}
    snapshots = table.java.snapshots()
    for position in range(max(0, snapshots.size() - _STAGED_LOOKED_AT), snapshots.size()):
        summary = snapshots.get(position).summary()
        if summary is not None and summary.get(_WAP_ID) is not None:
            ahead.add((f"{_WAP_ID} {summary.get(_WAP_ID)}", int(snapshots.get(position).snapshotId())))
    return frozenset(ahead)


def _once(table: SparkTable, operation: Any, ahead: AbstractSet[tuple[str, int]]) -> Swap:
    """A Java operation as one change of the metadata that it was applied to.

    Iceberg's own ``commit()`` would apply it again to whatever came meanwhile, also where a branch came ahead of main.
    Raises :class:`Conflict` where one did, and where the table was loaded again since the operation was applied: format
    version 1 has no sequence numbers by which the catalog's side would refuse a snapshot beside the latest.
    """
    if isinstance(operation, Swap):
        return operation
    snapshot = operation.apply()  # loads the table, validates, and writes the manifest list
    operations = table.java.operations()
    base = operations.current()
    if int(base.currentSnapshot().snapshotId()) != int(snapshot.parentId()):
        raise Conflict(f"main moved on from snapshot {snapshot.parentId()} while the commit was prepared")
    came = sorted(unpublished(table) - ahead)
    if came:
        name, snapshot_id = came[0]
        raise Conflict(f"branch {name!r} came ahead of main, at snapshot {snapshot_id}, right before the commit")
    updated = table.jvm.org.apache.iceberg.TableMetadata.buildFrom(base).setBranchSnapshot(snapshot, MAIN_BRANCH)
    return Swap(operations, base, updated.build())


def several_tries(
    table: SparkTable,
    spec: TaskSpec,
    prepare: Callable[[], Any],
    may_commit: Callable[[], None],
    pause: Callable[[float], None] = time.sleep,
    *,
    found: Callable[[int | None], Committed | None] | None = None,
    checks_all: bool = False,
) -> CommitResult:
    """Commit what ``prepare`` makes of the table as it is then, anew as long as others are merely faster.

    It gives an operation, or how the commit ends where there is nothing left of it to try, and raises
    :class:`Conflict` for what does not hold any more. Where it ``checks_all`` that the commit rests on, that decides,
    and not what Iceberg refused. ``may_commit`` as in :func:`commit_rewrite`, ``found`` as in :func:`one_try`.
    """
    for attempt in range(TRIES_MAX):
        table.refresh()
        operation = prepare()
        if isinstance(operation, Conflicted):
            return operation
        tried = one_try(table, spec, operation, may_commit, found=found)
        if not isinstance(tried, Refused):
            return tried
        if not (tried.was_slower or checks_all):
            return tried.why
        pause(pause_s(attempt))
    return outrun()


def sign(operation: Any, spec: TaskSpec, proof: str) -> None:
    """Have the snapshot of a Java operation say of which attempt it is, or nobody finds it again; and its proof."""
    operation.set(TASK_ID_KEY, spec.task_id)
    operation.set(ATTEMPT_KEY, str(spec.attempt))
    operation.set(PROOF_KEY, proof)


def make_tag(
    table: SparkTable,
    name: str,
    snapshot_id: int,
    max_ref_age_ms: int,
    may_commit: Callable[[], None],
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Have a tag of that name at a snapshot, made now or by an attempt before; what the table says of it counts.

    One of an attempt long ago stays as long from now on as a new one would: tasks wait for windows and are tried again.
    ``may_commit`` as in :func:`commit_rewrite`. Raises :class:`Conflict` where it is at another snapshot, or the
    snapshot is gone, and :class:`Unavailable` where it could not be made.
    """
    detail = ""
    for attempt in range(TRIES_MAX):
        table.refresh()
        found = table.java.refs().get(name)
        if found is not None and (not found.isTag() or int(found.snapshotId()) != snapshot_id):
            raise Conflict(f"there is a ref {name} already, at another snapshot than {snapshot_id}")
        if found is not None and _stays(found, max_ref_age_ms):
            return
        if not table.has_snapshot(snapshot_id):
            raise Conflict(f"the planned snapshot {snapshot_id} has expired")
        operation = table.java.manageSnapshots()
        if found is None:
            operation = operation.createTag(name, snapshot_id)
        operation = operation.setMaxRefAgeMs(name, max_ref_age_ms)
        may_commit()
        fault(Fault.DATA_TAG_BEFORE)
        try:
            operation.commit()
            fault(Fault.DATA_TAG_AFTER)
        except Exception as error:  # noqa: BLE001 - py4j and PySpark raise several kinds; the next round looks
            detail = first_line(error)
            pause(pause_s(attempt))
    raise Unavailable(f"the tag {name} could not be made: {detail or 'the table does not have it'}")


def _stays(tag: Any, max_ref_age_ms: int) -> bool:
    """Whether a tag, Java's ``SnapshotRef``, is kept for so long, or all but."""
    age_ms = tag.maxRefAgeMs()
    return age_ms is None or int(age_ms) >= max_ref_age_ms - _TAG_SLACK_MS


def outrun() -> Conflicted:
    """Other writers were faster each time."""
    return Conflicted(f"{TRIES_MAX} commits of other writers came first, one after the other")


def pause_s(attempt: int) -> float:
    """How long to wait after a try, the first of which is 0, that another writer was faster than."""
    return min(_PAUSE_S_MAX, 0.1 * float(2**attempt))


def said_of(lost: Mapping[int, str]) -> str:
    """What groups met, in a few words: how many there are, and the first."""
    first = min(lost)
    more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    return f"group {first}{more} met another commit: {lost[first]}"


def _part(table: SparkTable, spec: TaskSpec, group_ids: Collection[int]) -> RewriteDataFiles:
    """What is committed of the action. Raises :class:`Conflict` when another attempt may have committed the rest.

    Two attempts cannot both commit the whole action, which Iceberg refuses the second time; two different parts of it
    they could.
    """
    part = spec.rewrite.only(group_ids)
    if len(part.groups) < len(spec.rewrite.groups):
        made = table.snapshot_of_task(spec.task_id)
        if made is not None:
            raise Conflict(f"another attempt at {spec.task_id} has committed, as snapshot {made}")
    return part


def _check_still_fitting(table: SparkTable, spec: TaskSpec, format_version: int) -> None:
    base = spec.rewrite.base_snapshot_id
    if table.format_version != format_version:
        raise Conflict(f"{spec.table_name} was upgraded to format version {table.format_version} during the merge")
    if table.schema_id != spec.rewrite.schema_id:
        raise Conflict(f"the schema changed from {spec.rewrite.schema_id} to {table.schema_id} during the merge")
    check_spec(table, spec.rewrite)
    if not table.has_snapshot(base):
        raise Conflict(f"the planned snapshot {base} expired during the merge")
    if format_version >= ROW_LINEAGE_SINCE and table.gives_row_ids() and not table.gives_row_ids(base):
        raise Conflict(f"the rows of {spec.table_name} were given ids during the merge, after its upgrade")


def check_spec(table: SparkTable, action: RewriteDataFiles) -> None:
    """Rows are moved to the current partition spec and no other. Raises :class:`Conflict`."""
    for group in action.groups:
        if group.output_spec_id is not None and group.output_spec_id != table.spec_id:
            text = f"rows were to be moved to partition spec {group.output_spec_id}, the current one is {table.spec_id}"
            raise Conflict(text)


def _rewrite(
    table: SparkTable,
    spec: TaskSpec,
    part: RewriteDataFiles,
    outputs: Sequence[Rewritten],
    vectors: Sequence[FoundDelete],
    proof: str,
) -> Any:
    # Iceberg would delete the manifests of a commit that was refused, and a catalog may refuse what it has done.
    operation = table.java.newRewrite().deleteWith(table.deletes_nothing())
    # No data sequence number is set: Iceberg would then drop equality deletes that came meanwhile and still apply
    # (decision 0015). Without it they are a conflict.
    operation = operation.validateFromSnapshot(part.base_snapshot_id)
    table.remove_files(operation, part.groups)
    group_ids = {group.group_id for group in part.groups}
    for output in outputs:
        if output.group_id in group_ids:
            operation.addFile(output.data_file)
    paths = {file.path for group in part.groups for file in group.files}
    remove_deletes(table, operation, (each for each in vectors if each.delete.referenced_data_file in paths))
    sign(operation, spec, proof)
    operation.set(LEVEL_KEY, part.level.value)
    if part.layout is not None:
        operation.set(LAYOUT_KEY, part.layout.key)
    if len(part.groups) < len(spec.rewrite.groups):
        operation.set(GROUPS_KEY, group_ids_text(group_ids))
    return operation


def _snapshot_of(table: SparkTable, spec: TaskSpec, attempt: int | None) -> Committed | None:
    snapshot_id = table.snapshot_of_task(spec.task_id, attempt)
    return None if snapshot_id is None else Committed(snapshot_id)


def _look(
    table: SparkTable,
    found: Callable[[int | None], Committed | None],
    detail: str,
    *,
    attempt: int | None = None,
    absent: type[Conflicted | CommitUnknown] = CommitUnknown,
) -> CommitResult:
    """What the table itself says about the commit of the task (of that ``attempt``, where one is given)."""
    try:
        table.refresh()
        commit = found(attempt)
    except Exception as error:  # noqa: BLE001 - whatever kept us from looking, the doubt stays
        return CommitUnknown(f"{detail}; looking again failed: {first_line(error)}")
    return absent(detail) if commit is None else commit
