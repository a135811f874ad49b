"""The spool: what was accepted is there after any death, once, within its limit."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from icewright.core.errors import SpoolFull, Unavailable, Unreadable
from icewright.model.queries.queries import QuerySource
from icewright.queries import spool as module
from icewright.queries.spool import IDS_KEPT_MS, LOG_IDS_KEPT_MS, SET_ASIDE_MAX, QuerySpool, Spooled
from tests.builders.queries import EVENTS, query, read_of
from tests.doubles.clock import ManualClock
from tests.waiting import at_once

MIB = 1 << 20


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def spool(tmp_path: Path, clock: ManualClock) -> Iterator[QuerySpool]:
    with closing(QuerySpool(tmp_path / "queries.db", MIB, clock)) as opened:
        yield opened


def numbers(found: list[Spooled]) -> list[str]:
    return [one.query.query_id for one in found]


def test_queries_come_back_in_their_order_and_whole(spool: QuerySpool) -> None:
    sent = [query(number) for number in range(5)]
    assert spool.put(sent) == 5
    found = spool.after(0, 100)
    assert [one.query for one in found] == sent
    assert [one.query for one in spool.after(found[2].seq, 1)] == [sent[3]]


def test_the_same_query_is_one_whatever_became_of_it(spool: QuerySpool, clock: ManualClock) -> None:
    assert spool.put([query(1), query(1), query(2)]) == 2
    spool.done(spool.after(0, 10)[-1].seq)
    clock.advance(IDS_KEPT_MS - 1)
    assert spool.put([query(2), query(3)]) == 1
    assert numbers([*spool.after(0, 10)]) == ["q-3"]
    clock.advance(2)
    spool.done(0)
    assert spool.put([query(1)]) == 1  # so late that it counts again: docs/queries.md says so


def test_an_id_that_somebody_else_made_up_hides_no_query_of_another_table(spool: QuerySpool) -> None:
    """Who may report of one table chooses ids, and may guess those of engines."""
    theirs, ours = query(1, read_of(replace(EVENTS, name="theirs"))), query(1, read_of(EVENTS))
    assert spool.put([theirs]) == 1
    assert spool.put([ours]) == 1
    assert [one.query for one in spool.after(0, 10)] == [theirs, ours]


def test_a_name_that_utf_8_cannot_say_is_kept(spool: QuerySpool) -> None:
    odd = query(1, user="\ud800 and \0")
    spool.put([odd])
    assert [one.query for one in spool.after(0, 10)] == [odd]


def test_what_is_more_than_there_is_room_for_is_refused_whole(tmp_path: Path, clock: ManualClock) -> None:
    with closing(QuerySpool(tmp_path / "queries.db", 2_000, clock)) as spool:
        spool.put([query(0)])
        before = spool.figures()
        with pytest.raises(SpoolFull):
            spool.put([query(number) for number in range(100)])
        assert spool.figures() == before
        assert spool.put([query(0)]) == 0  # known already: nothing to keep, so nothing to refuse
        spool.done(spool.after(0, 1)[0].seq)
        assert (spool.put([query(7)]), spool.figures().waiting) == (1, 1)


def test_figures_are_the_same_after_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    with closing(QuerySpool(tmp_path / "queries.db", MIB, clock)) as spool:
        spool.put([query(number) for number in range(10)])
        spool.done(spool.after(0, 4)[-1].seq)
        before, spool_id = spool.figures(), spool.spool_id
    with closing(QuerySpool(tmp_path / "queries.db", MIB, clock)) as spool:
        assert (spool.figures(), spool.spool_id) == (before, spool_id)
        assert before.waiting == 6
        spool.done(1_000)
        assert spool.figures().waiting_bytes == 0


def test_what_cannot_be_read_is_set_aside_and_holds_nothing_up(tmp_path: Path, spool: QuerySpool) -> None:
    spool.put([query(1), query(2), query(3)])
    with closing(sqlite3.connect(tmp_path / "queries.db", isolation_level=None)) as other:
        other.execute("UPDATE queries SET body = ? WHERE seq = 2", (b'{"of": "another release"}',))
    assert numbers([*spool.after(0, 10)]) == ["q-1", "q-3"]
    assert (spool.figures().waiting, spool.figures().set_aside) == (2, 1)


def test_of_what_is_set_aside_the_newest_stay(spool: QuerySpool) -> None:
    spool.set_aside([b"x"] * (SET_ASIDE_MAX + 5))
    assert spool.figures().set_aside == SET_ASIDE_MAX


def test_threads_lose_nothing_of_each_other(spool: QuerySpool) -> None:
    def send(first: int) -> None:
        for number in range(first, first + 50):
            spool.put([query(number)])

    at_once([partial(send, first) for first in (0, 1_000, 2_000, 0)])
    assert len({*numbers([*spool.after(0, 1_000)])}) == spool.figures().waiting == 150


def test_a_file_that_is_no_spool_is_said_and_left_as_it_is(tmp_path: Path, clock: ManualClock) -> None:
    path = tmp_path / "queries.db"
    path.write_bytes(b"something of somebody's" * 100)
    with pytest.raises(Unreadable, match="damaged, or none"):
        QuerySpool(path, MIB, clock)
    assert path.read_bytes() == b"something of somebody's" * 100


def test_a_folder_that_cannot_be_written_is_unavailable(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(Unavailable):
        QuerySpool(tmp_path / "file" / "queries.db", MIB, clock)


def test_a_second_process_has_no_part_in_it(tmp_path: Path, spool: QuerySpool, clock: ManualClock) -> None:
    spool.put([query(1)])
    with pytest.raises(Unavailable, match="another process has it"):
        QuerySpool(tmp_path / "queries.db", MIB, clock)
    assert numbers([*spool.after(0, 10)]) == ["q-1"]


def test_queries_of_event_logs_are_known_for_longer(spool: QuerySpool, clock: ManualClock) -> None:
    """A log is read from its beginning whenever it grows."""
    logged = replace(query(1), source=QuerySource.SPARK)
    spool.put([logged])
    spool.done(1)
    clock.advance(LOG_IDS_KEPT_MS)
    spool.done(1)
    assert spool.put([logged]) == 0


def test_a_batch_has_as_many_queries_as_fit(spool: QuerySpool, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.put([query(number) for number in range(5)])
    monkeypatch.setattr(module, "BATCH_BYTES_MAX", 1)
    assert numbers([*spool.after(0, 10)]) == ["q-0"]  # and one alone always fits


_SENDER = """
import sys
from pathlib import Path
from icewright.queries.spool import QuerySpool
from tests.builders.queries import EVENTS, query, read_of
from tests.doubles.clock import ManualClock
spool = QuerySpool(Path(sys.argv[1]), 1 << 30, ManualClock())
for number in range(100_000):
    spool.put([query(number)])
    print(number, flush=True)
