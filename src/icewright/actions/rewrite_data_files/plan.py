"""The plan for a table: one bounded task of one level, or why there is none.

What can be done to each partition is found first (:mod:`.candidates`); then the level whose turn it
is has the task (:mod:`icewright.actions.rewrite_data_files.level_rotation`), and the groups of that level fill it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from icewright.actions.rewrite_data_files import outcome
from icewright.actions.rewrite_data_files.candidates import DELETES, REFERENCES_MAX, WITHOUT_SIZE, find
from icewright.actions.rewrite_data_files.deadline_batching import hurried
from icewright.actions.rewrite_data_files.estimates import estimate
from icewright.actions.rewrite_data_files.executors import row_group_bytes, table_obstacle
from icewright.actions.rewrite_data_files.groups import Candidate, Group, without
from icewright.actions.rewrite_data_files.layouts.lookups import lookups
from icewright.actions.rewrite_data_files.layouts.ordering import Levels
from icewright.actions.rewrite_data_files.level_rotation import KEEPING, MERGING, ORDERING, Work, next_turn
from icewright.actions.rewrite_data_files.migration import add_progress, only_migrating
from icewright.actions.rewrite_data_files.triggers.triggers import SMALL_FILES
from icewright.core import wording
from icewright.core.times import Instant
from icewright.inventory.applied_deletes import DeleteIndex
from icewright.inventory.specs import OTHER_SPEC
from icewright.model.actions.actions import Executor, FileGroup, RewriteDataFiles
from icewright.model.iceberg.files import DataFile, DeleteFile, Partition
from icewright.model.iceberg.layouts import Curve, Layout, Level
from icewright.model.iceberg.names import identifier
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Migration, PartitionVerdict, Plan, Reason, RewritePrediction, Verdict
from icewright.model.policy.policy import MigrateSpec, Policy
from icewright.plans.layouts import in_names, paths_of
from icewright.plans.procedure_call import literal, procedure_call


def plan_table(
    observation: Observation,
    policy: Policy,
    verdicts: Sequence[PartitionVerdict],
    files: Iterable[DataFile],
    deletes: Iterable[DeleteFile] = (),
    *,
    plan_id: str,
    now: Instant,
    levels: Levels | None = None,
    migration: Migration | None = None,
) -> Plan:
    """The plan for a table: one ``RewriteDataFiles``, or none and the reason.

    ``verdicts`` are those of :func:`.shortlist.shortlist`; ``files`` the live data files of at least
    its ``rewrite`` partitions, in any order, consumed once; ``deletes`` the live delete files that may apply to them.
    ``levels`` are those of a table with a layout, as the shortlist had them. With a ``migration``, nothing but that is
    planned, by the ``policy`` that was asked for it.
    Raises ``ValueError`` when the observation is torn (its inventory belongs to another snapshot).
    """
    metadata = observation.metadata
    if observation.inventory.snapshot_id != metadata.current_snapshot_id:
        raise ValueError(
            f"{metadata.name}: inventory of snapshot {observation.inventory.snapshot_id}, "
            f"metadata at {metadata.current_snapshot_id}"
        )
    plan = Plan(
        plan_id=plan_id,
        table_id=metadata.table_id,
        table_name=metadata.name,
        snapshot_id=metadata.current_snapshot_id,
        planned_at=now,
        mode=policy.mode,
        actions=(),
        reason=Reason("", ""),
        verdicts=(),
        verdict_counts={},
        prediction=None,
        look_again_at=None,
        migration=migration,
    )
    obstacle = table_obstacle(metadata, policy, observation.worker_access)
    if obstacle is not None:
        return replace(plan, reason=obstacle)
    index = DeleteIndex(metadata, deletes)
    found = find(observation, policy, verdicts, files, index, now, levels, migration)
    if migration is not None:
        found = only_migrating(found, observation, policy, migration)
    works = {group.work for item in found for group in item.groups}
    work = next_turn(metadata, works, now) if works else MERGING
    paths = {item.verdict.partition: item.verdict.path for item in found}
    fitting = choose([_of_turn(item, work) for item in found], policy)
    hurry = hurried(fitting, paths, observation, policy, now)
    chosen = hurry.chosen
    ordering = None if levels is None else levels.ordering
    action = _action(observation, policy, chosen, index, work, None if ordering is None else ordering.layout)
    final = [
        *_final_verdicts(found, chosen, index, work, hurry.reason),
        *(verdict for verdict in verdicts if verdict.verdict is not Verdict.REWRITE),
    ]
    if action is None:
        reason = outcome.nothing(final, policy, ordering)
    else:
        reason = outcome.rewrite(action, final, ordering, hurry.reason)
    if migration is not None:
        reason = add_progress(reason, observation, policy, migration, action)
    return replace(
        plan,
        actions=() if action is None else (action,),
        reason=reason,
        verdicts=outcome.listed(final),
        verdict_counts=outcome.counted(final),
        prediction=None if action is None else _prediction(observation, policy, action, chosen),
        look_again_at=min((v.wait_until for v in final if v.wait_until is not None), default=None),
    )


def _of_turn(item: Candidate, work: Work) -> Candidate:
    """What the level whose turn it is can do for a partition."""
    groups = tuple(group for group in item.groups if group.work == work)
    return replace(item, groups=groups, following=item.following if groups else 0)


def choose(found: Sequence[Candidate], policy: Policy) -> dict[Partition, tuple[Group, ...]]:
    """The groups of this task: partitions with most gain first, until the task's bounds are reached.

    Everything behind the first group that does not fit follows in a later plan, so that a larger bound never
    means less work done.
    """
    chosen: dict[Partition, tuple[Group, ...]] = {}
    files = size_bytes = references = 0
    for partition in sorted(found, key=lambda item: (-item.gain, item.verdict.partition)):
        for group in partition.groups:
            # Files that are moved may become more than they are.
            files += max(len(group.files), 0 if group.output_spec_id is None else group.output_files)
            size_bytes += group.size_bytes
            references += group.references
            full = files > policy.max_task_files or size_bytes > policy.max_task_size_bytes
            if full or (chosen and references > REFERENCES_MAX):
                return chosen
            chosen[partition.verdict.partition] = (*chosen.get(partition.verdict.partition, ()), group)
    return chosen


def _final_verdicts(
    found: Sequence[Candidate],
    chosen: Mapping[Partition, tuple[Group, ...]],
    deletes: DeleteIndex,
    work: Work,
    hurry: Reason | None,
) -> list[PartitionVerdict]:
    full = "this one is full" if hurry is None else hurry.text
    final: list[PartitionVerdict] = []
    for item in found:
        taken = chosen.get(item.verdict.partition, ())
        left = sum(len(group.files) for group in item.groups if group not in taken) + item.following
        if not item.groups:
            final.append(item.verdict)
        elif not taken:
            ours = any(group.work == work for group in item.groups)
            what = "small file" if item.verdict.reason.code == SMALL_FILES else "file"
            why = full if ours else f"this one is of {outcome.level_said(work[0])}"
            text = f"{wording.count(left, what)} follow in a later task; {why}"
            if item.groups[0].work in ORDERING:
                text += f"; {_named(item.verdict.reason)}"
            final.append(
                without(item.verdict, Verdict.WAIT, Reason("follows", text, {"files_following": left})).verdict
            )
        else:
            inputs = sum(len(group.files) for group in taken)
            staying = [group for group in taken if group.output_spec_id is None]
            reason = _done_to(item.verdict, taken, left, deletes)
            final.append(
                replace(
                    item.verdict,
                    reason=reason,
                    files_after=item.verdict.files_before - inputs + sum(group.output_files for group in staying),
                )
            )
    return final


def _done_to(verdict: PartitionVerdict, taken: Sequence[Group], left: int, deletes: DeleteIndex) -> Reason:
    """What is done to one partition, by which executor, and why not by the faster one."""
    files = [file for group in taken for file in group.files]
    folded = len({delete for file in files for delete in deletes.of(file)})
    staged = [one.choice.reason for one in taken if one.choice.executor is Executor.STAGED and one.choice.reason]
    shuffled = [one.choice.reason for one in taken if one.choice.executor is Executor.SHUFFLE and one.choice.reason]
    made, work = sum(group.output_files for group in taken), taken[0].work
    kind = "file" if verdict.reason.code in WITHOUT_SIZE or work != MERGING else "small file"
    moved = [file for group in taken if group.output_spec_id is not None for file in group.files]
    text = f"{wording.count(len(files), kind)} into {'at most ' if moved else ''}{made:,}"
    text += ", each in its order" if work == KEEPING else ""
    text += f" with {wording.count(folded, 'delete file')} folded in" if folded else ""
    text += f"; {left:,} more follow" if left else ""
    stitched = [group for group in taken if group.choice.executor is Executor.STITCH]
    if stitched:
        mean = row_group_bytes([file for group in stitched for file in group.files])
        which = "stitched" if len(stitched) == len(taken) else f"{len(stitched):,} of {len(taken):,} stitched"
        text += f"; {which}, because row groups of {wording.size(mean or 0)} can be copied as they are"
    if staged:
        which = "staged" if len(staged) == len(taken) else f"{len(staged):,} of {len(taken):,} staged"
        text += f"; {which}, because {staged[0].text}"
    text += f"; shuffled, because {shuffled[0].text}" if shuffled else ""
    if verdict.reason.code not in (SMALL_FILES, DELETES, OTHER_SPEC):
        text += f"; {_named(verdict.reason)}"
    figures = dict(verdict.reason.figures)
    figures |= {"input_files": len(files), "output_files": made, "files_following": left}
    figures |= {"delete_files": folded, "staged_groups": len(staged), "stitched_groups": len(stitched)}
    figures |= {"moved_files": len(moved)} if moved else {}
    return Reason(verdict.reason.code, text, figures)


def _named(reason: Reason) -> str:
    """A rule that fired, with its numbers."""
    return reason.text if reason.code in tuple(Level) else f"{reason.code}: {reason.text}"


def _action(
    observation: Observation,
    policy: Policy,
    chosen: Mapping[Partition, tuple[Group, ...]],
    deletes: DeleteIndex,
    work: Work,
    layout: Layout | None,
) -> RewriteDataFiles | None:
    base = observation.metadata.current_snapshot
    if not chosen or base is None:
        return None
    paths = {statistics.partition: statistics.path for statistics in observation.inventory.partitions}
    numbered = enumerate((partition, group) for partition, groups in chosen.items() for group in groups)
    return RewriteDataFiles(
        base_snapshot_id=base.snapshot_id,
        schema_id=observation.metadata.current_schema_id,
        groups=tuple(
            _file_group(number, partition, paths[partition], group, deletes) for number, (partition, group) in numbered
        ),
        target_file_size_bytes=policy.target_file_size_bytes,
        level=work[0],
        layout=None if work == MERGING else layout,
    )


def _file_group(number: int, partition: Partition, path: str, group: Group, index: DeleteIndex) -> FileGroup:
    inputs, deletes = index.inputs(group.files)
    return FileGroup(
        group_id=number,
        partition=partition,
        partition_path=path,
        files=inputs,
        executor=group.choice.executor,
        delete_files=deletes,
        output_files=group.output_files,
        output_spec_id=group.output_spec_id,
    )


def _prediction(
    observation: Observation, policy: Policy, action: RewriteDataFiles, chosen: Mapping[Partition, tuple[Group, ...]]
) -> RewritePrediction:
    metadata = observation.metadata
    files = {partition: [file for group in groups for file in group.files] for partition, groups in chosen.items()}
    before = sum(statistics.counts.data_files for statistics in observation.inventory.partitions)
    return RewritePrediction(
        data_files_before=before,
        data_files_after=before - action.input_files + action.output_files,
        input_files=action.input_files,
        output_files=action.output_files,
        input_bytes=action.input_bytes,
        records=action.record_count,
        layout=None if action.layout is None else in_names(metadata, action.layout),
        call=nearest_call(metadata, policy, action),
        estimate=replace(estimate(observation, policy, action), lookups=lookups(metadata, action, files)),
    )


def nearest_call(metadata: TableMetadata, policy: Policy, action: RewriteDataFiles) -> str:
    """One SQL statement on one line of printable characters.

    Its sort orders name columns alone: of a transform it names the column, which orders rows as well, and of cuts a
    z-order of their columns.
    """
    options = {"target-file-size-bytes": str(action.target_file_size_bytes), "use-starting-sequence-number": "true"}
    if any(group.delete_files for group in action.groups):
        # Iceberg's default for the latter is never.
        options["delete-ratio-threshold"] = str(policy.delete_ratio_threshold)
        options["delete-file-threshold"] = str(policy.delete_file_threshold)
    moved = [group for group in action.groups if group.output_spec_id is not None]
    if moved:
        options["output-spec-id"] = str(moved[0].output_spec_id)
    if action.level is Level.LEVEL_2 or (moved and policy.migrate_spec is MigrateSpec.ALL):
        options["rewrite-all"] = "true"
    else:
        options["min-input-files"] = str(policy.min_input_files)
    arguments = ["strategy => 'binpack'" if action.layout is None else "strategy => 'sort'"]
    if action.layout is not None and action.layout.sort_order_id is None:
        arguments.append(f"sort_order => {literal(_order(metadata, action.layout))}")  # else it takes the table's own
    arguments.append(f"options => {_map(options)}")
    return procedure_call(metadata.name, "rewrite_data_files", *arguments)


def _order(metadata: TableMetadata, layout: Layout) -> str:
    names = [".".join(identifier(part) for part in path) for path in paths_of(metadata, layout)]
    if layout.curve is not Curve.SORT and not (layout.curve is Curve.CUTS and len(names) == 1):
        return f"{Curve.ZORDER if layout.curve is Curve.CUTS else layout.curve}({', '.join(names)})"
    fields = zip(names, layout.fields, strict=True)
    return ", ".join(f"{name} {f.direction.upper()} {f.null_order.replace('-', ' ').upper()}" for name, f in fields)


def _map(options: dict[str, str]) -> str:
    return f"map({', '.join(literal(text) for pair in options.items() for text in pair)})"
