"""A REST catalog that is slow, lies, fails, or has never heard of Iceberg; and what it says for a table's files."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from requests import RequestException

from icewright.catalogs.pointers import rest_pointers
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.pointers.rest_pointers import RestPointers
from icewright.core.errors import IcewrightError, NotFound, Unavailable, Unreadable
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from tests.cases import each_case
from tests.narrowing import of_type
from tests.servers.processes import HOST

EVENTS = TableName("lake", ("db",), "events")
TABLE = "/v1/namespaces/db/tables/events"
LOCATION = "s3://bucket/db/events/metadata/00001-a.metadata.json"
METADATA = {
    "format-version": 2,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "s3://bucket/db/events",
    "last-updated-ms": 1,
    "current-schema-id": 0,
    "schemas": [{"schema-id": 0, "type": "struct", "fields": []}],
    "default-spec-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "snapshots": [{"snapshot-id": 1, "timestamp-ms": 1, "sequence-number": 1, "manifest-list": "s3://bucket/l.avro"}],
    "snapshot-log": [{"snapshot-id": 1, "timestamp-ms": 1}],
    "current-snapshot-id": 1,
}
LOADED = {"metadata-location": LOCATION, "metadata": METADATA}


class Stub:
    """A server that answers what a test says, by path, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"/v1/config": {"defaults": {}, "overrides": {}}, TABLE: LOADED}
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.tokens: list[str | None] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = parse_qs(parts.query, keep_blank_values=True)
                stub.asked.append((parts.path, query))
                stub.tokens.append(self.headers["Authorization"])
                answer = stub.answers.get(parts.path, (404, {"error": {"type": "NoSuchTableException", "code": 404}}))
                if callable(answer):
                    answer = answer(query)
                status, body = answer if isinstance(answer, tuple) else (200, answer)
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_GET  # noqa: N815 - the same

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer((HOST, 0), Handler)
        self.entry = CatalogEntry("lake", CatalogKind.REST, f"http://{HOST}:{self.server.server_port}", "")
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def catalog(self) -> PyIcebergCatalog:
        return PyIcebergCatalog(self.entry)


@pytest.fixture
def stub() -> Iterator[Stub]:
    found = Stub()
    yield found
    found.server.shutdown()
    found.server.server_close()


def refused(ask: Callable[[], Any]) -> IcewrightError:
    with pytest.raises(IcewrightError) as caught:
        ask()
    return caught.value


def test_o12_a_table_is_what_the_catalog_says_with_all_its_snapshots(stub: Stub) -> None:
    table = stub.catalog().load(EVENTS)
    assert (table.metadata_location, table.table_id.uuid) == (LOCATION, METADATA["table-uuid"])
    assert stub.catalog().metadata_location(EVENTS) == LOCATION
    assert [query for path, query in stub.asked if path == TABLE] == [{"snapshots": ["all"]}, {"snapshots": ["refs"]}]


def test_o12_an_answer_without_some_snapshots_is_not_taken_for_the_table(stub: Stub) -> None:
    log = [*METADATA["snapshot-log"], {"snapshot-id": 2, "timestamp-ms": 2}]  # type: ignore[misc]  # a list, above
    stub.answers[TABLE] = {**LOADED, "metadata": {**METADATA, "snapshot-log": log}}
    error = of_type(Unreadable, refused(lambda: stub.catalog().load(EVENTS)))
    assert "leaves snapshots of table lake.db.events out, 2 for one" in error.message


def test_a_table_without_a_uuid_is_not_given_one(stub: Stub) -> None:
    stub.answers[TABLE] = {
        **LOADED,
        "metadata": {**{key: item for key, item in METADATA.items() if key != "table-uuid"}, "format-version": 1},
    }
    assert not stub.catalog().load(EVENTS).has_uuid


