"""Level 1, Level 2 and whose turn it is, by examples; and each thing that the second opinion refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.rewrite_data_files.check.plan import check_plan
from icewright.actions.rewrite_data_files.layouts.level2 import level_2_piece
from icewright.actions.rewrite_data_files.layouts.ordering import PARTITIONS_LOOKED_AT, Levels, Ordering
from icewright.actions.rewrite_data_files.layouts.pieces import NoPiece, Piece, PieceBounds
from icewright.actions.rewrite_data_files.level_rotation import FORGOTTEN_AFTER_MS, MERGING, TURNS, next_turn
from icewright.actions.rewrite_data_files.outcome import unordered
from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.maintenance.explain import explain
from icewright.model.actions.actions import Executor, FileGroup, InputFile, RewriteDataFiles
from icewright.model.iceberg.files import DataFile, DeleteFile
from icewright.model.iceberg.layouts import Curve, Layout, Level
from icewright.model.iceberg.tables import LEVEL_KEY, TASK_ID_KEY, Snapshot, SortField, TableMetadata
from icewright.model.plans.plans import Plan, Reason, Verdict
from icewright.model.policy.policy import Policy
from tests.actions.rewrite_data_files.test_level_laws import ours
from tests.builders.observations import (
    DAY_MS,
    HOUR_MS,
    MIB,
    MINUTE_MS,
    NOW,
    data_file,
    data_files,
    deletion_vector,
    equality_deletes,
    month,
    observe,
    policy,
    snapshot,
    table,
)
from tests.cases import each_case

BY_CARRIER = SortField(2, "identity", "asc", "nulls-first")
SORTED = Layout(Curve.SORT, (BY_CARRIER,))
CURVED = Layout(Curve.HILBERT, (BY_CARRIER, replace(BY_CARRIER, source_id=1)))
LOW = policy(target_file_size_bytes=10 * MIB, level_1_size_bytes=100 * MIB, level_2_runs=3, max_task_size_bytes=10**9)


def planned(
    files: Sequence[DataFile],
    snapshots: Sequence[Snapshot] = (snapshot(1),),
    layout: Layout = SORTED,
    by: Policy = LOW,
    deletes: Sequence[DeleteFile] = (),
    **known: Any,
) -> Plan:
    observation = replace(observe(files, table(snapshots), deletes=deletes), **known)
    levels = Levels.of(observation, by, layout)
    verdicts = shortlist(observation, by, NOW, levels)
    plan = plan_table(observation, by, verdicts, files, deletes, plan_id="p", now=NOW, levels=levels)
    by_path = {file.path: file for file in files}
    assert check_plan(plan, observation, by, by_path, deletes, layout) == ()
    return plan


def spanning(files: Sequence[DataFile], *spans: tuple[int, int]) -> list[DataFile]:
    """The files with these spans, which begin again when there are more files."""
    return [replace(f, spans=(((1, (s := spans[i % len(spans)])[0]), (1, s[1])),)) for i, f in enumerate(files)]


def runs(count: int, layout: Layout = SORTED, level: Level = Level.LEVEL_1) -> list[Snapshot]:
    return [
        snapshot(1),
        *(ours(snapshot(number, NOW - DAY_MS), level, layout.key) for number in range(2, 2 + count)),
    ]


def run_files(count: int, size_bytes: int = 8 * MIB, first: int = 2) -> list[DataFile]:
    """Two files for each of the first runs."""
    return [data_file(month(1), 100 + n, size_bytes, snapshot_id=first + n // 2) for n in range(2 * count)]


class TestLevel1:
    def test_what_is_not_in_order_is_put_in_it_once_there_is_enough(self) -> None:
        files = spanning(data_files(month(1), 12, 9 * MIB), (0, 9))
        plan = planned(files)
        (action,) = plan.rewrites
        (group,) = action.groups
        assert (action.level, action.layout) == (Level.LEVEL_1, SORTED)
        assert (group.executor, len(group.files), group.output_files) == (Executor.SHUFFLE, 12, 11)
        assert plan.reason.code == "level-1"
        assert explain(plan)[0].endswith(
            "rewrite 12 files (108.0 MiB) in 1 partition into 11 in the order of sort(carrier)."
        )
        assert "Level 1 is due: 108.0 MiB in 12 files are not in the order of sort(carrier) (100.0 MiB are enough)" in (
            plan.verdicts[0].reason.text
        )

    def test_few_rows_are_sorted_by_one_worker(self) -> None:
        low = replace(LOW, level_1_size_bytes=10 * MIB)
        few = spanning(data_files(month(1), 4, 8 * MIB), (0, 9))
        (action,) = planned(few, by=low).rewrites
        assert [(one.executor, len(one.files), one.output_files) for one in action.groups] == [(Executor.SORT, 4, 4)]
        truncated = replace(SORTED, fields=(replace(BY_CARRIER, transform="truncate[2]"),))
        equality = equality_deletes(month(1), 1, sequence_number=9)
        others: list[tuple[Sequence[DataFile], Layout, Policy, Sequence[DeleteFile], dict[str, Any]]] = [
            ([*few, *spanning([data_file(month(1), 5, 1)], (0, 9))], SORTED, low, [], {}),
            (few, SORTED, replace(low, max_file_group_files=3), [], {}),
            (few, SORTED, replace(low, max_file_group_size_bytes=31 * MIB), [], {}),
            (few, CURVED, low, [], {}),
            (few, truncated, low, [], {}),
            (few, SORTED, low, [equality], {}),
            (few, SORTED, low, [], {"not_sorted": "more than a worker may hold"}),
        ]
        for files, layout, by, deletes, known in others:
            (action,) = planned(files, layout=layout, by=by, deletes=deletes, **known).rewrites
            assert [one.executor for one in action.groups] == [Executor.SHUFFLE]

    def test_less_is_left_to_level_0(self) -> None:
        (action,) = planned(spanning(data_files(month(1), 12, MIB), (0, 9))).rewrites
        assert (action.level, action.layout) == (Level.LEVEL_0, None)

    def test_files_in_order_do_not_count_and_are_not_touched(self) -> None:
        files = spanning([*run_files(2, 90 * MIB), *data_files(month(1), 9, 9 * MIB)], (0, 9))
        assert planned(files, runs(2)).actions == ()
        more = spanning([*files, *data_files(month(1), 30, 9 * MIB)[9:]], (0, 9))
        (action,) = planned(more, runs(2)).rewrites
        assert {file.path for file in action.groups[0].files} == {f.path for f in more if f.snapshot_id == 1}

    @pytest.mark.parametrize("other", [CURVED, replace(SORTED, fields=(replace(BY_CARRIER, direction="desc"),))])
    def test_another_order_is_none(self, other: Layout) -> None:
        (action,) = planned(spanning(run_files(2, 90 * MIB), (0, 9)), runs(2, other)).rewrites
        assert (action.level, action.input_files) == (Level.LEVEL_1, 4)

    def test_data_that_comes_in_order_is_left_to_level_0(self) -> None:
        by_time = spanning(data_files(month(1), 12, 9 * MIB), *((n, n + 1) for n in range(12)))
        plan = planned(by_time)
        assert plan.rewrites == ()
        assert plan.verdicts[0].reason.code == "in-order"
        assert planned(by_time, layout=CURVED).rewrites[0].level is Level.LEVEL_1

    def test_young_files_are_waited_for(self) -> None:
        snapshots = [snapshot(1), snapshot(2, NOW - 1_000)]
        files = spanning([*data_files(month(1), 10, 9 * MIB), data_file(month(1), 11, 50 * MIB, snapshot_id=2)], (0, 9))
        plan = planned(files, snapshots)
        assert [(v.verdict, v.reason.code, v.wait_until) for v in plan.verdicts] == [
            (Verdict.WAIT, "young-files", NOW - 1_000 + MINUTE_MS)
        ]

    def test_more_than_a_task_may_read_is_done_in_order_of_the_column(self) -> None:
        by = replace(LOW, max_task_size_bytes=60 * MIB)
        files = spanning(data_files(month(1), 12, 9 * MIB), *((12 - n, 20) for n in range(12)))
        plan = planned(files, by=by)
        assert [file.path for file in plan.rewrites[0].groups[0].files] == [f.path for f in reversed(files)][:6]
        assert plan.verdicts[0].reason.figures["files_following"] == 6

    def test_more_than_a_task_may_read_is_done_by_age_under_a_curve(self) -> None:
        by = replace(LOW, max_task_size_bytes=60 * MIB)
        files = spanning(data_files(month(1), 12, 9 * MIB), *((12 - n, 20) for n in range(12)))
        plan = planned(files, layout=CURVED, by=by)
        assert [file.path for file in plan.rewrites[0].groups[0].files] == [f.path for f in files][:6]

    def test_a_file_larger_than_a_task_is_refused(self) -> None:
        by = replace(LOW, max_task_size_bytes=60 * MIB)
        plan = planned(spanning([data_file(month(1), 1, 200 * MIB)], (0, 9)), by=by)
        assert [(v.verdict, v.reason.code) for v in plan.verdicts] == [(Verdict.REFUSE, "file-too-large")]

    def test_what_spark_cannot_keep_is_refused_with_the_level(self) -> None:
        fields: Any = (*table().schema.fields, {"id": 3, "name": "t", "type": "geometry", "required": False})
        files = spanning(data_files(month(1), 12, 9 * MIB), (0, 9))
        metadata = replace(table(), schemas=(replace(table().schema, fields=fields),))
        observation = observe(files, metadata)
        levels = Levels.of(observation, LOW, SORTED)
        verdicts = shortlist(observation, LOW, NOW, levels)
        plan = plan_table(observation, LOW, verdicts, files, plan_id="p", now=NOW, levels=levels)
        assert plan.rewrites == ()

    def test_at_most_so_many_partitions_are_looked_at_others_each_time(self) -> None:
        files = [data_file(month(n), 1, 100 * MIB) for n in range(PARTITIONS_LOOKED_AT + 10)]

        def looked_at(commits: int) -> set[object]:
            observation = observe(files, table([snapshot(n) for n in range(1, 1 + commits)]))
            return set(Levels.of(observation, LOW, SORTED).due)

        assert len(looked_at(1)) == PARTITIONS_LOOKED_AT
        assert looked_at(1) | looked_at(2) == {file.partition for file in files}


class TestLevel2:
    def test_enough_runs_become_one(self) -> None:
        files = spanning([*run_files(3), *data_files(month(1), 2, 9 * MIB)], (0, 9))
        (action,) = planned(files, runs(3)).rewrites
        assert (action.level, action.layout, action.input_files) == (Level.LEVEL_2, SORTED, 8)
        assert planned(files, runs(3), by=replace(LOW, level_2_runs=4)).actions == ()

    def test_files_that_are_all_in_order_are_merged_by_their_key_where_a_merge_can_do_it(self) -> None:
        files = spanning(run_files(3), (0, 9))
        (action,) = planned(files, runs(3)).rewrites
        assert [(group.executor, group.output_files) for group in action.groups] == [(Executor.MERGE, 5)]
        day = replace(SORTED, fields=(replace(BY_CARRIER, transform="truncate[2]"),))
        others = [
            (files, SORTED, replace(LOW, max_file_group_size_bytes=40 * MIB)),
            ([*files, *spanning(data_files(month(1), 1, MIB), (0, 9))], SORTED, LOW),
            (files, CURVED, LOW),
            (files, day, LOW),
        ]
        for some, layout, by in others:
            (action,) = planned(some, runs(3, layout), layout, by).rewrites
            assert (action.level, action.groups[0].executor) == (Level.LEVEL_2, Executor.SHUFFLE)

    def test_files_that_turned_out_not_to_be_sorted_are_shuffled_and_the_plan_says_why(self) -> None:
        plan = planned(spanning(run_files(3), (0, 9)), runs(3), not_sorted="the rows of a.parquet are in disorder")
        assert [(one.executor, one.output_files) for one in plan.rewrites[0].groups] == [(Executor.SHUFFLE, 5)]
        said = "shuffled, because files in its order could not be merged by their key: the rows of a.parquet"
        assert said in plan.verdicts[0].reason.text

    def test_runs_of_level_2_and_of_rewritten_deletes_do_not_count(self) -> None:
        files = spanning(run_files(4), (0, 9))
        for level in (Level.LEVEL_0, Level.LEVEL_2):
            assert planned(files, runs(4, level=level)).actions == ()

    def test_a_run_of_just_now_is_taken_with_the_others(self) -> None:
        snapshots = [*runs(2), ours(snapshot(4, NOW - 1), Level.LEVEL_1, SORTED.key), snapshot(5, NOW)]
        files = spanning([*run_files(3), data_file(month(1), 1, MIB, snapshot_id=5)], (0, 9))
        (action,) = planned(files, snapshots).rewrites
        assert {file.path for file in action.groups[0].files} == {file.path for file in run_files(3)}

    def test_two_runs_on_top_of_each_other_are_too_many_where_two_are_enough(self) -> None:
        (action,) = planned(spanning(run_files(2)[::2], (0, 9)), runs(2), by=replace(LOW, level_2_runs=2)).rewrites
        assert (action.level, action.input_files) == (Level.LEVEL_2, 2)

    def test_runs_that_follow_each_other_are_left(self) -> None:
        plan = planned(spanning(run_files(4), *((n, n + 1) for n in range(8))), runs(4))
        assert (plan.rewrites, plan.verdicts[0].reason.code) == ((), "in-order")

    def test_a_partition_larger_than_a_task_is_done_in_pieces_that_end(self) -> None:
        by = replace(LOW, max_task_size_bytes=60 * MIB)
        files = spanning(run_files(8), (0, 9), (5, 19))
        (action,) = planned(files, runs(8), by=by).rewrites
        assert (action.level, action.input_files, action.input_bytes) == (Level.LEVEL_2, 7, 56 * MIB)

    def test_a_piece_has_most_bytes_of_level_1(self) -> None:
        done = [data_file(month(1), n, 8 * MIB, snapshot_id=9) for n in range(6)]
        snapshots = [*runs(3), *(snapshot(n) for n in range(5, 9)), ours(snapshot(9), Level.LEVEL_2, SORTED.key)]
        files = [*spanning(done, (0, 3)), *spanning(run_files(3), (20, 30))]
        (action,) = planned(files, snapshots, by=replace(LOW, max_task_size_bytes=50 * MIB)).rewrites
        assert {file.path for file in action.groups[0].files} == {file.path for file in run_files(3)}

    def test_pieces_of_very_many_files_are_found_in_time(self) -> None:
        ordering = Ordering(SORTED, "sort(carrier)", frozenset({2}), frozenset({2}))
        files = [
            replace(data_file(month(1), n, 10, snapshot_id=2), spans=(((1, n), (1, n + 2)),))  # three at each value
            for n in range(50_000)
        ]
        piece = level_2_piece(files, ordering, LOW, PieceBounds(1_000, 10**9, 10**9, lambda _: 0), fits=False)
        assert isinstance(piece, Piece)
        assert (len(piece.files), piece.following) == (1_000, 49_000)

    def test_nothing_is_done_alone(self) -> None:
        ordering = Ordering(CURVED, "hilbert(carrier, month)", frozenset({2}), frozenset({2}))
        found = level_2_piece(run_files(3)[:1], ordering, LOW, PieceBounds(10, 10**9, 10, lambda _: 0), fits=True)
        assert isinstance(found, NoPiece)


class TestDeletes:
    def test_a_file_in_order_is_rewritten_alone_and_stays_in_order(self) -> None:
        files = spanning(run_files(2), (0, 9))
        vectors = [deletion_vector(file, file.record_count // 2, sequence_number=4) for file in files[:2]]
        plan = planned(files, [*runs(2), snapshot(4, NOW - DAY_MS)], deletes=vectors)
        (action,) = plan.rewrites
        assert (action.level, action.layout) == (Level.LEVEL_0, SORTED)
        assert [len(group.files) for group in action.groups] == [1, 1]
        assert plan.verdicts[0].reason.text.startswith(
            "2 files into 2, each in its order with 2 delete files folded in"
        )


class TestTurns:
    def test_levels_take_turns_the_cheap_ones_first(self) -> None:
        everything = list(TURNS)
        told = []
        metadata = table([snapshot(1)])
        for number in range(2, 8):
            work = next_turn(metadata, everything, NOW)
            told.append(work)
            commit = ours(snapshot(number, NOW), work[0], SORTED.key if work[1] else None)
            metadata = table([*metadata.snapshots, commit])
        assert told == [*TURNS, *TURNS[:2]]

    def test_who_has_nothing_to_do_is_passed_over(self) -> None:
        after_0 = table([snapshot(1), ours(snapshot(2, NOW), Level.LEVEL_0, None)])
        assert next_turn(after_0, [MERGING, TURNS[3]], NOW) == TURNS[3]
        assert next_turn(after_0, [MERGING], NOW) == MERGING

    def test_a_turn_of_long_ago_is_forgotten(self) -> None:
        old = table([snapshot(1), ours(snapshot(2, NOW - FORGOTTEN_AFTER_MS), Level.LEVEL_0, None)])
        assert next_turn(old, TURNS, NOW) == MERGING

    @given(st.text() | st.sampled_from(list(Level)))
    def test_a_summary_may_say_anything(self, said: str) -> None:
        commit = replace(snapshot(2, NOW), summary={TASK_ID_KEY: "t", LEVEL_KEY: said})
        assert next_turn(table([snapshot(1), commit]), TURNS, NOW) in TURNS

    def test_fresh_data_is_merged_while_another_partition_is_due(self) -> None:
        due = spanning(data_files(month(2), 12, 9 * MIB), (0, 9))
        fresh = spanning(data_files(month(1), 12), (0, 9))
        first = planned([*due, *fresh])
        assert first.rewrites[0].level is Level.LEVEL_0
        follows = next(v for v in first.verdicts if v.path == "month=2")
        assert follows.reason.text.startswith(
            "12 files follow in a later task; this one is of Level 0; Level 1 is due: 108.0"
        )
        then = planned([*due, *fresh], [snapshot(1), ours(snapshot(2, NOW - HOUR_MS // 6), Level.LEVEL_0, None)])
        assert then.rewrites[0].level is Level.LEVEL_1


def test_a_layout_that_cannot_be_used_is_said_and_stops_nothing() -> None:
    said = unordered(Reason("small-files", "merge 9", {"x": 1}), Reason("layout-column-missing", "it names a"))
    assert said.text == "merge 9; nothing is put in order, because it names a"
    assert (said.code, said.figures) == ("small-files", {"x": 1, "layout_obstacle": "layout-column-missing"})


FILES = spanning(data_files(month(1), 12, 9 * MIB), (0, 9))
PLAN = planned(FILES)
OVER = planned(spanning(run_files(3), (0, 9)), runs(3))


def found(plan: Plan, files: Sequence[DataFile], metadata: TableMetadata, layout: Layout | None = SORTED) -> set[str]:
    observation = observe(files, metadata)
    by_path: Mapping[str, DataFile] = {file.path: file for file in files}
    return {code for code, _ in check_plan(plan, observation, LOW, by_path, (), layout)}


def with_action(plan: Plan, **changes: Any) -> Plan:
    (action,) = plan.rewrites
    return replace(plan, actions=(replace(action, **changes),))


def with_group(plan: Plan, **changes: Any) -> Plan:
    (action,) = plan.rewrites
    return with_action(plan, groups=(replace(action.groups[0], **changes), *action.groups[1:]))


@each_case(
    ("code", "wrong"),
    [
        ("wrong-layout", with_action(PLAN, layout=None)),
        ("wrong-layout", with_action(PLAN, layout=CURVED)),
        ("wrong-executor", with_group(PLAN, executor=Executor.STAGED)),
        ("wrong-output-files", with_group(PLAN, output_files=12)),
        ("wrong-output-files", with_group(PLAN, output_files=0)),
        ("not-due", with_action(PLAN, level=Level.LEVEL_2)),
        ("wrong-output-files", with_action(PLAN, level=Level.LEVEL_0)),
        ("order-lost", with_action(PLAN, level=Level.LEVEL_0)),
        ("group-too-few", with_group(PLAN, files=())),
    ],
)
def test_a_wrong_level_1_is_found(code: str, wrong: Plan) -> None:
    assert found(PLAN, FILES, table()) == set()
    assert code in found(wrong, FILES, table())


def test_level_1_of_files_in_order_is_found() -> None:
    files = [replace(FILES[0], snapshot_id=2), *FILES[1:]]
    codes = found(PLAN, files, table(runs(1)))
    assert {"order-lost", "not-due"} <= codes
    kept = with_action(PLAN, level=Level.LEVEL_0, groups=(_alone(PLAN, FILES[1]),))
    assert "wrong-layout" in found(kept, files, table(runs(1)))


def test_level_2_of_few_runs_is_found() -> None:
    files = spanning(run_files(3), (0, 9))
    assert found(OVER, files, table(runs(3))) == set()
    others = [runs(3)[0], ours(snapshot(2), Level.LEVEL_2, SORTED.key), *runs(3)[2:]]
    assert "not-due" in found(OVER, files, table(others))


def test_a_merge_of_files_that_are_not_all_in_order_is_found() -> None:
    files = spanning(run_files(3), (0, 9))
    assert "wrong-executor" in found(OVER, [replace(files[0], snapshot_id=1), *files[1:]], table(runs(3)))
    curved = with_action(OVER, layout=CURVED)
    assert "wrong-executor" in found(curved, files, table(runs(3, CURVED)), CURVED)
    large = replace(files[0], size_bytes=200 * MIB)
    assert "group-too-large" in found(with_group(OVER, files=_inputs(OVER, large)), [large, *files[1:]], table(runs(3)))


def test_a_merge_by_key_of_files_that_are_known_not_to_be_sorted_is_found() -> None:
    files = spanning(run_files(3), (0, 9))
    by_path, observed = {file.path: file for file in files}, observe(files, table(runs(3)))
    merged = planned(files, runs(3))
    known = replace(observed, not_sorted="the rows of a.parquet are in disorder")
    wrong = check_plan(merged, known, LOW, by_path, layout=SORTED)
    assert {code for code, _ in wrong} == {"not-sorted"}


def test_a_sort_of_much_or_by_no_columns_is_found() -> None:
    files = spanning(data_files(month(1), 4, 25 * MIB), (0, 9))
    shuffled = planned(files)
    assert found(shuffled, files, table()) == set()
    assert found(with_group(shuffled, executor=Executor.SORT), files, table()) == {"wrong-executor"}
    low, few = replace(LOW, level_1_size_bytes=10 * MIB), spanning(data_files(month(1), 3, 8 * MIB), (0, 9))
    by_path, observed = {file.path: file for file in few}, observe(few, table())
    curved = with_group(planned(few, layout=CURVED, by=low), executor=Executor.SORT)
    wrong = check_plan(curved, observed, low, by_path, layout=CURVED)
    assert {code for code, _ in wrong} == {"wrong-executor"}
    at_level_0 = with_action(planned(few, by=low), level=Level.LEVEL_0)
    assert "wrong-output-files" in {code for code, _ in check_plan(at_level_0, observed, low, by_path, layout=SORTED)}


def test_two_runs_of_one_commit_in_a_partition_are_found() -> None:
    (action,) = PLAN.rewrites
    first, second = (
        replace(action.groups[0], group_id=n, files=action.groups[0].files[n::2], output_files=5) for n in (0, 1)
    )
    assert "several-runs" in found(with_action(PLAN, groups=(first, second)), FILES, table())


def _inputs(plan: Plan, other: DataFile) -> tuple[InputFile, ...]:
    """The planned files, one of another size."""
    files = plan.rewrites[0].groups[0].files
    return tuple(replace(one, size_bytes=other.size_bytes) if one.path == other.path else one for one in files)


def _alone(plan: Plan, file: DataFile) -> FileGroup:
    action: RewriteDataFiles = plan.rewrites[0]
    inputs = tuple(one for one in action.groups[0].files if one.path == file.path)
    return replace(action.groups[0], files=inputs, executor=Executor.MERGE, output_files=1)
