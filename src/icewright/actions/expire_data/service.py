"""Planning an expiry of data: choose (pure), read the files of what was chosen, check (pure, by other code), keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icewright.actions.expire_data.check import data_violations
from icewright.actions.expire_data.plan import (
    DataChoice,
    DataDecision,
    beyond_a_tenth,
    choose_data,
    clock_ahead,
    plan_data,
    records_of,
)
from icewright.actions.expire_data.settings import AGE, AGES
from icewright.core import wording
from icewright.core.errors import InvalidMessage
from icewright.core.times import Instant
from icewright.model.actions.expire_data import ExpireDataRequest
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Policy
from icewright.plans.action_types import Planned, Planning, Rest
from icewright.plans.check_table import Wrong
from icewright.plans.due import Due
from icewright.plans.repository import keep_plan
from icewright.plans.standalone_plan import build_standalone_plan

INTERVAL_MS: Final = 20 * 3_600_000
"""How long it rests in between by itself: less than a day, so that it finds the same hours of the next."""

_HINT: Final = f"an age is {AGES}"


def plan_asked(
    planner: Planning, observation: Observation, asked: ExpireDataRequest, _holds: Sequence[Hold]
) -> Planned:
    """The plan of what a person asks for.

    Raises :class:`~icewright.core.errors.InvalidMessage` for an age that cannot be, and ``PlanRejected``.
    """
    policy, now = planner.policy(observation.metadata), planner.clock.now()
    choice = choose_data(observation, policy, _age(asked), now)
    decided = _decided(planner, observation, policy, choice) if isinstance(choice, DataChoice) else (choice, ())
    return Planned(_kept(planner, observation, policy, *decided, now, asked=True), observation, policy)


def data_due(planner: Planning, observation: Observation, rest: Rest) -> Due:
    """What expires by itself; what needs a person is never due. What is kept of it may raise ``PlanRejected``.

    The store's clock must not be behind the one that ages are told by. Each time leaves a tag for eight days.
    """
    if rest.rested_ms is not None and rest.rested_ms < INTERVAL_MS:
        said = f"nothing to do: data expired less than {wording.duration(INTERVAL_MS)} ago"
        return Due(Reason("expired-lately", said))
    policy, now = planner.policy(observation.metadata), planner.clock.now()
    choice = choose_data(observation, policy, None, now)
    if not isinstance(choice, DataChoice):
        return Due(choice.reason)
    why = beyond_a_tenth(choice.expiring_records, records_of(observation))
    if why is not None:
        return Due(Reason("beyond-budget", f"{why}: plan it with --action expire-data"))
    ahead = clock_ahead(choice.as_of, rest.now)
    if ahead is not None:
        return Due(ahead)
    decision, violations = _decided(planner, observation, policy, choice)
    return Due(
        decision.reason,
        lambda: _kept(planner, observation, policy, decision, violations, now, asked=False),
        since=now,
    )


def _kept(
    planner: Planning,
    observation: Observation,
    policy: Policy,
    decision: DataDecision,
    violations: Sequence[Wrong],
    now: Instant,
    *,
    asked: bool,
) -> Plan:
    """The plan of a decision, as of when it was chosen, in the store."""
    plan = build_standalone_plan(planner.ids.new("plan"), observation.metadata, policy, decision, now, asked=asked)
    return keep_plan(planner.tables, plan, violations)


def _decided(
    planner: Planning, observation: Observation, policy: Policy, choice: DataChoice
) -> tuple[DataDecision, Sequence[Wrong]]:
    """The decision for what was chosen, and what the checker has against it, which reads the files anew."""
    partitions = frozenset(each.partition for each in choice.chosen)
    decision = plan_data(observation, choice, planner.live_files(observation, partitions))
    action, prediction = decision.action, decision.prediction
    if action is None or prediction is None:
        return decision, ()
    anew = planner.live_files(observation, partitions)
    return decision, tuple(data_violations(action, prediction, observation, policy, anew, planner.clock.now()))


def _age(asked: ExpireDataRequest) -> int | None:
    if asked.older_than is None:
        return None
    try:
        return AGE(asked.older_than)
    except ValueError as error:
        raise InvalidMessage(
            f"{wording.quoted(asked.older_than)} is no age that data may expire at", hint=_HINT
        ) from error
