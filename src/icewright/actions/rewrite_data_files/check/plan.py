"""A second opinion on every plan before it is enqueued, which never trusts the planner.

Nothing of the planner is imported here, nor in the other ``check_`` modules: what a plan must fulfil is stated
a second time, from the words of the domain alone, numbers included. A mistake has to be made twice, in two ways of
putting it, to reach a table. Checked is what could do harm (wrong files, deletes left out, a wrong base, an executor
that cannot do it, a partition that must be left alone) and what would mislead (figures that do not add up); whether a
plan is a *good* one is not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from icewright.actions.rewrite_data_files.check.moves import move_violations
from icewright.actions.rewrite_data_files.check.order import order_violations
from icewright.actions.rewrite_data_files.check.waits import wait_violations
from icewright.model.actions.actions import Executor, FileGroup, InputFile, RewriteDataFiles
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, FileFormat, Partition
from icewright.model.iceberg.inventory import PartitionStatistics
from icewright.model.iceberg.layouts import Layout, Level
from icewright.model.iceberg.tables import MAIN_BRANCH, RefKind
from icewright.model.plans.observation import Observation, WorkerAccess
from icewright.model.plans.plans import Plan, Verdict
from icewright.model.policy.policy import MigrateSpec, Policy
from icewright.plans.check_table import Wrong, not_mergeable, not_stageable, not_stitchable, not_writable

_REWRITABLE_FORMAT_VERSIONS = frozenset({1, 2, 3})
_LINEAGE_SINCE = 3
_ROW_GROUP_BYTES_MIN = 4 * 1024 * 1024


def check_plan(
    plan: Plan,
    observation: Observation,
    policy: Policy,
    files: Mapping[str, DataFile] | None,
    deletes: Sequence[DeleteFile] = (),
    layout: Layout | None = None,
) -> tuple[Wrong, ...]:
    """All that is wrong with a plan made from this observation under this policy; empty when it is sound.

    ``files``: the live data files of the planned partitions by path, where the caller has them; each planned file is
    then compared with what the manifests say of it, and its deletes with the live delete files that may apply to
    those partitions, ``deletes``. None checks the rest. ``layout`` is that of the table, None where it has none.
    """
    checker = _Checker(plan, observation, policy, files, tuple(deletes), layout)
    return tuple(checker.violations())


@dataclass(frozen=True, slots=True)
class _Checker:
    plan: Plan
    observation: Observation
    policy: Policy
    files: Mapping[str, DataFile] | None
    deletes: tuple[DeleteFile, ...]
    layout: Layout | None

    def violations(self) -> Iterator[Wrong]:
        yield from self._identity()
        if not self.plan.actions:
            yield from self._nothing()
            return
        if len(self.plan.actions) > 1:
            yield "several-actions", f"{len(self.plan.actions)} actions; each would invalidate the others"
        if len(self.plan.rewrites) < len(self.plan.actions):
            yield "other-action", "it is not to rewrite data files: another checker's business"
        statistics = {one.partition: one for one in self.observation.inventory.partitions}
        yield from self._commits()
        for action in self.plan.rewrites:
            yield from self._table(action)
            yield from self._groups(action)
            yield from self._deletes(action)
            order = order_violations(action, self.layout, self.observation.inventory, self.policy, self.files)
            yield from order
            yield from self._partitions(action, statistics)
            yield from self._put_off(action)
            yield from self._prediction(action)

    def _identity(self) -> Iterator[Wrong]:
        metadata = self.observation.metadata
        if (self.plan.table_id, self.plan.table_name) != (metadata.table_id, metadata.name):
            yield "other-table", f"made for {self.plan.table_name}, observed is {metadata.name}"
        if self.plan.mode is not self.policy.mode:
            yield "other-mode", f"says mode {self.plan.mode}, the policy says {self.policy.mode}"
        if self.plan.snapshot_id != metadata.current_snapshot_id:
            text = f"made from snapshot {self.plan.snapshot_id}, current is {metadata.current_snapshot_id}"
            yield "other-snapshot", text
        if self.observation.inventory.snapshot_id != metadata.current_snapshot_id:
            yield "torn-observation", f"the inventory is of snapshot {self.observation.inventory.snapshot_id}"
        if not self.plan.reason.code or not self.plan.reason.text:
            yield "no-reason", "it does not say why"

    def _commits(self) -> Iterator[Wrong]:
        """Whether a commit would be one of this very table, and could not take another writer's away."""
        metadata = self.observation.metadata
        if not metadata.has_uuid:
            yield "no-uuid", "the table has no uuid"
        file = metadata.metadata_location.rsplit("/", 1)[-1]
        on_object_store = "://" in metadata.metadata_location and not metadata.metadata_location.startswith(
            ("file:", "hdfs:", "viewfs:")
        )
        if on_object_store and file.startswith("v") and file[1:].partition(".")[0].isdecimal():
            yield "hadoop-table", f"{file} is the metadata of a table without a catalog on an object store"

        yield from self._branches()

    def _branches(self) -> Iterator[Wrong]:
        """Whether a branch could be fast-forwarded to that a commit on main would leave behind."""
        metadata, window_ms = self.observation.metadata, self.policy.branch_window_ms
        parents = {snapshot.snapshot_id: snapshot.parent_id for snapshot in metadata.snapshots}
        dated = {snapshot.snapshot_id: snapshot.committed_at for snapshot in metadata.snapshots}
        for ref in metadata.refs:
            at, since = ref.snapshot_id, metadata.updated_at
            for _ in parents:
                if at == metadata.current_snapshot_id:
                    break
                parent = parents.get(at)
                at, since = (at, since) if parent is None else (parent, dated.get(at, since))
            ahead = at == metadata.current_snapshot_id and ref.kind is RefKind.BRANCH and ref.name != MAIN_BRANCH
            if ahead and abs(self.plan.planned_at - since) < window_ms:
                yield "branch-ahead", f"branch {ref.name} could not be fast-forwarded to any more"

    def _nothing(self) -> Iterator[Wrong]:
        if self.plan.prediction is not None:
            yield "wrong-prediction", "it predicts an outcome of doing nothing"

    def _table(self, action: RewriteDataFiles) -> Iterator[Wrong]:
        metadata = self.observation.metadata
        if self.policy.problems:
            yield "policy-problems", f"{len(self.policy.problems)} settings of the table cannot be used"
        if any(key.startswith("encryption.") for key in metadata.properties):
            yield "encrypted", "the table is encrypted"
        if metadata.format_version not in _REWRITABLE_FORMAT_VERSIONS:
            yield "format-version", f"format version {metadata.format_version} cannot be rewritten"
        if action.base_snapshot_id != metadata.current_snapshot_id or metadata.current_snapshot is None:
            text = f"based on snapshot {action.base_snapshot_id}, current is {metadata.current_snapshot_id}"
            yield "wrong-base", text
        if action.schema_id != metadata.current_schema_id:
            yield "wrong-schema", f"schema {action.schema_id}, current is {metadata.current_schema_id}"
        if action.target_file_size_bytes != self.policy.target_file_size_bytes:
            yield "wrong-target", f"target {action.target_file_size_bytes} bytes is not the policy's"
        if action.input_files > self.policy.max_task_files or action.input_bytes > self.policy.max_task_size_bytes:
            text = f"{action.input_files} files of {action.input_bytes} bytes are more than a task may have"
            yield "task-too-large", text

    def _groups(self, action: RewriteDataFiles) -> Iterator[Wrong]:
        if not action.groups:
            yield "no-groups", "an action without groups"
        for group_id, times in Counter(group.group_id for group in action.groups).items():
            if times > 1:
                yield "group-id-twice", f"{times} groups have the id {group_id}"
        paths = Counter(file.path for group in action.groups for file in group.files)
        for path, times in paths.items():
            if times > 1:
                yield "file-twice", f"{path} is planned {times} times"
        for group in action.groups:
            if group.executor is Executor.STITCH and action.layout is not None:
                yield "layout-stitched", f"group {group.group_id} is to be stitched, and to get an order"
            if group.output_spec_id is not None:
                yield from self._moved(group, action)
            elif action.level is Level.LEVEL_0:
                yield from self._group(group)
            else:
                yield from self._ordered(group)
            yield from self._inputs(group)

    def _moved(self, group: FileGroup, action: RewriteDataFiles) -> Iterator[Wrong]:
        """What is particular to rows that change their spec; some of it is said in ``check_moves``."""
        where = f"group {group.group_id}"
        wrong = move_violations(group, self.observation, self.policy, self.plan.planned_at)
        yield from wrong
        why = not_stageable(self.observation.metadata)
        if why is not None:
            yield "not-stageable", f"{where} is to be moved by Spark, and {why}"
        if action.level is not Level.LEVEL_0 or action.layout is not None:
            yield "layout-moved", f"{where} is to be moved, and to get or keep an order"
        if self.policy.migrate_spec is not MigrateSpec.ALL:
            yield from self._worth_it(group, where)

    def _worth_it(self, group: FileGroup, where: str) -> Iterator[Wrong]:
        """That files are rewritten for a reason other than their spec."""
        burdened = [file for file in group.files if self._burdened(group, file) or self._is_of_other_format(file)]
        if len(group.files) == 1 and not burdened:
            yield "group-too-few", f"{where} has one file, which nothing is gained by"
        for file in group.files:
            if file.size_bytes >= self.policy.small_file_size_bytes and file not in burdened:
                yield "not-small", f"{file.path}: {file.size_bytes} bytes, and few of its rows are deleted"

    def _ordered(self, group: FileGroup) -> Iterator[Wrong]:
        """What the executors cannot do that put files in order; the rest is said in ``check_order``."""
        where = f"group {group.group_id}"
        why = not_stageable(self.observation.metadata)
        if group.executor in (Executor.MERGE, Executor.SORT):
            yield from self._merged(group, where, sum(file.size_bytes for file in group.files))
            if self.observation.not_sorted:
                yield "not-sorted", f"{where} is to be merged by key, and {self.observation.not_sorted}"
        elif why is not None:
            yield "not-stageable", f"{where} is to be shuffled by Spark, and {why}"

    def _group(self, group: FileGroup) -> Iterator[Wrong]:
        where, files = f"group {group.group_id}", len(group.files)
        size_bytes = sum(file.size_bytes for file in group.files)
        size_bytes_max = min(self.policy.target_file_size_bytes, self.policy.max_file_group_size_bytes)
        if files == 0:
            yield "group-too-few", f"{where} has no files"
        if files > self.policy.max_file_group_files or (size_bytes > size_bytes_max and files > 1):
            yield "group-too-large", f"{where} has {files} files of {size_bytes} bytes"
        if group.executor is Executor.MERGE:
            yield from self._merged(group, where, size_bytes)
        elif group.executor is Executor.STITCH:
            yield from self._stitched(group, where, size_bytes)
        elif (why := not_stageable(self.observation.metadata)) is not None:
            yield "not-stageable", f"{where} is to be staged, and {why}"
        yield from self._worth_it(group, where)

    def _merged(self, group: FileGroup, where: str, size_bytes: int) -> Iterator[Wrong]:
        """What a merge cannot do; that it is not asked of it."""
        why = not_mergeable(self.observation.metadata)
        if why is not None:
            yield "not-mergeable", f"{where} is to be merged, and {why}"
        others = [file.path for file in group.files if file.file_format is not FileFormat.PARQUET]
        if others:
            yield "not-parquet", f"{where} is to be merged and has {others[0]}"
        for delete in group.delete_files:
            if delete.content is not FileContent.POSITION_DELETES:
                yield "equality-deletes", f"{where} is to be merged and has {delete.path}"
            elif delete.file_format not in (FileFormat.PARQUET, FileFormat.PUFFIN):
                yield "not-parquet", f"{where} is to be merged and has {delete.path}"
        if size_bytes > self.policy.max_file_group_size_bytes:
            yield "group-too-large", f"{where} is to be merged and has {size_bytes} bytes"
        if self.observation.worker_access is not WorkerAccess.PROVED:
            yield "no-access", f"{where} is to be merged by workers whose access is not proved"

    def _stitched(self, group: FileGroup, where: str, size_bytes: int) -> Iterator[Wrong]:
        """What row groups cannot be copied for, or what readers would pay for dearly."""
        why = self.observation.not_stitched or not_stitchable(self.observation.metadata)
        if why is not None:
            yield "not-stitchable", f"{where} is to be stitched, and {why}"
        if group.delete_files or any(file.deletes for file in group.files):
            yield "deletes-stitched", f"{where} is to be stitched, and some of its rows are deleted"
        others = [file.path for file in group.files if file.file_format is not FileFormat.PARQUET]
        if others:
            yield "not-parquet", f"{where} is to be stitched and has {others[0]}"
        if self.observation.worker_access is not WorkerAccess.PROVED:
            yield "no-access", f"{where} is to be stitched by workers whose access is not proved"
        if self.files is None:
            return
        live = [self.files[file.path].row_groups for file in group.files if file.path in self.files]
        if None in live or size_bytes < _ROW_GROUP_BYTES_MIN * sum(count or 0 for count in live):
            yield "small-row-groups", f"{where} is to be stitched, and has {live} row groups in its files"

    def _burdened(self, group: FileGroup, file: InputFile) -> bool:
        """Whether its deletes alone are a reason to rewrite a file, by what the group says of them."""
        its = [group.delete_files[position] for position in file.deletes if position in range(len(group.delete_files))]
        named = sum(d.record_count for d in its if d.content is FileContent.POSITION_DELETES and file.path in _aims(d))
        share = named / file.record_count if file.record_count else 0.0
        return len(its) >= self.policy.delete_file_threshold or share >= self.policy.delete_ratio_threshold

    def _is_of_other_format(self, file: InputFile) -> bool:
        """Whether its format alone is a reason to rewrite a file: it is not what the table's writers write."""
        own = self.observation.metadata.properties.get("write.format.default", "parquet").lower()
        known = own in ("parquet", "avro", "orc")
        return self.policy.migrate_formats and known and file.file_format.value != own

    def _inputs(self, group: FileGroup) -> Iterator[Wrong]:
        base = self.observation.metadata.current_snapshot
        for file in group.files:
            if file.size_bytes < 0 or file.record_count < 0:
                yield "negative", f"{file.path}: {file.size_bytes} bytes, {file.record_count} rows"
            if self.observation.metadata.format_version >= _LINEAGE_SINCE and file.first_row_id is None:
                yield "no-row-ids", f"{file.path} has no row ids, and rows of the table have a lineage"
            if base is not None and file.data_sequence_number > base.sequence_number:
                yield "newer-than-base", f"{file.path} has sequence number {file.data_sequence_number}"
            if self.files is not None:
                yield from self._input(group, file, self.files.get(file.path))

    def _input(self, group: FileGroup, planned: InputFile, live: DataFile | None) -> Iterator[Wrong]:
        path = planned.path
        if live is None or live.path != path:
            yield "unknown-file", f"{path} is not among the live files"
            return
        if live.partition != group.partition:
            yield "wrong-partition", f"{path} lies in {live.partition}, not in {group.partition}"
        told, true = (
            (one.size_bytes, one.record_count, one.data_sequence_number, one.file_format, one.first_row_id)
            for one in (planned, live)
        )
        if told != true:
            yield "wrong-figures", f"{path} is not what the manifests say: {planned} for {live}"

    def _deletes(self, action: RewriteDataFiles) -> Iterator[Wrong]:
        """Each planned file has the delete files that apply to it, no other and none less."""
        if self.files is None:
            return
        by_scope = _by_scope(self.deletes)
        unpartitioned = {spec.spec_id for spec in self.observation.metadata.specs if spec.is_unpartitioned}
        everywhere = [one for one in self.deletes if one.partition.spec_id in unpartitioned]
        for group in action.groups:
            named = {position for file in group.files for position in file.deletes}
            if named != set(range(len(group.delete_files))) or len(set(group.delete_files)) < len(group.delete_files):
                yield "wrong-deletes", f"group {group.group_id} lists delete files that no file of it has"
                continue
            for file in group.files:
                scopes = ((group.partition, ""), (group.partition, file.path))
                near = [delete for scope in scopes for delete in by_scope.get(scope, ())]
                right = _applying(file, [*near, *(d for d in everywhere if d.content is FileContent.EQUALITY_DELETES)])
                if {group.delete_files[position] for position in file.deletes} != right:
                    text = f"{file.path} is planned with {len(file.deletes)} delete files, {len(right)} apply to it"
                    yield "wrong-deletes", text

    def _partitions(
        self, action: RewriteDataFiles, statistics: Mapping[Partition, PartitionStatistics]
    ) -> Iterator[Wrong]:
        verdicts = {verdict.partition: verdict.verdict for verdict in self.plan.verdicts}
        specs = {spec.spec_id: spec.is_unpartitioned for spec in self.observation.metadata.specs}
        files: Counter[Partition] = Counter()
        records: Counter[Partition] = Counter()
        for group in action.groups:
            files[group.partition] += len(group.files)
            records[group.partition] += sum(file.record_count for file in group.files)
            known = statistics.get(group.partition)
            if known is not None and known.path != group.partition_path:
                yield "wrong-path", f"group {group.group_id} names {group.partition} {group.partition_path!r}"
        for partition in files:
            if partition.spec_id not in specs:
                yield "unknown-spec", f"the metadata has no spec {partition.spec_id}"
            if verdicts.get(partition, Verdict.REWRITE) is not Verdict.REWRITE:
                yield "verdict-says-no", f"{partition} is planned, its verdict is {verdicts[partition]}"
            known = statistics.get(partition)
            if known is None:
                yield "unknown-partition", f"{partition} has no files as of this snapshot"
                continue
            if files[partition] > known.counts.data_files or records[partition] > known.counts.records:
                yield "more-than-there-is", f"{files[partition]} files planned in {partition} with fewer"
            why = not_writable(self.observation.metadata, partition)
            if why is not None:
                yield "not-writable", f"{partition} is planned, and {why}"
        waits = wait_violations(files, self.observation, self.policy, self.plan.planned_at)
        yield from waits

    def _put_off(self, action: RewriteDataFiles) -> Iterator[Wrong]:
        for group in action.groups:
            for file in group.files:
                until = self.observation.put_off.get(file.path)
                if until is not None and until > self.plan.planned_at:
                    yield "put-off", f"{file.path} failed lately and is left alone until {until}"

    def _prediction(self, action: RewriteDataFiles) -> Iterator[Wrong]:
        said = self.plan.rewrite_prediction
        if said is None:
            yield "wrong-prediction", "it does not say what it would bring"
            return
        inputs = [file for group in action.groups for file in group.files]
        before = sum(one.counts.data_files for one in self.observation.inventory.partitions)
        right = (
            said.data_files_before == before
            and said.data_files_after == before - len(inputs) + action.output_files
            and said.input_files == len(inputs)
            and said.output_files == action.output_files
            and said.input_bytes == sum(file.size_bytes for file in inputs)
            and said.records == sum(file.record_count for file in inputs)
        )
        if not right:
            yield "wrong-prediction", f"the figures do not add up: {said}"
        elif (
            action.level is Level.LEVEL_0
            and said.data_files_after >= said.data_files_before
            and not any(g.delete_files for g in action.groups)
            and not any(self._is_of_other_format(file) for file in inputs)
            and not any(g.output_spec_id is not None for g in action.groups)
        ):
            yield "no-gain", f"{said.data_files_after} files after, {said.data_files_before} before"


