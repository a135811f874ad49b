"""Queries over HTTP: who may report which, what becomes of them, and what tables show of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from icewright.core.codec import to_json
from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import QueryRecord
from icewright.queries.service import UNKNOWN_MS, QueryCounter
from icewright.queries.spool import QuerySpool
from tests.builders.queries import equal, query, read_of
from tests.builders.served import EVENTS, TOKEN, V1, Served, problem
from tests.doubles.clock import ManualClock

OTHERS = TableName("postgres", ("public",), "users")
RECORDED_AT = 1_795_250_000_000
"""After the samples of Trino, 2026-11-21."""
ICEBERG = replace(EVENTS, catalog="iceberg")
"""As an engine calls it."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    clock = ManualClock()
    with closing(QuerySpool(tmp_path / "queries.db", 1 << 20, clock)) as spool:
        yield Served(clock=clock, spool=spool)


def send(served: Served, *queries: QueryRecord) -> Any:
    return served.post("/queries", {"queries": [to_json(one) for one in queries]})


def test_queries_are_counted_by_template_and_column(served: Served) -> None:
    uuid = served.table()
    at = served.clock.now()
    by_user = [query(n, read_of(ICEBERG, equal("user_id", str(n))), at=at) for n in range(3)]
    by_city = query(9, read_of(EVENTS, equal("city", "x"), bytes_read=5_000), at=at, user="bob", succeeded=False)
    assert send(served, *by_user, by_city) == {"accepted": 4, "repeated": 0, "ignored": 0, "malformed": 0}
    assert served.get(f"/tables/{uuid}/queries")["total"]["queries"] == 0  # accepted, not yet counted
    served.control.queries.count()
    found = served.get(f"/tables/{uuid}/queries")
    assert (found["total"]["queries"], found["total"]["failed"], found["total"]["bytes_read"]) == (4, 1, 5_300)
    assert found["total"]["users"] == {"ann": 3, "bob": 1}
    assert found["opened_share"] == 0.3
    assert [(one["column"], one["queries"], one["operators"]) for one in found["columns"]] == [
        ("city", 1, {"eq": 1}),
        ("user_id", 3, {"eq": 3}),
    ]
    assert [one["text"] for one in found["templates"]] == ["city eq", "user_id eq"]
    assert served.get(f"/tables/{uuid}/queries", limit=1)["templates_left_out"] == 1
    (read,) = served.get("/queries")["items"]
    assert (read["table"], read["uuid"], read["queries"]) == (str(EVENTS), uuid, 4)


def test_a_literal_is_in_no_answer(served: Served) -> None:
    uuid = served.table()
    send(served, query(1, read_of(EVENTS, equal("name", "Ann Example, 1970")), at=served.clock.now()))
    served.control.queries.count()
    assert "Ann Example" not in str(served.get(f"/tables/{uuid}/queries"))


def test_what_reads_no_table_of_ours_is_ignored_and_what_comes_twice_is_one(served: Served) -> None:
    both = query(1, read_of(OTHERS), read_of(EVENTS))
    assert send(served, both, query(2, read_of(OTHERS)))["ignored"] == 1
    assert send(served, both) == {"accepted": 1, "repeated": 1, "ignored": 0, "malformed": 0}
    assert served.control.queries.spool.after(0, 9)[0].query.tables == (read_of(EVENTS),)


def test_queries_wait_a_minute_for_a_table_that_nobody_knows_yet(served: Served) -> None:
    queries = served.control.queries
    at = served.clock.now()
    send(served, query(1, read_of(EVENTS), at=at), query(2, read_of(EVENTS), at=at))
    assert queries.count() == 0
    served.table(EVENTS)
    assert queries.count() == 2
    assert served.get("/queries")["items"][0]["queries"] == 2
    send(served, query(3, read_of(TableName("lake", ("shop",), "never"))))
    served.clock.advance(UNKNOWN_MS)
    assert queries.count() == 1
    assert queries.received["any", "unknown-table"] == 1


def test_a_full_spool_is_said_with_when_to_try_again(tmp_path: Path) -> None:
    clock = ManualClock()
    with closing(QuerySpool(tmp_path / "small.db", 500, clock)) as spool:
        served = Served(clock=clock, spool=spool)
        body = {"queries": [to_json(query(n, read_of(EVENTS))) for n in range(20)]}
        refused = served.http.post(f"{V1}/queries", json=body)
        problem(refused, 429, "too-many-requests")
        assert refused.headers["Retry-After"]
        assert spool.figures().waiting == 0


