"""Planning an expiry: decide (pure), check (pure, by other code), keep the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from icewright.actions.expire_snapshots.check import check_expiry
from icewright.actions.expire_snapshots.gain import too_little
from icewright.actions.expire_snapshots.plan import ExpiryDecision, asked_rule, automatic_rule, decide_expiry
from icewright.core import wording
from icewright.core.errors import InvalidMessage
from icewright.core.fault_points import Fault, fault
from icewright.core.times import Instant
from icewright.model.actions.expire_snapshots import RETAIN_LAST_MIN, ExpireSnapshotsRequest, ExpiryRule, Hold
from icewright.model.iceberg.snapshot_sightings import first_seen
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Policy
from icewright.model.policy.setting_values import duration_ms
from icewright.plans.action_types import Planned, Planning, Rest
from icewright.plans.due import Due
from icewright.plans.repository import refuse_wrong
from icewright.plans.standalone_plan import build_standalone_plan

_HINT: Final = "an age is a duration: P5D, PT12H or P1DT12H; at least 1 snapshot of each branch stays"


def plan_asked(
    planner: Planning, observation: Observation, asked: ExpireSnapshotsRequest, holds: Sequence[Hold]
) -> Planned:
    """The plan of an expiry that a person asks for.

    Raises :class:`~icewright.core.errors.InvalidMessage` for an age or a number that cannot be, and
    ``PlanRejected``.
    """
    metadata, policy = observation.metadata, planner.policy(observation.metadata)
    decision = _decide(planner, metadata, policy, _rule(policy, asked), holds, None)
    return Planned(_kept(planner, metadata, policy, decision, asked=True), observation, policy)


def expiry_due(planner: Planning, observation: Observation, rest: Rest) -> Due:
    """What expires by itself, of a table whose owner lets it; nothing where it is not worth a commit yet.

    Holds are asked for where something would expire without them. Raises ``PlanRejected``.
    """
    metadata, policy = observation.metadata, planner.policy(observation.metadata)
    rule, seen = automatic_rule(policy), first_seen(observation.marks, metadata)
    decision = _decide(planner, metadata, policy, rule, (), seen)
    if decision.action is not None:
        decision = _decide(planner, metadata, policy, rule, rest.holds(), seen)
    action = decision.action
    if action is None:
        return Due(decision.reason)
    little = too_little(action, len(metadata.snapshots), rest.rested_ms)
    if little is not None:
        return Due(little)
    gone = frozenset(action.snapshot_ids)
    known_at = [
        max(one.committed_at, seen.get(one.snapshot_id, 0)) for one in metadata.snapshots if one.snapshot_id in gone
    ]
    return Due(
        decision.reason,
        lambda: _kept(planner, metadata, policy, decision, asked=False),
        since=min(known_at) + rule.older_than_ms if known_at else None,
    )


def _decide(
    planner: Planning,
    metadata: TableMetadata,
    policy: Policy,
    rule: ExpiryRule,
    holds: Sequence[Hold],
    seen: Mapping[int, Instant] | None,
) -> ExpiryDecision:
    now = planner.clock.now()
    decision = decide_expiry(
        metadata,
        policy,
        rule,
        now,
        can_put_back=planner.catalog(metadata.name.catalog).takes_snapshots_back,
        findings=_other_names(planner, metadata),
        holds=holds,
        first_seen=seen,
    )
    if decision.action is not None:
        held = [hold.snapshot_id for hold in holds]
        violations = check_expiry(decision.action, metadata, policy, now=now, first_seen=seen, held=held)
        refuse_wrong(f"the plan for {metadata.name} does not hold", violations)
    return decision


def _kept(planner: Planning, metadata: TableMetadata, policy: Policy, decision: ExpiryDecision, *, asked: bool) -> Plan:
    """The plan of a decision, in the store; what is planned for the table's files stands beside it."""
    now = planner.clock.now()
    plan = build_standalone_plan(planner.ids.new("plan"), metadata, policy, decision, now, asked=asked)
    fault(Fault.EXPIRY_PLAN_BEFORE)
    planner.tables.save_plan(plan, is_present=False)
    fault(Fault.EXPIRY_PLAN_AFTER)
    return plan


def _other_names(planner: Planning, metadata: TableMetadata) -> tuple[Reason, ...]:
    """Whether the table is known by other names: who expires snapshots under one name breaks the others."""
    names = sorted(planner.namesakes(metadata))
    return tuple(Reason("shared-uuid", f"it is also known as {wording.cut(str(name))}") for name in names)


def _rule(policy: Policy, asked: ExpireSnapshotsRequest) -> ExpiryRule:
    try:
        older_than_ms = None if asked.older_than is None else duration_ms(asked.older_than)
    except ValueError as error:
        raise InvalidMessage(f"{wording.quoted(asked.older_than or '')} is no duration", hint=_HINT) from error
    if asked.retain_last is not None and asked.retain_last < RETAIN_LAST_MIN:
        raise InvalidMessage(f"{asked.retain_last} snapshots cannot be retained", hint=_HINT)
    return asked_rule(policy, older_than_ms, asked.retain_last)
