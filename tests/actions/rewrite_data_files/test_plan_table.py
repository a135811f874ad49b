from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from icewright.actions.rewrite_data_files import candidates
from icewright.actions.rewrite_data_files import plan as plan_module
from icewright.actions.rewrite_data_files.outcome import VERDICTS_LISTED_MAX
from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.model.iceberg.files import DataFile
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan, Verdict
from icewright.model.policy.policy import Policy
from tests.builders.observations import (
    DAY_MS,
    HOUR_MS,
    MIB,
    MINUTE_MS,
    NOW,
    data_file,
    data_files,
    deletion_vector,
    month,
    observe,
    policy,
    position_deletes,
    snapshot,
    table,
)
from tests.predictions import predicted


def planned(
    files: list[DataFile], rules: Policy | None = None, observation: Observation | None = None, **k: Any
) -> Plan:
    rules = rules or policy()
    observation = observation or observe(files, **k)
    verdicts = shortlist(observation, rules, NOW)
    return plan_table(observation, rules, verdicts, files, plan_id="plan-1", now=NOW)


def paths(plan: Plan) -> list[list[str]]:
    return [
        [file.path.rsplit("/", 1)[1] for file in group.files] for action in plan.rewrites for group in action.groups
    ]


def test_a_plan_says_everything_that_its_executor_needs() -> None:
    files = [*data_files(month(1), 7), *data_files(month(2), 3)]
    plan = planned(files)
    (action,) = plan.rewrites
    assert (action.base_snapshot_id, action.schema_id, action.target_file_size_bytes) == (1, 0, 512 * MIB)
    (group,) = action.groups
    assert (group.group_id, group.partition, group.partition_path) == (0, month(1), "month=1")
    assert [(f.path, f.size_bytes, f.record_count, f.data_sequence_number) for f in group.files] == [
        (f.path, f.size_bytes, f.record_count, 1) for f in files[:7]
    ]
    assert plan.prediction is not None
    assert (predicted(plan).data_files_before, predicted(plan).data_files_after) == (10, 4)
    assert plan.reason.text == "merge 7 small files (7.0 MiB) in 1 partition into 1"
    assert plan.look_again_at is None


def test_partitions_with_most_gain_go_first_and_the_rest_is_counted() -> None:
    files = [*data_files(month(1), 5), *data_files(month(2), 9), *data_files(month(3), 6)]
    plan = planned(files, policy(max_task_files=10))
    assert [group.partition for action in plan.rewrites for group in action.groups] == [month(2)]
    assert (
        plan.reason.text == "merge 9 small files (9.0 MiB) in 1 partition into 1; 11 more files in 2 partitions follow"
    )
    assert {v.path: v.reason.code for v in plan.verdicts} == {
        "month=1": "follows",
        "month=2": "small-files",
        "month=3": "follows",
    }


def test_part_of_a_partition_may_follow() -> None:
    plan = planned(data_files(month(1), 12), policy(max_task_files=10, max_file_group_files=5))
    assert [len(group) for group in paths(plan)] == [5, 5]
    plan = planned(data_files(month(1), 20), policy(max_task_files=10, max_file_group_files=5))
    assert [len(group) for group in paths(plan)] == [5, 5]
    assert plan.verdicts[0].reason.text == "10 small files into 2; 10 more follow"


def young(age_ms: int, number: int = 5, interval_ms: int | None = MINUTE_MS) -> Plan:
    metadata = table([snapshot(1), snapshot(2, NOW - age_ms)])
    files = [data_file(month(1), index, snapshot_id=2 if index < number else 1) for index in range(8)]
    return planned(files, metadata=metadata, interval_ms=interval_ms)


def test_w9_files_younger_than_one_commit_interval_are_left_out() -> None:
    assert len(paths(young(MINUTE_MS, number=3))[0]) == 8
    assert len(paths(young(MINUTE_MS - 1, number=3))[0]) == 5


def test_when_too_few_are_left_the_plan_says_when_to_look_again() -> None:
    plan = young(MINUTE_MS - 1)
    assert plan.is_empty
    assert plan.look_again_at == NOW + 1
    assert plan.verdicts[0].reason.code == "young-files"


