"""The notification log of a real metastore: commits become events, once each is acknowledged."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hive_metastore.ttypes import SerDeInfo, StorageDescriptor
from hive_metastore.ttypes import Table as HiveTable
from pyiceberg.catalog.hive import HiveCatalog

from icewright.catalogs.pointers.hive_pointers import HivePointers
from icewright.core.errors import Unavailable
from icewright.events.sources import hive_notifications
from icewright.events.sources.cursors import SqlCursors
from icewright.events.sources.hive_messages import table_said
from icewright.events.sources.hive_notifications import HiveNotifications
from icewright.events.sources.port import Fetched
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from tests.cases import each_case
from tests.lakes.sqlite import append, make_table, writer
from tests.lakes.stores import new_store
from tests.servers.hive import HiveMetastore, hive_metastore
from tests.servers.processes import free_port


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """One that keeps a log."""
    with hive_metastore(tmp_path_factory.mktemp("logging_metastore"), with_log=True) as server:
        yield server


def test_commits_become_events_until_they_are_acknowledged(metastore: HiveMetastore, tmp_path: Path) -> None:
    entry = CatalogEntry("logged", CatalogKind.HIVE, metastore.uri, str(tmp_path / "warehouse"))
    cursors = SqlCursors(new_store())
    source = HiveNotifications(entry, cursors, 0.1)
    assert source.fetch(100, 0) == Fetched()  # it begins at the end of the log
    assert (begun := cursors.position(source.name)) is not None
    table = make_table(entry, ("logged_db", "t"))
    append(table, [1, 2])
    catalog = writer(entry)
    assert isinstance(catalog, HiveCatalog)
    other_kind(catalog, "logged_db", "no_iceberg", str(tmp_path))
    catalog.drop_table(("logged_db", "t"))
    with_events = source.fetch(100, 0)
    name = TableName("logged", ("logged_db",), "t")
    # Created, committed, dropped: PyIceberg names no snapshot, and Hive 2.3 does not say what a dropped table was.
    other = TableName("logged", ("logged_db",), "no_iceberg")
    assert with_events.events == [CommitEvent(each) for each in (name, name, other, name)]
    assert (with_events.lost, cursors.position(source.name)) == (0, begun)
    assert source.fetch(100, 0) == Fetched()  # not acknowledged, but fetched by this one
    assert HiveNotifications(entry, cursors, 0.1).fetch(100, 0).events == with_events.events
    source.acknowledge()
    assert HiveNotifications(entry, cursors, 0.1).fetch(100, 0) == Fetched()


def test_what_was_cleaned_before_it_was_read_is_counted_and_another_log_is_begun_at_its_end(
    metastore: HiveMetastore, tmp_path: Path
) -> None:
    entry = CatalogEntry("cleaned", CatalogKind.HIVE, metastore.uri, str(tmp_path / "warehouse"))
    cursors = SqlCursors(new_store())
    source = HiveNotifications(entry, cursors, 0.1)
    source.fetch(1, 0)
    end = cursors.position(source.name) or 0
    make_table(entry, ("cleaned_db", "t"))
    cursors.move(source.name, -5)  # as if the log began behind what was read
    assert source.fetch(1, 0).lost == 5
    source.acknowledge()
    cursors.move(source.name, 10**9)
    assert HiveNotifications(entry, cursors, 0.1).fetch(1, 0) == Fetched()
    assert end <= (cursors.position(source.name) or 0) < 10**9


def test_a_metastore_that_is_away_is_said_to_be() -> None:
    away = CatalogEntry("away", CatalogKind.HIVE, f"thrift://127.0.0.1:{free_port()}", "/w")
    with pytest.raises(Unavailable, match="away"):
        HiveNotifications(away, SqlCursors(new_store()), 0.1).fetch(1, 0)


class Log:
    """A metastore's log of changes to table ``t`` of ``db``; numbers from 1."""

    def __init__(self, *messages: str) -> None:
        self._all = [
            SimpleNamespace(
                eventId=number, eventType="ALTER_TABLE", message=text, messageFormat=None, dbName="db", tableName="t"
            )
            for number, text in enumerate(messages, 1)
        ]

    def get_next_notification(self, request: Any) -> Any:
        return SimpleNamespace(events=[one for one in self._all if one.eventId > request.lastEvent])

    def get_current_notificationEventId(self) -> Any:  # noqa: N802 - as the metastore calls it
        return SimpleNamespace(eventId=len(self._all))


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> HiveNotifications:
    """A reader, from the beginning, of a log with three commits; the second one's writer is hostile."""
    log = Log(*(message({**M2, "current-snapshot-id": said}, M1) for said in ("1", "0" * 5_000, "3")))

    @contextmanager
    def client(_: HivePointers) -> Iterator[Any]:
        yield log

    monkeypatch.setattr(HivePointers, "client", client)
    cursors = SqlCursors(new_store())
    cursors.move("hive:h", 0)
    return HiveNotifications(CatalogEntry("h", CatalogKind.HIVE, "thrift://127.0.0.1:1", "/w"), cursors, 0.1)


