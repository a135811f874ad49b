"""Planning an expiry of data: choose (pure), read the files of what was chosen, check (pure, by other code)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from icewright.domain.asked import AskedExpireData
from icewright.domain.errors import InvalidMessage
from icewright.domain.files import DataFile, Partition
from icewright.domain.observation import Observation
from icewright.domain.plans import Plan
from icewright.domain.policy import Policy
from icewright.domain.tables import Instant
from icewright.planning import wording
from icewright.planning.check_data import data_violations
from icewright.planning.data_settings import AGE, AGES
from icewright.planning.expire_data import DataChoice, DataDecision, choose_data, plan_data
from icewright.ports.clock import Clock, Ids
from icewright.services.delete_planner import Checked

LiveFiles: TypeAlias = Callable[[Observation, frozenset[Partition]], Iterator[DataFile]]
"""The live data files of some partitions, read from manifests each time."""

_HINT: Final = f"an age is {AGES}"


class DataPlanner:
    """Makes plans of expiring data, and has them checked."""

    def __init__(self, clock: Clock, ids: Ids, live_files: LiveFiles) -> None:
        self._clock, self._ids, self._live_files = clock, ids, live_files

    def plan_asked(self, observation: Observation, policy: Policy, asked: AskedExpireData) -> Checked:
        """The plan of what a person asks for.

        Raises :class:`~icewright.domain.errors.InvalidMessage` for an age that cannot be.
        """
        now = self._clock.now()
        decision, violations = self._decide(observation, policy, _age(asked), now)
        metadata, action = observation.metadata, decision.action
        plan = Plan(
            plan_id=self._ids.new("plan"),
            table_id=metadata.table_id,
            table_name=metadata.name,
            snapshot_id=metadata.current_snapshot_id,
            planned_at=now,
            mode=policy.mode,
            actions=() if action is None else (action,),
            reason=decision.reason,
            verdicts=(),
            verdict_counts={},
            prediction=decision.prediction,
            look_again_at=None,
            rules=decision.notes,
            asked=True,
        )
        return Checked(plan, violations)

    def _decide(
        self, observation: Observation, policy: Policy, older_than_ms: int | None, now: Instant
    ) -> tuple[DataDecision, tuple[tuple[str, str], ...]]:
        """What should be done, and what the checker has against it, which reads the files anew."""
        choice = choose_data(observation, policy, older_than_ms, now)
        if not isinstance(choice, DataChoice):
            return choice, ()
        partitions = frozenset(each.partition for each in choice.chosen)
        decision = plan_data(observation, choice, self._live_files(observation, partitions))
        action, prediction = decision.action, decision.prediction
        if action is None or prediction is None:
            return decision, ()
        anew = self._live_files(observation, partitions)
        return decision, tuple(data_violations(action, prediction, observation, policy, anew, self._clock.now()))


def _age(asked: AskedExpireData) -> int | None:
    if asked.older_than is None:
        return None
    try:
        return AGE(asked.older_than)
    except ValueError as error:
        raise InvalidMessage(
            f"{wording.quoted(asked.older_than)} is no age that data may expire at", hint=_HINT
        ) from error