@pytest.mark.parametrize("interval_ms", [None, DAY_MS])
def test_an_unknown_or_long_interval_keeps_files_out_for_a_minute(interval_ms: int | None) -> None:
    assert young(MINUTE_MS - 1, interval_ms=interval_ms).look_again_at == NOW + 1
    assert not young(MINUTE_MS, interval_ms=interval_ms).is_empty


def test_a_short_interval_keeps_them_out_for_less() -> None:
    assert not young(1_000, interval_ms=1_000).is_empty


def test_files_of_a_clock_that_is_far_ahead_are_not_young_for_ever() -> None:
    assert young(-MINUTE_MS).is_empty
    assert not young(-DAY_MS).is_empty


def test_files_of_an_expired_snapshot_are_old() -> None:
    assert not planned([data_file(month(1), number, snapshot_id=77, sequence_number=1) for number in range(5)]).is_empty


def dominated(written_at: int) -> Plan:
    metadata = table([snapshot(1, written_at)])
    files = [data_file(month(1), 0, 100 * MIB), *(data_file(month(1), number) for number in range(1, 5))]
    return planned(files, metadata=metadata)


def test_a_large_file_is_not_written_again_for_a_few_small_ones_before_the_partition_has_settled() -> None:
    plan = dominated(NOW - HOUR_MS)
    assert (plan.is_empty, plan.verdicts[0].reason.code) == (True, "not-settled")
    assert plan.look_again_at == NOW + 23 * HOUR_MS
    assert not dominated(NOW - DAY_MS).is_empty


def test_a_file_listed_twice_is_never_merged() -> None:
    files = data_files(month(1), 6)
    plan = planned([*files, files[0], *data_files(month(2), 6)])
    assert [v.reason.code for v in plan.verdicts if v.verdict is Verdict.REFUSE] == ["file-listed-twice"]
    assert [group.partition for action in plan.rewrites for group in action.groups] == [month(2)]


def test_a_file_listed_in_two_partitions_stops_both() -> None:
    files = data_files(month(1), 6)
    plan = planned([*files, *data_files(month(2), 6), replace(files[0], partition=month(2))])
    assert plan.verdict_counts == {Verdict.REFUSE: 2}


def test_memory_is_bounded_and_the_outcome_does_not_depend_on_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [*data_files(month(1), 40), *data_files(month(2), 40)]
    monkeypatch.setattr(candidates, "COLLECTED_FILES_MAX", 50)
    forwards, backwards = (candidates.collect(some) for some in (files, files[::-1]))
    assert forwards == backwards
    assert [file.path for file in forwards] == sorted(file.path for file in files)[:50]


def test_memory_is_bounded_while_files_stream_by(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    first_by_path = candidates._first_by_path

    def watched(files: list[DataFile], most: int) -> list[DataFile]:
        held.append(len(files))
        return first_by_path(files, most)

    monkeypatch.setattr(candidates, "COLLECTED_FILES_MAX", 10)
    monkeypatch.setattr(candidates, "_first_by_path", watched)
    candidates.collect(iter(data_files(month(1), 500)))
    assert max(held) == 20
    held.clear()
    candidates.collect(iter(data_files(month(1), 500)), columns=2)  # each with a span of both
    assert max(held) == 10


def test_a_file_listed_twice_is_noticed_at_the_bound_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "COLLECTED_FILES_MAX", 2)
    files = data_files(month(1), 6)
    for doubled in ([*files, files[1]], [files[1], *files]):
        kept = candidates.collect(doubled)
        assert [file.path for file in kept].count(files[1].path) == 2


def test_files_are_taken_from_a_stream() -> None:
    files = data_files(month(1), 6)
    observation = observe(files)
    verdicts = shortlist(observation, policy(), NOW)
    plan = plan_table(observation, policy(), verdicts, iter(files), plan_id="plan-1", now=NOW)
    assert plan == planned(files)