def _aims(delete: DeleteFile) -> tuple[str, ...]:
    """The one data file that a delete file names, if it does: outright, or by bounds that leave no other."""
    if delete.referenced_data_file is not None:
        return (delete.referenced_data_file,)
    if delete.path_lower is not None and delete.path_lower == delete.path_upper:
        return (delete.path_lower,)
    return ()


def _by_scope(deletes: Iterable[DeleteFile]) -> Mapping[tuple[Partition, str], list[DeleteFile]]:
    """Delete files by partition and the path that they are for, empty where it is not one alone."""
    scopes: dict[tuple[Partition, str], list[DeleteFile]] = {}
    for delete in deletes:
        paths = _aims(delete) if delete.content is FileContent.POSITION_DELETES else ()
        for path in paths or ("",):
            scopes.setdefault((delete.partition, path), []).append(delete)
    return scopes


def _applying(file: InputFile, near: Sequence[DeleteFile]) -> set[DeleteFile]:
    """Those of the delete files of a file's scopes that are young enough to apply to it (spec, "Scan Planning")."""
    age = file.data_sequence_number
    equality = {d for d in near if d.content is FileContent.EQUALITY_DELETES and d.data_sequence_number > age}
    position = {d for d in near if d.content is FileContent.POSITION_DELETES and d.data_sequence_number >= age}
    vectors = {d for d in position if d.file_format is FileFormat.PUFFIN}
    return equality | (vectors or position)
