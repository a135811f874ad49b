"""G14, T5: a secret in every slot of the configuration, work for a server, and then a look everywhere for the secrets.

Of what optimizers are told, which lies in one file of their own: ``tests/work/launch/test_submission.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2
import psutil
import pytest
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import make_url

from icewright.api_client.client import Client
from icewright.core.errors import IcewrightError
from icewright.model.access.identity import NewToken
from icewright.model.access.permissions import Role
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from tests.e2e.processes import Processes, wait_for
from tests.lakes.sqlite import append, make_lake, make_table
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.e2e

V1: Final = "/api/v1"
OWN_FILES: Final = frozenset({"token", "server.json", "catalog.db"})
"""Files of mode 0600 whose very purpose is a token, and the catalog's own database."""


@dataclass
class Canaries:
    """A secret for each slot: some by files, some in the server's environment, as its administrator has it."""

    folder: Path
    by_file: dict[str, str] = field(default_factory=dict)
    by_environ: dict[str, str] = field(default_factory=dict)

    def file(self, slot: str) -> str:
        value = self.by_file[slot] = f"canary-{slot}-".ljust(48, "7")
        path = self.folder / f"{slot}.secret"
        path.write_text(value)
        path.chmod(0o600)
        return f"file:{path}"

    def environ(self, slot: str) -> str:
        self.by_environ[slot] = f"canary-{slot}-".ljust(48, "8")
        return f"env:{self.name(slot)}"

    @staticmethod
    def name(slot: str) -> str:
        return f"ICEWRIGHT_TEST_{slot.upper().replace('-', '_')}"

    @property
    def all(self) -> dict[str, str]:
        return {**self.by_file, **self.by_environ}

    def found_in(self, said: bytes | str) -> list[str]:
        """The slots whose secrets are in there."""
        content = said.encode("utf-8", "replace") if isinstance(said, str) else said
        return [slot for slot, value in self.all.items() if value.encode() in content]


def configured(processes: Processes, canaries: Canaries, store: str) -> None:
    """Every slot that takes a secret has one; the second catalog and the broker are not there."""
    before = processes.configuration.read_text()
    server = (
        f'store_url = "{store}"\nstore_password = "{canaries.environ("store")}"\ntoken = "{canaries.file("token")}"\n'
    )
    more = f"""
[catalogs.properties]
"s3.access-key-id" = "{canaries.environ("s3-id")}"
"s3.secret-access-key" = "{canaries.file("s3-secret")}"
"s3.session-token" = "{canaries.environ("s3-session")}"

[[catalogs]]
name = "away"
type = "rest"
uri = "http://127.0.0.1:1"

[catalogs.properties]
credential = "{canaries.environ("rest-credential")}"
token = "{canaries.file("rest-token")}"

[events.kafka]
brokers = "127.0.0.1:1"
topic = "commits"
"properties.security.protocol" = "SASL_PLAINTEXT"
"properties.sasl.mechanism" = "PLAIN"
"properties.sasl.username" = "icewright"
"properties.sasl.password" = "{canaries.environ("kafka")}"
"""
    processes.configuration.write_text(before.replace("[server]\n", f"[server]\n{server}") + more)
    processes.environ |= {canaries.name(slot): value for slot, value in canaries.by_environ.items()}


def work(processes: Processes, client: Client, name: TableName) -> None:
    """A day in short: events, plans, approvals, tasks, tokens, refusals."""
    table = wait_for_table(processes, client, name)
    plan = client.look_at_table(table["uuid"], table["catalog"])["plan"]
    asks: tuple[Callable[[], object], ...] = (
        lambda: client.apply(plan["plan_id"]),
        lambda: client.cancel(client.tasks().items[0]["task_id"]),
        lambda: client.retry(client.tasks().items[0]["task_id"]),
        lambda: client.create_token(NewToken("ci", (Role.VIEWER,), ("*",))),
        lambda: client.revoke_token("ci"),
        lambda: client.table(TableName("away", ("db",), "t")),
        lambda: client.task("nobody"),
    )
    for ask in asks:
        try:
            ask()
        except IcewrightError:
            continue  # a refusal says something as well, and is looked through


def wait_for_table(processes: Processes, client: Client, name: TableName) -> Any:
    def seen() -> Any:
        try:
            return client.table(name)
        except IcewrightError:
            return None

    return wait_for(seen, "the table is seen", processes)