"""


def test_what_was_accepted_outlives_a_kill(tmp_path: Path, clock: ManualClock) -> None:
    """Between any two lines the process may be gone; each line says what was accepted by then."""
    path = tmp_path / "queries.db"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    command = [sys.executable, "-c", _SENDER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) as sender:  # noqa: S603 - our own
        assert sender.stdout is not None
        said = [int(sender.stdout.readline()) for _ in range(40)]
        sender.send_signal(signal.SIGKILL)
        said += [int(line) for line in sender.stdout if line.endswith(b"\n")]
    with closing(QuerySpool(path, MIB, clock)) as spool:
        kept = numbers([*spool.after(0, 200_000)])
    assert kept[: len(said)] == [f"q-{number}" for number in said]
    assert len(kept) <= len(said) + 1


def test_ids_take_a_share_of_the_room_and_the_oldest_go(tmp_path: Path, clock: ManualClock) -> None:
    room = 10 * module.IDS_SHARE_MAX * module.ID_BYTES
    with closing(QuerySpool(tmp_path / "queries.db", room, clock)) as spool:
        assert spool.ids_max == 10
        for number in range(14):
            clock.advance(1)
            assert spool.put([query(number)]) == 1
            spool.done(number + 1)
        assert spool.put([query(number) for number in range(4, 14)]) == 0
        assert spool.put([query(3)]) == 1
    with closing(QuerySpool(tmp_path / "queries.db", room // 2, clock)) as smaller:  # counted when it is opened
        smaller.done(0)
        assert smaller.put([query(8)]) == 1
        assert smaller.put([query(13)]) == 0