@each_case(
    ("answer", "expected"),
    [
        ((404, {"error": {"type": "NoSuchTableException", "code": 404, "message": "no"}}), NotFound),
        ((404, {"error": {"type": "NoSuchNamespaceException", "code": 404}}), NotFound),
        ((404, b"<html>no such service"), Unavailable),
        ((404, {}), Unavailable),
        ((403, {"error": {"type": "ForbiddenException", "code": 403, "message": "not you"}}), Unreadable),
        ((400, b"Bad Request"), Unreadable),
        ((500, {"error": {"message": "a defect met at this table"}}), Unreadable),
        ((401, {}), Unavailable),
        ((419, {}), Unavailable),
        ((429, {}), Unavailable),
        ((502, b""), Unavailable),
        ((503, b"<html>later"), Unavailable),
        ((504, b""), Unavailable),
        (b"no JSON", Unreadable),
        (b"[]", Unreadable),
        ({}, Unreadable),
        ({"metadata-location": LOCATION}, Unreadable),
        ({"metadata-location": 7, "metadata": METADATA}, Unreadable),
        ({"metadata-location": LOCATION, "metadata": []}, Unreadable),
        ({"metadata-location": LOCATION, "metadata": {"snapshots": [7]}}, Unreadable),
        ({**LOADED, "config": 7}, Unreadable),
        ({**LOADED, "storage-credentials": [{}]}, Unreadable),
    ],
)
def test_what_an_answer_means(stub: Stub, answer: Any, expected: type[IcewrightError]) -> None:
    stub.answers[TABLE] = answer
    assert type(refused(lambda: stub.catalog().load(EVENTS))) is expected


def test_an_error_of_one_table_is_the_catalogs_where_it_answers_nothing_else(stub: Stub) -> None:
    catalog = stub.catalog()
    catalog.load(EVENTS)
    stub.answers[TABLE] = stub.answers["/v1/config"] = (500, {})
    assert type(refused(lambda: catalog.load(EVENTS))) is Unavailable


def test_a_listed_table_that_is_not_found_is_there_and_cannot_be_read(stub: Stub) -> None:
    stub.answers[TABLE] = (404, {"error": {"type": "NotFoundException", "code": 404, "message": "no file"}})
    listing = {"identifiers": [{"namespace": ["db"], "name": "events"}]}
    stub.answers["/v1/namespaces/db/tables"] = listing
    assert type(refused(lambda: stub.catalog().load(EVENTS))) is Unreadable
    stub.answers["/v1/namespaces/db/tables"] = {"identifiers": []}
    assert type(refused(lambda: stub.catalog().load(EVENTS))) is NotFound


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_pointers, "ANSWER_TIMEOUT_MS", 300)


@pytest.mark.usefixtures("impatient")
def test_a_silence_about_one_table_concerns_it_alone(stub: Stub) -> None:
    silence = threading.Event()
    stub.answers[TABLE] = lambda _: silence.wait(30) and LOADED
    assert type(refused(lambda: stub.catalog().load(EVENTS))) is Unreadable
    silence.set()


@pytest.mark.usefixtures("impatient")
def test_a_silent_catalog_is_away(stub: Stub) -> None:
    silence = threading.Event()
    stub.answers["/v1/config"] = lambda _: silence.wait(30) and {}
    assert type(refused(lambda: stub.catalog().load(EVENTS))) is Unavailable
    silence.set()


