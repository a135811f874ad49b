"""Who reads on from a snapshot: what is declared, what Flink leaves behind, and for how long it counts."""

from __future__ import annotations

from dataclasses import replace

from icewright.actions.expire_snapshots.staying_files import staying
from icewright.model.iceberg.tables import Ref, RefKind, TableMetadata
from icewright.model.policy.policy import PolicyRule
from icewright.plans.consumers import Consumer, declared_consumers, flink_sinks
from icewright.policy.effective import effective_policy
from tests.builders.expiring import AGED, DAYS, EVERYTHING, decided, gone, line, of
from tests.builders.observations import DAY_MS, HOUR_MS, NOW, table
from tests.cases import each_case
from tests.narrowing import not_none

AT = 1_356_912_000_000  # 2012-12-31T00:00:00Z
NIGHTLY = "icewright.consumer.nightly"


def with_consumer(value: str, name: str = NIGHTLY) -> TableMetadata:
    return replace(DAYS, properties={name: value})


def test_s2_what_is_declared_is_read() -> None:
    metadata = replace(DAYS, properties={NIGHTLY: "3", "icewright.consumer.a b/ü": "4@2012-12-31T00:00:00Z", "x": "y"})
    assert list(declared_consumers(metadata)) == [Consumer("a b/ü", 4, AT), Consumer("nightly", 3)]
    assert effective_policy(metadata, ()).problems == ()


@each_case(
    "value",
    ["", "three", "-3", "3@", "3@yesterday", "3@2012-12-31", "3@2012-13-31T00:00:00Z", "3 ", "\u0663", "9" * 20],
)
def test_s2_what_cannot_be_read_is_a_problem_of_the_policy(value: str) -> None:
    problems = effective_policy(with_consumer(value), ()).problems
    assert [problem.key for problem in problems] == [NIGHTLY]
    assert decided(with_consumer(value)).reason.code == "policy-problem"


def test_consumers_are_of_tables_and_have_names() -> None:
    assert effective_policy(with_consumer("3", "icewright.consumer."), ()).problems
    assert effective_policy(DAYS, (PolicyRule("lake", (), {NIGHTLY: "3"}),)).problems


def test_s2_a_consumer_keeps_its_snapshot_and_all_after_it_and_nothing_else() -> None:
    assert gone(DAYS, EVERYTHING) == {1, 2, 3, 4, 5, 6, 7}
    assert gone(with_consumer("4"), EVERYTHING) == {1, 2, 3}
    aside = of(9, 9 * DAY_MS, 2)
    snapshots = tuple(replace(one, sequence_number=0) for one in (*DAYS.snapshots, aside))
    assert gone(replace(with_consumer("4"), snapshots=snapshots), EVERYTHING) == {1, 2, 3, 9}


def test_s2_a_silent_consumer_keeps_nothing_after_a_while_and_it_is_said() -> None:
    old = line(40 * DAY_MS, 31 * DAY_MS, 20 * DAY_MS, HOUR_MS)
    for value, kept, codes in (
        ("3", {3}, set()),
        ("2", set(), {"consumer-silent"}),
        ("2@2012-12-31T00:00:00Z", {2, 3}, set()),
        ("2@2012-10-31T00:00:00Z", set(), {"consumer-silent"}),
        ("2@2099-12-31T00:00:00Z", set(), {"consumer-silent"}),
        ("7", set(), {"consumer-without-snapshot"}),
    ):
        decision = decided(replace(old, properties={NIGHTLY: value}), EVERYTHING)
        assert set(not_none(decision.action).snapshot_ids) == {1, 2, 3} - kept
        assert {note.code for note in decision.notes if note.code.startswith("consumer")} == codes
    shorter = {NIGHTLY: "3", "icewright.expire-snapshots.max-hold": "P10D"}
    assert gone(replace(old, properties=shorter), EVERYTHING) == {1, 2, 3}


def committed(job: str, checkpoint: int, operator: str = "o") -> dict[str, str]:
    return {
        "flink.job-id": job,
        "flink.operator-id": operator,
        "flink.max-committed-checkpoint-id": str(checkpoint),
    }


def flink(*jobs: str) -> TableMetadata:
    """A snapshot a day, signed by these jobs, today's last; a dash is somebody else."""
    snapshots = [
        of(number, (len(jobs) - number) * DAY_MS, summary=committed(job, number) if job != "-" else {})
        for number, job in enumerate(jobs, start=1)
    ]
    return table(snapshots)


def test_s3_the_last_checkpoint_of_each_flink_job_stays_with_all_after_it() -> None:
    metadata = flink("a", "a", "b", "-", "b", "-", "-", "-")
    assert [(one.name, one.snapshot_id) for one in flink_sinks(metadata)] == [("flink-job-a", 2), ("flink-job-b", 5)]
    assert gone(metadata, EVERYTHING) == {1}
    assert gone(flink("-", "-", "-", "b", "-", "-"), EVERYTHING) == {1, 2, 3}
    assert gone(flink("-", "-", "a", "b"), EVERYTHING) == {1, 2}


def test_s3_operators_of_a_job_and_branches_are_told_apart() -> None:
    one, two = committed("a", 1, "o1"), committed("a", 1, "o2")
    metadata = table([of(1, 3 * DAY_MS, summary=one), of(2, 2 * DAY_MS, summary=two), of(3, DAY_MS)])
    assert {sink.snapshot_id for sink in flink_sinks(metadata)} == {1, 2}
    side = Ref("side", RefKind.BRANCH, 1)
    metadata = table([of(1, 3 * DAY_MS, summary=one), of(2, 2 * DAY_MS), of(3, DAY_MS, summary=one)])
    assert {sink.snapshot_id for sink in flink_sinks(metadata)} == {3}
    assert {sink.snapshot_id for sink in flink_sinks(replace(metadata, refs=(*metadata.refs, side)))} == {1, 3}


def test_s3_a_job_that_ended_long_ago_keeps_nothing_and_it_is_said() -> None:
    metadata = flink("a", *["-"] * 32)
    decision = decided(metadata, AGED)
    assert 1 in not_none(decision.action).snapshot_ids
    assert "consumer-silent" in {note.code for note in decision.notes}


def test_a_heartbeat_without_a_younger_snapshot_counts_from_the_snapshot() -> None:
    metadata = replace(line(2 * DAY_MS, HOUR_MS), properties={NIGHTLY: "1@1999-12-31T00:00:00Z"})
    assert NOW - AT > 0
    assert gone(metadata, EVERYTHING) == set()


def test_s3_two_who_are_called_the_same_are_both_kept_from_losing_anything() -> None:
    ours = {"flink.job-id": "j", "flink.max-committed-checkpoint-id": "7"}
    sinks = {2: {**ours, "flink.operator-id": "a"}, 4: {**ours, "flink.operator-id": "b"}}
    snapshots = tuple(replace(one, summary=sinks.get(one.snapshot_id, {})) for one in DAYS.snapshots)
    metadata = replace(DAYS, snapshots=snapshots)
    assert gone(metadata, EVERYTHING) == {1}
    declared = {"icewright.consumer.flink-job-j": "1"}
    assert gone(replace(metadata, properties=declared), EVERYTHING) == set()


def test_s3_many_who_read_on_are_not_each_walked_to_the_newest() -> None:
    declared = {f"icewright.consumer.{number}": str(number) for number in (2, 3, 5)}
    held = staying(replace(DAYS, properties=declared), EVERYTHING, NOW, max_hold_ms=30 * DAY_MS).held
    assert sum(len(ids) for ids in held.values()) == len(frozenset().union(*held.values())) == 6
