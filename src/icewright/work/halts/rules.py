"""What a halt means for tasks and their attempts, as pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from icewright.model.work.halts import Halt, HaltState, Part, PartKind, halt_over
from icewright.model.work.tasks import IN_BATCHES, TaskHead


def halted_within(halts: Sequence[Halt], task: TaskHead, phase: str) -> bool:
    """Whether an attempt has to end early, as it says of itself in which phase it is.

    Where its task was stopped it has to in any phase; where that is paused or drained it may go on to its end, unless
    it moves files: then each batch is an end of its own, and the next attempt goes on behind it.
    """
    halt = halt_over(halts, task.resource_group, task.table_id)
    return halt is not None and (halt.state is HaltState.STOPPED or phase in IN_BATCHES)


def catalogs_going_on(halted_parts: Iterable[Part], resource_group: str, catalogs: Iterable[str]) -> frozenset[str]:
    """Those of the catalogs in which a group may be asked for anything: neither they nor it are halted as a whole."""
    halted: set[str] = set()
    for part in halted_parts:
        match part.kind:
            case PartKind.EVERYTHING:
                return frozenset()
            case PartKind.GROUP if part.name == resource_group:
                return frozenset()
            case PartKind.CATALOG:
                halted.add(part.name)
            case _:
                pass
    return frozenset(catalogs) - halted
