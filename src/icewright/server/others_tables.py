"""Tables that other servers look at, as far as the leader has to act on them: it alone moves files and sets properties.

A look tells the leader in its own process what a table's policy lets happen beside plans. Of the tables of others it
finds that out by what the store knows of them, once an hour.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from icewright.core.clock import Clock
from icewright.core.errors import IcewrightError
from icewright.core.servers import BUCKETS
from icewright.core.times import NEVER, Instant
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policy import Mode, Policy
from icewright.model.policy.time_windows import spread, window_of
from icewright.model.work.breaker import Thresholds, alarmed
from icewright.observation.observer import Observer
from icewright.plans.window import closed
from icewright.policy.effective import policy_of
from icewright.policy.source import PolicySource
from icewright.ports.store import TableRecord, TableStore
from icewright.ports.table_records import BeforeLook
from icewright.recommendations.policy_acceptance import PolicyAcceptance
from icewright.server.cluster.share import Part

WALK_MS: Final = 3_600_000
"""How long after one walk through all tables the next one begins."""
TABLES_A_ROUND: Final = 200
CONSIDERING_MS_MAX: Final = 2_000
"""How long a round goes on with it: reading the metadata of a table takes seconds where its catalog is slow."""

Want = Callable[[TableId, TableName, Policy, Thresholds, BeforeLook], Instant | None]


class OthersTables:
    """A step of the leader's loop."""

    def __init__(
        self,
        tables: TableStore,
        observer: Observer,
        policies: PolicySource,
        clock: Clock,
        part: Part,
        *,
        want: Want,
        acceptance: PolicyAcceptance,
        answers: Callable[[str], bool],
    ) -> None:
        """``want`` is told of each table of which files may be removed; ``answers`` if a catalog can be asked."""
        self._tables, self._observer, self._policies, self._answers = tables, observer, policies, answers
        self._clock, self._part, self._want, self._acceptance = clock, part, want, acceptance
        self._after: TableId | None = None
        self._walked_at: Instant | None = None
        self._opening: dict[TableId, Instant] = {}
        """When windows open before the next walk, which may be over by then: those tables are considered again."""

    def looked_at(
        self, metadata: TableMetadata, policy: Policy, limits: Thresholds, found: BeforeLook
    ) -> Instant | None:
        """A table was looked at by this process, and may be acted on; gives until when that need not be told again.

        A server that follows moves no file: the leader finds out by itself, however often it looks.
        """
        if not self._part.leads:
            return NEVER
        self._acceptance.consider(metadata, policy)
        return self._want(metadata.table_id, metadata.name, policy, limits, found)

    def consider_tables_of_others(self) -> None:
        """Go on with the walk; nothing where there are no other servers."""
        share, now = self._part.tables, self._clock.now()
        if share is None or len(share.buckets) == BUCKETS:
            return
        self._consider_opened(now)
        if self._walked_at is not None and self._walked_at <= now < self._walked_at + WALK_MS:
            return
        page = self._tables.records(limit=TABLES_A_ROUND, after=self._after)
        for record in page:
            self._after = record.table_id
            if record.listed is not None and not self._part.owns(record.name):
                self._consider(record)
            if self._is_over(now):
                return
        if len(page) < TABLES_A_ROUND:
            self._after, self._walked_at = None, now

    def _consider_opened(self, now: Instant) -> None:
        for table_id in [one for one, at in self._opening.items() if at <= now][:TABLES_A_ROUND]:
            del self._opening[table_id]
            record = self._tables.record(table_id)
            if record is not None and record.dropped_at is None and not self._part.owns(record.name):
                self._consider(record)
            if self._is_over(now):
                return

    def _is_over(self, begun_at: Instant) -> bool:
        return not begun_at <= self._clock.now() < begun_at + CONSIDERING_MS_MAX

    def _consider(self, record: TableRecord) -> None:
        if record.properties is None:
            return  # as long as nothing is known of its policy, nothing happens to it
        policy = policy_of(record.name, record.properties, self._policies.present().rules)
        if policy.mode is not Mode.AUTO or policy.problems:
            return
        limits = Thresholds.of(policy, record.unparked_at)
        if policy.removes_orphan_files or policy.removes_expired_files:
            found = self._tables.before_look_at(record.table_id)
            if alarmed(found.tasks, found.now, limits) is None:
                self._want(record.table_id, record.name, policy, limits, found)
            self._note_opening(record.table_id, policy, found.now)
        if not self._answers(record.name.catalog):
            return
        if self._acceptance.is_open(record.table_id, policy) and (metadata := self._present(record)) is not None:
            self._acceptance.consider(metadata, self._policies.policy(metadata))

    def _note_opening(self, table_id: TableId, policy: Policy, now: Instant) -> None:
        window = window_of(policy)
        shut = None if window is None else closed(spread(window, table_id), now)
        if shut is not None and shut.opens_at is not None and shut.opens_at < now + 2 * WALK_MS:
            self._opening[table_id] = shut.opens_at

    def _present(self, record: TableRecord) -> TableMetadata | None:
        """The table as it is, None where it cannot be read: the next walk tries again."""
        try:
            return self._observer.present(record)
        except IcewrightError:
            return None
