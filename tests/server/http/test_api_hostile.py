"""Whatever strangers with a token send: a 4xx with a stable code, never a 5xx, and nothing changes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icewright.core.codec import to_json
from icewright.core.errors import InvalidMessage
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import PART_LENGTH_MAX, TableId, TableName
from icewright.model.work.jobs import TaskSpec
from icewright.model.work.tasks import LINE_LENGTH_MAX, LINES_MAX
from icewright.ports.store import PlanPlace
from icewright.web.messages import BODY_BYTES_MAX, REPORT_BYTES_MAX, decode_cursor, encode_cursor
from tests.builders.served import V1, Served, hello, problem
from tests.builders.specs import report_of, spec_of
from tests.cases import each_case
from tests.contracts.samples import HOSTILE_PARTS
from tests.contracts.stores import DATABASES, stores_on
from tests.doubles.clock import ManualClock
from tests.work.tasks.test_api_tasks import claimed

BODIED = ("/events/commits", "/optimizers", "/tasks/x/heartbeat", "/tasks/x/report", "/tables/x/check")
LISTS = ("/tables", "/tasks", "/events/inbox", "/groups", "/optimizers")
_SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module", params=DATABASES)
def served(request: pytest.FixtureRequest) -> Served:
    clock = ManualClock()
    return Served(clock, stores_on(request.param, request, clock).engine)


@pytest.fixture(scope="module")
def door() -> Served:
    """What is refused before a store is asked is refused the same over each: once is enough."""
    return Served()


def running(served: Served) -> TaskSpec:
    """A task that runs, the same one as long as it does."""
    for task in served.get("/tasks", state="running")["items"]:
        found = served.control.tasks.get(task["task_id"])
        if found.lease is not None and found.lease.optimizer_id == "optimizer-1":
            spec = spec_of(found.task_id)
            return replace(spec, attempt=found.attempt, fencing_token=found.lease.fencing_token)
    served.table(TableName("lake", ("logs",), "t"))
    return claimed(served)


texts = st.text(max_size=40) | st.sampled_from(["..", "%2e%2e", "a%00b", "' OR 1=1 --", "${x}", "\x00"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@_SETTINGS
@given(cursor=texts | st.binary(max_size=60).map(lambda b: b.hex()), path=st.sampled_from(LISTS))
def test_cursors_that_nobody_gave_out(served: Served, cursor: str, path: str) -> None:
    response = served.http.get(V1 + path, params={"cursor": cursor})
    if response.status_code != 200:
        problem(response, 400, "invalid-message")


@each_case("text", ["\x00", "a\x00b", "\ud800", "%", "'", "x" * 10_000])
def test_cursors_in_the_right_shape_with_words_that_databases_do_not_take(served: Served, text: str) -> None:
    uuid = served.table(TableName("lake", ("cursors",), f"t{len(text)}-{hash(text)}"), files=1)
    for path, after in (
        ("/tables", TableId(text, text)),
        ("/tasks", text),
        ("/plans/waiting", text),
        (f"/tables/{uuid}/plans", PlanPlace(2**63 - 1, text)),
        (f"/tables/{uuid}/partitions", Partition(0, text)),
        ("/groups", text),
        ("/optimizers", text),
    ):
        response = served.http.get(V1 + path, params={"cursor": encode_cursor(after)})
        assert response.status_code < 500, (path, response.text)


@given(after=st.builds(TableId, st.text(), st.text()))
def test_a_cursor_comes_back_as_what_it_was(after: TableId) -> None:
    assert decode_cursor(TableId, encode_cursor(after)) == after


@given(data=json_values)
def test_a_cursor_of_another_list_is_refused(data: Any) -> None:
    for cls in (TableId, Partition):
        with pytest.raises(InvalidMessage):
            decode_cursor(cls, encode_cursor(data))


@each_case("address", ["javascript:alert(1)", "data:text/html,x", "//there", "", " http://there"])
def test_an_optimizer_cannot_put_a_link_that_is_none_to_a_page(door: Served, address: str) -> None:
    introduced = {**to_json(hello()), "spark_ui_url": address}
    problem(door.http.post(f"{V1}/optimizers", json=introduced), 400, "invalid-message")
    assert door.get("/optimizers")["items"] == []


@each_case("limit", ["0", "-1", "1001", "9" * 400, "1e3", "x", "", "1.5"])
def test_limits_out_of_bounds(door: Served, limit: str) -> None:
    for path in LISTS:
        response = door.http.get(V1 + path, params={"limit": limit})
        assert "limit" in problem(response, 400, "invalid-request")["detail"]


@_SETTINGS
@given(
    segment=texts.filter(lambda text: text not in {"", ".", ".."}),  # which clients resolve
    path=st.sampled_from(
        [
            "/tables/{}",
            "/tables/{}/observations",
            "/tables/{}/partitions",
            "/groups/{}",
            "/plans/{}",
            "/plans/{}/approval",
            "/tasks/{}",
            "/tasks/{}/attempts",
            "/tasks/{}/logs",
            "/tasks/x/logs?attempt={}",
            "/tasks/x/attempts/{}",
            "/tasks/{}/cancel",
        ]
    ),
)
def test_ids_that_are_none(served: Served, segment: str, path: str) -> None:
    url = V1 + path.format(quote(segment, safe="", errors="surrogatepass"))
    response = served.http.post(url) if path.endswith("cancel") else served.http.get(url)
    assert 400 <= response.status_code < 500


@_SETTINGS
@given(path=st.sampled_from(BODIED), data=json_values)
def test_json_of_any_shape(door: Served, path: str, data: Any) -> None:
    response = door.http.post(V1 + path, content=json.dumps(data), headers={"Content-Type": "application/json"})
    problem(response, 400, "invalid-message")


@_SETTINGS
@given(path=st.sampled_from(BODIED), body=st.binary(max_size=200))
def test_bytes_that_are_no_json(door: Served, path: str, body: bytes) -> None:
    response = door.http.post(V1 + path, content=body, headers={"Content-Type": "application/json"})
    problem(response, 400, "invalid-message")


@each_case(
    "body",
    [
        "[" * 60_000,
        '{"a":' * 12_000,
        '{"table_name":"lake.db.t","snapshot_id":' + "9" * 5_000 + "}",
        '{"table_name":"lake.db.t","snapshot_id":NaN}',
        '{"table_name":"lake.db.t","snapshot_id":1e999}',
        b"\xff\xfe{\x00",
        b"",
    ],
)
def test_json_that_is_meant_to_hurt(door: Served, body: str | bytes) -> None:
    for path in BODIED:
        response = door.http.post(V1 + path, content=body, headers={"Content-Type": "application/json"})
        problem(response, 400, "invalid-message")


def test_a_kind_that_is_no_word(door: Served) -> None:
    kinds: tuple[Any, ...] = ([], {}, None, 1, "x" * 1_000_000)
    for kind in kinds:
        body = {
            "protocol_version": 1,
            "task_id": "x",
            "attempt": 1,
            "fencing_token": 1,
            "result": {"kind": kind},
            "receipts": [],
            "groups": [],
            "wall_ms": 1,
            "cpu_ms": 1,
        }
        refused = problem(door.http.post(f"{V1}/tasks/x/report", json=body), 400, "invalid-message")
        assert "$.result.kind" in refused["detail"]
        assert len(refused["detail"]) < 10_000


LINE = {"at": 1, "level": "info", "text": "began"}


@each_case(
    "log",
    [
        {"first": 0, "lines": [LINE]},
        {"first": -1, "lines": [LINE]},
        {"first": 2**31 - 1, "lines": [LINE, LINE]},
        {"first": 2**62, "lines": [LINE]},
        {"first": 1, "lines": []},
        {"first": 1, "lines": [LINE] * (LINES_MAX + 1)},
        *({"first": 1, "lines": [{**LINE, "at": at}]} for at in (-1, 2**62, 1.5, True, "now")),
        *({"first": 1, "lines": [{**LINE, "level": level}]} for level in ("", "loud", "INFO", None)),
        *(
            {"first": 1, "lines": [{**LINE, "text": text}]}
            for text in ("x" * (LINE_LENGTH_MAX + 1), "a\nb", "\x1b[31m", "\x00", "\u202e", "\ud800", "\u2028", None)
        ),
        {"first": 1, "lines": [{**LINE, "html": "<b>"}]},
        {"first": 1, "lines": [LINE], "last": 9},
        [LINE],
        "began",
    ],
)
def test_a_log_that_no_optimizer_sends_is_refused_with_all_that_it_came_with(served: Served, log: Any) -> None:
    spec = running(served)
    beat = {"fencing_token": spec.fencing_token, "progress": {"phase": "merging", "groups_done": 0, "groups_total": 1}}
    said = to_json(report_of(spec))
    for path, body in (("heartbeat", beat), ("report", said)):
        url = f"{V1}/tasks/{spec.task_id}/{path}"
        text = json.dumps({**body, "log": log})  # as ASCII: no client sends half a character
        response = served.http.post(url, content=text, headers={"Content-Type": "application/json"})
        problem(response, 400, "invalid-message")
    document = served.get(f"/tasks/{spec.task_id}")
    assert (document["task"]["state"], document["task"]["progress"]) == ("running", None)
    assert served.get(f"/tasks/{spec.task_id}/logs")["lines"] == []


def test_numbers_beyond_64_bits_never_reach_the_store(door: Served) -> None:
    for token in (2**63, -(2**63) - 1, 10**300):
        body = {"fencing_token": token, "progress": {"phase": "merging", "groups_done": 0, "groups_total": 1}}
        problem(door.http.post(f"{V1}/tasks/x/heartbeat", json=body), 400, "invalid-message")


def test_bodies_over_the_limit_are_refused(door: Served) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield b" " * (REPORT_BYTES_MAX // 16)

    headers = {"Content-Type": "application/json"}
    big = b" " * (BODY_BYTES_MAX + 1)
    for path in BODIED:
        if path != "/tasks/x/report":
            problem(door.http.post(V1 + path, content=big, headers=headers), 413, "too-large")
    problem(door.http.post(f"{V1}/tasks/x/report", content=endless(), headers=headers), 413, "too-large")


def test_a_report_may_be_larger_than_other_bodies(door: Served) -> None:
    body = b" " * (BODY_BYTES_MAX + 1) + b"{}"
    response = door.http.post(f"{V1}/tasks/x/report", content=body, headers={"Content-Type": "application/json"})
    problem(response, 400, "invalid-message")


@each_case("kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/json-patch+json"])
def test_bodies_of_another_type(door: Served, kind: str) -> None:
    for path in BODIED:
        response = door.http.post(V1 + path, content=b"{}", headers={"Content-Type": kind} if kind else {})
        problem(response, 415, "unsupported-media-type")


def test_wrong_methods_and_unknown_paths_are_problems_too(door: Served) -> None:
    refused = door.http.delete(f"{V1}/tables")
    problem(refused, 405, "method-not-allowed")
    assert refused.headers["allow"] == "GET"
    problem(door.http.get(f"{V1}/nothing"), 404, "not-found")
    problem(door.http.get(f"{V1}/tables/"), 404, "not-found")
    problem(door.http.get("/assets/..%2f..%2fapp.py"), 404, "not-found")
    problem(door.http.get("/ui/assets/..%2f..%2fapp.py"), 404, "not-found")
    problem(door.http.get("/ui/assets/index.html"), 404, "not-found")


@each_case("part", HOSTILE_PARTS)
def test_hostile_names_pass_through_every_answer_unharmed(served: Served, part: str) -> None:
    name = TableName("lake", (part,), part)
    uuid = served.table(name, files=6)
    listed = {table["uuid"]: table["name"] for table in served.get("/tables", limit=1000)["items"]}
    assert listed[uuid] == str(name)
    assert served.get(f"/tables/{uuid}")["summary"]["name"] == str(name)
    assert [task["table_name"] for task in served.get("/tasks", table=uuid)["items"]] == [
        {"catalog": "lake", "namespace": [part], "name": part}
    ]
    if len(part) < PART_LENGTH_MAX:
        body = json.dumps({"table_name": str(name), "snapshot_id": 1})
        response = served.http.post(f"{V1}/events/commits", content=body, headers={"Content-Type": "application/json"})
        assert response.status_code == 202
