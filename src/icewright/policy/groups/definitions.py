"""The resource groups of the moment, and on which terms an optimizer claims tasks of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

from icewright.core.times import Instant
from icewright.model.plans.plans import Reason
from icewright.model.policy.policies import PolicyRevision
from icewright.model.policy.resource_groups import DEFAULT_GROUP, OWN, Queue, ResourceGroup, with_default
from icewright.model.policy.time_windows import opens_at
from icewright.model.work.admission import Holding, Refusal, RefusalKind, Terms
from icewright.model.work.application_size import task_holding
from icewright.model.work.jobs import OptimizerHello
from icewright.policy.groups.precedence import GroupSource, applied_source
from icewright.policy.source import PolicySource


class Origin(StrEnum):
    """Who says what a resource group is."""

    POLICIES = "policies"
    """The policies as they are applied, over all others."""
    CONFIGURATION = "configuration"
    DEFAULT = "default"
    """Nobody: it exists always, without caps."""
    SERVER = "server"
    """The server itself, for what it carries out without optimizers."""
    NOBODY = "nobody"
    """Optimizers alone know it; it takes no tasks."""


class Groups:
    """Asks at each claim which groups there are: those of the configuration, and over them those that are applied."""

    def __init__(self, configured: Iterable[ResourceGroup], source: PolicySource) -> None:
        self._configured, self._source = {group.name: group for group in configured}, source

    def present(self) -> Mapping[str, ResourceGroup]:
        """All groups as they are now, by name. Raises :class:`~icewright.core.errors.Unavailable`."""
        applied = {group.name: group for group in self._source.present().groups}
        return with_default(MappingProxyType({**self._configured, **applied}))

    def sources(self, revision: PolicyRevision) -> tuple[GroupSource, ...]:
        """Who defines groups while these policies are applied, those who count first."""
        configured = GroupSource("the configuration", tuple(self._configured.values()), is_configuration=True)
        return (applied_source(revision), configured)

    def origin(self, name: str) -> tuple[Origin, int | None]:
        """Who says what a group is, with the revision of the policies where it is those."""
        applied = self._source.present()
        if any(group.name == name for group in applied.groups):
            return Origin.POLICIES, applied.revision
        if name in self._configured:
            return Origin.CONFIGURATION, None
        if name == DEFAULT_GROUP:
            return Origin.DEFAULT, None
        return Origin.SERVER if name in OWN else Origin.NOBODY, None

    def terms_of(self, hello: OptimizerHello, now: Callable[[], Instant], *, joins: bool = False) -> Terms:
        """On which terms an optimizer claims; ``joins`` says that the task is to share a Spark job of its own."""
        holding = Holding(hello.cores, hello.memory_bytes, hello.is_resident)
        return self.terms(
            hello.resource_group, task_holding(holding, hello.slots), frozenset(hello.queues), now, joins=joins
        )

    def terms(
        self,
        name: str,
        holding: Holding,
        queues: frozenset[Queue],
        now: Callable[[], Instant],
        *,
        joins: bool = False,
    ) -> Terms:
        """On which terms somebody claims whose tasks take so much each."""
        group = self.present().get(name)
        return Terms(group, holding, queues, joins, _refused(name, group, now))

    def refused(self, name: str, now: Callable[[], Instant]) -> Refusal | None:
        """Why a group takes no task at all now, whoever asks."""
        return _refused(name, self.present().get(name), now)


def _refused(name: str, group: ResourceGroup | None, now: Callable[[], Instant]) -> Refusal | None:
    # A group that somebody has paused is one more reason, and belongs here.
    if group is None:
        return _undefined(name)
    return closed(group, now()) if group.windows else None


def _undefined(name: str) -> Refusal:
    text = f"resource group {name} is not defined: define it in [groups.{name}], or in a policy file"
    return Refusal(RefusalKind.NO_GROUP, Reason(RefusalKind.NO_GROUP.value, text, {"group": name}))


def closed(group: ResourceGroup, now: Instant) -> Refusal | None:
    """Whether none of a group's windows is open, and until when; None where tasks may start."""
    opening = [opens_at(window, now) for window in group.windows]
    if not opening or now in opening:
        return None
    until = min((at for at in opening if at is not None), default=None)
    when = "and none will open again" if until is None else "until the next one opens"
    text = f"no window of group {group.name} is open, {when}"
    figures: dict[str, int | str] = {"group": group.name}
    if until is not None:
        figures["opens_at"] = until
    return Refusal(RefusalKind.WINDOW, Reason(RefusalKind.WINDOW.value, text, figures), until)
