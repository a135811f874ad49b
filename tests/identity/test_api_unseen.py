"""T2: what an answer about one's own table says of tables, catalogs and optimizers that are somebody else's."""

from __future__ import annotations

import dataclasses

import pytest

from icewright.core.errors import NotAllowed, Unavailable
from icewright.core.reasons import Reason
from icewright.feed.streams import Pace, Streams
from icewright.model.access.identity import NewToken
from icewright.model.access.permissions import Role
from icewright.model.access.redacted_text import Words
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.events.feed import Fact, FactKind
from icewright.model.iceberg.names import TableId, TableName
from icewright.ports.store import TableRecord, WaitingPlan
from tests.builders.served import BY_CITY, EVENTS, V1, Served, TestClient, hello, problem

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
    served.control.maintainer.look(HIDDEN)
    served.control.maintainer.look(EVENTS)
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


class TestLists:
    """Of two tables in two namespaces, each with a plan, a task and an event; what somebody gets who may read one."""

    @pytest.fixture
    def two(self) -> Served:
        served = Served()
        for name in (EVENTS, HIDDEN):
            uuid = served.table(name)
            served.control.loop.unreadable[dataclasses.replace(name, name="broken")] = Reason("damaged", "it is")
            waits = served.post(f"/tables/{uuid}/plans", ExpireSnapshotsRequest("PT0S", 1))
            plan = served.control.tables.plan(waits["plan_id"])
            kind = ActionKind(plan.actions[0].kind)
            reason = Reason("beyond-budget", f"more than a day's worth, as that of {HIDDEN}")
            served.control.tables.wait(WaitingPlan(plan.plan_id, plan.table_id, name, kind, reason, 1))
            served.post("/events/commits", {"table_name": str(name), "snapshot_id": 1})
        served.control.dispatcher.hello(dataclasses.replace(hello("of-both"), catalogs=("lake", "other")))
        served.control.dispatcher.hello(dataclasses.replace(hello("of-other"), catalogs=("other",)))
        return served

    @pytest.mark.parametrize(
        "path",
        ["/tables", "/tasks", "/plans/waiting", "/feed", "/quarantine", "/status", "/events/figures", "/events/inbox"],
    )
    def test_t2_a_list_has_what_one_may_read_and_says_nothing_of_others(self, two: Served, path: str) -> None:
        whole = two.http.get(V1 + path).text
        answered = client_of(two, Role.VIEWER, "lake.db").get(V1 + path)
        assert answered.status_code == 200
        assert not [word for word in ("secret", "project") if word in answered.text]
        if path not in {"/quarantine", "/events/figures"}:
            assert "secret_acquisition" in whole
        nothing = client_of(two, Role.VIEWER, "lake.nowhere").get(V1 + path).text
        assert not [word for word in ("secret", "project", "events", "other") if word in nothing]

    def test_t2_pages_are_full_and_end_with_what_one_may_read(self, two: Served) -> None:
        for number in range(5):
            two.table(TableName("lake", ("db" if number % 2 else "secret_acquisition",), f"t{number}"))
        viewer = client_of(two, Role.VIEWER, "lake.db")
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            document = viewer.get(f"{V1}/tables?limit=1{cursor and f'&cursor={cursor}'}").json()
            assert len(document["items"]) == 1
            found += [one["name"] for one in document["items"]]
            cursor = document["next_cursor"]
        assert sorted(found) == ["lake.db.events", "lake.db.t1", "lake.db.t3"]

    def test_t2_totals_count_what_one_may_read(self, two: Served) -> None:
        totals = [
            sum(client_of(two, Role.VIEWER, scope).get(f"{V1}/status").json()["tasks"].values())
            for scope in ("*", "lake", "lake.db", "lake.nowhere", "other")
        ]
        assert totals == [2, 2, 1, 0, 0]

    def test_t2_a_name_or_a_uuid_that_is_not_ones_own_is_as_none(self, two: Served) -> None:
        viewer = client_of(two, Role.VIEWER, "lake.db")
        assert viewer.get(f"{V1}/tables?name={HIDDEN}").json()["items"] == []
        assert len(viewer.get(f"{V1}/tables?name={EVENTS}").json()["items"]) == 1
        theirs, nobodys = two.lake.load(HIDDEN).table_id.uuid, "x"
        refused = [problem(viewer.get(f"{V1}/tasks?table={one}"), 404, "not-found") for one in (theirs, nobodys)]
        assert refused[0]["detail"] == refused[1]["detail"]
        there, nowhere = (viewer.get(f"{V1}/tables?catalog={one}") for one in ("other", "nowhere"))
        assert problem(there, 404, "not-found")["hint"] == problem(nowhere, 404, "not-found")["hint"] == ""

    def test_t2_optimizers_are_listed_that_reach_ones_catalogs_and_no_others_are_named(self, two: Served) -> None:
        viewers = {scope: client_of(two, Role.VIEWER, scope) for scope in ("*", "lake.db", "other", "nowhere")}
        for path in ("/optimizers", "/status"):
            seen = {}
            for scope, viewer in viewers.items():
                document = viewer.get(V1 + path).json()
                found = document["items" if path == "/optimizers" else "optimizers"]
                seen[scope] = {one["hello"]["optimizer_id"]: one["hello"]["catalogs"] for one in found}
            assert seen == {
                "*": {"of-both": ["lake", "other"], "of-other": ["other"]},
                "lake.db": {"of-both": ["lake"]},
                "other": {"of-both": ["other"], "of-other": ["other"]},
                "nowhere": {},
            }

    def test_t2_submitters_are_named_that_reach_ones_catalogs_and_no_others_are_named(self, two: Served) -> None:
        for name, catalogs in (("of-both", ["lake", "other"]), ("of-other", ["other"])):
            two.get("/backlog", resource_group="default", catalog=catalogs, submitter_id=name)
        seen = {}
        for scope in ("*", "lake.db", "nowhere"):
            found = client_of(two, Role.VIEWER, scope).get(f"{V1}/status").json()["submitters"]
            seen[scope] = {
                one["submitter"]["submitting"]["submitter_id"]: one["submitter"]["catalogs"] for one in found
            }
        assert seen == {
            "*": {"of-both": ["lake", "other"], "of-other": ["other"]},
            "lake.db": {"of-both": ["lake"]},
            "nowhere": {},
        }


