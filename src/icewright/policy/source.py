"""The rules of the moment, for whoever asks what the owner of a table wants: the same on all servers of a store."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from icewright.core.errors import NotAllowed, NotFound
from icewright.core.times import Instant
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policies import NO_REVISION, NewRevision, PolicyRevision, Rule
from icewright.model.policy.policy import Policy
from icewright.model.policy.resource_groups import ResourceGroup
from icewright.policy.effective import effective_policy
from icewright.policy.rules.named_rules import RuleIndex
from icewright.policy.rules.port import PolicyStore


class NothingApplied:
    """A :class:`~icewright.policy.rules.port.PolicyStore` where there is none: the configuration's rules are all."""

    def present(self) -> int:
        """See the port."""
        return NO_REVISION.number

    def revision(self, number: int) -> PolicyRevision:
        """See the port."""
        if number != NO_REVISION.number:
            raise NotFound(f"there is no revision {number} of the policies")
        return NO_REVISION

    def revisions(self, *, limit: int, before: int | None = None) -> Sequence[PolicyRevision]:
        """See the port."""
        del limit, before
        return ()

    def apply(self, new: NewRevision, expected: int) -> PolicyRevision:
        """See the port."""
        del new, expected
        raise NotAllowed("policies cannot be applied here: nothing keeps them")

    def prune(self, replaced_before: Instant, limit: int) -> int:
        """See the port."""
        del replaced_before, limit
        return 0


@dataclass(frozen=True, slots=True)
class PresentRules:
    """All rules as of one revision of the policies."""

    revision: int
    rules: RuleIndex
    groups: tuple[ResourceGroup, ...] = ()
    """Resource groups as they were applied, over those of the configuration."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A policy, and all that it follows from."""

    rules: PresentRules
    name: TableName
    properties: Mapping[str, str]
    policy: Policy


class _OfThread(threading.local):
    """The rules that a thread goes by within :meth:`PolicySource.held`, and the policy that it found last.

    A look at a table asks for its policy several times.
    """

    rules: PresentRules | None = None
    last: _Found | None = None


class PolicySource:
    """Reads whenever it is asked which revision is the present one; what is in it is read once, it never changes."""

    def __init__(self, configured: Sequence[Rule] = (), store: PolicyStore | None = None) -> None:
        """``configured`` are the rules of the configuration, below those of the store."""
        self.configured = tuple(configured)
        self.store: PolicyStore = NothingApplied() if store is None else store
        self._present = self._with(NO_REVISION)
        self._of_thread = _OfThread()

    @contextmanager
    def held(self, number: int | None = None) -> Iterator[PresentRules]:
        """Within the block, and in its thread, the rules are those of its beginning: a look goes by one revision.

        They are read once for it; ``number`` is that of the present revision where it was read already.
        Raises as :meth:`present`.
        """
        before, found = self._of_thread.rules, self._as_of(number)
        self._of_thread.rules = found
        try:
            yield found
        finally:
            self._of_thread.rules = before

    def present(self) -> PresentRules:
        """The rules as they are now. Raises :class:`~icewright.core.errors.Unavailable`: nothing is guessed."""
        return self._as_of(None)

    def _as_of(self, number: int | None) -> PresentRules:
        if self._of_thread.rules is not None:
            return self._of_thread.rules
        number, known = self.store.present() if number is None else number, self._present
        if number == known.revision:
            return known
        found = self._with(self.store.revision(number))
        self._present = found
        return found

    def policy(self, metadata: TableMetadata) -> Policy:
        """The effective policy of a table by the rules as they are now."""
        rules, last = self.present(), self._of_thread.last
        if last and last.rules is rules and (last.name, last.properties) == (metadata.name, metadata.properties):
            return last.policy
        found = effective_policy(metadata, rules.rules)
        self._of_thread.last = _Found(rules, metadata.name, dict(metadata.properties), found)
        return found

    def _with(self, revision: PolicyRevision) -> PresentRules:
        policies = revision.policies
        rules = RuleIndex((*policies.rules, *self.configured))
        return PresentRules(revision.number, rules, policies.groups)
