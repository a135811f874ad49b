"""Planning an expiry of data: choose (pure), read the files of what was chosen, check (pure, by other code), keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

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
from icewright.core.clock import Clock, Ids
from icewright.core.errors import InvalidMessage
from icewright.core.times import Instant
from icewright.model.actions.expire_data import ExpireDataRequest
from icewright.model.iceberg.files import DataFile, Partition
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Policy
from icewright.plans.due import Due
from icewright.plans.repository import keep_plan
from icewright.plans.standalone_plan import build_standalone_plan
from icewright.ports.store import TableStore

LiveFiles: TypeAlias = Callable[[Observation, frozenset[Partition]], Iterator[DataFile]]
"""The live data files of some partitions, read from manifests each time."""

INTERVAL_MS: Final = 20 * 3_600_000
"""How long it rests in between by itself: less than a day, so that it finds the same hours of the next."""

_HINT: Final = f"an age is {AGES}"


class DataPlanner:
    """Makes plans of expiring data, and keeps them in the store."""

    def __init__(self, tables: TableStore, clock: Clock, ids: Ids, live_files: LiveFiles) -> None:
        self._tables, self._clock, self._ids, self._live_files = tables, clock, ids, live_files

    def plan_asked(self, observation: Observation, policy: Policy, asked: ExpireDataRequest) -> Plan:
        """The plan of what a person asks for.

        Raises :class:`~icewright.core.errors.InvalidMessage` for an age that cannot be, and ``PlanRejected``.
        """
        now = self._clock.now()
        choice = choose_data(observation, policy, _age(asked), now)
        decided = self._planned(observation, policy, choice) if isinstance(choice, DataChoice) else (choice, ())
        decision, violations = decided
        return self._kept(observation, policy, decision, violations, now, asked=True)

    def due(self, observation: Observation, policy: Policy, store_now: Instant, rested_ms: int | None) -> Due:
        """What expires by itself; what needs a person is never due. What is kept of it may raise ``PlanRejected``.

        ``store_now`` is by the store's clock, which must not be behind the one that ages are told by. ``rested_ms`` is
        how long ago it was done last, None where it never was: each time leaves a tag for eight days.
        """
        if rested_ms is not None and rested_ms < INTERVAL_MS:
            said = f"nothing to do: data expired less than {wording.duration(INTERVAL_MS)} ago"
            return Due(Reason("expired-lately", said))
        now = self._clock.now()
        choice = choose_data(observation, policy, None, now)
        if not isinstance(choice, DataChoice):
            return Due(choice.reason)
        why = beyond_a_tenth(choice.expiring_records, records_of(observation))
        if why is not None:
            return Due(Reason("beyond-budget", f"{why}: plan it with --action expire-data"))
        ahead = clock_ahead(choice.as_of, store_now)
        if ahead is not None:
            return Due(ahead)
        decision, violations = self._planned(observation, policy, choice)
        return Due(
            decision.reason, lambda: self._kept(observation, policy, decision, violations, now, asked=False), since=now
        )

    def _kept(
        self,
        observation: Observation,
        policy: Policy,
        decision: DataDecision,
        violations: tuple[tuple[str, str], ...],
        now: Instant,
        *,
        asked: bool,
    ) -> Plan:
        """The plan of a decision, in the store; what is planned for the table's files stands beside it."""
        metadata = observation.metadata
        plan = build_standalone_plan(self._ids.new("plan"), metadata, policy, decision, now, asked=asked)
        return keep_plan(self._tables, plan, violations)

    def _planned(
        self, observation: Observation, policy: Policy, choice: DataChoice
    ) -> tuple[DataDecision, tuple[tuple[str, str], ...]]:
        """The plan for what was chosen, and what the checker has against it, which reads the files anew."""
        partitions = frozenset(each.partition for each in choice.chosen)
        decision = plan_data(observation, choice, self._live_files(observation, partitions))
        action, prediction = decision.action, decision.prediction
        if action is None or prediction is None:
            return decision, ()
        anew = self._live_files(observation, partitions)
        return decision, tuple(data_violations(action, prediction, observation, policy, anew, self._clock.now()))


def _age(asked: ExpireDataRequest) -> int | None:
    if asked.older_than is None:
        return None
    try:
        return AGE(asked.older_than)
    except ValueError as error:
        raise InvalidMessage(
            f"{wording.quoted(asked.older_than)} is no age that data may expire at", hint=_HINT
        ) from error
