"""What a group takes, compared with a second statement of it that sums by itself."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from icewright.model.plans.plans import Reason
from icewright.model.policy.resource_groups import EVERY_QUEUE, Queue, ResourceGroup, TenantCaps
from icewright.model.work.admission import (
    FREE,
    NO_LANE,
    Facts,
    Holding,
    Lane,
    Refusal,
    RefusalKind,
    Terms,
    Urgency,
    Use,
)
from icewright.work.groups.admission import Admission, chosen, in_turn, use_of
from icewright.work.groups.rank import Candidate
from tests.narrowing import not_none

TENANTS = ("", "ops", "sales")
caps = st.none() | st.integers(1, 12)
tenants = st.builds(TenantCaps, st.sampled_from(TENANTS[1:]), caps, caps, caps)
groups = st.builds(
    ResourceGroup,
    st.just("g"),
    cores=caps,
    memory_bytes=caps,
    applications_max=st.none() | st.integers(1, 4),
    optimizers_max=st.none() | st.integers(1, 4),
    large_share=st.floats(0.01, 0.99),
    tenants=st.lists(tenants, max_size=2, unique_by=lambda one: one.tenant).map(tuple),
    tasks_max=caps,
)
uses = st.builds(
    Use,
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(TENANTS),
    st.sampled_from(Queue),
    st.integers(1, 3),
    st.integers(0, 4),
    st.integers(0, 4),
).map(lambda use: replace(use, is_resident=use.optimizer_id != "c"))
lanes = st.builds(Lane, st.sampled_from(Queue), st.sampled_from(Urgency), st.sampled_from(TENANTS))
facts = st.builds(Facts, st.lists(uses, max_size=5).map(tuple), st.frozensets(lanes, max_size=3))
holdings = st.builds(Holding, st.integers(0, 4), st.integers(0, 4), st.booleans())
terms = st.builds(Terms, groups, holdings, st.sampled_from([EVERY_QUEUE, frozenset({Queue.NORMAL})]))


def keeps_to_its_caps(group: ResourceGroup, held: Sequence[Use]) -> bool:
    """All sums of a group, taken once more from nothing but what its tasks hold."""
    everybody = [*held]
    checks: list[tuple[float, float | None]] = [
        (sum(one.tasks for one in everybody), group.tasks_max),
        (sum(one.cores for one in everybody), group.cores),
        (sum(one.memory_bytes for one in everybody), group.memory_bytes),
        (len({one.optimizer_id for one in everybody}), group.applications_max),
        (len({one.optimizer_id for one in everybody if one.is_resident}), group.optimizers_max),
    ]
    for tenant in group.tenants:
        theirs = [one for one in everybody if one.tenant == tenant.tenant]
        checks += [
            (sum(one.tasks for one in theirs), tenant.tasks_max),
            (sum(one.cores for one in theirs), tenant.cores),
            (sum(one.memory_bytes for one in theirs), tenant.memory_bytes),
        ]
    return all(cap is None or held <= cap for held, cap in checks)


def as_far_as_caps_let(group: ResourceGroup, facts: Facts) -> Facts:
    """The same with as many of the uses as the caps of the group let, from the first one on."""
    uses = facts.uses
    while not keeps_to_its_caps(group, uses):
        uses = uses[:-1]
    return replace(facts, uses=uses)


@given(terms, facts, lanes, st.sampled_from(["a", "b", "d"]))
def test_what_is_taken_keeps_to_all_caps_and_what_is_refused_would_not(
    terms: Terms, facts: Facts, lane: Lane, optimizer_id: str
) -> None:
    """Or would take the share of another queue."""
    group = not_none(terms.group)
    held = as_far_as_caps_let(group, facts)
    admission = Admission(terms, optimizer_id, held)
    refusal = admission.obstacle(lane)
    together = [*held.uses, use_of(lane, optimizer_id, admission.holding)]
    if refusal is None:
        assert lane.queue in terms.queues
        assert keeps_to_its_caps(group, together)
        return
    assert refusal.reason.code == refusal.kind.value
    if refusal.kind in (RefusalKind.CAP, RefusalKind.TENANT_CAP):
        assert not keeps_to_its_caps(group, together)
    else:
        assert refusal.kind in (RefusalKind.SHARE, RefusalKind.QUEUE)


@given(terms, facts, st.sampled_from(["a", "d"]))
def test_a_free_group_takes_something_from_each_queue_it_is_asked_for(terms: Terms, facts: Facts, who: str) -> None:
    """However small a share is, it keeps nobody out for ever."""
    group, holding = terms.group, terms.holding
    assert group is not None
    assume(keeps_to_its_caps(group, [use_of(NO_LANE, who, holding)]))
    nothing = replace(facts, uses=())
    assert any(Admission(terms, who, nothing).obstacle(Lane(queue)) is None for queue in terms.queues)


def held(tasks: int, *, cores: int = 1, queue: Queue = Queue.NORMAL, tenant: str = "", by: str = "a") -> Use:
    return Use(by, tenant, queue, tasks, tasks * cores, 0)


def kind(
    group: ResourceGroup, *there: Use, lane: Lane = NO_LANE, waiting: Sequence[Lane] = (), **more: object
) -> object:
    terms = Terms(group, Holding(1, 0), **more)  # type: ignore[arg-type]  # a test's choice of fields
    refusal = Admission(terms, "a", Facts(there, frozenset(waiting))).obstacle(lane)
    return None if refusal is None else (refusal.kind.value, refusal.reason.figures.get("of"))


LARGE = Lane(Queue.LARGE)


def test_each_cap_holds() -> None:
    assert kind(ResourceGroup("g", tasks_max=2), held(1)) is None
    assert kind(ResourceGroup("g", tasks_max=2), held(2)) == ("cap", "tasks")
    assert kind(ResourceGroup("g", cores=4), held(2, cores=2)) == ("cap", "cores")
    assert kind(ResourceGroup("g", applications_max=1), held(1, by="b")) == ("cap", "applications")
    assert kind(ResourceGroup("g", applications_max=1), held(1, by="a")) is None
    assert kind(ResourceGroup("g", optimizers_max=1), held(1, by="b")) == ("cap", "optimizers")
    mine = ResourceGroup("g", tenants=(TenantCaps("ops", tasks_max=1),))
    assert kind(mine, held(1, tenant="ops"), lane=Lane(tenant="ops")) == ("tenant-cap", "tasks")
    assert kind(mine, held(1, tenant="ops"), lane=Lane(tenant="sales")) is None


def test_the_large_queue_has_its_share_and_no_more() -> None:
    group = ResourceGroup("g", tasks_max=10)
    assert kind(group, held(1, queue=Queue.LARGE), lane=LARGE) is None
    assert kind(group, held(2, queue=Queue.LARGE), lane=LARGE) == ("large-share", "tasks")
    assert kind(group, held(8)) is None
    assert kind(group, held(8), waiting=[LARGE]) == ("large-share", "tasks")
    assert kind(group, held(8), held(2, queue=Queue.LARGE), waiting=[LARGE]) == ("cap", "tasks")
    assert kind(group, held(7), held(1, queue=Queue.LARGE), waiting=[LARGE]) is None
    assert kind(group, held(8), lane=LARGE, waiting=[LARGE]) is None


def test_a_share_that_is_less_than_a_task_takes_one_all_the_same() -> None:
    assert kind(ResourceGroup("g", tasks_max=2), lane=LARGE) is None
    assert kind(ResourceGroup("g", tasks_max=2), held(1, queue=Queue.LARGE), lane=LARGE) == ("large-share", "tasks")


def test_what_is_left_beside_a_share_is_one_task_at_least() -> None:
    """Or nobody who takes large tasks would keep all others waiting."""
    group = ResourceGroup("g", cores=4, large_share=0.3)
    terms = Terms(group, Holding(4, 0))
    assert Admission(terms, "a", Facts((), frozenset({LARGE}))).obstacle() is None


def test_who_takes_only_some_queues_gets_nothing_of_the_others() -> None:
    group = ResourceGroup("g")
    assert kind(group, lane=LARGE, queues=frozenset({Queue.NORMAL})) == ("queue", None)
    assert kind(group, queues=frozenset({Queue.LARGE})) == ("queue", None)


@pytest.mark.parametrize("holding", [Holding(None, 0), Holding(0, None)])
def test_what_is_not_known_is_not_taken_where_it_counts(holding: Holding) -> None:
    capped = ResourceGroup("g", cores=4, memory_bytes=4)
    refusal = not_none(Admission(Terms(capped, holding), "a", Facts()).obstacle())
    assert "is not known" in refusal.reason.text
    assert Admission(Terms(ResourceGroup("g", tasks_max=1), holding), "a", Facts()).obstacle() is None


def test_a_group_that_gives_out_nothing_says_why() -> None:
    shut = Refusal(RefusalKind.WINDOW, Reason("window", "closed"), 7)
    assert Admission(Terms(refused=shut), "a", Facts()).obstacle() == shut
    assert Admission(FREE, "a", Facts()).obstacle() is None


def test_a_task_that_joins_others_takes_nothing_beside_them() -> None:
    terms = Terms(ResourceGroup("g", cores=4), Holding(4, 9), joins=True)
    assert Admission(terms, "a", Facts()).holding == Holding(4, 9)
    assert Admission(terms, "b", Facts((held(1, cores=4),))).obstacle() is not None
    joined = Admission(terms, "a", Facts((held(1, cores=4),)))
    assert (joined.holding, joined.obstacle()) == (Holding(0, 0), None)


@given(terms, facts, st.lists(st.builds(Candidate, st.uuids().map(str), st.integers(-9, 9), st.integers(0, 99), lanes)))
def test_the_backlog_starts_what_claims_would_one_after_the_other(
    terms: Terms, facts: Facts, tasks: Sequence[Candidate]
) -> None:
    left, expected = {task.task_id: task for task in tasks}, list[str]()
    now_true = facts
    for number in range(len(tasks)):
        admission = Admission(terms, f"new-{number}", now_true)
        turns = in_turn(admission, left.values(), 1_000)
        if not turns:
            break
        expected.append(turns[0].task_id)
        del left[turns[0].task_id]
        more = use_of(turns[0].lane, f"new-{number}", admission.holding)
        now_true = replace(
            now_true, uses=(*now_true.uses, more), last={**now_true.last, turns[0].lane.tenant: 1_000 + number}
        )
    assert [task.task_id for task in chosen(terms, facts, tasks, 1_000)] == expected
