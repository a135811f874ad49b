from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from icewright.core.reasons import Reason
from icewright.events.reporting import GRACE_MS
from icewright.model.events.events import Channel, CommitEvent
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import Operation
from tests.builders.served import EVENTS, V1, Served, problem
from tests.cases import each_case

PATH = f"{V1}/events/commits"


def test_t13_an_inbox_that_is_full_is_said_to_be(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    receive = served.control.tables.receive
    monkeypatch.setattr(served.control.tables, "receive", partial(receive, waiting_max=1))
    bodies = [{"table_name": f"lake.db.invented_{number}", "snapshot_id": 1} for number in range(2)]
    assert served.http.post(f"{V1}/events/commits", json=bodies[0]).status_code == 202
    refused = served.http.post(f"{V1}/events/commits", json=bodies[1])
    assert "sweep" in problem(refused, 503, "unavailable")["hint"]
    assert refused.headers["Retry-After"]
    assert len(served.control.tables.inbox(9)) == 1


def test_an_event_is_taken_in_at_once_and_wakes_the_loop(served: Served) -> None:
    served.lake.available = False  # no catalog is asked
    served.control.loop._wake.clear()
    body = {"table_name": {"catalog": "lake", "namespace": ["a", "b"], "name": "t"}, "snapshot_id": 2**63 - 1}
    response = served.http.post(PATH, json=body)
    assert (response.status_code, response.json()) == (202, {"accepted": True, "repeated": False})
    assert served.control.loop._wake.is_set()
    (stored,) = served.control.tables.inbox(10)
    assert stored.event == CommitEvent(TableName("lake", ("a", "b"), "t"), 2**63 - 1)


def test_the_same_snapshot_twice_is_one_event(served: Served) -> None:
    body = {"table_name": str(EVENTS), "snapshot_id": 5}
    assert not served.post("/events/commits", body)["repeated"]
    assert served.post("/events/commits", {**body, "snapshot_id": "5"})["repeated"]
    assert len(served.control.tables.inbox(10)) == 1


def test_names_as_people_write_them_and_ids_as_javascript_can(served: Served) -> None:
    served.post(
        "/events/commits",
        {
            "table_name": "lake.`d.b`.`t``1`",
            "snapshot_id": "9223372036854775807",
            "table_uuid": "u",
            "operation": "append",
            "added_data_files": 3,
            "added_records": None,
        },
    )
    (stored,) = served.control.tables.inbox(10)
    name = TableName("lake", ("d.b",), "t`1")
    assert stored.event == CommitEvent(name, 2**63 - 1, "u", Operation.APPEND, 3, None)


def test_an_event_brings_the_table_into_the_loop(served: Served) -> None:
    served.lake.create(EVENTS)
    snapshot_id = served.append(EVENTS, "first")
    served.post("/events/commits", {"table_name": str(EVENTS), "snapshot_id": snapshot_id})
    served.control.loop.round()
    assert served.get("/tables")["items"][0]["snapshot_id"] == str(snapshot_id)


GOOD: dict[str, Any] = {"table_name": "lake.db.t", "snapshot_id": 1}


@each_case(
    ("change", "path"),
    [
        ({"table_name": "db.t"}, "$.table_name"),
        ({"table_name": "lake.`db.t"}, "$.table_name"),
        ({"table_name": ""}, "$.table_name"),
        ({"table_name": 7}, "$.table_name"),
        ({"table_name": {"catalog": "lake", "namespace": [], "name": "t"}}, "$.table_name"),
        ({"table_name": {"catalog": "lake", "namespace": ["x"], "name": "t", "x": 1}}, "$.table_name"),
        ({"table_name": {"catalog": "lake", "namespace": [1], "name": "t"}}, "$.table_name.namespace[0]"),
        ({"snapshot_id": -1}, "$.snapshot_id"),
        ({"snapshot_id": "9223372036854775808"}, "$.snapshot_id"),
        ({"snapshot_id": "1e3"}, "$.snapshot_id"),
        ({"snapshot_id": "٣"}, "$.snapshot_id"),
        ({"snapshot_id": True}, "$.snapshot_id"),
        ({"snapshot_id": 1.0}, "$.snapshot_id"),
        ({"operation": "explode"}, "$.operation"),
        ({"operation": ["append"]}, "$.operation"),
        ({"added_data_files": -1}, "$.added_data_files"),
        ({"table": "lake.db.t"}, "'table'"),
    ],
)
def test_bad_events_are_refused_with_the_path_of_the_field(change: dict[str, Any], path: str) -> None:
    served = Served()
    refused = problem(served.http.post(PATH, json={**GOOD, **change}), 400, "invalid-message")
    assert path in refused["detail"]
    assert served.control.tables.inbox(10) == []


def test_missing_fields_are_named() -> None:
    refused = problem(Served().http.post(PATH, json={"snapshot_id": 1}), 400, "invalid-message")
    assert "table_name" in refused["detail"]


def test_an_unknown_catalog_is_not_found_and_the_known_ones_are_named() -> None:
    refused = problem(Served().http.post(PATH, json={**GOOD, "table_name": "nope.db.t"}), 404, "not-found")
    assert "lake" in refused["hint"]


def test_many_events_are_one_request_all_of_them_or_none(served: Served) -> None:
    events: list[dict[str, Any]] = [{"table_name": "lake.db.t", "snapshot_id": number} for number in range(1_000)]
    assert served.post("/events/commits/batch", {"events": events}) == {"accepted": 1_000, "repeated": 0}
    again = {"events": [*events[:9], {"table_name": "lake.db.u"}], "channel": "outbox"}
    assert served.post("/events/commits/batch", again) == {"accepted": 10, "repeated": 9}
    stored = served.control.tables.inbox(2_000)
    assert len(stored) == 1_001
    assert (stored[-1].channel, stored[-1].event.snapshot_id) == (Channel.OUTBOX, None)
    for wrong, where in (
        ({"events": [*events[:3], {**GOOD, "snapshot_id": -1}]}, "$.events[3].snapshot_id"),
        ({"events": [*events, GOOD]}, "$.events"),
        ({"events": [], "channel": "kafka"}, "$.channel"),
        ({"events": {}}, "$.events"),
        ({"events": [], "x": 1}, "'x'"),
    ):
        assert where in problem(served.http.post(f"{PATH}/batch", json=wrong), 400, "invalid-message")["detail"]
    other = {"events": [{"table_name": "lake.db.v", "snapshot_id": 1}, {"table_name": "nope.db.t", "snapshot_id": 1}]}
    problem(served.http.post(f"{PATH}/batch", json=other), 404, "not-found")
    assert len(served.control.tables.inbox(2_000)) == 1_001


def test_t13_ten_thousand_events_are_taken_in_by_the_thousand_and_no_body_is_over_a_megabyte(served: Served) -> None:
    for first in range(0, 10_000, 1_000):
        events = [{"table_name": f"lake.db.t{n % 100}", "snapshot_id": n} for n in range(first, first + 1_000)]
        served.post("/events/commits/batch", {"events": events})
    assert served.get("/events/figures")["channels"][0]["waiting"] == 10_000
    longest = {"events": [{"table_name": f"lake.db.{'x' * 9_000}", "snapshot_id": n} for n in range(200)]}
    problem(served.http.post(f"{PATH}/batch", json=longest), 413, "too-large")


def test_figures_tell_how_late_events_are_and_which_commits_nobody_told_of(served: Served) -> None:
    uuid = served.table(files=0)
    told = served.append(EVENTS, "told")
    served.clock.advance(2_000)
    served.post("/events/commits", {"table_name": str(EVENTS), "snapshot_id": told})
    served.clock.advance(500)
    served.control.loop.turn()
    served.append(EVENTS, "untold")
    served.control.maintainer.look(EVENTS)
    reporting = served.get(f"/tables/{uuid}")["reporting"]
    assert (reporting["told"], len(reporting["untold"]), reporting["sweep_only"]) == ({"http": 1}, 1, 0)
    served.clock.advance(GRACE_MS)
    served.control.maintainer.look(EVENTS)
    figures = served.get("/events/figures")
    assert figures["channels"] == [
        {
            "channel": "http",
            "events": 1,
            "waiting": 0,
            "oldest_waiting_at": None,
            "commit_to_receipt": {"events": 1, "mean_ms": 2_000, "max_ms": 2_000},
            "receipt_to_look": {"events": 1, "mean_ms": 500, "max_ms": 500},
        }
    ]
    assert (figures["told"], figures["sweep_only"]) == (1, 1)
    assert [(one["told"], one["sweep_only"]) for one in figures["least_reported"]] == [(1, 1)]


def test_what_came_in_is_listed_newest_first_with_what_became_of_it(served: Served) -> None:
    uuid = served.table()
    name = str(EVENTS)
    for number in range(3):
        served.post("/events/commits", {"table_name": name, "snapshot_id": number})
    served.control.loop.round()
    served.lake.available = False
    served.post("/events/commits", {"table_name": "lake.db.unknown", "operation": "append"})
    served.control.loop.round()
    found, cursor = [], None
    while True:
        page = served.get("/events/inbox", limit=3, **({} if cursor is None else {"cursor": cursor}))
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert [(one["table"], one["state"]) for one in found] == [("lake.db.unknown", "waiting")] + [(name, "done")] * 3
    assert (found[0]["operation"], found[0]["snapshot_id"], found[0]["done_at"]) == ("append", None, None)
    assert [one["snapshot_id"] for one in found[1:]] == [2, 1, 0]
    assert found[1]["received_at"] <= found[1]["done_at"]
    assert {one["problem"] is None for one in found} == {True}
    tried = [(one["tries"], one["trouble"] and one["trouble"]["code"]) for one in found]
    assert tried == [(1, "unavailable"), (0, None), (0, None), (0, None)]
    assert (found[0]["tried_at"], found[1]["tried_at"]) == (served.clock.now(), None)
    for query, ids in (
        ({"state": "waiting"}, found[:1]),
        ({"state": "done"}, found[1:]),
        ({"name": name}, found[1:]),
        ({"channel": "kafka"}, []),
        ({"channel": "http", "name": "lake.db.unknown"}, found[:1]),
    ):
        assert served.get("/events/inbox", **query)["items"] == ids
    record = served.control.tables.record(TableId("lake", uuid))
    assert record is not None
    served.control.tables.save_record(replace(record, problem=Reason("damaged", "cut off")))
    assert {str(one["problem"] and one["problem"]["text"]) for one in served.get("/events/inbox")["items"]} == {
        "None",
        "cut off",
    }


def test_filters_that_are_none_are_refused(served: Served) -> None:
    for query in ({"state": "asleep"}, {"channel": "pigeon"}):
        problem(served.http.get(f"{V1}/events/inbox", params=query), 400, "invalid-request")
    problem(served.http.get(f"{V1}/events/inbox", params={"name": "x"}), 400, "invalid-name")
