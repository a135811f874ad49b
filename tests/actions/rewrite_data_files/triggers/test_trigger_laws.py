"""Laws that plans obey under every trigger, over generated tables."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from icewright.actions.rewrite_data_files.check.plan import check_plan
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.actions.rewrite_data_files.triggers.triggers import Judge
from icewright.model.plans.plans import Verdict
from icewright.model.policy.policy import Trigger
from tests.actions.rewrite_data_files.test_plan_laws import carried_out, groups_of, is_burdened, plan_of
from tests.builders.observations import Case, cases
from tests.conftest import CAMPAIGN

OTHERS = (Trigger.MSE, Trigger.TIERED, Trigger.COST_BENEFIT)
many = settings(max_examples=1_000 if CAMPAIGN else 30, deadline=None)


@many
@given(cases(OTHERS))
def test_the_checker_accepts_every_plan_and_the_verdicts_agree_with_it(case: Case) -> None:
    plan = plan_of(case)
    assert check_plan(plan, case.observation, case.policy, {file.path: file for file in case.files}, case.deletes) == ()
    touched = {group.partition for group in groups_of(plan)}
    for verdict in plan.verdicts:
        assert (verdict.verdict is Verdict.REWRITE) == (verdict.partition in touched)
        assert verdict.reason.code
        assert verdict.reason.text
        assert verdict.wait_until is None or verdict.wait_until > case.now


@many
@given(cases(OTHERS))
def test_a_trigger_that_fires_leads_to_groups_or_to_a_reason_why_not(case: Case) -> None:
    judge = Judge.of(case.observation, case.policy, case.now)
    plan = plan_of(case)
    said = {verdict.partition: verdict for verdict in plan.verdicts}
    for statistics in case.observation.inventory.partitions:
        opinion = judge.judge_partition(statistics)
        if opinion.rule is None or statistics.partition not in said:
            continue
        verdict = said[statistics.partition]
        reasons = {"no-group", "follows", "young-files", "recent-removals", "file-too-large", "not-settled"}
        assert verdict.verdict is Verdict.REWRITE or verdict.reason.code in reasons


@many
@given(cases(OTHERS))
def test_where_it_does_not_fire_no_file_is_rewritten_for_its_size(case: Case) -> None:
    judge = Judge.of(case.observation, case.policy, case.now)
    fires = {
        one.partition: judge.judge_partition(one).rule is not None for one in case.observation.inventory.partitions
    }
    for group in groups_of(plan_of(case)):
        assert fires[group.partition] or all(is_burdened(case, group, file) for file in group.files)


@many
@given(cases(OTHERS))
def test_planning_again_and_again_comes_to_an_end(case: Case) -> None:
    for _ in range(2 * len(case.files) + 1):
        plan = plan_of(case)
        if plan.is_empty:
            return
        case = carried_out(case, plan)
    raise AssertionError("it never ends")


@many
@given(cases(OTHERS))
def test_when_nothing_comes_a_trigger_fires_at_the_time_that_it_said(case: Case) -> None:
    judge = Judge.of(case.observation, case.policy, case.now)
    for statistics in case.observation.inventory.partitions:
        until = judge.judge_partition(statistics).until
        if until is not None:
            assert until > case.now
            assert replace(judge, now=until).judge_partition(statistics).rule is not None


@many
@given(cases(OTHERS))
def test_only_what_the_shortlist_names_is_read(case: Case) -> None:
    verdicts = shortlist(case.observation, case.policy, case.now)
    named = {verdict.partition for verdict in verdicts if verdict.verdict is Verdict.REWRITE}
    assert plan_of(case, tuple(file for file in case.files if file.partition in named)) == plan_of(case)
