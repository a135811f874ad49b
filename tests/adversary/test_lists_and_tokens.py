"""Lists cost as much for a thousand rows as for ten, and nobody gets more by a token than was said."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from sqlalchemy import Engine, event, insert

from icewright.configuration.load import load_config
from icewright.core.codec import to_json
from icewright.core.errors import InvalidConfiguration
from icewright.maintenance.dispatch import optimizers_api
from icewright.model.actions.actions import ActionKind
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.names import TableId, TableName
from icewright.notifications.wiring import open_delivery, unusable_receivers
from icewright.ports.store import WaitingPlan
from icewright.store.engine import open_store
from icewright.store.schema import tables
from icewright.store.table_rows import record_row
from icewright.work.store.table_lists import list_table
from tests.app.test_startup import python
from tests.builders.command_line import write_configuration
from tests.builders.served import EVENTS, V1, Served, hello, problem
from tests.contracts.samples import REASON, new_task
from tests.doubles.clock import ManualClock
from tests.lakes.sqlite import make_lake

FEW, MANY = 10, 1_000


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    yield engine
    engine.dispose()


@pytest.fixture
def served(engine: Engine) -> Served:
    return Served(ManualClock(), engine)


def filled(served: Served, engine: Engine) -> None:
    """A thousand tables, with an event and a plan that waits each, and as many tasks as are listed."""
    served.table(EVENTS, mode="approve")
    store = served.control.tables
    (known,) = store.records(limit=1)
    assert known.listed is not None
    names = [TableName("lake", ("db",), f"t{number}") for number in range(MANY)]
    records = [replace(known, table_id=TableId("lake", f"u{name.name}"), name=name) for name in names]
    with engine.begin() as connection:
        connection.execute(insert(tables), [record_row(one) for one in records])
        for one in records:
            list_table(connection, one)
    store.receive(*(CommitEvent(name, 1) for name in names))
    for one in records[:50]:
        served.control.tasks.enqueue(replace(new_task(f"task-{one.name.name}"), table_id=one.table_id))
        plan_id = f"plan-{one.name.name}"
        store.wait(WaitingPlan(plan_id, one.table_id, one.name, ActionKind.REWRITE_DATA_FILES, REASON, 1))


def counted(
    served: Served, engine: Engine, path: str, limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, Any]:
    """How often the store and the catalogs were asked for a page of so many, or for all, and its rows."""
    asked = Counter[str]()

    def statement(*_: object) -> None:
        asked["store"] += 1

    for catalog in (served.lake, served.other):
        for method in ("load", "tables", "manifests", "summarize"):
            monkeypatch.setattr(catalog, method, lambda *_a, **_k: asked.update(("catalog",)))
    event.listen(engine, "before_cursor_execute", statement)
    try:
        items = served.get(path, **({} if limit is None else {"limit": limit})).get("items", [])
    finally:
        event.remove(engine, "before_cursor_execute", statement)
        monkeypatch.undo()
    assert asked["catalog"] == 0, path
    return asked["store"], items


def test_s5_a_list_of_a_thousand_asks_as_often_as_one_of_ten(
    served: Served, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(served, engine)
    for path, most in (
        ("/tables", MANY),
        ("/events/inbox", MANY),
        ("/tasks", 50),
        ("/plans/waiting", 50),
        ("/approvals", 0),
    ):
        few, few_items = counted(served, engine, path, FEW, monkeypatch)
        many, many_items = counted(served, engine, path, MANY, monkeypatch)
        print(f"{path}: {few} statements for {len(few_items)} rows, {many} for {len(many_items)}")  # noqa: T201 - figures
        assert few == many, path
        assert len(many_items) >= most
    (first, *_) = served.get("/tables", limit=1)["items"]
    assert first["mode"] == "approve"
    assert first["figures"]["data_files"] == 12
    assert first["plan"]["can_apply"] is True
    few, _ = counted(served, engine, "/status", None, monkeypatch)
    assert few <= 20
    assert served.http.get(f"{V1}/tables", params={"limit": MANY}).is_success


def test_s10_a_token_gets_no_more_than_was_said(served: Served) -> None:
    body = {"name": "ci", "roles": ["viewer"], "lifetime_ms": None}
    problem(served.http.post(f"{V1}/tokens", json=body), 400, "invalid-message")
    for scopes, said in ((["laek"], "perhaps lake is meant"), (["lake.db", "nowhere"], "no catalog 'nowhere'")):
        refused = problem(served.http.post(f"{V1}/tokens", json={**body, "scopes": scopes}), 400, "invalid-message")
        assert said in refused["detail"]
    for scopes in (["lake..db"], ["lake.`db"], ["lake.\0"]):
        problem(served.http.post(f"{V1}/tokens", json={**body, "scopes": scopes}), 400, "invalid-name")
    assert served.get("/tokens")["items"] == []
    for name, scopes in (("a", ["*"]), ("b", ["lake", "other.db"])):
        assert served.http.post(f"{V1}/tokens", json={**body, "name": name, "scopes": scopes}).status_code == 201


def test_s10_optimizers_and_groups_that_are_invented_grow_no_metrics(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = ("", "x" * 201, "a\nb", "\ud800", "a b", "\0")
    for field in ("optimizer_id", "resource_group"):
        for name in wrong:
            said = json.dumps(to_json(replace(hello(), **{field: name})))  # type: ignore[arg-type]  # a field by its name
            answer = served.http.post(
                f"{V1}/optimizers", content=said.encode("ascii"), headers={"Content-Type": "application/json"}
            )
            problem(answer, 400, "invalid-message")
    before = len(served.http.get(f"{V1}/metrics").text)
    monkeypatch.setattr(optimizers_api, "OPTIMIZERS_MAX", 40)
    for number in range(40):
        served.post("/optimizers", replace(hello(f"optimizer-{number}"), resource_group=f"invented-{number}"))
    refused = served.http.post(f"{V1}/optimizers", json=to_json(hello("one-more")))
    problem(refused, 429, "too-many-requests")
    served.post("/optimizers", hello("optimizer-1"))
    text = served.http.get(f"{V1}/metrics").text
    print(f"metrics: {before:,} bytes before, {len(text):,} with 40 invented groups")  # noqa: T201 - figures
    assert 'icewright_optimizers{resource_group="other"} 39.0' in text
    assert "invented" not in text
    assert len(text) < before + 5_000


def test_s10_an_address_allows_what_the_document_says(served: Served) -> None:
    document = served.http.get(f"{V1}/openapi.json").json()
    for path, described in document["paths"].items():
        methods = {method.upper() for method in described if method in {"get", "post", "put", "delete", "patch"}}
        answer = served.http.request("PATCH", path.replace("{", "x").replace("}", "x"))
        assert answer.status_code == 405, path
        allowed = set(answer.headers["allow"].split(", ")) - {"HEAD"}
        assert methods == allowed, (path, allowed)


def test_s10_plans_refuse_nothing_that_the_document_allows(served: Served) -> None:
    """A program that is made from the document sends what it gets: a cursor as it came, a key, a name of somebody."""
    document = served.http.get(f"{V1}/openapi.json").json()
    table = served.table(mode="approve")
    for _ in range(2):
        plan_id = served.post(f"/tables/{table}/look")["plan"]["plan_id"]
    for path in (f"/tables/{table}/plans", "/plans/waiting", f"/plans/{plan_id}/files"):
        for wrong in ("á", "a b", "a+b", "="):
            problem(served.http.get(V1 + path, params={"cursor": wrong}), 400, "invalid-message")
    following = served.http.get(f"{V1}/tables/{table}/plans", params={"limit": 1}).json()["next_cursor"]
    assert served.http.get(f"{V1}/tables/{table}/plans", params={"cursor": following}).status_code == 200
    key = document["components"]["parameters"]["IdempotencyKey"]["schema"]["pattern"]
    for text, is_taken in (
        ("a-key", True),
        ('"8e03978e-40d5"', True),
        ('"two words"', True),
        ("two words", False),
        ("a\\b", False),
    ):
        answer = served.http.post(f"{V1}/plans/no-such/apply", headers={"Idempotency-Key": text})
        assert (re.search(key, text) is not None, answer.status_code == 404) == (is_taken, is_taken), text
    request = document["paths"][f"{V1}/plans/{{plan_id}}/approve"]["post"]["requestBody"]
    accepts = request["content"]["application/json"]["schema"]
    body = jsonschema_rs.validator_for({**accepts, "components": document["components"]})
    for name, status in (("", 400), ("  ", 400), ("Ada", 202)):
        answer = served.http.post(f"{V1}/plans/{plan_id}/approve", json={"approved_by": name})
        assert (answer.status_code, body.is_valid({"approved_by": name})) == (status, status == 202), name


def test_s10_what_serve_refuses_of_a_receiver_is_said_by_config_show(tmp_path: Path) -> None:
    file = tmp_path / "icewright.toml"
    file.write_text('[receivers.team]\nkind = "webhook"\nurl = "https://ex ample/x"\nsecret = "env:S10_SECRET"\n')
    config = load_config(file, {}, tmp_path)
    environ = {"S10_SECRET": "too short"}
    assert "receivers.team" in unusable_receivers(config, environ)["team"]
    with pytest.raises(InvalidConfiguration):
        open_delivery(config, environ, None)  # type: ignore[arg-type]  # it fails before it is used


SERVER = """
import os, sys
from pathlib import Path
from icewright.server.server import serve
from icewright.server.control_wiring import open_control_plane
from icewright.configuration.load import load_config
with open_control_plane(load_config(Path({file!r}), {{}}, Path({folder!r})), os.environ) as opened:
    opened.follow(lambda: None)
print("LOADED", sorted({{name.split(".")[0] for name in sys.modules}} & set({needless!r})))
"""


def test_s10_a_server_loads_no_library_of_what_it_does_not_use(tmp_path: Path) -> None:
    """Each takes half a second of CPU and more: a metastore's, S3's, and what brings a store to a newer schema."""
    write_configuration(tmp_path, make_lake(tmp_path))
    needless = ("hive_metastore", "boto3", "alembic", "mako")
    script = SERVER.format(file=str(tmp_path / "icewright.toml"), folder=str(tmp_path), needless=needless)
    first, second = (python("-c", script) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout.splitlines()[-1] == "LOADED ['alembic', 'mako']"  # it made the store
    assert second.stdout.splitlines()[-1] == "LOADED []"
