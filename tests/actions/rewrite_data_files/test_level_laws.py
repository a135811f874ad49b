"""Laws that the plans of all levels obey, over generated tables with a layout and runs of the past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.actions.rewrite_data_files.check.plan import check_plan
from icewright.actions.rewrite_data_files.executors import SORTED_BYTES_MAX
from icewright.actions.rewrite_data_files.layouts.ordering import Levels
from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.core import codec
from icewright.model.actions.actions import Executor, RewriteDataFiles
from icewright.model.iceberg.files import DataFile, FileFormat, Span
from icewright.model.iceberg.layouts import Curve, Layout, Level
from icewright.model.iceberg.tables import (
    LAYOUT_KEY,
    LEVEL_KEY,
    TASK_ID_KEY,
    Operation,
    Snapshot,
    SortField,
    TableMetadata,
)
from icewright.model.plans.plans import Plan, Verdict
from tests.builders.observations import HOUR_MS, NOW, Case, cases, observe
from tests.conftest import CAMPAIGN

many = settings(max_examples=1_000 if CAMPAIGN else 30, deadline=None)
BY_CARRIER = SortField(2, "identity", "asc", "nulls-first")
LAYOUTS = (Layout(Curve.SORT, (BY_CARRIER,)), Layout(Curve.HILBERT, (BY_CARRIER, replace(BY_CARRIER, source_id=1))))
KEYS = (*(layout.key for layout in LAYOUTS), "zorder(9)")


@dataclass(frozen=True)
class Leveled:
    """A table with a layout."""

    case: Case
    layout: Layout

    def plan(self) -> Plan:
        """What is planned for it."""
        case = self.case
        levels = Levels.of(case.observation, case.policy, self.layout)
        verdicts = shortlist(case.observation, case.policy, case.now, levels)
        return plan_table(
            case.observation, case.policy, verdicts, case.files, case.deletes, plan_id="p", now=case.now, levels=levels
        )

    @property
    def ordered(self) -> frozenset[str]:
        """The files that are in the order of the layout, by path."""
        signed = {
            snapshot.snapshot_id
            for snapshot in self.case.observation.metadata.snapshots
            if snapshot.summary.get(LAYOUT_KEY) == self.layout.key
        }
        return frozenset(file.path for file in self.case.files if file.snapshot_id in signed)


def ours(snapshot: Snapshot, level: Level, layout: str | None) -> Snapshot:
    """The snapshot as if a task of ours had committed it."""
    summary = {TASK_ID_KEY: f"task-{snapshot.snapshot_id}", LEVEL_KEY: level.value}
    return replace(
        snapshot, operation=Operation.REPLACE, summary=summary if layout is None else {**summary, LAYOUT_KEY: layout}
    )


@st.composite
def leveled(draw: st.DrawFn) -> Leveled:
    """Tables as for Level 0, some of whose snapshots are ours, and whose files have spans or have not."""
    case, layout = draw(cases()), draw(st.sampled_from([LAYOUTS[0], LAYOUTS[0], LAYOUTS[1]]))
    metadata = case.observation.metadata
    snapshots = []
    for snapshot in metadata.snapshots:
        usual = st.sampled_from([None, *[(Level.LEVEL_1, layout.key)] * 3])
        run = draw(usual | st.tuples(st.sampled_from(Level), st.sampled_from([*KEYS, None])))
        snapshots.append(snapshot if run is None else ours(snapshot, *run))
    ends = st.integers(0, 6)
    span = st.tuples(ends, ends).map(lambda pair: ((1, min(pair)), (1, max(pair))))
    spans = st.none() | span if draw(st.booleans()) else span
    files = tuple(replace(file, spans=tuple(draw(spans) for _ in layout.fields)) for file in case.files)
    policy = replace(
        case.policy, level_1_size_bytes=draw(st.sampled_from([50, 150, 600])), level_2_runs=draw(st.integers(2, 3))
    )
    again = with_files(replace(case, policy=policy), files, replace(metadata, snapshots=tuple(snapshots)))
    return Leveled(again, layout)


def with_files(case: Case, files: tuple[DataFile, ...], metadata: TableMetadata) -> Case:
    """The case with other files and snapshots."""
    known = case.observation
    observation = observe(
        files, metadata, removals=known.removals, interval_ms=known.commit_interval_ms, deletes=case.deletes
    )
    return replace(case, files=files, observation=observation)


@many
@given(leveled())
def test_the_checker_accepts_every_plan(table: Leveled) -> None:
    case, plan = table.case, table.plan()
    by_path = {file.path: file for file in case.files}
    assert check_plan(plan, case.observation, case.policy, by_path, case.deletes, table.layout) == ()
    assert codec.loads(Plan, codec.dumps(plan)) == plan
    for verdict in plan.verdicts:
        assert (verdict.verdict is Verdict.REWRITE) == any(
            group.partition == verdict.partition for action in plan.rewrites for group in action.groups
        )


@many
@given(leveled())
def test_only_level_2_takes_files_in_order_among_others(table: Leveled) -> None:
    for action in table.plan().rewrites:
        inputs = {file.path for group in action.groups for file in group.files}
        match (action.level, action.layout is not None):
            case (Level.LEVEL_0, True):
                assert inputs <= table.ordered
                assert all(len(group.files) == group.output_files == 1 for group in action.groups)
            case (Level.LEVEL_0, False) | (Level.LEVEL_1, True):
                assert not inputs & table.ordered
            case _:
                assert action.level is Level.LEVEL_2


@many
@given(leveled())
def test_a_task_is_of_one_level_and_within_its_bounds(table: Leveled) -> None:
    policy = table.case.policy
    for action in table.plan().rewrites:
        assert action.layout in (None, table.layout)
        assert action.input_files <= policy.max_task_files
        assert action.input_bytes <= policy.max_task_size_bytes
        for group in action.groups:
            if action.level is Level.LEVEL_0:
                assert group.executor not in (Executor.SHUFFLE, Executor.SORT)
            elif group.executor is Executor.SORT:
                assert group.size_bytes <= SORTED_BYTES_MAX
                assert table.layout.curve is Curve.SORT
            elif action.level is Level.LEVEL_1:
                assert group.executor is Executor.SHUFFLE
            elif group.executor is not Executor.SHUFFLE:
                assert group.executor is Executor.MERGE
                assert {file.path for file in group.files} <= table.ordered
            assert group.output_files <= max(1, -(-group.size_bytes // policy.target_file_size_bytes))


@many
@given(leveled())
def test_planning_again_and_again_comes_to_an_end(table: Leveled) -> None:
    """Carried out as predicted, plan after plan with an hour between, until one says that there is nothing to do."""
    now = NOW
    for _ in range(6 * len(table.case.files) + 10):
        plan = table.plan()
        if plan.is_empty and plan.look_again_at is None:
            return
        now = max(now, plan.look_again_at or 0) + HOUR_MS
        table = replace(table, case=carried_out(replace(table.case, now=now), plan))
    raise AssertionError("it never ends")


def carried_out(case: Case, plan: Plan) -> Case:
    """The table after the action of a plan, committed an hour ago."""
    files, metadata = list(case.files), case.observation.metadata
    for action in plan.rewrites:
        base = metadata.snapshots[-1]
        number = base.sequence_number + 1
        made = Snapshot(number, base.snapshot_id, number, case.now - HOUR_MS, None, "", 0, {})
        signed = ours(made, action.level, None if action.layout is None else action.layout.key)
        metadata = replace(metadata, snapshots=(*metadata.snapshots, signed), current_snapshot_id=number)
        files = [*_left(files, action), *_made(files, action, signed)]
        gone = {file.path for group in action.groups for file in group.files}
        deletes = tuple(
            d for d in case.deletes if d.file_format is not FileFormat.PUFFIN or d.referenced_data_file not in gone
        )
        case = replace(case, deletes=deletes)
    return with_files(case, tuple(files), metadata)


def _left(files: list[DataFile], action: RewriteDataFiles) -> list[DataFile]:
    gone = {file.path for group in action.groups for file in group.files}
    return [file for file in files if file.path not in gone]


def _made(files: list[DataFile], action: RewriteDataFiles, by: Snapshot) -> list[DataFile]:
    """The new files: what is put in order has spans that follow each other."""
    by_path = {file.path: file for file in files}
    made = []
    for group in action.groups:
        inputs = [by_path[file.path] for file in group.files]
        columns = list(zip(*(file.spans for file in inputs), strict=True))
        for part in range(group.output_files):
            count = group.output_files
            made.append(
                replace(
                    inputs[0],
                    path=f"{inputs[0].path}+{by.snapshot_id}-{part}",
                    size_bytes=_share(group.size_bytes, part, count),
                    record_count=_share(group.record_count, part, count),
                    snapshot_id=by.snapshot_id,
                    file_format=FileFormat.PARQUET,
                    data_sequence_number=by.sequence_number,
                    spans=tuple(_part_of(column, part, count) for column in columns),
                )
            )
    return made


def _part_of(spans: Sequence[Span | None], part: int, count: int) -> Span | None:
    """What one of so many files in order spans of what some files did; nothing where that is not known of one."""
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return None
    low, high = min(span[0][1] for span in known), max(span[1][1] for span in known)
    first, last = (low + (high - low) * cut / count for cut in (part, part + 1))
    return (1, first), (1, last)


def _share(whole: int, part: int, count: int) -> int:
    return whole * (part + 1) // count - whole * part // count
