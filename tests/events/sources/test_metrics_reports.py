"""Iceberg's own reports, at the address that its REST specification has for them."""

from typing import Any
from urllib.parse import quote

from icewright.identity.authentication import Access, loopback_hosts
from icewright.model.access.permissions import Grant, Principal, Role, Scope
from icewright.model.events.events import Channel, CommitEvent
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Operation
from icewright.server.http.app import create_app
from tests.builders.served import HOST, PORT, TOKEN, Served, TestClient, problem
from tests.cases import each_case

COMMIT: dict[str, Any] = {
    "report-type": "commit-report",
    "table-name": "whatever.the.client.calls.it",
    "snapshot-id": 2**62 + 1,
    "sequence-number": 3,
    "operation": "append",
    "metrics": {
        "added-data-files": {"unit": "count", "value": 2},
        "added-records": {"unit": "count", "value": 70},
        "total-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 5},
    },
    "metadata": {"engine-name": "spark"},
}
SCAN = {"report-type": "scan-report", "table-name": "t", "snapshot-id": 1, "filter": True, "metrics": {}}


def served_with(prefixes: dict[str, str]) -> Served:
    served = Served()
    served.control.intake._prefixes = prefixes
    return served


def address(prefix: str, *levels: str, table: str) -> str:
    start = f"/v1/{quote(prefix, safe='')}/" if prefix else "/v1/"
    return f"{start}namespaces/{quote(chr(31).join(levels), safe='')}/tables/{quote(table, safe='')}/metrics"


def test_a_commit_report_is_answered_at_once_and_becomes_an_event() -> None:
    served = served_with({"": "lake"})
    served.lake.available = False  # no catalog is asked
    served.control.loop._wake.clear()
    answer = served.http.post(address("", "db", table="events"), json=COMMIT)
    assert (answer.status_code, answer.content) == (204, b"")
    assert served.control.loop._wake.is_set()
    (stored,) = served.control.tables.inbox(9)
    assert stored.channel is Channel.METRICS_REPORT
    name = TableName("lake", ("db",), "events")
    assert stored.event == CommitEvent(name, 2**62 + 1, None, Operation.APPEND, 2, 70)


@each_case(
    ("prefix", "levels", "table"),
    [
        ("lake", ("db",), "t"),
        ("warehouse/1", ("a", "b.c"), "t"),
        ("arn:aws:s3tables:eu:1:bucket/x", ("a/b", "\u00e4 `"), "namespaces/t/tables/%2F"),
    ],
)
def test_t8_names_are_decoded_once_and_a_slash_is_part_of_a_name(
    prefix: str, levels: tuple[str, ...], table: str
) -> None:
    served = served_with({} if prefix == "lake" else {prefix: "lake"})
    assert served.http.post(address(prefix, *levels, table=table), json=COMMIT).status_code == 204
    (stored,) = served.control.tables.inbox(9)
    assert stored.event.table_name == TableName("lake", levels, table)


def test_scans_and_what_nobody_knows_are_counted_and_dropped() -> None:
    served = served_with({"": "lake"})
    for body in (SCAN, SCAN, {"report-type": "of-the-future"}):
        assert served.http.post(address("", "db", table="t"), json=body).status_code == 204
    assert served.control.tables.inbox(9) == []
    assert served.control.intake.passed_over == {"scan-report": 2, "other-report": 1}


@each_case("change", [{"report-type": None}, {"snapshot-id": "5"}, {"snapshot-id": -1}, {"snapshot-id": True}])
def test_reports_of_no_known_shape_are_refused(change: dict[str, Any]) -> None:
    served = served_with({"": "lake"})
    refused = served.http.post(address("", "db", table="t"), json={**COMMIT, **change})
    problem(refused, 400, "invalid-message")
    assert served.control.tables.inbox(9) == []


def test_what_other_versions_add_or_leave_out_is_passed_over() -> None:
    served = served_with({"": "lake"})
    body = {"report-type": "commit-report", "snapshot-id": 7, "operation": "of-the-future", "metrics": [], "x": {}}
    assert served.http.post(address("", "db", table="t"), json=body).status_code == 204
    (stored,) = served.control.tables.inbox(9)
    assert stored.event == CommitEvent(TableName("lake", ("db",), "t"), 7)


def test_t1_strangers_and_unknown_prefixes_get_nothing_in() -> None:
    served = served_with({})
    path = address("", "db", table="t")
    problem(served.client().post(path, json=COMMIT), 401, "unauthenticated")
    problem(served.http.post(path, json=COMMIT), 404, "not-found")
    problem(served.http.post(address("nope", "db", table="t"), json=COMMIT), 404, "not-found")
    assert served.http.post("/v1/lake/namespaces/db/tables//metrics", json=COMMIT).status_code == 404
    problem(served.http.post("/v1/lake/namespaces/%FF/tables/t/metrics", json=COMMIT), 400, "invalid-name")
    problem(served.http.post("/v1/lake/namespaces/a%1F%1Fb/tables/t/metrics", json=COMMIT), 400, "invalid-name")
    assert served.control.tables.inbox(9) == []


def test_t2_whoever_may_not_report_of_a_table_does_not() -> None:
    served = served_with({})
    for scope, status in (("lake.db", 204), ("lake.other", 403)):
        access = Reporting(TOKEN, loopback_hosts("127.0.0.1", PORT), served.access.identities, served.audit)
        app = create_app(served.control, access)
        http = TestClient(app, f"http://{HOST}", headers={"Authorization": f"Bearer {scope}"})
        assert http.post(address("lake", "db", table="t"), json=COMMIT).status_code == status


def test_t2_whoever_may_not_report_everywhere_learns_of_no_catalog() -> None:
    served = served_with({"mirrored": "other"})
    access = Reporting(TOKEN, loopback_hosts("127.0.0.1", PORT), served.access.identities, served.audit)
    http = TestClient(create_app(served.control, access), f"http://{HOST}", headers={"Authorization": "Bearer lake.db"})
    said = []
    for prefix, namespace in (("nope", "db"), ("other", "db"), ("mirrored", "db"), ("other", "a\x1f\x1fb"), ("", "db")):
        document = problem(http.post(address(prefix, namespace, table="t"), json=COMMIT), 403, "forbidden")
        said.append((document["detail"], document["hint"]))
    assert len(set(said)) == 1
    problem(http.post(address("lake", "a\x1f\x1fb", table="t"), json=COMMIT), 400, "invalid-name")


class Reporting(Access):
    """Takes any token for that of a job that may report in the scope of that name."""

    def of_token(self, presented: str) -> Principal | None:
        """Who presents it."""
        return Principal(presented, (Grant(Role.REPORTER, Scope.parse(presented)),))