def test_t13_one_hostile_parameter_of_a_table_takes_no_notification_away(source: HiveNotifications) -> None:
    name = TableName("h", ("db",), "t")
    assert source.fetch(100, 0).events == [CommitEvent(name, 1), CommitEvent(name), CommitEvent(name, 3)]
    source.acknowledge()
    assert source.fetch(100, 0) == Fetched()


def test_t13_a_notification_that_nobody_can_read_is_counted_and_the_others_are_told(
    source: HiveNotifications, monkeypatch: pytest.MonkeyPatch
) -> None:
    def poisoned(text: Any, message_format: Any) -> Any:
        return table_said(text, message_format) if "0" * 5_000 not in text else 1 / 0

    monkeypatch.setattr(hive_notifications, "table_said", poisoned)
    fetched = source.fetch(100, 0)
    assert [event.snapshot_id for event in fetched.events] == [1, 3]
    assert (fetched.passed_over, fetched.problem) == (1, "notification 2: ZeroDivisionError: division by zero")


def test_t13_what_was_fetched_in_vain_is_fetched_again_and_never_acknowledged(
    source: HiveNotifications, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(hive_notifications, "table_said", ended)
        with pytest.raises(KeyboardInterrupt):
            source.fetch(100, 0)
    source.acknowledge()
    assert len(source.fetch(100, 0).events) == 3


def other_kind(catalog: HiveCatalog, database: str, name: str, folder: str) -> None:
    """A table of Hive's own, made and dropped again."""
    columns = StorageDescriptor(cols=[], location=f"file://{folder}/other", serdeInfo=SerDeInfo())
    with catalog._client as client:
        client.create_table(HiveTable(tableName=name, dbName=database, sd=columns, partitionKeys=[], parameters={}))
        client.drop_table(database, name, False)


def message(after: Any, before: Any = None) -> str:
    def table(parameters: Mapping[str, str]) -> str:
        return json.dumps({"1": {"str": "t"}, "9": {"map": ["str", "str", len(parameters), parameters]}})

    said = {"tableObjAfterJson": table(after)}
    return json.dumps(said if before is None else {**said, "tableObjBeforeJson": table(before)})


M1, M2 = {"metadata_location": "m1"}, {"metadata_location": "m2"}


@each_case(
    ("text", "message_format", "is_commit", "snapshot_id"),
    [
        (message(M2, M1), "json-0.2", True, None),
        (message({**M2, "current-snapshot-id": "77"}, M1), None, True, 77),
        (message({**M1, "comment": "x"}, M1), "json-0.2", False, None),
        (message({"transient": "1"}, {}), "json-0.2", False, None),
        (base64.b64encode(gzip.compress(message(M2, M1).encode())).decode(), "gzip(json-2.0)", True, None),
        (message({**M2, "current-snapshot-id": "9" * 30}), None, True, None),
        (message({**M2, "current-snapshot-id": "-1"}), None, True, None),
        (message({**M2, "current-snapshot-id": "0" * 5_000}), None, True, None),
        (message({**M2, "current-snapshot-id": "0" * 20 + "1" + "9" * 30}), None, True, None),
        (message({**M2, "current-snapshot-id": str(2**63 - 1)}), None, True, 2**63 - 1),
        (message({**M2, "current-snapshot-id": str(2**63)}), None, True, None),
        (message({**M2, "current-snapshot-id": "٣"}), None, True, None),
        ("", "json-0.2", True, None),
        (None, None, True, None),
        ("[" * 100_000, None, True, None),
        ('{"tableObjAfterJson": "{}"}', None, True, None),
        ('{"tableObjAfterJson": 5}', None, True, None),
        ("[]", None, True, None),
        ("!", "gzip(json-2.0)", True, None),
        (base64.b64encode(gzip.compress(b" " * (17 << 20))).decode(), "gzip(json-2.0)", True, None),
    ],
)
def test_t13_messages_of_all_kinds_are_told_apart_and_what_nobody_knows_may_be_a_commit(
    text: Any, message_format: str | None, snapshot_id: int | None, *, is_commit: bool
) -> None:
    said = table_said(text, message_format)
    assert (said.is_commit, said.snapshot_id) == (is_commit, snapshot_id)
