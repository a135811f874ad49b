"""Reporters of one namespace: what they send stops no catalog, delays nobody else's events, and fills no inbox."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.errors import InvalidMessage, InvalidName, Unavailable
from icewright.model.access.identity import NewToken
from icewright.model.access.permissions import Role
from icewright.model.events.events import Channel, CommitEvent, EventState
from icewright.model.events.messages import EVENTS_MAX, SHARE_MAX, TRIES_MAX, parse_message
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from icewright.ports.inbox import EventFilter
from icewright.server.loop import BATCH_MAX
from icewright.store.engine import open_store
from tests.builders.served import EVENTS, V1, Served, TestClient, problem
from tests.conftest import CAMPAIGN
from tests.doubles.clock import ManualClock
from tests.lakes.stores import sqlite_store

VICTIM = TableName("lake", ("sales",), "orders")
POISON = TableName("lake", ("ns0",), "poison")
NO_NAMES = ("\ud800", "a\udfffb", "\0", "a\0b")
FLOOD = SHARE_MAX if CAMPAIGN else 2_000
"""Events of one table; the finding had 20,000."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A real application over a store on disk, whose catalog is a double that can fail at one name."""
    engine = open_store(sqlite_store(tmp_path / "store.db"))
    yield Served(ManualClock(), engine)
    engine.dispose()


def reporter(served: Served, name: str, *scopes: str) -> TestClient:
    given = served.access.give_token(NewToken(name, (Role.REPORTER,), scopes), "owner")
    return served.client({"Authorization": f"Bearer {given.token}"})


def report(client: TestClient, body: Any, path: str = "/events/commits") -> Any:
    headers = {"Content-Type": "application/json"}
    return client.post(V1 + path, content=json.dumps(body).encode("ascii"), headers=headers)


def figure(said: str) -> None:
    print(said)  # noqa: T201 - shown by `pytest -s`


def turns(served: Served, seconds: int) -> None:
    for _ in range(seconds):
        served.control.loop.turn()
        served.clock.advance(1_000)


@pytest.mark.parametrize("part", NO_NAMES, ids=ascii)
def test_s1_a_name_that_no_catalog_can_take_is_refused_by_every_channel(served: Served, part: str) -> None:
    mallory = reporter(served, "mallory", "lake.ns0")
    whole = {"catalog": "lake", "namespace": ["ns0"], "name": part}
    for name in (f"lake.ns0.`{part}`", whole, {**whole, "namespace": ["ns0", part], "name": "t"}):
        event = {"table_name": name, "snapshot_id": 1}
        for said in (report(mallory, event), report(mallory, {"events": [event]}, "/events/commits/batch")):
            assert said.status_code == 400, said.text
        outbox = {"events": [event], "channel": "outbox"}
        assert report(mallory, outbox, "/events/commits/batch").status_code == 400
        with pytest.raises((InvalidMessage, InvalidName)):
            parse_message(json.dumps(event).encode())
    encoded = "".join(f"%{byte:02x}" for byte in part.encode("utf-8", "surrogatepass"))
    metrics = f"/v1/lake/namespaces/ns0/tables/{encoded}/metrics"
    body = {"report-type": "commit-report", "snapshot-id": 1}
    assert mallory.post(metrics, json=body).status_code == 400
    with pytest.raises(InvalidName):  # what a metastore says, and what a person types
        TableName("lake", ("ns0",), part)
    for path in ("/events/inbox", "/tables"):
        assert served.http.get(f"{V1}{path}?name=lake.ns0.%60{encoded}%60").status_code < 500
    assert served.control.tables.received(EventFilter(), limit=9) == []


def test_s1_what_cannot_be_asked_says_nothing_of_the_catalog(tmp_path: Path) -> None:
    """A name that got around the door is not taken for a catalog that is away."""
    database = tmp_path / "catalog.db"
    with sqlite3.connect(database) as connection:
        connection.execute(
            "create table iceberg_tables (catalog_name text, table_namespace text, table_name text, "
            "metadata_location text, previous_metadata_location text, iceberg_type text)"
        )
    catalog = PyIcebergCatalog(CatalogEntry("lake", CatalogKind.SQL, f"sqlite:///{database}", str(tmp_path)))
    name = TableName("lake", ("ns0",), "t")
    object.__setattr__(name, "name", "\ud800")
    with pytest.raises(InvalidName):
        catalog.load(name)