class TestReasons:
    """What is stored once for all readers, and names a table of another namespace."""

    @pytest.fixture
    def told(self, served: Served) -> Served:
        record = served.control.tables.record_by_name(EVENTS)
        assert record is not None
        reason = Reason("shared-uuid", f"it is also known as {HIDDEN}")
        served.control.tasks.feed.tell(Fact(FactKind.PARKED, "lake", reason, record.table_id, EVENTS), "1")
        served.control.tables.save_record(dataclasses.replace(record, problem=reason))
        return served

    @pytest.mark.parametrize("path", ["/tables", "/feed", "/feed/stream", "/tables/stream"])
    def test_t2_another_table_is_named_to_who_may_read_it(self, told: Served, path: str) -> None:
        told.app.state.streams = Streams(told.control.tasks.feed, Words(["lake", "other"]), Pace(life_s=0.2))
        for scopes, words in (
            (("lake.db",), "it is also known as another table"),
            (("lake.db", "lake.secret_acquisition"), f"it is also known as {HIDDEN}"),
            (("*",), f"it is also known as {HIDDEN}"),
        ):
            said = client_of(told, Role.VIEWER, *scopes).get(V1 + path, headers={"Last-Event-ID": "0"}).text
            assert f'"text":"{words}"' in said
            assert ("secret" in said) is ("another table" not in words)

    def test_t2_nor_does_a_refusal_name_it(self, told: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise NotAllowed(f"not beside {HIDDEN}", hint=f"drop {HIDDEN}")

        monkeypatch.setattr(told.control.maintainer, "look", refuse)
        uuid = told.lake.load(EVENTS).table_id.uuid
        answered = client_of(told, Role.OPERATOR, "lake.db").post(f"{V1}/tables/{uuid}/look")
        document = problem(answered, 409, "not-allowed")
        assert (document["detail"], document["hint"]) == ("not beside another table", "drop another table")
        assert len(answered.content) == int(answered.headers["content-length"])
