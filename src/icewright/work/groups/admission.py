"""Whether a resource group takes one more task now, and which: the only place that decides it.

Stores ask in the transaction of a claim, with what is true in it; the backlog and whoever asks why something waits ask
with the same facts. So there is one answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from icewright.core.times import Instant
from icewright.model.plans.plans import Reason
from icewright.model.policy.resource_groups import Queue, ResourceGroup, TenantCaps
from icewright.model.work.admission import NO_LANE, Facts, Holding, Lane, Refusal, RefusalKind, Terms, Use
from icewright.work.groups.rank import Served, Waiting, turn

HELD_MS: Final = 150_000
"""How long what a lost attempt held still counts after its lease: by then its watchdog has ended it, JVM and all."""

_W = TypeVar("_W", bound=Waiting)
_WORDS: Final = {"tasks": "running tasks", "cores": "cores", "memory_bytes": "bytes of memory"}


@dataclass(frozen=True, slots=True)
class _Sum:
    """So many tasks, and what they hold together."""

    tasks: int = 0
    cores: int = 0
    memory_bytes: int = 0


def summed(uses: Iterable[Use]) -> _Sum:
    """What they hold together."""
    tasks = cores = memory_bytes = 0
    for use in uses:
        tasks, cores, memory_bytes = tasks + use.tasks, cores + use.cores, memory_bytes + use.memory_bytes
    return _Sum(tasks, cores, memory_bytes)


class Admission:
    """What a group can take in the state that it is in, for one who claims."""

    def __init__(self, terms: Terms, optimizer_id: str, facts: Facts) -> None:
        self._terms, self._optimizer_id, self._uses, self._last = terms, optimizer_id, facts.uses, facts.last
        self._large_waits = any(lane.queue is Queue.LARGE for lane in facts.waiting)
        self._all, self._large = summed(self._uses), summed(use for use in self._uses if use.queue is Queue.LARGE)
        has_one = any(use.optimizer_id == optimizer_id for use in self._uses)
        self.holding: Final = (
            replace(terms.holding, cores=0, memory_bytes=0) if terms.joins and has_one else terms.holding
        )
        """What one more task takes."""
        self._needed: Final = {"tasks": 1, "cores": self.holding.cores, "memory_bytes": self.holding.memory_bytes}
        self._of_tenants: defaultdict[str, list[Use]] = defaultdict(list)
        for use in self._uses:
            self._of_tenants[use.tenant].append(use)
        self._of_queues: dict[Queue, Refusal | None] = {}
        self._known: dict[tuple[Queue, str], Refusal | None] = {}

    @property
    def served(self) -> Served:
        """What its tenants have had."""
        running = {tenant: sum(use.tasks for use in uses) for tenant, uses in self._of_tenants.items()}
        return Served(running, self._last)

    def obstacle(self, lane: Lane = NO_LANE) -> Refusal | None:
        """Why no task of a lane is taken now, None where one may be."""
        key = (lane.queue, lane.tenant)
        if key not in self._known:
            if lane.queue not in self._of_queues:
                self._of_queues[lane.queue] = next(self._whoever_owns(lane.queue), None)
            self._known[key] = self._of_queues[lane.queue] or next(self._of_tenant(lane.tenant), None)
        return self._known[key]

    def _whoever_owns(self, queue: Queue) -> Iterator[Refusal]:
        """What stands against all tasks of a queue, whosoever tables they are of."""
        if self._terms.refused is not None:
            yield self._terms.refused
        if queue not in self._terms.queues:
            yield _refusal(RefusalKind.QUEUE, f"who asks takes no tasks of the {queue} queue")
        group = self._terms.group
        if group is None:
            return
        yield from self._of_applications(group)
        yield from self._of_group(group)
        yield from self._of_queue(group, queue)

    def _of_applications(self, group: ResourceGroup) -> Iterator[Refusal]:
        there = {use.optimizer_id: use.is_resident for use in self._uses}
        if self._optimizer_id in there:
            return
        if group.applications_max is not None and len(there) >= group.applications_max:
            text = f"group {group.name} has its {group.applications_max} Spark applications at work"
            yield _refusal(RefusalKind.CAP, text, cap=group.applications_max, held=len(there), of="applications")
        resident = sum(there.values())
        is_more = self._terms.holding.is_resident and group.optimizers_max is not None
        if is_more and group.optimizers_max is not None and resident >= group.optimizers_max:
            text = f"group {group.name} has its {group.optimizers_max} optimizers at work"
            yield _refusal(RefusalKind.CAP, text, cap=group.optimizers_max, held=resident, of="optimizers")

    def _of_group(self, group: ResourceGroup) -> Iterator[Refusal]:
        yield from self._over(_caps_of(group), self._all, RefusalKind.CAP, f"group {group.name} has")

    def _of_queue(self, group: ResourceGroup, queue: Queue) -> Iterator[Refusal]:
        """The large queue has its share and no more; of what is left of it while something large waits, nobody has."""
        large = self._large
        shares = {of: int(cap * group.large_share) for of, cap in _caps_of(group).items() if cap is not None}
        if queue is Queue.LARGE:
            # One task at least, here as below: a share that fits none would keep it waiting for ever.
            caps = {of: max(share, self._needed[of] or 0) for of, share in shares.items()}
            yield from self._over(caps, large, RefusalKind.SHARE, f"the large queue of group {group.name} has")
        elif self._large_waits:
            kept = {of: cap - max(0, shares[of] - _of(large, of)) for of, cap in _caps_of(group).items() if cap}
            kept = {of: max(cap, self._needed[of] or 0) for of, cap in kept.items()}
            what = f"all but the share of its large queue, in which tasks wait: group {group.name} has"
            yield from self._over(kept, self._all, RefusalKind.SHARE, what)

    def _of_tenant(self, tenant: str) -> Iterator[Refusal]:
        group = self._terms.group
        caps = None if group is None else group.caps_of(tenant)
        if group is not None and caps is not None:
            held = summed(self._of_tenants.get(tenant, ()))
            yield from self._over(_caps_of(caps), held, RefusalKind.TENANT_CAP, f"{tenant} has in group {group.name}")

    def _over(self, caps: Mapping[str, int | None], held: _Sum, kind: RefusalKind, who: str) -> Iterator[Refusal]:
        for of, cap in caps.items():
            if cap is None:
                continue
            needs, has = self._needed[of], _of(held, of)
            if needs is None:
                text = f"it is not known how many {_WORDS[of]} the optimizer takes, of which {cap:,} are allowed"
                yield _refusal(kind, f"{text}: say so in optimizer.{of}", cap=cap, held=has, of=of)
            elif has + needs > cap:
                text = f"{who} {has:,} of {cap:,} {_WORDS[of]}, and one more task takes {needs:,}"
                yield _refusal(kind, text, cap=cap, held=has, needs=needs, of=of)


def in_turn(admission: Admission, candidates: Iterable[_W], now: Instant) -> list[_W]:
    """Those of the candidates that may start now, whose turn it is first."""
    served = admission.served
    fit = (task for task in candidates if admission.obstacle(task.lane) is None)
    return sorted(fit, key=lambda task: turn(task, served, now))


def chosen(terms: Terms, facts: Facts, candidates: Iterable[_W], now: Instant) -> Iterator[_W]:
    """The tasks that would start next, in their order, each in an application of its own, until the group is full."""
    left = {task.task_id: task for task in candidates}
    for number in range(len(left)):
        application = f"?{number}"
        admission = Admission(terms, application, facts)
        best = next(iter(in_turn(admission, left.values(), now)), None)
        if best is None:
            return
        yield left.pop(best.task_id)
        facts = with_one_more(facts, best.lane, application, admission.holding)


def with_one_more(facts: Facts, lane: Lane, optimizer_id: str, holding: Holding) -> Facts:
    """The facts once a task of a lane has been started for an application; what waits is as it was."""
    last = {**facts.last, lane.tenant: max(facts.last.values(), default=0) + 1}
    return replace(facts, uses=(*facts.uses, use_of(lane, optimizer_id, holding)), last=last)


def use_of(lane: Lane, optimizer_id: str, holding: Holding) -> Use:
    """What one running task holds."""
    cores, memory_bytes = holding.cores or 0, holding.memory_bytes or 0
    return Use(optimizer_id, lane.tenant, lane.queue, 1, cores, memory_bytes, holding.is_resident)


def _caps_of(of: ResourceGroup | TenantCaps) -> dict[str, int | None]:
    return {"tasks": of.tasks_max, "cores": of.cores, "memory_bytes": of.memory_bytes}


def _of(what: _Sum, of: str) -> int:
    found: int = getattr(what, of)
    return found


def _refusal(kind: RefusalKind, text: str, **figures: int | str) -> Refusal:
    return Refusal(kind, Reason(kind.value, text, figures))