def answers(client: Client, token: str) -> Iterator[tuple[str, bytes]]:
    """All that can be read over HTTP, by whoever may read everything."""
    with httpx2.Client(base_url=client.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
        document = http.get(f"{V1}/openapi.json").json()
        ids = {"uuid": client.tables().items[0]["uuid"], "name": "ci", "number": "0"}
        tasks, plans = client.tasks().items, http.get(f"{V1}/tables/{ids['uuid']}/plans").json()["items"]
        ids |= {"task_id": tasks[0]["task_id"]} if tasks else {}
        ids |= {"plan_id": plans[0]["plan_id"]} if plans else {}
        for template, methods in document["paths"].items():
            if "get" not in methods or template.endswith("/stream"):
                continue
            path = template
            for key, value in ids.items():
                path = path.replace(f"{{{key}}}", value)
            response = http.get(path)
            yield template, response.content + json.dumps(dict(response.headers)).encode()


def rows(url: str) -> Iterator[tuple[str, str]]:
    """Every row of the store as text."""
    engine = create_engine(url)
    with engine.connect() as connection:
        for table in inspect(engine).get_table_names():
            for row in connection.execute(text(f'SELECT * FROM "{table}"')):  # noqa: S608 - names of our own tables
                yield (
                    table,
                    " ".join(
                        bytes(v).hex() + str(bytes(v)) if isinstance(v, memoryview | bytes) else str(v) for v in row
                    ),
                )
    engine.dispose()


def test_g14_i25_t5_no_secret_is_anywhere_but_where_it_was_put(tmp_path: Path, postgres: PostgresServer) -> None:
    made = make_lake(tmp_path)
    entry = CatalogEntry("lake", made.kind, made.uri, made.warehouse)
    table = make_table(entry, ("db", "events"), properties={"icewright.mode": "approve"})
    for first in range(0, 60, 10):
        append(table, range(first, first + 10))
    canaries, processes = Canaries(tmp_path), Processes(tmp_path, entry, forked=False)
    url = make_url(postgres.new_database())
    configured(processes, canaries, f"postgresql://canary@{url.host}:{url.port}/{url.database}")
    role = f"ROLE canary LOGIN SUPERUSER PASSWORD '{canaries.by_environ['store']}'"
    postgres.execute(f"CREATE {role}")
    leaks: list[str] = []
    looked = 0

    def look(where: str, said: bytes | str, but: frozenset[str] = frozenset()) -> None:
        nonlocal looked
        looked += 1
        leaks.extend(f"{slot} in {where}" for slot in canaries.found_in(said) if slot not in but)

    processes.start("serve")
    try:
        client = processes.client()
        work(processes, client, TableName("lake", ("db",), "events"))
        for where, said in answers(client, canaries.by_file["token"]):
            look(f"GET {where}", said)
        for words in (["status", "--json"], ["config", "show"], ["audit", "export"], ["why", "lake.db.events"]):
            command = [sys.executable, "-m", "icewright", "--config", str(processes.configuration), *words]
            done = subprocess.run(command, capture_output=True, env={**os.environ, **processes.environ}, check=False)  # noqa: S603 - our own words
            look(" ".join(words), done.stdout + done.stderr)
        server = psutil.Process(processes.running["serve"].pid)
        for process in (server, *server.children(recursive=True)):
            folder = Path(f"/proc/{process.pid}")
            own = frozenset(canaries.by_environ) if process == server else frozenset()
            look(f"the command line of {process.pid}", (folder / "cmdline").read_bytes())
            environ = (folder / "environ").read_bytes()
            look(f"the environment of {process.pid}", environ, but=own)
            assert process != server or set(canaries.found_in(environ)) == own  # it is looked where they are
    finally:
        processes.end()
    look("the log", processes.log("serve"))
    assert "away" in processes.log("serve")  # the catalog that is not there was complained of
    for path in (tmp_path / "state").rglob("*"):
        if path.is_file() and path.name not in OWN_FILES:
            look(str(path), path.read_bytes())
    for name, row in rows(str(url.render_as_string(hide_password=False))):
        look(f"the store's {name}", row)
    print(f"G14: {len(canaries.all)} secrets, {looked:,} places, {len(leaks)} leaks")  # noqa: T201 - the figure of docs/threats.md
    assert leaks == []
    assert looked > 60
