"""Who serves a store: servers say so again and again, leave in order, or are silent and then forgotten."""

from icewright.core.servers import BEAT_MS, SERVERS_KEPT_MS, SILENT_MS, Server, leader_of
from tests.contracts.stores import Stores
from tests.doubles.clock import ManualClock
from tests.narrowing import not_none

FIRST = Server("server-1", "http://10.0.0.1:7077", "0.1.0")
SECOND = Server("server-2", "http://10.0.0.2:7077", "0.1.0", epoch=2**40)


def test_a_server_is_there_since_it_came_and_was_heard_of_when_it_last_said_so(
    stores: Stores, clock: ManualClock
) -> None:
    stores.servers().beat(FIRST)
    came_at = clock.now()
    clock.advance(BEAT_MS)
    stores.servers().beat(SECOND)
    clock.advance(BEAT_MS)
    stores.servers().beat(FIRST)
    first, second = stores.servers().present()
    assert (first.server, first.started_at, first.seen_at) == (FIRST, came_at, came_at + 2 * BEAT_MS)
    assert (second.server, second.started_at, second.seen_at) == (SECOND, came_at + BEAT_MS, came_at + BEAT_MS)
    assert (first.now, second.now) == (clock.now(), clock.now())


def test_who_ends_in_order_is_there_no_more(stores: Stores) -> None:
    stores.servers().beat(FIRST)
    stores.servers().beat(SECOND)
    stores.servers().leave(FIRST.server_id)
    stores.servers().leave(FIRST.server_id)
    assert [seen.server for seen in stores.servers().present()] == [SECOND]


def test_who_dies_is_silent_and_forgotten_after_a_day(stores: Stores, clock: ManualClock) -> None:
    stores.servers().beat(SECOND)
    clock.advance(SILENT_MS + 1)
    stores.servers().beat(FIRST)
    assert [seen.is_silent for seen in stores.servers().present()] == [True, False]
    clock.advance(SERVERS_KEPT_MS)
    stores.servers().beat(FIRST)
    assert [seen.server for seen in stores.servers().present()] == [FIRST]


def test_the_latest_epoch_leads(stores: Stores) -> None:
    assert leader_of(stores.servers().present()) is None
    stores.servers().beat(FIRST)
    assert leader_of(stores.servers().present()) is None
    stores.servers().beat(SECOND)
    stores.servers().beat(Server("server-3", "http://10.0.0.3:7077", "0.1.0", epoch=2**40 + 1))
    leader = not_none(leader_of(stores.servers().present()))
    assert leader.server.server_id == "server-3"
    stores.servers().beat(Server("server-3", "http://10.0.0.3:7077", "0.1.0"))  # it follows by now
    leader = not_none(leader_of(stores.servers().present()))
    assert leader.server == SECOND