def test_a_server_without_a_spool_says_so() -> None:
    served = Served()
    problem(
        served.http.post(f"{V1}/queries", json={"queries": [to_json(query(1, read_of(EVENTS)))]}), 422, "unsupported"
    )


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"queries": {}},
        {"queries": [1]},
        {"queries": [{"query_id": "x"}]},
        {"queries": [{**to_json(query(1)), "more": 1}]},
        {"queries": [{**to_json(query(1)), "tables": [{"table": {"catalog": "", "namespace": [], "name": ""}}]}]},
    ],
)
def test_what_is_no_record_is_refused_whole(served: Served, body: Any) -> None:
    response = served.http.post(f"{V1}/queries", json=body)
    assert response.status_code == 400, response.text
    assert served.control.queries.spool.figures().waiting == 0


def test_the_thread_counts_and_forgets(served: Served) -> None:
    served.table()
    send(served, *(query(n, read_of(EVENTS)) for n in range(5)))
    counter = QueryCounter(served.control.queries, None)
    served.control.queries.count()
    counter.forget()
    assert served.control.queries.spool.figures().waiting == 0
    assert served.control.queries.count() == 0


def test_a_transaction_counts_queries_of_so_many_reads(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few queries: each read may be a row of the store."""
    monkeypatch.setattr("icewright.queries.service.COUNTED_AT_ONCE", 5)
    served.table()
    at = served.clock.now()
    reads = [read_of(EVENTS, equal(f"column_{number}", "x")) for number in range(3)]
    send(served, *(query(number, *reads, at=at) for number in range(3)))
    assert [served.control.queries.count() for _ in range(4)] == [1, 1, 1, 0]


def samples() -> list[Any]:
    """What Trino 476 sent: two queries that ended well, one that failed, and one that began."""
    lines = (Path(__file__).parent / "samples" / "trino_476_events.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_trino_sends_its_events_as_they_are(served: Served) -> None:
    events = samples()
    served.clock.advance(RECORDED_AT - served.clock.now())
    served.control.queries._names = {"ice": "lake"}
    answers = [served.post("/queries/trino", event) for event in events]
    assert [one["malformed"] for one in answers] == [0] * len(events)
    found = [one.query for one in served.control.queries.spool.after(0, 9)]
    assert {query.engine for query in found} == {"trino 476"}
    assert any(read.table.name == "t" and read.filters for query in found for read in query.tables)
    again = [served.post("/queries/trino", event) for event in events]
    assert sum(one["repeated"] for one in again) == len(found)


def test_an_event_that_cannot_be_read_is_set_aside_and_not_asked_for_again(served: Served) -> None:
    event = samples()[0]
    event["metadata"]["queryState"] = 7
    assert served.post("/queries/trino", event)["malformed"] == 1
    ahead = samples()[0]  # by the clock of the tests, years
    assert served.post("/queries/trino", ahead)["malformed"] == 1
    assert served.control.queries.spool.figures().set_aside == 2
    assert served.http.post(f"{V1}/queries/trino", json=[event]).status_code == 400


def test_a_scan_report_is_a_query(served: Served) -> None:
    uuid = served.table()
    report = {
        "report-type": "scan-report",
        "table-name": "lake.db.events",
        "snapshot-id": 1,
        "filter": {"type": "eq", "term": "city", "value": "(hash-27fa7cc0)"},
        "schema-id": 0,
        "projected-field-ids": [1],
        "projected-field-names": ["city"],
        "metrics": {
            "result-data-files": {"unit": "count", "value": 3},
            "skipped-data-files": {"unit": "count", "value": 9},
        },
        "metadata": {"engine-name": "spark", "engine-version": "4.1.4"},
    }
    address = "/v1/lake/namespaces/db/tables/events/metrics"
    assert served.http.post(address, json=report).status_code == 204
    served.control.queries.count()
    found = served.get(f"/tables/{uuid}/queries")
    assert (found["opened_share"], [one["text"] for one in found["templates"]]) == (0.25, ["city eq"])


def test_metrics_say_what_came_in(served: Served) -> None:
    send(served, query(1, read_of(EVENTS)), query(2, read_of(OTHERS)))
    text = served.http.get(f"{V1}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text
    assert 'icewright_queries_received_total{result="accepted",source="trino"} 1.0' in text
    assert 'icewright_queries_received_total{result="ignored",source="trino"} 1.0' in text
    assert "icewright_queries_waiting 1.0" in text
