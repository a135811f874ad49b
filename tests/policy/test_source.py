"""Applied policies reach everything that asks what an owner wants, on every server, without a restart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.core.errors import NotAllowed, NotFound, Unavailable
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Plan
from icewright.model.policy.policies import NamedRule, NewRevision, Policies, PolicyRevision, RuleMatch
from icewright.model.policy.policy import Mode, PolicyRule
from icewright.model.work.tasks import TaskState
from icewright.policy.rules.sql import SqlPolicies
from icewright.policy.source import NothingApplied, PolicySource
from tests.builders.lakehouse import NAME, Lakehouse
from tests.builders.worker import Worker
from tests.lakes.stores import new_store
from tests.narrowing import not_none

MODE = "icewright.mode"


def new(mode: str, pattern: str = "lake.**") -> NewRevision:
    return NewRevision(Policies((NamedRule("a", RuleMatch((pattern,)), {MODE: mode}),)), "alice")


@pytest.fixture
def house() -> Lakehouse:
    return Lakehouse(rules=()).with_ready_table()


def test_a_table_is_planned_anew_after_a_change_and_not_before(house: Lakehouse) -> None:
    assert house.control.maintainer.look(NAME).plan.mode is Mode.OBSERVE
    assert not house.control.maintainer.look(NAME).is_new
    house.control.policies.apply(new("auto"), 0)
    looked = house.control.maintainer.look(NAME)
    assert (looked.is_new, looked.plan.mode, looked.enqueued is not None) == (True, Mode.AUTO, True)
    assert not house.control.maintainer.look(NAME).is_new


def test_x3_the_policy_of_a_look_follows_its_table_and_the_rules_of_the_moment(house: Lakehouse) -> None:
    source, table = house.control.planner.policies, house.catalog.load(NAME)
    properties = dict(table.properties)
    known = replace(table, properties=properties)
    assert [source.policy(known).mode, source.policy(known).mode] == [Mode.OBSERVE] * 2
    assert source.policy(known) is source.policy(known)
    properties[MODE] = "approve"
    assert source.policy(known).mode is Mode.APPROVE
    assert source.policy(table).mode is Mode.OBSERVE
    house.policies.apply(new("auto", "lake.db.other"), 0)
    assert source.policy(replace(table, name=TableName("lake", ("db",), "other"))).mode is Mode.AUTO
    assert source.policy(table).mode is Mode.OBSERVE
    house.policies.apply(new("auto"), 1)
    assert source.policy(table).mode is Mode.AUTO


def test_x3_what_another_server_applied_counts_at_the_next_claim(house: Lakehouse) -> None:
    house.control.policies.apply(new("auto"), 0)
    house.control.maintainer.look(NAME)
    house.policies.apply(new("observe"), 1)  # not through this server
    assert Worker(house).claim_if_any() is None
    assert house.only_task().state is TaskState.SUPERSEDED


def test_x3_a_task_under_way_does_not_commit_against_what_was_applied_since(house: Lakehouse) -> None:
    house.control.policies.apply(new("auto"), 0)
    house.control.maintainer.look(NAME)
    assert Worker(house).claim_if_any() is not None
    assert house.control.dispatcher.leave.veto(house.only_task()) is None
    house.policies.apply(new("observe"), 1)
    assert not_none(house.control.dispatcher.leave.veto(house.only_task())).code == "mode-observe"


def test_applying_brings_the_next_looks_forward_of_the_tables_in_question_alone(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    planned = house.record().next_look_at
    house.control.policies.apply(new("auto", "lake.other.**"), 0)
    assert house.record().next_look_at == planned
    house.control.policies.apply(new("auto", "lake.db.**"), 1)
    assert house.record().next_look_at == house.clock.now()


def test_x3_policies_that_are_applied_during_a_look_count_in_it(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look by the policies of before is lost, and another one follows at once."""
    house.control.maintainer.look(NAME)
    save, modes = house.tables.save_plan, list[Mode]()

    def saved_and_applied(plan: Plan, *, is_present: bool = True) -> None:
        save(plan, is_present=is_present)
        modes.append(plan.mode)
        if len(modes) == 1:
            house.control.policies.apply(new("auto", "lake.db.**"), 0)

    monkeypatch.setattr(house.tables, "save_plan", saved_and_applied)
    looked = house.control.maintainer.look(NAME, plan_anew=True)
    assert modes == [Mode.OBSERVE, Mode.AUTO]
    assert (looked.plan.mode, looked.enqueued is not None) == (Mode.AUTO, True)
    assert house.record().plan_id == looked.plan.plan_id


def test_rules_are_read_once_per_revision() -> None:
    store = SqlPolicies(new_store())
    configured = PolicyRule("lake", (), {MODE: "approve"})
    source = PolicySource((configured,), store)
    assert list(source.present().rules) == [configured]
    store.apply(new("auto"), 0)
    found = source.present()
    assert (found.revision, list(found.rules)) == (1, [*new("auto").policies.rules, configured])
    assert source.present() is found


def test_nothing_is_guessed_while_the_store_is_away() -> None:
    class Away(SqlPolicies):
        def present(self) -> int:
            raise Unavailable("the store does not answer")

    with pytest.raises(Unavailable):
        PolicySource((), Away(new_store())).present()


def test_without_a_store_the_configuration_is_all() -> None:
    store = NothingApplied()
    assert (store.present(), store.revision(0).number, store.revisions(limit=1)) == (0, 0, ())
    with pytest.raises(NotFound):
        store.revision(1)
    with pytest.raises(NotAllowed):
        store.apply(new("auto"), 0)


def test_a_look_goes_by_one_revision_and_asks_for_it_once(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    house.control.policies.apply(new("auto"), 0)
    asked: list[int] = []

    class Moving(NothingApplied):
        """Tells a revision, and the next time another one."""

        def present(self) -> int:
            asked.append(1 + len(asked) % 2)
            return asked[-1]

        def revision(self, number: int) -> PolicyRevision:
            return house.policies.revision(number)

    house.policies.apply(new("observe"), 1)
    monkeypatch.setattr(house.control.planner.policies, "store", Moving())
    assert house.control.maintainer.look(NAME).plan.mode is Mode.AUTO
    assert asked == [1]
    assert house.control.maintainer.look(NAME).plan.mode is Mode.OBSERVE
