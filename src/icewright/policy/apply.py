"""Policies are compared with what they are applied to, and applied: a revision, all at once, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from icewright.core.clock import Clock
from icewright.core.errors import InvalidConfiguration
from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policies import TEXT_LENGTH_MAX, NewRevision, Policies, PolicyRevision
from icewright.policy.groups.definitions import Groups
from icewright.policy.rules.cases import PolicyTest, Said, policy_test
from icewright.policy.rules.difference import Comparison, PolicyDifference
from icewright.policy.rules.named_rules import check_policies
from icewright.policy.source import PolicySource
from icewright.ports.store import TableRecord, TableStore

_PAGE: Final = 1_000


class PolicyBook:
    """What a person does with policies."""

    def __init__(self, source: PolicySource, tables: TableStore, clock: Clock, groups: Groups) -> None:
        self.source, self.store = source, source.store
        self._tables, self._clock, self._groups = tables, clock, groups

    def test(self, metadata: TableMetadata) -> PolicyTest:
        """Which rule wins for each setting of a table, and which definition of its resource group, as of now."""
        with self.source.held() as present:
            return policy_test(metadata, present.revision, Said(present.rules, self._groups.sources()))

    def preview(self, policies: Policies) -> PolicyDifference:
        """What applying these would change. Raises ``InvalidConfiguration`` for what cannot be applied."""
        check_policies(policies)
        present = self.store.revision(self.store.present())
        return self._compare(present.policies, policies).difference(present.number)

    def apply(self, new: NewRevision, expected: int) -> PolicyRevision:
        """Apply policies in place of all that are, and have the tables looked at that they may change.

        Raises ``InvalidConfiguration``, and :class:`~icewright.core.errors.Conflict` when the present revision is
        another one than ``expected``, which is the one that somebody saw the difference to.
        """
        check_policies(new.policies)
        if len(new.note) > TEXT_LENGTH_MAX or not 0 < len(new.applied_by) <= TEXT_LENGTH_MAX:
            raise InvalidConfiguration(f"applied_by has 1 to {TEXT_LENGTH_MAX:,} characters, note has no more")
        before = self.store.revision(expected)
        made = self.store.apply(new, expected)
        # Should this process die here, those tables are planned by the new rules at their next looks all the same.
        affected = self._compare(before.policies, new.policies).affected
        for start in range(0, len(affected), _PAGE):
            self._tables.look_by(affected[start : start + _PAGE], self._clock.now())
        return made

    def _compare(self, before: Policies, after: Policies) -> Comparison:
        found = Comparison(before, after, self.source.configured)
        for record in self._records():
            found.add(record.table_id, record.name, record.properties)
        return found

    def _records(self) -> Iterator[TableRecord]:
        after: TableId | None = None
        while True:
            page = self._tables.records(limit=_PAGE, after=after)
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1].table_id
