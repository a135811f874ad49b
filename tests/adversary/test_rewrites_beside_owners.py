"""Rewrites beside the work of a table's owner: what the owner does next succeeds, whatever icewright did before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from icewright.core.fault_points import Fault, arm
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Verdict
from icewright.model.work.jobs import Cancelled, Committed, Conflicted
from icewright.plans.branches import BRANCH_AHEAD, BRANCH_WINDOW_KEY
from icewright_spark.iceberg.commits import commit as commits
from icewright_spark.iceberg.commits.commit import Swap
from tests.lakes.sqlite import append, make_table, writer
from tests.spark.loop import SparkLoop

pytestmark = pytest.mark.spark

DAY_MS = 86_400_000


class Owner:
    """The owner of a table of eight small files, who works on it by Spark SQL."""

    def __init__(self, spark: SparkSession, entry: CatalogEntry) -> None:
        table = make_table(entry)
        for number in range(8):
            append(table, range(number * 10, number * 10 + 6))
        self.loop = SparkLoop(spark, entry)
        self.name: TableName = self.loop.name("db", "events")
        self.sql = spark.sql
        self._spark, self._entry = spark, entry

    @property
    def snapshot_id(self) -> int:
        """The head of main."""
        snapshot = writer(self._entry).load_table("db.events").current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id

    def branch(self, name: str = "audit") -> None:
        """A branch at the head of main."""
        writer(self._entry).load_table("db.events").manage_snapshots().create_branch(self.snapshot_id, name).commit()

    def write(self, branch: str = "audit", value: int = 1000) -> None:
        """One row more on a branch."""
        self.sql(f"insert into {self.name}.branch_{branch} values ({value}, 'Ulm')")  # noqa: S608 - of the test

    def publish(self, branch: str = "audit") -> None:
        """What fails for good once main has a commit that the branch has not."""
        self.sql(f"call {self.name.catalog}.system.fast_forward('db.events', 'main', '{branch}')")

    def ids(self, at: str = "") -> Counter[int]:
        """All ids, from the bytes of the files."""
        return Counter(row.id for row in self._spark.table(f"{self.name}{at}").collect())

    def waits(self) -> bool:
        """Whether the plan is to leave main alone because of a branch, and says until when."""
        plan = self.loop.control.maintainer.look(self.name, plan_anew=True).plan
        if plan.actions:
            return False
        (verdict,) = plan.verdicts
        assert (verdict.verdict, verdict.reason.code) == (Verdict.WAIT, BRANCH_AHEAD)
        assert "main is left alone until" in plan.reason.text
        assert plan.look_again_at == verdict.wait_until
        return True


@pytest.fixture
def owner(spark: SparkSession, lake: CatalogEntry) -> Owner:
    return Owner(spark, lake)


@contextmanager
def at(place: Fault, act: Callable[[], None]) -> Iterator[None]:
    """Do something the first time that an attempt comes by a place."""
    left = [act]

    def hook(point: Fault) -> None:
        if point is place and left:
            left.pop()()

    arm(hook)
    try:
        yield
    finally:
        arm(None)


def test_r1_a_branch_that_is_written_and_audited_is_published_whatever_icewright_finds_to_do(owner: Owner) -> None:
    before = owner.ids()
    owner.branch()
    assert owner.waits(), "about to be written"
    owner.write()
    assert owner.waits()
    owner.publish()
    assert owner.ids() == before + Counter([1000])
    assert owner.waits(), "the branch is at the head of main again"
    writer(owner.loop.entry).load_table("db.events").manage_snapshots().remove_branch("audit").commit()
    assert isinstance(owner.loop.attempt(owner.loop.claim(owner.name)).result, Committed)
    assert owner.ids() == before + Counter([1000])


def test_r1_main_is_left_alone_for_as_long_as_its_owner_says_and_no_longer(owner: Owner) -> None:
    owner.branch()
    owner.write()
    owner.loop.clock.ahead_ms += DAY_MS - 10 * 60_000
    assert owner.waits()
    owner.loop.clock.ahead_ms += 10 * 60_000
    assert not owner.waits()
    owner.loop.clock.ahead_ms -= DAY_MS
    owner.sql(f"alter table {owner.name} set tblproperties ('{BRANCH_WINDOW_KEY}' = 'PT0S')")
    assert not owner.waits()


@pytest.mark.parametrize("place", [Fault.TABLE_CHECKED, Fault.COMMIT_PREPARED, Fault.COMMIT_BEFORE])
def test_r1_a_branch_that_comes_while_a_rewrite_runs_is_published_and_the_rewrite_is_not(
    owner: Owner, place: Fault
) -> None:
    before = owner.ids()
    spec = owner.loop.claim(owner.name)
    with at(place, owner.branch):
        report = owner.loop.attempt(spec)
    assert isinstance(report.result, Conflicted | Cancelled), report.result
    owner.loop.control.dispatcher.report(report)
    owner.write()
    assert owner.waits()
    owner.publish()
    assert owner.ids() == before + Counter([1000])


def test_r1_iceberg_does_not_try_again_over_a_branch_that_came_between_check_and_commit(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, once = [owner.branch], commits._once

    def too_late(*arguments: object) -> Swap:
        swap = once(*arguments)  # type: ignore[arg-type]  # as they come
        if left:
            left.pop()()
        return swap

    monkeypatch.setattr(commits, "_once", too_late)
    report = owner.loop.attempt(owner.loop.claim(owner.name))
    assert isinstance(report.result, Conflicted | Cancelled), report.result
    owner.write()
    owner.publish()
    assert owner.ids()[1000] == 1


def test_r1_a_branch_that_main_has_left_behind_keeps_nobody_waiting(owner: Owner) -> None:
    owner.branch()
    owner.write()
    append(writer(owner.loop.entry).load_table("db.events"), range(500, 506))
    assert not owner.waits()


def test_r1_a_staged_append_is_published_after_a_rewrite_and_a_staged_overwrite_before_it(owner: Owner) -> None:
    before, main = owner.ids(), owner.snapshot_id
    owner.sql(f"alter table {owner.name} set tblproperties ('write.wap.enabled' = 'true')")
    staged = []
    for number, statement in enumerate(("insert into", "insert overwrite")):
        owner.loop.spark.conf.set("spark.wap.id", f"wap-{number}")
        try:
            owner.sql(f"{statement} {owner.name} values (1000, 'Ulm')")
        finally:
            owner.loop.spark.conf.unset("spark.wap.id")
        staged.append(writer(owner.loop.entry).load_table("db.events").metadata.snapshots[-1].snapshot_id)
        assert owner.snapshot_id == main
        assert owner.waits() == (number == 1)
    owner.loop.clock.ahead_ms += DAY_MS
    assert isinstance(owner.loop.attempt(owner.loop.claim(owner.name)).result, Committed)
    owner.sql(f"call {owner.name.catalog}.system.cherrypick_snapshot('db.events', {staged[0]})")
    assert owner.ids() == before + Counter([1000])
