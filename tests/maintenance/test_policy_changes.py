"""A revision of the policies makes stale what was planned by other settings, and nothing else."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from icewright.core.errors import Conflict
from icewright.maintenance.dispatch import dispatcher, task_gate
from icewright.maintenance.first_run_approval import RENEWED_MS
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.compute_statistics import ComputeStatisticsRequest
from icewright.model.actions.expire_data import ExpireDataRequest
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.actions.rewrite_delete_files import RemoveDanglingDeletesRequest, RewritePositionDeletesRequest
from icewright.model.actions.rewrite_manifests import RewriteManifestsRequest
from icewright.model.actions.rollback import RollbackRequest
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Plan, Reason
from icewright.model.plans.requests import PlanRequest
from icewright.model.policy.policies import NamedRule, NewRevision, Policies, RuleMatch
from icewright.model.policy.policy import Policy, PolicyRule, Trigger
from icewright.model.work.tasks import TaskState
from icewright.plans.policy_digest import (
    POLICY_CHANGED,
    READ_ANEW,
    SETTINGS,
    SETTINGS_DIGEST,
    look_digest,
    plan_digest,
    policy_changed,
    settings_of,
)
from icewright.policy.effective import policy_of
from icewright.policy.rules.sql import SqlPolicies
from icewright.policy.settings import SETTINGS as POLICY_SETTINGS
from icewright.store.engine import open_store
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.builders.lakehouse import AUTO, BONN, HOUR_MS, MIB, MINUTE_MS, NAME, Lakehouse
from tests.builders.worker import Worker
from tests.lakes.stores import sqlite_store
from tests.maintenance.test_upkeep import KEPT_UP, live_on
from tests.narrowing import not_none

ORDERS, RETURNS, EVENTS = (TableName("lake", ("sales",), name) for name in ("orders", "returns", "events"))
THREE = (ORDERS, RETURNS, EVENTS)
INPUTS = "icewright.rewrite-data-files.min-input-files"
DAY_MS = 24 * HOUR_MS
SWITCHES = {
    *("expires_snapshots", "removes_expired_files", "rewrites_manifests"),
    *("removes_orphan_files", "computes_statistics", "expires_data", "analyzes_queries"),
}
"""What lets something happen by itself: the gate asks that anew of what was planned by itself."""


def rule(name: str, pattern: str, **settings: str) -> NamedRule:
    keys = {"mode": "icewright.mode", "inputs": INPUTS, "group": "icewright.resource-group"}
    return NamedRule(name, RuleMatch((pattern,)), {keys.get(key, key): value for key, value in settings.items()})


def revision(*rules: NamedRule) -> NewRevision:
    return NewRevision(Policies(rules), "Ada")


APPROVE = rule("all", "lake.**", mode="approve")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Lakehouse]:
    """Three tables in mode approve, each with a plan that waits, in an SQL database."""
    engine = open_store(sqlite_store(tmp_path / "store.db"))
    house = Lakehouse(rules=(), stores=lambda clock: (SqlTableStore(engine, clock), SqlTaskStore(engine, clock)))
    house.policies = SqlPolicies(engine, house.store_clock)
    house.restart()
    house.control.policies.apply(revision(APPROVE), 0)
    for name in THREE:
        house.ready_table(name, {"write.target-file-size-bytes": AUTO["write.target-file-size-bytes"]})
    look(house)
    try:
        yield house
    finally:
        engine.dispose()


def look(house: Lakehouse) -> list[bool]:
    """Look at the three tables; of each, whether it was planned anew."""
    return [house.control.maintainer.look(name).is_new for name in THREE]


def waiting(house: Lakehouse) -> dict[TableName, str]:
    return {one.table_name: one.plan_id for one in house.tables.waiting(limit=9)}


def approve(house: Lakehouse, plan_id: str) -> str:
    """What comes of an approval: ``queued``, ``stale``, or another refusal."""
    try:
        house.control.dispatcher.approve(plan_id, "Ada")
    except Conflict as error:
        return "stale" if "does not hold any more: settings of the table's policy" in error.message else error.message
    return "queued"


def test_a_revision_makes_the_plans_stale_that_it_changes_and_no_other(house: Lakehouse) -> None:
    plans = waiting(house)
    assert set(plans) == set(THREE)
    house.control.policies.apply(revision(APPROVE, rule("one", "lake.sales.ord*", inputs="4")), 1)
    assert [approve(house, plans[name]) for name in THREE] == ["stale", "queued", "queued"]
    assert [task.table_name for task in house.all_tasks()] == [RETURNS, EVENTS]
    assert look(house) == [True, False, False]
    renewed = waiting(house)
    assert (set(renewed), renewed[ORDERS] != plans[ORDERS]) == ({ORDERS}, True)
    assert approve(house, renewed[ORDERS]) == "queued"
    claimed = [Worker(house).claimed().table_name for _ in THREE]
    assert sorted(claimed, key=str) == sorted(THREE, key=str)


def test_a_revision_that_changes_a_default_makes_all_of_them_stale(house: Lakehouse) -> None:
    plans = waiting(house)
    house.control.policies.apply(revision(replace(APPROVE, settings={**APPROVE.settings, INPUTS: "4"})), 1)
    assert [approve(house, plans[name]) for name in THREE] == ["stale"] * 3
    assert look(house) == [True] * 3
    assert [approve(house, waiting(house)[name]) for name in THREE] == ["queued"] * 3


def test_who_says_the_same_is_of_no_account(house: Lakehouse) -> None:
    plans = waiting(house)
    same = rule("another", "lake.sales.*", mode="approve", inputs="5")  # the default
    elsewhere = rule("elsewhere", "lake.hr.**", mode="auto", inputs="9")
    house.control.policies.apply(revision(same, elsewhere), 1)
    assert look(house) == [False] * 3
    assert waiting(house) == plans
    assert [approve(house, plans[name]) for name in THREE] == ["queued"] * 3


def test_where_a_task_waits_and_the_mode_are_of_no_plan_and_a_look_follows_them(house: Lakehouse) -> None:
    plans = waiting(house)
    house.control.policies.apply(revision(APPROVE, rule("heavy", "lake.sales.ord*", group="etl")), 1)
    assert approve(house, plans[ORDERS]) == "queued"
    assert house.only_task().resource_group == "etl"
    assert look(house) == [True, False, False]
    house.control.policies.apply(revision(replace(APPROVE, settings={"icewright.mode": "auto"})), 2)
    assert look(house) == [True] * 3
    assert {task.resource_group for task in house.all_tasks()} == {"default"}  # the waiting one came along
    assert len(house.all_tasks()) == 3


def test_a_task_that_was_planned_by_other_settings_is_never_given_out(house: Lakehouse) -> None:
    plans = waiting(house)
    for name in (ORDERS, RETURNS):
        approve(house, plans[name])
    house.policies.apply(revision(APPROVE, rule("one", "lake.sales.orders", inputs="4")), 1)  # by another server
    assert Worker(house).claimed().table_name == RETURNS
    assert Worker(house).claim_if_any() is None
    (stale,) = [task for task in house.all_tasks() if task.table_name == ORDERS]
    assert (stale.state, stale.outcome and stale.outcome.reason.code) == (TaskState.SUPERSEDED, "policy-changed")
    record = not_none(house.tables.record_by_name(ORDERS))
    assert record.next_look_at <= house.clock.now()  # it is planned anew at once


@pytest.mark.parametrize("dies", [False, True])
def test_what_is_applied_during_a_look_counts_for_it_or_at_the_claim(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch, *, dies: bool
) -> None:
    """The look is lost, and taken anew; that of a server that dies before it finds out is refused at the claim."""

    def dying(*_: object, **__: object) -> None:
        raise RuntimeError("the server dies")

    house.policies.apply(revision(replace(APPROVE, settings={"icewright.mode": "auto"})), 1)
    enqueue = house.control.dispatcher.enqueue

    def applied_and_queued(plan: Plan, **more: Any) -> Any:
        settings = {"icewright.mode": "auto", INPUTS: "4"}
        if house.policies.present() == 2:
            house.policies.apply(revision(replace(APPROVE, settings=settings)), 2)
        return enqueue(plan, **more)

    monkeypatch.setattr(house.control.dispatcher, "enqueue", applied_and_queued)
    if dies:
        with monkeypatch.context() as patch:
            patch.setattr(house.tables, "save_record", dying)
            with pytest.raises(RuntimeError):
                house.control.maintainer.look(ORDERS)
        assert Worker(house).claim_if_any() is None
        assert house.only_task().state is TaskState.SUPERSEDED
        house.restart()
    assert house.control.maintainer.look(ORDERS).enqueued is not None
    assert Worker(house).claimed().table_name == ORDERS
    digest = plan_digest(ActionKind.REWRITE_DATA_FILES, house.control.planner.policy(house.metadata(ORDERS)))
    assert house.tables.plan(house.all_tasks()[-1].plan_id).settings_digest == digest


def test_a_task_of_a_catalog_that_is_away_goes_by_what_is_known_of_its_table(house: Lakehouse) -> None:
    plans = waiting(house)
    for name in (ORDERS, RETURNS):
        approve(house, plans[name])
    house.policies.apply(revision(APPROVE, rule("one", "lake.sales.orders", inputs="4")), 1)
    house.catalog.available = False
    assert Worker(house).claimed().table_name == RETURNS
    assert Worker(house).claim_if_any() is None


def test_a_plan_of_before_there_were_digests_is_stale(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = house.tables.plan(waiting(house)[ORDERS])
    old = replace(plan, plan_id="plan-old", settings_digest=None)
    house.tables.save_plan(old)
    with pytest.raises(Conflict, match="an earlier release planned it"):
        house.control.dispatcher.apply(old.plan_id)
    with monkeypatch.context() as patch:  # as it was queued then
        patch.setattr(dispatcher, "policy_changed", lambda *_: None)
        house.control.dispatcher.apply(old.plan_id)
    assert SETTINGS_DIGEST not in house.only_task().reason.figures
    assert Worker(house).claim_if_any() is None
    assert house.only_task().state is TaskState.SUPERSEDED


def test_what_was_planned_for_another_version_of_its_action_is_stale(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans, kind = waiting(house), ActionKind.REWRITE_DATA_FILES
    assert approve(house, plans[ORDERS]) == "queued"
    monkeypatch.setattr(kind, "traits", replace(kind.traits, protocol_version=kind.traits.protocol_version + 1))
    assert approve(house, plans[RETURNS]) == "stale"
    obstacle = not_none(house.control.dispatcher.leave.obstacle(house.only_task(), house.catalog.load(ORDERS)))
    assert obstacle.code == POLICY_CHANGED


def test_servers_that_read_the_policy_differently_do_not_plan_and_refuse_without_end(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.policies.apply(revision(replace(APPROVE, settings={"icewright.mode": "auto"})), 1)

    def due_after_refusal() -> bool:
        assert house.control.maintainer.look(ORDERS).enqueued is not None
        with monkeypatch.context() as patch:  # a server of another release
            patch.setattr(task_gate, "policy_changed", lambda *_: Reason(POLICY_CHANGED, "read otherwise"))
            assert Worker(house).claim_if_any() is None
        return not_none(house.tables.record_by_name(ORDERS)).next_look_at <= house.clock.now()

    assert [due_after_refusal() for _ in range(3)] == [True, False, False]


def test_a_plan_that_waits_for_its_first_run_is_made_anew_by_other_settings() -> None:
    house = Lakehouse(rules=(PolicyRule("lake", (), KEPT_UP),))
    house.create()
    live_on(house, 4 * 24)
    (before,) = house.tables.waiting(limit=9)
    age = {"history.expire.max-snapshot-age-ms": str(DAY_MS)}
    house.control.policies.apply(revision(NamedRule("young", RuleMatch(("lake.**",)), age)), 0)
    with pytest.raises(Conflict, match="settings of the table's policy"):
        house.control.dispatcher.approve(before.plan_id, "Ada")
    assert house.control.approvals.given(house.tables.plan(before.plan_id)) is None
    house.control.loop.round()
    (after,) = house.tables.waiting(limit=9)
    assert house.clock.now() - before.since < RENEWED_MS
    assert (after.plan_id != before.plan_id, after.reason) == (True, before.reason)
    assert house.control.dispatcher.approve(after.plan_id, "Ada").plan_id == after.plan_id


def test_what_was_not_due_is_looked_into_again_by_other_settings() -> None:
    house = Lakehouse(rules=(PolicyRule("lake", (), {**AUTO, "icewright.rewrite-manifests.enabled": "true"}),))
    house.create()
    for _ in range(5):
        house.catalog.append(NAME, house.files(1, BONN, 600 * MIB))
    house.pass_time(2 * HOUR_MS)
    assert [house.control.maintainer.look(NAME).upkeep.enqueued for _ in range(2)] == [(), ()]
    least = {"commit.manifest.min-count-to-merge": "3"}
    house.control.policies.apply(revision(NamedRule("few", RuleMatch(("lake.**",)), least)), 0)
    (enqueued,) = house.control.maintainer.look(NAME).upkeep.enqueued
    assert enqueued.task.kind is ActionKind.REWRITE_MANIFESTS
    house.pass_time(HOUR_MS)
    again = {"commit.manifest.min-count-to-merge": "4"}
    house.control.policies.apply(revision(NamedRule("few", RuleMatch(("lake.**",)), again)), 1)
    (renewed,) = house.control.maintainer.look(NAME).upkeep.enqueued
    assert house.tasks.get(enqueued.task.task_id).state is TaskState.SUPERSEDED
    assert renewed.task.task_id != enqueued.task.task_id
    assert house.control.maintainer.look(NAME).upkeep.enqueued == ()  # it waits for its turn


def test_every_setting_is_of_a_plan_or_read_anew() -> None:
    assert {setting.field for setting in POLICY_SETTINGS} == SETTINGS
    of_plans = frozenset[str]().union(*(settings_of(kind) for kind in ActionKind))
    assert of_plans | READ_ANEW | SWITCHES == SETTINGS
    assert not of_plans & (READ_ANEW | SWITCHES)


def test_a_kind_that_names_no_settings_goes_by_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = ActionKind.ROLLBACK_TO_SNAPSHOT
    monkeypatch.setattr(kind, "traits", replace(kind.traits, settings=None))
    assert settings_of(kind) == SETTINGS - READ_ANEW


def test_a_digest_is_of_the_settings_of_its_kind_alone() -> None:
    name, kinds = TableName("lake", ("db",), "t"), list(ActionKind)
    plain = policy_of(name, {}, ())
    changed = {
        "write.target-file-size-bytes": {ActionKind.REWRITE_DATA_FILES},
        "icewright.remove-orphan-files.older-than": {ActionKind.REMOVE_ORPHAN_FILES},
        "icewright.mode": set(),
        "icewright.maintenance-window.duration": set(),
    }
    values = {"write.target-file-size-bytes": "7", "icewright.remove-orphan-files.older-than": "P9D"}
    values |= {"icewright.mode": "auto", "icewright.maintenance-window.duration": "PT3H"}
    for key, of in changed.items():
        policy = policy_of(name, {key: values[key]}, ())
        assert not policy.problems
        assert {kind for kind in kinds if plan_digest(kind, policy) != plan_digest(kind, plain)} == of
    assert look_digest(policy_of(name, {"icewright.mode": "auto"}, ())) != look_digest(plain)
    assert look_digest(policy_of(name, {"icewright.mode": "any"}, ())) != look_digest(plain)  # a problem


def test_what_takes_something_back_goes_by_no_setting() -> None:
    policy = policy_of(TableName("lake", ("db",), "t"), {}, ())
    kinds = [kind for kind in ActionKind if kind.value.startswith("undo_")]
    assert len(kinds) >= 2
    other = policy_of(TableName("lake", ("db",), "t"), {"write.target-file-size-bytes": "7"}, ())
    for kind in (*kinds, ActionKind.RESTORE_FILES, ActionKind.ROLLBACK_TO_SNAPSHOT):
        assert policy_changed(kind, None, policy) is None
        assert policy_changed(kind, plan_digest(kind, other), policy) is None


class Read(Policy):
    """A policy that tells which of its settings somebody reads, but for copies of it."""

    def __getattribute__(self, name: str) -> Any:
        if sys._getframe(1).f_globals.get("__name__") not in (dataclasses.__name__, "icewright.plans.policy_digest"):
            NAMES.add(name)
        return super().__getattribute__(name)


NAMES: set[str] = set()


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Callable[[Lakehouse, Callable[[], object]], set[str]]:
    """Runs a function in a lakehouse; the settings that it reads."""

    def read(house: Lakehouse, planned: Callable[[], object]) -> set[str]:
        source = house.control.planner.policies
        policy = source.policy

        def noted(metadata: Any) -> Policy:
            found = policy(metadata)
            return Read(**{field.name: getattr(found, field.name) for field in fields(Policy)})

        monkeypatch.setattr(source, "policy", noted)
        NAMES.clear()
        planned()
        monkeypatch.undo()
        return NAMES & SETTINGS

    return read


MORE = {"icewright.expire-data.field": "at", "icewright.expire-data.older-than": "P30D"}
REQUESTS: tuple[PlanRequest, ...] = (
    ExpireSnapshotsRequest(),
    RewriteManifestsRequest(),
    RemoveDanglingDeletesRequest(),
    RewritePositionDeletesRequest(),
    ComputeStatisticsRequest(),
    ExpireDataRequest(),
)


@pytest.mark.parametrize("asked", REQUESTS, ids=lambda asked: str(asked.kind))
def test_a_plan_reads_the_settings_of_its_kind_and_no_other(
    asked: PlanRequest, reading: Callable[[Lakehouse, Callable[[], object]], set[str]]
) -> None:
    house = Lakehouse(rules=(PolicyRule("lake", (), {**AUTO, **MORE}),)).with_ready_table()
    house.catalog.delete(NAME, [house.catalog.live_files(NAME)[0].path])  # more is read where rows were removed lately
    found = reading(house, partial(house.control.maintainer.plan_asked, NAME, asked))
    assert found
    assert found <= settings_of(asked.kind) | READ_ANEW


def test_a_rollback_reads_no_setting(reading: Callable[[Lakehouse, Callable[[], object]], set[str]]) -> None:
    house = Lakehouse().with_ready_table()
    first = house.metadata().snapshots[0].snapshot_id
    planned = partial(house.control.maintainer.plan_asked, NAME, RollbackRequest(to_snapshot=first))
    assert reading(house, planned) <= READ_ANEW | {"ignore_other_optimizers"}  # as of a copy in which it is true


@pytest.mark.parametrize("trigger", list(Trigger))
def test_work_on_data_files_reads_the_settings_of_its_kind_and_no_other(
    trigger: Trigger, reading: Callable[[Lakehouse, Callable[[], object]], set[str]]
) -> None:
    settings = {**AUTO, "icewright.trigger": trigger.value, "icewright.layout": "sort(city)"}
    house = Lakehouse(rules=(PolicyRule("lake", (), settings),)).with_ready_table()
    house.pass_time(30 * MINUTE_MS)
    found = reading(house, partial(house.control.planner.plan, NAME))
    assert found <= settings_of(ActionKind.REWRITE_DATA_FILES) | READ_ANEW
    assert {"trigger", "layout", "target_file_size_bytes", "min_file_size_ratio"} <= found