@pytest.mark.parametrize("known", [False, True], ids=["invented", "known"])
def test_s1_one_name_at_which_the_catalog_fails_stops_no_other(
    served: Served, monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    """It is tried behind others, parked after some tries, shown, deleted with a word in the audit, reported again."""
    served.table(VICTIM)
    if known:
        served.table(POISON)
    served.control.loop.turn()
    load, asked = served.lake.load, Counter[TableName]()

    def failing(name: TableName) -> Any:
        asked[name] += 1
        if name == POISON:
            raise Unavailable("500 Internal Server Error")
        return load(name)

    monkeypatch.setattr(served.lake, "load", failing)
    mallory = reporter(served, "mallory", "lake.ns0")
    assert report(mallory, {"table_name": str(POISON), "snapshot_id": 1}).status_code == 202
    delays = []
    for number in range(12):
        snapshot = served.append(VICTIM, f"more-{number}")
        served.control.intake.take([CommitEvent(VICTIM, snapshot)], Channel.HTTP, "token:alice")
        began = served.clock.now()
        while served.control.tables.received(EventFilter(EventState.WAITING, table_name=VICTIM), limit=1):
            turns(served, 1)
        delays.append(served.clock.now() - began - 1_000)
        turns(served, 5)
    delayed = sum(delay > 0 for delay in delays)
    figure(f"events of others delayed: {delayed} of {len(delays)}, {max(delays)} ms; asked {asked[POISON]} times")
    assert delayed <= 1
    (parked,) = served.get("/events/inbox", state="parked")["items"]
    assert (parked["table"], parked["tries"], parked["trouble"]["code"]) == (str(POISON), TRIES_MAX, "unavailable")
    path = f"{V1}/events/inbox/{parked['event_id']}"
    assert mallory.delete(path).status_code == 403
    assert served.http.delete(path).json()["state"] == "parked"
    problem(served.http.delete(path), 404, "not-found")
    said = [entry["action"] for entry in served.get("/audit")["items"]]
    assert "event.deleted" in said
    assert report(mallory, {"table_name": str(POISON), "snapshot_id": 1}).json()["repeated"] is False


def test_s1_a_catalog_that_is_really_away_parks_nothing(served: Served) -> None:
    served.table(VICTIM)
    served.control.loop.turn()
    served.lake.available = False
    served.control.intake.take([CommitEvent(VICTIM, served.append(VICTIM, "x"))], Channel.HTTP)
    turns(served, 90)
    served.lake.available = True
    turns(served, 30)
    assert served.control.tables.received(EventFilter(EventState.PARKED), limit=9) == []
    assert served.control.tables.inbox(9) == []


def test_s4_a_flood_of_one_table_delays_no_other(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """One look answers all events of a table that came before it, and one reporter fills no more than its share."""
    served.table(VICTIM)
    served.table(POISON)
    served.control.loop.turn()
    mallory, alice = reporter(served, "mallory", "lake.ns0"), reporter(served, "alice", "lake.sales")
    for start in range(0, FLOOD, EVENTS_MAX):
        events = [{"table_name": str(POISON), "snapshot_id": number} for number in range(start, start + EVENTS_MAX)]
        assert report(mallory, {"events": events}, "/events/commits/batch").status_code == 202
    assert report(alice, {"table_name": str(VICTIM), "snapshot_id": 1}).status_code == 202
    looks, look = Counter[TableName](), served.control.maintainer.look
    seen_s: dict[TableName, float] = {}

    def counted(name: TableName, **how: Any) -> Any:
        looks[name] += 1
        found = look(name, **how)
        seen_s.setdefault(name, time.monotonic() - began_s)
        return found

    monkeypatch.setattr(served.control.maintainer, "look", counted)
    began_s = time.monotonic()
    served.control.loop.turn()
    figure(f"events of others delayed: {seen_s[VICTIM] * 1000:.0f} ms behind {FLOOD:,} of another table (was 14.7 s)")
    assert looks == {POISON: 1, VICTIM: 1}
    assert served.control.tables.inbox(9) == []
    assert seen_s[VICTIM] < 5


def test_s4_tables_of_one_reporter_take_turns_with_those_of_others(served: Served) -> None:
    tables = served.control.tables
    many = [CommitEvent(TableName("lake", ("ns0",), f"t{number}"), 1) for number in range(3 * BATCH_MAX)]
    tables.receive(*many, reporter="token:mallory")
    tables.receive(CommitEvent(VICTIM, 1), CommitEvent(EVENTS, 1), reporter="token:alice")
    assert tables.reported_tables(4) == [many[0].table_name, VICTIM, many[1].table_name, EVENTS]
    assert tables.reported_tables(4, without={"lake"}) == []


def test_s4_a_reporter_fills_its_share_and_no_more(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    receive = served.control.tables.receive
    monkeypatch.setattr(
        served.control.tables, "receive", lambda *events, **how: receive(*events, **{**how, "share_max": 50})
    )
    mallory, alice = reporter(served, "mallory", "lake.ns0"), reporter(served, "alice", "lake.sales")
    events = [{"table_name": str(POISON), "snapshot_id": number} for number in range(50)]
    assert report(mallory, {"events": events}, "/events/commits/batch").status_code == 202
    refused = report(mallory, {"table_name": str(POISON), "snapshot_id": 51})
    document = problem(refused, 429, "too-many-requests")
    assert "share of the inbox" in document["detail"]
    assert int(refused.headers["retry-after"]) > 0
    assert report(mallory, {"table_name": str(POISON), "snapshot_id": 1}).json()["repeated"] is True
    assert report(alice, {"table_name": str(VICTIM), "snapshot_id": 1}).status_code == 202
    served.control.loop.turn()
    assert report(mallory, {"table_name": str(POISON), "snapshot_id": 51}).status_code == 202
