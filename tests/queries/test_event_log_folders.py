"""Folders of Spark's event logs: what grows is read again, and each query counts once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from icewright.core.errors import SpoolFull
from icewright.model.queries.queries import LiteralPolicy, QueryRecord
from icewright.queries import event_logs as module
from icewright.queries.event_logs import EventLogReader
from icewright.queries.service import QueryLog
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.sources.spark_events import read_event_log
from icewright.queries.spool import LOG_IDS_KEPT_MS, QuerySpool
from icewright.queries.sql import SqlQuerySums
from icewright.store.engine import open_store
from icewright.work.store.table_store import SqlTableStore
from tests.doubles.clock import ManualClock
from tests.lakes.stores import sqlite_store

SAMPLE = (Path(__file__).parent / "samples" / "spark_4_1_event_log.jsonl").read_bytes()
NEVER = threading.Event()


def _read() -> list[QueryRecord]:
    path = Path(__file__).parent / "samples" / "spark_4_1_event_log.jsonl"
    return [*read_event_log(path, LiteralRules(LiteralPolicy.DROP), lambda _error: None)]


FOUND = _read()
ALL = {one.query_id for one in FOUND}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(max(one.started_at for one in FOUND))


@pytest.fixture
def log(tmp_path: Path, clock: ManualClock) -> Iterator[QueryLog]:
    engine = open_store(sqlite_store(tmp_path / "store.db"))
    with closing(QuerySpool(tmp_path / "queries.db", 1 << 20, clock)) as spool:
        yield QueryLog({"lake"}, SqlTableStore(engine), clock, spool, SqlQuerySums(engine))
    engine.dispose()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "logs"
    path.mkdir()
    return path


def reader(log: QueryLog, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> EventLogReader:
    monkeypatch.setattr(module, "SHARE_MAX", float("inf"))  # read again at once
    return EventLogReader(log, [str(folder)], clock)


def kept(log: QueryLog) -> set[str]:
    return {one.query.query_id for one in log.spool.after(0, 1_000)}


def test_a_log_that_grows_is_read_again_and_each_query_counts_once(
    log: QueryLog, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = reader(log, folder, clock, monkeypatch)
    (folder / "app.inprogress").write_bytes(SAMPLE[: len(SAMPLE) // 2])
    logs.read(NEVER)
    assert set() < kept(log) < ALL
    (folder / "app.inprogress").write_bytes(SAMPLE)
    (folder / "app.inprogress").rename(folder / "app")
    logs.read(NEVER)
    assert (kept(log), log.spool.figures().waiting) == (ALL, len(ALL))
    assert logs.read(NEVER) == 0  # it has not grown


def test_one_query_that_is_refused_leaves_the_others(
    log: QueryLog, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = min(one.started_at for one in FOUND)
    (folder / "app").write_bytes(SAMPLE.replace(b'"time":%d' % first, b'"time":%d' % (first + 10**12), 1))
    reader(log, folder, clock, monkeypatch).read(NEVER)
    assert len(ALL - kept(log)) == 1
    assert log.received["spark", "malformed"] == 1


def test_what_the_spool_refuses_is_read_again(
    log: QueryLog, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = reader(log, folder, clock, monkeypatch)
    (folder / "app").write_bytes(SAMPLE)
    with monkeypatch.context() as full:
        full.setattr(log.spool, "_bytes_max", 1)
        with pytest.raises(SpoolFull):
            logs.read(NEVER)
    assert kept(log) == set()
    logs.read(NEVER)
    assert kept(log) == ALL


def test_a_log_that_cannot_be_read_now_is_read_later(
    log: QueryLog, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = reader(log, folder, clock, monkeypatch)
    (folder / "app").write_bytes(SAMPLE)

    def fails(*_arguments: Any) -> Any:
        raise OSError("the storage does not answer")

    with monkeypatch.context() as away:
        away.setattr("icewright.queries.sources.spark_events.read_event_log", fails)
        assert logs.read(NEVER) == 0
    logs.read(NEVER)
    assert kept(log) == ALL


def test_what_is_older_than_its_id_would_be_known_is_left_out(
    log: QueryLog, folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could tell that it was counted before."""
    clock.advance(LOG_IDS_KEPT_MS + 1)
    (folder / "app").write_bytes(SAMPLE)
    reader(log, folder, clock, monkeypatch).read(NEVER)
    assert kept(log) == set()