def test_a_task_lists_only_so_many_deletes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "REFERENCES_MAX", 20)
    monkeypatch.setattr(plan_module, "REFERENCES_MAX", 20)
    files = data_files(month(1), 24)
    for number, sizes in ((4, [5]), (1, [20]), (100, [2])):
        deletes = [position_deletes(month(1), index) for index in range(number)]
        observation = observe(files, deletes=deletes)
        rules = policy(min_input_files=2)
        plan = plan_table(
            observation, rules, shortlist(observation, rules, NOW), files, deletes, plan_id="plan-1", now=NOW
        )
        assert [len(group) for group in paths(plan)] == sizes
        assert plan.verdicts[0].reason.figures["files_following"] == 24 - sum(sizes)


def test_a_burdened_file_larger_than_a_task_is_refused() -> None:
    large = data_file(month(1), 0, 300 * MIB)
    deletes = [deletion_vector(large, large.record_count // 2)]
    observation = observe([large], deletes=deletes)
    for limit, expected in ((300 * MIB, "deletes"), (300 * MIB - 1, "file-too-large")):
        rules = policy(max_task_size_bytes=limit)
        verdicts = shortlist(observation, rules, NOW)
        plan = plan_table(observation, rules, verdicts, [large], deletes, plan_id="plan-1", now=NOW)
        assert plan.verdicts[0].reason.code == expected
    assert [group.executor for action in plan.rewrites for group in action.groups] == []


def test_v2_two_vectors_of_one_file_stop_its_partition() -> None:
    files = [*data_files(month(1), 6), *data_files(month(2), 6)]
    vectors = [deletion_vector(files[0], 1), replace(deletion_vector(files[0], 2), path="another.puffin")]
    observation = observe(files, deletes=vectors)
    verdicts = shortlist(observation, policy(), NOW)
    plan = plan_table(observation, policy(), verdicts, files, vectors, plan_id="plan-1", now=NOW)
    assert [v.reason.code for v in plan.verdicts if v.verdict is Verdict.REFUSE] == ["vectors-listed-twice"]
    assert [group.partition for action in plan.rewrites for group in action.groups] == [month(2)]


def test_young_files_are_no_reason_to_wait_where_deletes_alone_count() -> None:
    metadata = table([snapshot(1), snapshot(2, NOW - 1_000)])
    files = [data_file(month(1), 0, 200 * MIB), data_file(month(1), 1, 200 * MIB, snapshot_id=2)]
    deletes = [deletion_vector(files[1], 5, sequence_number=2)]
    for records, expected in ((5, (Verdict.LEAVE, "few-deletes")), (1_000_000, (Verdict.WAIT, "young-files"))):
        some = [replace(deletes[0], record_count=records)]
        observation = observe(files, metadata, deletes=some)
        verdicts = shortlist(observation, policy(), NOW)
        plan = plan_table(observation, policy(), verdicts, files, some, plan_id="plan-1", now=NOW)
        assert (plan.verdicts[0].verdict, plan.verdicts[0].reason.code) == expected


def test_a_torn_observation_is_a_defect() -> None:
    observation = observe(data_files(month(1), 6))
    torn = replace(observation, inventory=replace(observation.inventory, snapshot_id=9))
    with pytest.raises(ValueError, match="inventory of snapshot 9, metadata at 1"):
        planned([], observation=torn)


def test_a_table_with_an_obstacle_is_left_alone_whatever_its_files_are() -> None:
    files = data_files(month(1), 6)
    verdicts = shortlist(observe(files), policy(), NOW)
    for changes, why in (
        ({"format_version": 4}, "tables of format version 4 cannot be rewritten yet"),
        ({"properties": {"encryption.key-id": "k"}}, "the table is encrypted"),
    ):
        observation = observe(files, table(**changes))
        plan = plan_table(observation, policy(), verdicts, files, plan_id="plan-1", now=NOW)
        assert plan.is_empty
        assert plan.reason.text.startswith(why)


def test_an_empty_table_has_a_plan_too() -> None:
    assert planned([]).reason.code == "no-files"


def test_very_many_partitions_are_counted_and_few_are_listed() -> None:
    files = [data_file(month(number), 0) for number in range(VERDICTS_LISTED_MAX + 50)]
    plan = planned([*files, *data_files(month(99_999), 3)])
    assert len(plan.verdicts) == VERDICTS_LISTED_MAX
    assert plan.verdicts[0].partition == month(99_999)
    assert plan.verdict_counts == {Verdict.LEAVE: VERDICTS_LISTED_MAX + 51}
