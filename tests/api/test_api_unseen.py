"""T2: what an answer about one's own table says of tables, catalogs and optimizers that are somebody else's."""

from __future__ import annotations

import dataclasses

import pytest
from fastapi.testclient import TestClient

from icewright.domain.access import Role
from icewright.domain.errors import Unavailable
from icewright.domain.identity import NewToken
from icewright.domain.names import TableId, TableName
from icewright.domain.reasons import Reason
from icewright.ports.store import TableRecord
from tests.api.served import BY_CITY, EVENTS, V1, Served, problem

HIDDEN = TableName("lake", ("secret_acquisition",), "project_x")


def client_of(served: Served, role: Role, *scopes: str) -> TestClient:
    """A client with a token of its own."""
    given = served.access.give_token(
        NewToken(f"{role}-{'-'.join(scopes)}".replace("*", "all"), (role,), scopes), "owner"
    )
    return served.client({"Authorization": f"Bearer {given.token}"})


@pytest.fixture
def served() -> Served:
    """A table whose place overlaps that of one in another namespace, beside a catalog that is away."""
    served = Served()
    served.table()
    location = served.lake.load(EVENTS).location
    served.lake.create(HIDDEN, partition_fields=BY_CITY, properties={"write.data.path": f"{location}/data"})
    served.append(HIDDEN, "q")
    served.control.keeper.look(HIDDEN)
    served.control.keeper.look(EVENTS)
    failed = Reason(Unavailable.code, "other.secret_acquisition.project_y does not answer")
    served.control.registry.failed(TableName("lake", ("secret_acquisition",), "project_y"), failed)
    return served


class TestPlaces:
    def test_t2_others_are_not_named_to_who_may_not_read_them(self, served: Served) -> None:
        uuid = served.lake.load(EVENTS).table_id.uuid
        viewer = client_of(served, Role.VIEWER, "lake.db")
        for path in (f"/tables/{uuid}/place", f"/tables/{uuid}"):
            answered = viewer.get(V1 + path)
            place = answered.json() if path.endswith("place") else answered.json()["table"]["place"]
            assert [one["code"] for one in place["findings"]] == ["no-place", "shared-location"]
            assert "another table" in place["findings"][-1]["text"]
            assert {"another table", "another catalog"} <= {one["what"] for one in place["unknown"]}
            assert not [word for word in ("secret", "project", '"other"') if word in answered.text]

    def test_t2_they_are_to_who_may(self, served: Served) -> None:
        uuid = served.lake.load(EVENTS).table_id.uuid
        for scopes in (("*",), ("lake.db", "lake.secret_acquisition")):
            place = client_of(served, Role.VIEWER, *scopes).get(f"{V1}/tables/{uuid}/place").json()
            assert str(HIDDEN) in place["findings"][-1]["text"]
            assert "lake.secret_acquisition.project_y" in [one["what"] for one in place["unknown"]]


class TestSeveralTablesOfOneUuid:
    @pytest.fixture
    def twice(self, served: Served, monkeypatch: pytest.MonkeyPatch) -> str:
        """The uuid of a table that is in catalog ``other`` as well."""
        record = served.control.tables.record

        def also_there(table_id: TableId) -> TableRecord | None:
            if table_id.catalog != "other":
                return record(table_id)
            found = record(TableId("lake", table_id.uuid))
            other = TableName("other", ("db",), "events")
            return found and dataclasses.replace(found, table_id=table_id, name=other)

        monkeypatch.setattr(served.control.tables, "record", also_there)
        return served.lake.load(EVENTS).table_id.uuid

    def test_t2_only_catalogs_are_listed_that_one_may_read(self, served: Served, twice: str) -> None:
        for scope, listed in (("lake.db", "lake"), ("other", "other"), ("*", "lake, other")):
            answered = client_of(served, Role.VIEWER, scope).get(f"{V1}/tables/{twice}")
            assert problem(answered, 422, "rejected")["hint"] == f"add ?catalog=, one of {listed}"

    def test_t2_whoever_may_read_none_is_told_what_a_stranger_is(self, served: Served, twice: str) -> None:
        viewer = client_of(served, Role.VIEWER, "lake.secret_acquisition")
        there, nowhere = (viewer.get(f"{V1}/tables/{uuid}") for uuid in (twice, "x"))
        assert problem(there, 404, "not-found")["detail"] == problem(nowhere, 404, "not-found")["detail"]


def test_t2_optimizers_and_the_catalogs_that_they_reach_are_for_who_may_read_everything(served: Served) -> None:
    problem(client_of(served, Role.VIEWER, "lake.db").get(f"{V1}/optimizers"), 403, "forbidden")
    assert client_of(served, Role.VIEWER, "*").get(f"{V1}/optimizers").status_code == 200
