"""Lists of tables, catalogs and namespaces over HTTP: order, filters, pages, sums, and who sees what."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from icewright.feed.streams import EventStream, Pace, Streams
from icewright.model.access.permissions import OWNER, Role, Scope
from icewright.model.access.redacted_text import Words
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Reason
from icewright.ports.table_lists import TableQuery
from icewright.tables.lists_api import TableSource
from icewright.web.messages import encode_cursor
from tests.builders.served import EVENTS, HOUR_MS, V1, Served, problem
from tests.cases import each_case
from tests.identity.test_api_unseen import client_of
from tests.tables.test_api_tables import paged

BIG = TableName("lake", ("db",), "big")
DEEP = TableName("lake", ("db", "sub"), "deep")
OTHER = TableName("lake", ("web",), "clicks")


@pytest.fixture
def served() -> Served:
    """Four tables in three namespaces: more files the later they come; the last one only observed."""
    served = Served()
    served.table(EVENTS, files=6)
    served.table(BIG, files=12)
    served.table(DEEP, files=18)
    served.table(OTHER, files=24, mode="observe")
    return served


def names(found: Any) -> list[str]:
    return [item["name"] for item in found["items"]]


def test_tables_are_listed_in_any_order_and_each_page_goes_on_in_it(served: Served) -> None:
    everything = [str(EVENTS), str(BIG), str(DEEP), str(OTHER)]
    assert names(served.get("/tables")) == sorted(everything)
    for sort in ("bytes", "files", "small_files", "last_look"):
        assert names(served.get("/tables", sort=sort)) == everything, sort
        assert names(served.get("/tables", sort=f"-{sort}")) == everything[::-1], sort
    for sort in ("name", "-name", "health", "-health", "-files", "delete_files", "-last_task"):
        whole = served.get("/tables", sort=sort)["items"]
        assert paged(served, "/tables", sort=sort) == whole, sort


def test_of_tables_that_cannot_be_read_the_first_are_named_and_all_are_counted(served: Served) -> None:
    gone = [TableName("lake", ("db",), f"t{number:04}") for number in range(1_200)]
    served.control.loop.unreadable.update({name: Reason("unreadable", "damaged") for name in reversed(gone)})
    status = served.get("/status")
    assert [one["name"] for one in status["unreadable"]] == [str(name) for name in gone[:1_000]]
    assert status["unreadable_count"] == 1_200


@each_case(
    ("filters", "expected"),
    [
        ({"namespace": "lake.db"}, [BIG, EVENTS, DEEP]),
        ({"namespace": "lake.db.sub"}, [DEEP]),
        ({"catalog": "lake"}, [BIG, EVENTS, DEEP, OTHER]),
        ({"catalog": "other"}, []),
        ({"search": "CLICK"}, [OTHER]),
        ({"mode": "observe"}, [OTHER]),
        ({"mode": "auto", "namespace": "lake.web"}, []),
        ({"failing": "false"}, [BIG, EVENTS, DEEP, OTHER]),
        ({"failing": "true"}, []),
        ({"health_min": 100}, []),
        ({"health_max": 100}, [BIG, EVENTS, DEEP, OTHER]),
        ({"name": str(BIG), "mode": "observe"}, []),
        ({"name": str(BIG), "namespace": "lake.db"}, [BIG]),
    ],
)
def test_lists_are_filtered_and_totals_are_of_the_same_tables(
    served: Served, filters: dict[str, Any], expected: list[TableName]
) -> None:
    assert names(served.get("/tables", **filters)) == [str(name) for name in expected]
    if "name" not in filters:
        assert served.get("/tables/totals", **filters)["tables"] == len(expected)


def test_a_table_in_a_list_says_its_health_and_the_part_that_costs_most(served: Served) -> None:
    found = {item["name"]: item for item in served.get("/tables")["items"]}
    events = found[str(EVENTS)]
    assert events["health"]["worst"] == "files"
    assert events["health"]["score"] < 100
    assert events["namespace"] == "lake.db"
    assert (events["failures"], events["last_task_at"]) == (0, None)
    assert isinstance(events["snapshot_id"], str)
    shown = served.get(f"/tables/{events['uuid']}/health")
    assert shown["health"]["score"] == events["health"]["score"]
    assert sum(part["weight"] for part in shown["health"]["parts"]) == 100
    (files,) = (part for part in shown["health"]["parts"] if part["part"] == "files")
    assert files["reason"]["text"].startswith("6 of 6 data files are small")
    assert files["action"] == {"kind": "rewrite_data_files", "text": "Merge the small files"}
    assert shown["change"] is None


def test_a_change_of_health_is_explained_and_names_its_part(served: Served) -> None:
    uuid = served.get("/tables", name=str(EVENTS))["items"][0]["uuid"]
    before = served.get(f"/tables/{uuid}/health")["health"]["score"]
    served.append(EVENTS, "more", cities=30)
    served.control.maintainer.look(EVENTS)
    shown = served.get(f"/tables/{uuid}/health")
    assert shown["change"]["before"] == before
    assert shown["change"]["after"] == shown["health"]["score"]
    assert [one["part"] for one in shown["change"]["parts"]] == ["files"]


def test_catalogs_and_namespaces_have_the_sums_of_their_tables(served: Served) -> None:
    (lake,) = served.get("/catalogs")["items"]
    assert (lake["name"], lake["totals"]["tables"], lake["totals"]["files"]) == ("lake", 4, 60)
    assert lake["totals"]["health_min"] == min(item["health"]["score"] for item in served.get("/tables")["items"])
    assert sum(lake["totals"]["grades"].values()) == 4
    spaces = served.get("/namespaces", sort="-files")["items"]
    assert [(one["name"], one["totals"]["files"]) for one in spaces] == [
        ("lake.web", 24),
        ("lake.db.sub", 18),
        ("lake.db", 18),
    ]
    pages = paged(served, "/namespaces", sort="-tables")
    assert [one["name"] for one in pages] == ["lake.db", "lake.web", "lake.db.sub"]


@each_case(
    ("path", "params", "code"),
    [
        ("/tables", {"sort": "size"}, "invalid-request"),
        ("/tables", {"health_min": "101"}, "invalid-request"),
        ("/tables", {"mode": "off"}, "invalid-request"),
        ("/tables", {"namespace": "a`b"}, "invalid-name"),
        ("/tables", {"search": "nul\0"}, "invalid-name"),
        ("/tables", {"namespace": "other.db", "catalog": "lake"}, "invalid-message"),
        ("/tables", {"cursor": "x"}, "invalid-message"),
        (
            "/tables",
            {
                "cursor": encode_cursor(
                    {"sort": "bytes", "place": {"value": 1, "table_id": {"catalog": "a", "uuid": "b"}}}
                )
            },
            "invalid-message",
        ),
        (
            "/tables",
            {
                "sort": "bytes",
                "cursor": encode_cursor(
                    {"sort": "bytes", "place": {"value": "x", "table_id": {"catalog": "a", "uuid": "b"}}}
                ),
            },
            "invalid-message",
        ),
        (
            "/namespaces",
            {"sort": "bytes", "cursor": encode_cursor({"sort": "name", "rank": {"value": "x", "name": "y"}})},
            "invalid-message",
        ),
        ("/tables", {"sorted": "name"}, "unknown-parameter"),
        ("/tables/totals", {"limit": "3"}, "unknown-parameter"),
        ("/status", {"verbose": "1"}, "unknown-parameter"),
        ("/tasks", {"page": "2", "offset": "3"}, "unknown-parameter"),
    ],
)
def test_what_cannot_be_asked_is_refused(served: Served, path: str, params: dict[str, str], code: str) -> None:
    problem(served.http.get(V1 + path, params=params), 400, code)


def test_an_unknown_parameter_is_named_with_those_that_there_are(served: Served) -> None:
    said = problem(served.http.get(f"{V1}/tables", params={"sorted": "name"}), 400, "unknown-parameter")
    assert said["detail"] == "unknown query parameter: sorted"
    assert "sort" in said["hint"].split(", ")
    refused = served.http.post(f"{V1}/queue/pause", params={"force": "1"}, json={})
    problem(refused, 400, "unknown-parameter")


def test_who_may_read_a_namespace_sees_and_sums_that_alone(served: Served) -> None:
    client = client_of(served, Role.VIEWER, "lake.db.sub")
    assert names(client.get(f"{V1}/tables").json()) == [str(DEEP)]
    assert client.get(f"{V1}/tables/totals").json()["tables"] == 1
    assert [one["name"] for one in client.get(f"{V1}/namespaces").json()["items"]] == ["lake.db.sub"]
    assert client.get(f"{V1}/tables", params={"namespace": "lake.web"}).json()["items"] == []
    assert client.get(f"{V1}/tables", params={"name": str(BIG)}).json()["items"] == []
    problem(client.get(f"{V1}/tables", params={"catalog": "other"}), 404, "not-found")


def test_a_series_has_a_point_for_each_hour_in_which_something_changed(served: Served) -> None:
    uuid = served.get("/tables", name=str(EVENTS))["items"][0]["uuid"]
    for number in range(4):
        served.clock.advance(HOUR_MS // 2)
        served.append(EVENTS, f"later-{number}")
        served.control.maintainer.look(EVENTS)
    served.clock.advance(5 * HOUR_MS)
    served.control.maintainer.look(EVENTS)
    points = served.get(f"/tables/{uuid}/series")["items"]
    assert [point["files"] for point in points] == [6, 7, 9, 10]
    assert points == sorted(points, key=lambda point: int(point["at"]))
    assert all(point["health"] is not None for point in points)


def test_the_stream_tells_of_tables_that_changed_and_of_nothing_else(served: Served) -> None:
    lists = served.control.tables.lists
    seen = lists.last_change()
    source = TableSource(lists, served.app.state.lookups, TableQuery(within=(Scope("lake", ("db",)),)))
    assert source.after(seen, 10) == ([], seen)
    served.control.maintainer.look(EVENTS)  # nothing new
    assert source.after(seen, 10) == ([], seen)
    served.append(EVENTS, "more")
    served.append(OTHER, "more")
    served.control.maintainer.look(OTHER)
    served.control.maintainer.look(EVENTS)
    events, through = source.after(seen, 10)
    assert [event.document["name"] for event in events] == [str(EVENTS)]
    assert events[0].document["figures"]["data_files"] == 7
    assert through == lists.last_change()


def test_a_client_that_comes_back_gets_each_changed_table_once(served: Served) -> None:
    lists = served.control.tables.lists
    source = TableSource(lists, served.app.state.lookups, TableQuery())
    sent: list[str] = []

    async def send(message: Any) -> None:
        sent.append(message.get("body", b"").decode())

    async def receive() -> Any:
        await anyio.sleep_forever()

    streams = Streams(served.control.tasks.feed, Words(()), Pace(look_s=0.01, life_s=0.1))
    stream = EventStream(streams, source, 0, lambda: True)
    anyio.run(stream, {"type": "http", "path": "/", "icewright.principal": OWNER}, receive, send)
    text = "".join(sent)
    assert text.count("event: table\n") == 4
    assert f"id: {lists.last_change()}\n" in text
    assert "event: gap" not in text