class Closing:
    """A server that keeps a connection open after its first answer and closes it when the next question comes."""

    def __init__(self, first_answers: int) -> None:
        self.left = first_answers
        self.questions: list[str] = []
        closing = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                closing.questions.append(f"{self.command} {urlsplit(self.path).path}")
                if getattr(self, "answered", False) or closing.left <= 0:
                    self.close_connection = True
                    return
                self.answered, closing.left = True, closing.left - 1
                content = b'{"defaults": {}, "overrides": {}, "namespaces": []}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_GET  # noqa: N815 - the same

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer((HOST, 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def client(self) -> rest_pointers.RestClient:
        return rest_pointers.RestClient("lake", uri=f"http://{HOST}:{self.server.server_port}")


def test_a_connection_that_the_catalog_closed_is_no_reason_to_call_it_away() -> None:
    closing = Closing(first_answers=100)
    client = closing.client()
    assert [client.namespaces_below(()) for _ in range(3)] == [[], [], []]
    # The first by a new connection; each other by the one before, which was closed, and again by a new one.
    assert closing.questions == ["GET /v1/config"] + 5 * ["GET /v1/namespaces"]


def test_a_catalog_that_closes_every_connection_is_away() -> None:
    closing = Closing(first_answers=1)
    client = closing.client()
    with pytest.raises(RequestException):
        client.namespaces_below(())
    assert closing.questions == ["GET /v1/config"] + 2 * ["GET /v1/namespaces"]


def test_c2_what_may_change_something_is_sent_once() -> None:
    closing = Closing(first_answers=100)
    client = closing.client()
    assert client.namespaces_below(()) == []
    with pytest.raises(RequestException):
        client._session.post(client.url("namespaces"))
    assert closing.questions == ["GET /v1/config", "GET /v1/namespaces", "POST /v1/namespaces"]


def test_an_answer_without_end_is_given_up(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_pointers, "METADATA_BYTES_MAX", 1000)
    stub.answers[TABLE] = {**LOADED, "padding": "x" * 1000}
    assert "does not end an answer" in refused(lambda: stub.catalog().load(EVENTS)).message


@each_case("config", [b"no JSON", (500, b""), (404, b"<html>"), {"overrides": 7}, b"[]"])
def test_an_address_without_a_catalog_is_away(stub: Stub, config: Any) -> None:
    stub.answers["/v1/config"] = config
    for ask in (lambda: list(stub.catalog().tables()), lambda: stub.catalog().load(EVENTS)):
        assert type(refused(ask)) is Unavailable


def namespaces(*levels: list[str]) -> dict[str, Any]:
    return {"namespaces": list(levels)}


def test_lists_go_on_page_by_page_and_come_to_an_end(stub: Stub) -> None:
    pages = {"": {**namespaces(["a"]), "next-page-token": "2"}, "2": namespaces(["b"])}
    stub.answers["/v1/namespaces"] = lambda query: (
        namespaces() if "parent" in query else pages[query.get("pageToken", [""])[0]]
    )
    for name in ("a", "b"):
        stub.answers[f"/v1/namespaces/{name}/tables"] = {"identifiers": [{"namespace": [name], "name": "t"}]}
    assert sorted(name.path for name in stub.catalog().tables()) == [("a", "t"), ("b", "t")]
    stub.answers["/v1/namespaces"] = {**namespaces(["a"]), "next-page-token": "again"}
    assert "does not end a list" in refused(lambda: list(stub.catalog().tables())).message


def test_a_catalog_that_repeats_its_first_level_for_every_question_is_listed_once(stub: Stub) -> None:
    stub.answers["/v1/namespaces"] = namespaces(["a"], ["b"])
    stub.answers["/v1/namespaces/a/tables"] = {"identifiers": [{"namespace": ["a"], "name": "t"}]}
    assert [name.path for name in stub.catalog().tables()] == [("a", "t")]  # and b is gone since


@pytest.mark.parametrize("names", [{"namespaces": 7}, {"namespaces": [7]}, {}, {"namespaces": [[""]]}])
def test_lists_that_make_no_sense_are_not_taken_for_empty_ones(stub: Stub, names: Any) -> None:
    stub.answers["/v1/namespaces"] = names
    stub.answers["/v1/namespaces//tables"] = {"identifiers": [{"name": "t"}]}
    assert type(refused(lambda: list(stub.catalog().tables()))) is Unavailable


def test_one_namespace_that_is_not_for_us_hides_no_other(stub: Stub) -> None:
    stub.answers["/v1/namespaces"] = lambda query: namespaces() if "parent" in query else namespaces(["a"], ["b"])
    stub.answers["/v1/namespaces/a/tables"] = (403, {})
    stub.answers["/v1/namespaces/b/tables"] = {"identifiers": [{"namespace": ["b"], "name": "t"}]}
    assert [name.path for name in stub.catalog().tables()] == [("b", "t")]
    stub.answers["/v1/namespaces/a/tables"] = (503, {})
    assert type(refused(lambda: list(stub.catalog().tables()))) is Unavailable


@pytest.mark.parametrize("part", ["..", "."])
def test_no_name_is_taken_for_a_step_in_the_path(stub: Stub, part: str) -> None:
    catalog = stub.catalog()
    for name in (TableName("lake", (part,), "events"), TableName("lake", ("db",), part)):
        assert type(refused(lambda name=name: catalog.load(name))) is NotFound  # type: ignore[misc]  # bound at once
    assert [path for path, _ in stub.asked if path != "/v1/config"] == []


def test_a_token_that_ran_out_is_renewed_once(stub: Stub) -> None:
    stub.entry = CatalogEntry("lake", CatalogKind.REST, stub.entry.uri, "", {"credential": "me:secret", "scope": "s"})
    given: list[str] = []

    def token(_: Any) -> Any:
        given.append(f"token-{len(given)}")
        return {"access_token": given[-1], "token_type": "bearer"}

    stub.answers["/v1/oauth/tokens"] = token
    catalog = stub.catalog()
    catalog.load(EVENTS)
    answers: Iterator[Any] = iter([(401, {}), LOADED])
    stub.answers[TABLE] = lambda _: next(answers)
    before = len(given)
    assert catalog.load(EVENTS).metadata_location == LOCATION
    assert len(given) == before + 1
    assert stub.tokens[-1] == f"Bearer {given[-1]}"


def test_a_refused_login_says_nothing_of_the_secret(stub: Stub) -> None:
    stub.entry = CatalogEntry("lake", CatalogKind.REST, stub.entry.uri, "", {"credential": "me:hunter2"})
    stub.answers["/v1/oauth/tokens"] = (401, {"error": "invalid_client"})
    error = refused(lambda: stub.catalog().load(EVENTS))
    assert type(error) is Unavailable
    assert "hunter2" not in error.message


def properties_of(stub: Stub, **answer: Any) -> dict[str, str]:
    stub.answers[TABLE] = {**LOADED, **answer}
    pointers = RestPointers(stub.entry)
    pointers.load(EVENTS)
    return dict(of_type(PyArrowFileIO, pointers.file_io(LOCATION)).properties)


def test_files_are_read_with_what_the_catalog_says_for_the_table(stub: Stub) -> None:
    config = {"client.region": "eu-west-1", "s3.access-key-id": "k", "s3.path-style-access": "true"}
    credentials = [
        {"prefix": "s3://bucket", "config": {"s3.secret-access-key": "wide"}},
        {"prefix": "s3://bucket/db/events", "config": {"s3.secret-access-key": "narrow"}},
        {"prefix": "s3://elsewhere", "config": {"s3.secret-access-key": "other"}},
    ]
    found = properties_of(stub, config=config, **{"storage-credentials": credentials})
    assert found["s3.secret-access-key"] == "narrow"
    assert found["s3.region"] == "eu-west-1"
    assert found["s3.force-virtual-addressing"] == "false"


def test_nobody_but_the_user_chooses_the_code_that_reads(stub: Stub) -> None:
    evil = {"py-io-impl": "evil.FileIO", "s3.retry-strategy-impl": "evil.Retry", "s3.region": "eu"}
    stub.answers["/v1/config"] = {"defaults": evil, "overrides": evil}
    found = properties_of(stub, config=evil)
    assert found["s3.region"] == "eu"
    assert not [key for key in found if key.endswith("-impl")]


def test_a_tables_own_properties_say_nothing_of_how_its_files_are_read(stub: Stub) -> None:
    found = properties_of(stub, metadata={**METADATA, "properties": {"s3.endpoint": "http://evil"}})
    assert "s3.endpoint" not in found


def test_only_so_many_tables_settings_are_remembered(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_pointers, "_CONFIGS_MAX", 3)
    pointers = RestPointers(stub.entry)
    for number in range(9):
        stub.answers[TABLE] = {**LOADED, "metadata-location": f"s3://b/{number}.json", "config": {"s3.region": "eu"}}
        pointers.load(EVENTS)
    assert len(pointers._configs) == 3
