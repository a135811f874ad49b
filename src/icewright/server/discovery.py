"""Finds tables that nobody told us of, by the lists of the catalogs: a step of the loop that leads.

A table is looked at by the server whose bucket it is in, for the first time as well: a leader that made all first looks
would take hours for a hundred thousand tables, however many servers wait beside it. So tables of others go to them by
the inbox, a few at a time. What they cannot read stays unknown; the leader then looks itself, and tells the reason.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Final

from icewright.core.clock import Clock
from icewright.core.errors import InboxFull, InboxShareFull
from icewright.core.times import Instant
from icewright.model.events.events import Channel, CommitEvent
from icewright.model.iceberg.names import TableName
from icewright.ports.store import TableStore
from icewright.server.cluster.share import Part

INTERVAL_MS: Final = 10_000
"""How soon a catalog is asked again, at the soonest, for tables that nobody told us of."""
REST: Final = 20
"""How much longer than its listing took a catalog is then left alone: listing is at most a twentieth of its time."""
REPORTER: Final = "listing"
WAITING_MAX: Final = 1_000
"""Tables of a catalog that wait for their first look by others: more of them would only make others wait."""
WAITING_IN_ALL_MAX: Final = 10_000
"""Those of all catalogs, a tenth of the inbox: many catalogs that others cannot reach leave it to the writers."""
SENT_AT_ONCE: Final = 100
"""One transaction has the buckets of so many tables."""
LEFT_TO_OTHERS_MS: Final = 5 * 60_000
"""How long a table is left to the server that was told of it, before the leader looks at it as well."""


class Discovery:
    """What was found in the lists of catalogs and nobody has looked at."""

    def __init__(self, tables: TableStore, clock: Clock, part: Part, catalogs: int) -> None:
        """``catalogs`` is how many there are."""
        self._tables, self._clock, self._part = tables, clock, part
        self._share_max = max(1, min(WAITING_MAX, WAITING_IN_ALL_MAX // max(catalogs, 1)))
        # All by the wall clock, which may be set back: what was noted later than now was noted before that.
        self._listed: dict[str, tuple[Instant, int]] = {}
        self._found: defaultdict[str, deque[TableName]] = defaultdict(deque)
        self._of_others: defaultdict[str, deque[TableName]] = defaultdict(deque)
        self._sent: defaultdict[str, dict[TableName, Instant]] = defaultdict(dict)
        """By catalog, which tables others were told of, and when."""

    def is_due(self, catalog: str) -> bool:
        """Whether a catalog is to be asked for its list: also while others have much to do, who may not answer."""
        if self._found[catalog]:
            return False
        listed_at, rest_ms = self._listed.get(catalog, (None, 0))
        return not _within(rest_ms, listed_at, self._clock.now())

    def listed(self, catalog: str, names: frozenset[TableName], asked_at: Instant) -> frozenset[TableName]:
        """Take down the list of a catalog, and give its tables that no server has looked at."""
        try:
            unknown = self._tables.unknown(catalog, names)
        finally:  # a store that does not answer is no reason to ask the catalog again and again
            now = self._clock.now()
            self._listed[catalog] = asked_at, max(INTERVAL_MS, REST * max(0, now - asked_at))
        sent = {name: at for name in unknown if (at := self._sent[catalog].get(name)) is not None}
        left = {name for name, at in sent.items() if _within(LEFT_TO_OTHERS_MS, at, now)}
        self._sent[catalog] = sent
        self._of_others[catalog].clear()
        for name in sorted(unknown):
            if name in sent or self._part.owns(name):
                if name not in left:
                    self._found[catalog].append(name)
            else:
                self._of_others[catalog].append(name)
        return unknown

    def next(self, catalog: str) -> TableName | None:
        """A table of this server, whose share may have changed since the list was read; None where there is none."""
        found, sent = self._found[catalog], self._sent[catalog]
        while found:
            name = found.popleft()
            if name in sent or self._part.owns(name):
                return name
            self._of_others[catalog].append(name)
        return None

    def send(self, catalog: str) -> None:
        """Tell the owners of tables of them, as many as the catalog's share of the inbox has room for.

        Each catalog has a share of its own: one that others cannot reach does not hold up the rest. Where the inbox is
        full of other events, this server looks itself.
        """
        waiting, found = self._of_others[catalog], self._found[catalog]
        reporter = f"{REPORTER}:{catalog}"
        while waiting:
            names = [waiting[place] for place in range(min(SENT_AT_ONCE, self._share_max, len(waiting)))]
            events = map(CommitEvent, names)
            try:
                self._tables.receive(*events, channel=Channel.LISTING, reporter=reporter, share_max=self._share_max)
            except InboxShareFull:
                return
            except InboxFull:
                if found:
                    return
                found.extend(names)
            for name in names:
                self._sent[catalog][name] = self._clock.now()
                waiting.popleft()


def _within(span_ms: int, since: Instant | None, now: Instant) -> bool:
    return since is not None and since <= now < since + span_ms
