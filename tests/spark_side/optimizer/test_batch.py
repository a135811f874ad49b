"""Who waits for whom in a batch, and whose trouble is whose, over a Spark that does as it is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from icewright.core.errors import LeaseLost
from icewright.model.work.jobs import GroupFigures, Receipt
from icewright_spark.actions.groups import Job, Outcome, Refusal, results_and_failures
from icewright_spark.actions.phase import Phase
from icewright_spark.executors.merge.merge import MergeJob, MergeResult
from icewright_spark.optimizer.batch import Batch, BatchMember
from icewright_spark.parquet.errors import FileUnreadable, ProofFailed
from tests.builders.specs import group
from tests.waiting import until

Found = list[Outcome]


@dataclass
class Spark:
    """Groups are done at once; ``bad`` ones bring down Spark's job, ``refused`` ones end in a typed error."""

    bad: frozenset[int] = frozenset()
    refused: dict[int, Refusal] = field(default_factory=dict)
    shared: list[list[list[int]]] = field(default_factory=list)
    single: list[list[int]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    at_once: int = 0
    most_at_once: int = 0
    go: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    hangs: int | None = None
    let_go: threading.Event = field(default_factory=threading.Event)

    def together(self, name: str, jobs: Sequence[Sequence[Job]], phases: Sequence[Phase]) -> list[Found]:
        assert len(jobs) == len(phases)
        self.names.append(name)
        self.threads.add(threading.get_ident())
        self.shared.append([ids(its) for its in jobs])
        assert self.go.wait(60)
        if name in self.cancelled:
            raise RuntimeError("cancelled")
        return [self._outcomes(its) for its in jobs]

    def alone(self, jobs: Sequence[Job], phase: Phase) -> Found:  # noqa: ARG002 - nobody asks how far it is
        with self.lock:
            self.single.append(ids(jobs))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(0.002)
        if self.hangs in ids(jobs):
            assert self.let_go.wait(60)
        try:
            return self._outcomes(jobs)
        finally:
            with self.lock:
                self.at_once -= 1

    def cancel(self, name: str) -> None:
        self.cancelled.append(name)
        self.go.set()

    def _outcomes(self, jobs: Sequence[Job]) -> Found:
        self.paths += [path for job in jobs if isinstance(job, MergeJob) for path in job.output_paths]
        if self.bad.intersection(ids(jobs)):
            raise RuntimeError("Python worker exited unexpectedly")
        return [self.refused.get(job.group.group_id) or result(job.group.group_id) for job in jobs]


def ids(jobs: Sequence[Job]) -> list[int]:
    return [job.group.group_id for job in jobs]


def result(group_id: int) -> MergeResult:
    receipt = Receipt(group_id, "ordered", "a", "a", 20)
    return MergeResult(receipt, GroupFigures(group_id, 2, 200, ("/out",), 100, 20, 1, 1, 1), ())


def jobs(*group_ids: int) -> list[Job]:
    return [MergeJob(group(number), (), (f"/out-{number}.parquet",)) for number in group_ids]


@pytest.fixture
def spark() -> Spark:
    spark = Spark()
    spark.go.set()
    return spark


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


def hands_in(pool: ThreadPoolExecutor, member: BatchMember, *group_ids: int) -> Future[Found]:
    return pool.submit(member.carry, jobs(*group_ids), Phase(len(group_ids)))


def done(future: Future[Found]) -> list[int]:
    results, failed = results_and_failures(future.result(60))
    assert not failed
    return [one.receipt.group_id for one in results]


def test_everybody_gets_their_own_from_one_job(spark: Spark, pool: ThreadPoolExecutor) -> None:
    batch = Batch(spark, "batch-1")
    members = [batch.member() for _ in range(3)]
    batch.close()
    futures = [hands_in(pool, member, 10 * place, 10 * place + 1) for place, member in enumerate(members)]
    assert [done(future) for future in futures] == [[0, 1], [10, 11], [20, 21]]
    (shared,) = spark.shared
    assert sorted(shared) == [[0, 1], [10, 11], [20, 21]]
    assert spark.single == []


def test_nothing_begins_while_others_may_come_or_are_awaited(spark: Spark, pool: ThreadPoolExecutor) -> None:
    batch = Batch(spark, "batch-1", clock=lambda: 0.0)
    first, second = batch.member(), batch.member()
    one, two = hands_in(pool, first, 1), None
    time.sleep(0.02)
    assert not one.done()
    two = hands_in(pool, second, 2)
    time.sleep(0.02)
    assert spark.shared == [], "somebody else may be claimed for the batch"
    batch.close()
    assert done(one) == [1]
    assert done(two) == [2]


def test_alone_in_a_batch_it_runs_in_its_own_thread_with_its_own_paths(spark: Spark) -> None:
    batch = Batch(spark, "batch-1")
    member = batch.member()
    batch.close()
    assert ids_of(member.carry(jobs(5), Phase(1))) == [5]
    assert (spark.shared, spark.single, spark.paths) == ([], [[5]], ["/out-5.parquet"])


def ids_of(found: Found) -> list[int]:
    return [one.receipt.group_id for one in found if isinstance(one, MergeResult)]


def test_one_that_ended_early_or_has_nothing_to_merge_is_not_waited_for(spark: Spark, pool: ThreadPoolExecutor) -> None:
    batch = Batch(spark, "batch-1", clock=lambda: 0.0)
    ended, empty, first, second = (batch.member() for _ in range(4))
    batch.close()
    futures = [hands_in(pool, first, 1), hands_in(pool, second, 2)]
    ended.leave()
    time.sleep(0.02)
    assert spark.shared == []
    assert empty.carry([], Phase(0)) == []
    assert sorted(number for future in futures for number in done(future)) == [1, 2]
    assert len(spark.shared) == 1


def test_who_is_late_is_not_waited_for_long_and_shares_the_next_job(spark: Spark, pool: ThreadPoolExecutor) -> None:
    now = [0.0]
    batch = Batch(spark, "batch-1", wait_s=5.0, clock=lambda: now[0])
    prompt, late = [batch.member() for _ in range(2)], [batch.member() for _ in range(2)]
    batch.close()
    futures = [hands_in(pool, prompt[0], 1)]
    until(lambda: batch._waiting)
    now[0] = 5.1
    futures.append(hands_in(pool, prompt[1], 2))
    assert [done(future) for future in futures] == [[1], [2]]
    futures = [hands_in(pool, late[0], 3), hands_in(pool, late[1], 4)]
    assert [done(future) for future in futures] == [[3], [4]]
    assert [sorted(shared) for shared in spark.shared] == [[[1], [2]], [[3], [4]]]
    assert len(set(spark.names)) == 2


def test_the_one_that_waits_notices_by_itself_that_it_has_waited(spark: Spark, pool: ThreadPoolExecutor) -> None:
    batch = Batch(spark, "batch-1", wait_s=0.01)
    member, _never = batch.member(), batch.member()
    batch.close()
    assert done(hands_in(pool, member, 1)) == [1]


def test_a_typed_error_is_of_its_own_attempt_alone(spark: Spark, pool: ThreadPoolExecutor) -> None:
    spark.refused = {
        2: Refusal(2, FileUnreadable, "damaged", ""),
        3: Refusal(3, ProofFailed, "not the same rows", "stop"),
    }
    batch = Batch(spark, "batch-1")
    members = [batch.member() for _ in range(3)]
    batch.close()
    well, partly, badly = (
        hands_in(pool, member, *its) for member, its in zip(members, [(1,), (2, 4), (3,)], strict=True)
    )
    assert done(well) == [1]
    results, (left,) = results_and_failures(partly.result(60))
    assert ([one.receipt.group_id for one in results], left.group_id, left.code) == ([4], 2, "file-unreadable")
    with pytest.raises(ProofFailed, match="not the same rows"):
        results_and_failures(badly.result(60))
    assert len(spark.shared) == 1


def test_after_an_error_of_sparks_each_goes_alone_and_only_the_bad_one_fails(
    spark: Spark, pool: ThreadPoolExecutor
) -> None:
    spark.bad = frozenset({3})
    batch = Batch(spark, "batch-1")
    members = [batch.member() for _ in range(6)]
    batch.close()
    futures = [hands_in(pool, member, number) for number, member in enumerate(members)]
    for number, future in enumerate(futures):
        if number == 3:
            with pytest.raises(RuntimeError, match="Python worker exited"):
                future.result(60)
        else:
            assert done(future) == [number]
    assert len(spark.shared) == 1
    assert sorted(spark.single) == [[number] for number in range(6)]
    assert spark.most_at_once == 1, "they meet one after the other"
    again = [path for path in spark.paths if "alone" in path]
    assert sorted(again) == [f"/out-{number}-alone.parquet" for number in range(6)], "the first may still be writing"


def test_who_leaves_takes_nothing_along_and_the_others_go_on(spark: Spark, pool: ThreadPoolExecutor) -> None:
    spark.go.clear()
    batch = Batch(spark, "batch-1")
    leader, other = batch.member(), batch.member()
    batch.close()
    futures = [hands_in(pool, leader, 1), hands_in(pool, other, 2)]
    until(lambda: spark.shared)
    leader.leave()
    with pytest.raises(LeaseLost):
        futures[0].result(60)
    assert spark.cancelled == []
    spark.go.set()
    assert done(futures[1]) == [2]


def test_a_job_that_nobody_waits_for_any_more_is_ended(spark: Spark, pool: ThreadPoolExecutor) -> None:
    spark.go.clear()
    batch = Batch(spark, "batch-1")
    members = [batch.member(), batch.member()]
    batch.close()
    futures = [hands_in(pool, member, number) for number, member in enumerate(members)]
    until(lambda: spark.shared)
    for member in members:
        member.leave()
    for future in futures:
        with pytest.raises(LeaseLost):
            future.result(60)
    assert spark.cancelled == spark.names
    assert spark.single == []


def test_who_leaves_before_the_job_begins_is_not_in_it(spark: Spark, pool: ThreadPoolExecutor) -> None:
    batch = Batch(spark, "batch-1", clock=lambda: 0.0)
    gone, other = batch.member(), batch.member()
    lost = hands_in(pool, gone, 1)
    until(lambda: batch._waiting)
    gone.leave()
    with pytest.raises(LeaseLost):
        lost.result(60)
    batch.close()
    assert done(hands_in(pool, other, 2)) == [2]
    assert (spark.shared, spark.single) == ([], [[2]])


def test_who_leaves_while_the_others_go_alone_does_not_go(spark: Spark, pool: ThreadPoolExecutor) -> None:
    spark.bad = frozenset({1})
    batch = Batch(spark, "batch-1", wait_s=1.0)
    members = [batch.member() for _ in range(2)]
    batch.close()
    with batch._being_alone(batch.member()):
        futures = [hands_in(pool, members[0], 1), hands_in(pool, members[1], 2)]
        until(lambda: members[1].job is not None and members[1].job.over)
        members[1].leave()
        with pytest.raises(LeaseLost):
            futures[1].result(60)
    with pytest.raises(RuntimeError):
        futures[0].result(60)
    assert spark.single == [[1]]


def test_a_job_that_hangs_is_ended_and_only_what_hangs_goes_on_hanging(spark: Spark, pool: ThreadPoolExecutor) -> None:
    spark.go.clear()
    spark.hangs = 1
    batch = Batch(spark, "batch-1", shared_s_max=0.05, turn_s_max=0.05)
    members = [batch.member() for _ in range(4)]
    batch.close()
    futures = [hands_in(pool, member, number) for number, member in enumerate(members)]
    for number in (0, 2, 3):
        assert done(futures[number]) == [number]
    assert not futures[1].done()
    assert spark.cancelled == spark.names == ["batch-1/1"], "once"
    spark.let_go.set()
    assert done(futures[1]) == [1]
    assert sorted(spark.single) == [[0], [1], [2], [3]]


def test_the_shared_job_has_a_thread_of_its_own(spark: Spark, pool: ThreadPoolExecutor) -> None:
    """Whoever began it may have to leave first, and Spark's job groups are by thread."""
    batch = Batch(spark, "batch-1")
    members = [batch.member(), batch.member()]
    batch.close()
    mine: set[int] = set()

    def carry(member: BatchMember, number: int) -> Found:
        mine.add(threading.get_ident())
        return member.carry(jobs(number), Phase(1))

    for future in [pool.submit(carry, member, number) for number, member in enumerate(members)]:
        future.result(60)
    assert not mine & spark.threads


def test_a_thread_that_cannot_be_had_leaves_nobody_waiting(
    spark: Spark, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoThread:
        def __init__(self, **_arguments: object) -> None: ...

        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    batch = Batch(spark, "batch-1")
    members = [batch.member(), batch.member()]
    batch.close()
    monkeypatch.setattr("icewright_spark.optimizer.batch.threading", SimpleNamespace(Thread=NoThread))
    futures = [hands_in(pool, member, number) for number, member in enumerate(members)]
    errors = [future.exception(60) for future in futures]
    assert sorted(str(error) for error in errors) == ["None", "can't start new thread"]
    assert len(spark.single) == 1
