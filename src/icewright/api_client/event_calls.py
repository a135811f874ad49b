"""Requests about events: commits that are reported to the server, and messages and facts that it sends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

from icewright.api_client.connection import (
    API,
    SENDING_S,
    ApiCall,
    Connection,
    Page,
    part,
    query_pairs,
)
from icewright.api_client.stream import followed
from icewright.core.codec import to_json
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.tables import Json
from icewright.model.queries.queries import QueryRecord


class EventCalls(Connection):
    """Events and queries that come in, the feed, and messages to receivers."""

    def receivers(self) -> Page:
        """The receivers of messages: all of them on one page."""
        return Page(tuple(self.ask("GET", "/notifications")["items"]), None)

    def test_receiver(self, name: str) -> Json:
        """Send a receiver a message that says nothing: a ``Trial``. Raises ``NotFound``."""
        return self.ask("POST", f"/notifications/receivers/{part(name)}/test", timeout_s=SENDING_S)

    def dead_letters(self, *, limit: int = 100, cursor: str | None = None) -> Page:
        """Messages that were given up, the latest first."""
        return self.page("/notifications/dead-letters", {"limit": limit, "cursor": cursor})

    def retry_dead_letter(self, message_id: str) -> Json:
        """Have one sent again: ``{"message_id": ..., "receiver": ...}``. Raises ``NotFound`` and ``NotAllowed``."""
        return self.ask("POST", f"/notifications/dead-letters/{part(message_id)}/retry")

    def feed(
        self, *, kinds: Sequence[str] = (), under: Sequence[str] = (), limit: int = 100, cursor: str | None = None
    ) -> Page:
        """What happened, oldest first: a ``FactView`` each."""
        return self.page("/feed", {"kind": [*kinds], "under": [*under], "limit": limit, "cursor": cursor})

    def follow(
        self, *, kinds: Sequence[str] = (), under: Sequence[str] = (), after: int | None = None
    ) -> Iterator[Json]:
        """What happens from now on, or after a number, as it happens: a ``FactView`` each, until the caller stops.

        A stream that ends is taken up again where it ended. ``{"asked_after": ..., "begins_after": ...}`` comes where
        facts in between are not kept any more.
        """
        query = [*query_pairs({"kind": [*kinds], "under": [*under]})]
        url = f"{self.url}{API}/feed/stream" + (f"?{urlencode(query, errors='surrogatepass')}" if query else "")
        self.calls.append(ApiCall("GET", url, None))
        yield from followed(self._http, url, after)

    def events(self, *, limit: int = 100, cursor: str | None = None, **only: str | None) -> Page:
        """Events that came in, newest first: an ``EventView`` each; ``only`` by ``state``, ``channel`` or ``name``."""
        return self.page("/events/inbox", {**only, "limit": limit, "cursor": cursor})

    def delete_event(self, event_id: int) -> Json:
        """Forget an event: the ``EventView`` that it was. Raises ``NotFound``."""
        return self.ask("DELETE", f"/events/inbox/{event_id}")

    def notify(self, event: CommitEvent) -> Json:
        """Report a commit."""
        return self.ask("POST", "/events/commits", body=to_json(event))

    def send_queries(self, queries: Sequence[QueryRecord]) -> Json:
        """Say which queries ended: an ``Accepted``."""
        return self.ask("POST", "/queries", body={"queries": [to_json(query) for query in queries]})

    def queried_tables(self, *, weeks: int, limit: int) -> Page:
        """Tables that were read most: a ``TableReadsView`` each."""
        return self.page("/queries", {"weeks": weeks, "limit": limit})

    def table_queries(self, uuid: str, catalog: str, *, weeks: int, limit: int) -> Json:
        """The queries of a table: a ``TableQueries``. Raises ``NotFound``."""
        return self.ask("GET", f"/tables/{part(uuid)}/queries", {"catalog": catalog, "weeks": weeks, "limit": limit})

    def fleet_benefit(self, *, weeks: int = 8) -> Json:
        """What our work has brought and cost, over all tables: a ``FleetBenefit``."""
        return self.ask("GET", "/benefit", {"weeks": weeks})

    def table_benefit(self, uuid: str, catalog: str, *, weeks: int = 8) -> Json:
        """What our work on a table has brought and cost: a ``TableBenefit``. Raises ``NotFound``."""
        return self.ask("GET", f"/tables/{part(uuid)}/benefit", {"catalog": catalog, "weeks": weeks})

    def measurements(self, recommendation_id: str) -> Page:
        """What was measured of an accepted recommendation: a ``Measurement`` each, the newest first."""
        return self.page(f"/recommendations/{part(recommendation_id)}/measurements", {})

    def recommendations(
        self, *, table: str | None = None, catalog: str | None = None, only_open: bool = False, limit: int = 100
    ) -> Page:
        """Recommendations, the newest first: a ``RecommendationSummary`` each."""
        only = {"table": table, "catalog": catalog, "open": "true" if only_open else None}
        return self.page("/recommendations", {**only, "limit": limit})

    def recommendation(self, recommendation_id: str) -> Json:
        """One recommendation in full: a ``RecommendationView``. Raises ``NotFound``."""
        return self.ask("GET", f"/recommendations/{part(recommendation_id)}")

    def decide_recommendation(self, recommendation_id: str, decision: str, body: Json | None = None) -> Json:
        """``accept``, ``reject`` or ``snooze`` a recommendation: a ``RecommendationView``.

        Raises ``NotFound``, ``Conflict`` and ``NotAllowed``.
        """
        return self.ask("POST", f"/recommendations/{part(recommendation_id)}/{decision}", body=body)
