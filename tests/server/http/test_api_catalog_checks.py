"""Whether a catalog answers, asked by an administrator: bounded, audited, and with nothing of the caller's in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from icewright.model.access.permissions import Role
from icewright.model.iceberg.names import TableName
from icewright.server.http.catalog_check_api import TABLES_MAX, CatalogChecks
from tests.builders.served import V1, Served, problem
from tests.identity.test_api_identities import entries, given


def test_an_administrator_is_told_that_a_catalog_answers_and_it_is_in_the_audit(served: Served) -> None:
    for number in range(3):
        served.lake.create(TableName("lake", ("db",), f"t{number}"))
    admin = given(served, "ada", Role.PLATFORM_ADMIN)
    found = admin.post(f"{V1}/catalogs/lake/check").json()
    assert (found["catalog"], found["answers"], found["tables"], found["has_more"]) == ("lake", True, 3, False)
    assert found["problem"] is None
    (entry,) = [entry for entry in entries(served) if entry.resource == "POST /catalogs/{catalog}/check"]
    assert (entry.principal, entry.detail["of"]) == ("token:ada", "catalog=lake")


def test_of_many_tables_it_looks_at_a_hundred_names(served: Served) -> None:
    for number in range(TABLES_MAX + 5):
        served.lake.create(TableName("lake", ("db",), f"t{number}"))
    found = served.post("/catalogs/lake/check")
    assert (found["tables"], found["has_more"]) == (TABLES_MAX, True)


def test_a_catalog_that_is_away_is_told_with_why(served: Served) -> None:
    served.lake.available = False
    found = served.post("/catalogs/lake/check")
    assert (found["answers"], found["tables"], found["problem"]["code"]) == (False, 0, "unavailable")


def test_one_that_hangs_is_waited_for_a_bounded_time_and_asked_once(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()

    def hang() -> Iterator[TableName]:
        goes_on.wait()
        yield TableName("lake", ("db",), "t")

    monkeypatch.setattr(served.lake, "tables", hang)
    checks = served.app.state.catalog_checks = CatalogChecks(seconds=0.05)
    try:
        found = served.post("/catalogs/lake/check")
        assert (found["answers"], found["problem"]["code"]) == (False, "no-answer")
        again = problem(served.http.post(f"{V1}/catalogs/lake/check"), 409, "conflict")
        assert "is being checked" in again["detail"]
        assert served.post("/catalogs/other/check")["answers"], "others are asked meanwhile"
    finally:
        goes_on.set()
    checks.seconds = 10
    for _ in range(100):
        answer = served.http.post(f"{V1}/catalogs/lake/check")
        if answer.status_code == 200:
            break
        threading.Event().wait(0.05)
    assert answer.json()["answers"]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.POLICY_ADMIN, Role.APPROVER])
def test_nobody_else_has_a_catalog_asked(served: Served, role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> Iterator[TableName]:
        raise AssertionError("it was asked")

    client = given(served, "ada", role)
    monkeypatch.setattr(served.lake, "tables", never)
    problem(client.post(f"{V1}/catalogs/lake/check"), 403, "forbidden")


def test_no_catalog_of_the_caller_s_own_is_asked(served: Served) -> None:
    problem(served.http.post(f"{V1}/catalogs/elsewhere/check"), 404, "not-found")
    asked = served.http.post(f"{V1}/catalogs/lake/check", params={"uri": "http://169.254.169.254/"})
    problem(asked, 400, "unknown-parameter")
