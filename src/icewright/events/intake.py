"""Where events of all channels come in: checked, put into the inbox, and the loop is woken. No catalog is asked."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from icewright.core.errors import NotFound
from icewright.core.fault_points import Fault, fault
from icewright.model.events.events import Channel, CommitEvent
from icewright.model.events.messages import EVENTS_MAX
from icewright.model.iceberg.names import TableName
from icewright.ports.store import TableStore


class Intake:
    """The door of the inbox. Safe for use by several threads."""

    def __init__(
        self,
        catalogs: Iterable[str],
        tables: TableStore,
        wake: Callable[[], None],
        prefixes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """``prefixes`` says which catalog each prefix of a REST catalog's addresses stands for; "" is no prefix."""
        self._catalogs, self._tables, self._wake = frozenset(catalogs), tables, wake
        self._prefixes = prefixes
        self._lock = threading.Lock()
        self._passed_over: Counter[str] = Counter()

    @property
    def passed_over(self) -> Mapping[str, int]:
        """What this process was told and made nothing of, since it began, by what it was: a figure for monitoring."""
        with self._lock:
            return dict(self._passed_over)

    def knows(self, catalog: str) -> bool:
        """Whether a catalog of that name is configured."""
        return catalog in self._catalogs

    def require(self, catalog: str) -> None:
        """Raises :class:`NotFound` for a catalog that is not configured."""
        if catalog not in self._catalogs:
            known = ", ".join(sorted(self._catalogs)) or "none"
            raise NotFound(f"no catalog {catalog!r}", hint=f"configured catalogs: {known}")

    def catalog_of(self, prefix: str) -> str:
        """The catalog that a prefix stands for: as configured, or by its own name. Raises :class:`NotFound`."""
        catalog = self._prefixes.get(prefix, prefix)
        if catalog not in self._catalogs:
            raise NotFound(f"no catalog is known by the prefix {prefix!r}", hint="see events.prefixes")
        return catalog

    def take(self, events: Sequence[CommitEvent], channel: Channel, reporter: str = "") -> int:
        """Put events into the inbox, durably, and wake the loop; how many were new. ``reporter``: who tells of them.

        Each :data:`EVENTS_MAX` of them are one transaction. Raises :class:`NotFound`, before anything is kept, when one
        is of a catalog that is not configured, and what the store raises: then some may be kept, and all may be sent
        again.
        """
        for event in events:
            self.require(event.table_name.catalog)
        new = 0
        for start in range(0, len(events), EVENTS_MAX):
            new += self._tables.receive(*events[start : start + EVENTS_MAX], channel=channel, reporter=reporter)
            fault(Fault.EVENT_STORED)
        if new:
            self._wake()
        return new

    def look_at(self, name: TableName) -> None:
        """Have a table looked at soon, of which a property was changed. Raises as :meth:`take`."""
        self.take([CommitEvent(name)], Channel.HTTP, "icewright")

    def pass_over(self, what: str, count: int = 1) -> None:
        """Count what nothing is made of."""
        with self._lock:
            self._passed_over[what] += count
