from typing import Any

import pytest

from icewright.domain.events import CommitEvent
from icewright.domain.names import TableName
from icewright.domain.tables import Operation
from tests.api.served import EVENTS, V1, Served, problem

PATH = f"{V1}/events/commits"


def test_an_event_is_taken_in_at_once_and_wakes_the_loop() -> None:
    served = Served()
    served.lake.available = False  # no catalog is asked
    served.control.loop._wake.clear()
    body = {"table_name": {"catalog": "lake", "namespace": ["a", "b"], "name": "t"}, "snapshot_id": 2**63 - 1}
    response = served.http.post(PATH, json=body)
    assert (response.status_code, response.json()) == (202, {"accepted": True, "repeated": False})
    assert served.control.loop._wake.is_set()
    (stored,) = served.control.tables.inbox(10)
    assert stored.event == CommitEvent(TableName("lake", ("a", "b"), "t"), 2**63 - 1)


def test_the_same_snapshot_twice_is_one_event() -> None:
    served = Served()
    body = {"table_name": str(EVENTS), "snapshot_id": 5}
    assert not served.post("/events/commits", body)["repeated"]
    assert served.post("/events/commits", {**body, "snapshot_id": "5"})["repeated"]
    assert len(served.control.tables.inbox(10)) == 1


def test_names_as_people_write_them_and_ids_as_javascript_can() -> None:
    served = Served()
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


def test_an_event_brings_the_table_into_the_loop() -> None:
    served = Served()
    served.lake.create(EVENTS)
    snapshot_id = served.append(EVENTS, "first")
    served.post("/events/commits", {"table_name": str(EVENTS), "snapshot_id": snapshot_id})
    served.control.loop.round()
    assert served.get("/tables")["items"][0]["snapshot_id"] == snapshot_id


GOOD: dict[str, Any] = {"table_name": "lake.db.t", "snapshot_id": 1}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"table_name": "db.t"}, "$.table_name"),
        ({"table_name": "lake.`db.t"}, "$.table_name"),
        ({"table_name": ""}, "$.table_name"),
        ({"table_name": 7}, "$.table_name"),
        ({"table_name": {"catalog": "lake", "namespace": [], "name": "t"}}, "$.table_name"),
        ({"table_name": {"catalog": "lake", "namespace": ["x"], "name": "t", "x": 1}}, "$.table_name"),
        ({"table_name": {"catalog": "lake", "namespace": [1], "name": "t"}}, "$.table_name.namespace[0]"),
        ({"snapshot_id": None}, "$.snapshot_id"),
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
    refused = problem(Served().http.post(PATH, json={"table_name": "lake.db.t"}), 400, "invalid-message")
    assert "snapshot_id" in refused["detail"]


def test_an_unknown_catalog_is_not_found_and_the_known_ones_are_named() -> None:
    refused = problem(Served().http.post(PATH, json={**GOOD, "table_name": "nope.db.t"}), 404, "not-found")
    assert "lake" in refused["hint"]
