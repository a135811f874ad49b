"""The spool: queries that came in and are not counted yet, on the server's own disk.

An SQLite file beside the store, so that ten thousand queries a second are no load for the store. What was accepted is
on the disk before it is answered. The same query twice is one: by its id and tables, for as long as ids are kept.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from icewright.core import codec
from icewright.core.clock import Clock
from icewright.core.errors import InvalidMessage, SpoolFull, Unavailable, Unreadable
from icewright.core.times import Instant
from icewright.model.queries.queries import QueryRecord, QuerySource

IDS_KEPT_MS: Final = 2 * 24 * 3_600_000
"""How long a query is known by its id since it was last sent: engines and proxies send again within hours."""
LOG_IDS_KEPT_MS: Final = 60 * 24 * 3_600_000
"""The same of queries in event logs, which are read again whenever they grow, and when a server starts."""
ID_BYTES: Final = 128
"""What the id of a query that is not kept any more takes on the disk, indexes included (85 were measured)."""
IDS_SHARE_MAX: Final = 4
"""Ids take a quarter of the spool's bytes at most: of more, those go that would go first."""
BATCH_BYTES_MAX: Final = 32 * 1024 * 1024
"""Of queries that are read at once, unless one alone has more."""
SET_ASIDE_MAX: Final = 1_000
"""Records that could not be read and are kept for a person to look at; of more, the oldest go."""
SET_ASIDE_BYTES_MAX: Final = 65_536
"""Of each."""
_BUSY_S: Final = 10.0
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS queries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL UNIQUE, received_at INTEGER NOT NULL,
    forget_at INTEGER NOT NULL, body BLOB
);
CREATE INDEX IF NOT EXISTS waiting ON queries (seq) WHERE body IS NOT NULL;
CREATE INDEX IF NOT EXISTS counted ON queries (forget_at) WHERE body IS NULL;
CREATE TABLE IF NOT EXISTS set_aside (number INTEGER PRIMARY KEY, received_at INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS about (spool_id TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Spooled:
    """A query in the spool. ``seq`` grows with the order in which queries came in."""

    seq: int
    received_at: Instant
    query: QueryRecord


@dataclass(frozen=True, slots=True)
class SpoolFigures:
    """What waits in the spool, since when, and how many records could not be read."""

    waiting: int
    waiting_bytes: int
    oldest_at: Instant | None
    set_aside: int


class QuerySpool:
    """The spool of one server: of one process at a time. Safe for use by several threads.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the file cannot be read or written, as on a full
    disk: then nothing is accepted.
    """

    def __init__(self, path: Path, bytes_max: int, clock: Clock) -> None:
        """Open the file, which is made for its owner alone where it is missing.

        Raises :class:`Unreadable` for a file that is no spool, or damaged, and :class:`Unavailable` also while another
        process has it.
        """
        self._path, self._bytes_max, self._clock = path, bytes_max, clock
        self._lock = threading.Lock()
        with self._asking():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            self._lock_file = _locked(path.with_name(f"{path.name}.lock"))
            self._connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(_SCHEMA)
            with self._writing() as connection:
                found = connection.execute("SELECT spool_id FROM about").fetchone()
                self.spool_id = secrets.token_hex(8) if found is None else str(found[0])
                if found is None:
                    connection.execute("INSERT INTO about VALUES (?)", (self.spool_id,))
            self._waiting_bytes = self._bytes_of("true")
            counted = self._connection.execute("SELECT count(*) FROM queries WHERE body IS NULL").fetchone()
            self._ids = int(counted[0])

    def put(self, queries: Sequence[QueryRecord]) -> int:
        """Keep queries, durably, and say how many were new; all of them or none.

        Raises :class:`SpoolFull`.
        """
        now, new, added = self._clock.now(), 0, 0
        rows = [
            (key_of(query), now, now + _kept_ms(query), codec.dumps(query).encode("utf-8", "surrogatepass"))
            for query in queries
        ]
        insert = "INSERT OR IGNORE INTO queries (key, received_at, forget_at, body) VALUES (?, ?, ?, ?)"
        again = "UPDATE queries SET forget_at = max(forget_at, ?) WHERE key = ?"
        with self._lock, self._asking():
            with self._writing() as connection:
                for row in rows:
                    if connection.execute(insert, row).rowcount:
                        new, added = new + 1, added + len(row[3])
                    else:
                        connection.execute(again, (row[2], row[0]))
                if added and self._waiting_bytes + added > self._bytes_max:
                    raise SpoolFull(self._bytes_max)
            self._waiting_bytes += added
        return new

    def after(self, seq: int, limit: int) -> Sequence[Spooled]:
        """Queries that wait and came in behind ``seq``, in their order, as many as fit into :data:`BATCH_BYTES_MAX`.

        What cannot be read is set aside.
        """
        rows: list[tuple[int, Instant, bytes]] = []
        size_bytes = 0
        with self._lock, self._asking():
            query = "SELECT seq, received_at, body FROM queries WHERE body IS NOT NULL AND seq > ? ORDER BY seq LIMIT ?"
            for row in self._connection.execute(query, (seq, limit)):
                size_bytes += len(row[2])
                if rows and size_bytes > BATCH_BYTES_MAX:
                    break
                rows.append(row)
        found, unreadable = [], []
        for number, received_at, body in rows:
            try:
                found.append(Spooled(number, received_at, codec.loads(QueryRecord, body)))
            except (InvalidMessage, UnicodeDecodeError, RecursionError):  # of another release, or damaged: kept aside
                unreadable.append((number, body))
        if unreadable:
            self._forget_unreadable(unreadable)
        return found

    def set_aside(self, bodies: Sequence[bytes]) -> None:
        """Keep what cannot be read as queries, for a person to look at: the newest :data:`SET_ASIDE_MAX`."""
        with self._lock, self._asking(), self._writing():
            self._keep_aside(bodies)

    def done(self, through: int) -> None:
        """Forget the queries up to ``through``, but for their ids."""
        now = self._clock.now()
        with self._lock, self._asking():
            with self._writing() as connection:
                freed = self._bytes_of("seq <= ?", through)
                update = "UPDATE queries SET body = NULL WHERE body IS NOT NULL AND seq <= ?"
                ids = self._ids + connection.execute(update, (through,)).rowcount
                ids -= connection.execute("DELETE FROM queries WHERE body IS NULL AND forget_at < ?", (now,)).rowcount
                ids -= self._forget_ids(ids - self.ids_max)
            self._waiting_bytes -= freed
            self._ids = ids

    @property
    def ids_max(self) -> int:
        """How many ids of queries that wait no more are kept at most."""
        return self._bytes_max // IDS_SHARE_MAX // ID_BYTES

    @property
    def last_seq(self) -> int:
        """The place of the query that came in last, of all that ever did."""
        with self._lock, self._asking():
            found = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'queries'").fetchone()
            return 0 if found is None else int(found[0])

    def renew(self) -> None:
        """Give the spool another id: what waits is counted under it, whatever was counted under the one before.

        For a spool that is older than what is known of it, as one from a backup is: places would be given twice.
        """
        with self._lock, self._asking(), self._writing() as connection:
            self.spool_id = secrets.token_hex(8)
            connection.execute("UPDATE about SET spool_id = ?", (self.spool_id,))

    def put_aside(self, seqs: Sequence[int]) -> None:
        """Set queries aside that wait and can be neither counted nor logged."""
        with self._lock, self._asking():
            marks = ", ".join("?" * len(seqs))
            query = f"SELECT seq, body FROM queries WHERE body IS NOT NULL AND seq IN ({marks})"  # noqa: S608 - marks
            rows = self._connection.execute(query, tuple(seqs)).fetchall()
        self._forget_unreadable(rows)

    def figures(self) -> SpoolFigures:
        """How much waits."""
        with self._lock, self._asking():
            query = "SELECT count(*), min(received_at) FROM queries WHERE body IS NOT NULL"
            waiting, oldest = self._connection.execute(query).fetchone()
            (aside,) = self._connection.execute("SELECT count(*) FROM set_aside").fetchone()
            return SpoolFigures(waiting, self._waiting_bytes, oldest, aside)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
            os.close(self._lock_file)

    def _forget_ids(self, number: int) -> int:
        """Forget so many ids, those first that would go first; how many there were."""
        if number <= 0:
            return 0
        first = "SELECT seq FROM queries WHERE body IS NULL ORDER BY forget_at LIMIT ?"
        return self._connection.execute(f"DELETE FROM queries WHERE seq IN ({first})", (number,)).rowcount  # noqa: S608 - constants

    def _forget_unreadable(self, rows: Sequence[tuple[int, bytes]]) -> None:
        with self._lock, self._asking():
            with self._writing() as connection:
                self._keep_aside([body for _, body in rows])
                connection.executemany("UPDATE queries SET body = NULL WHERE seq = ?", [(seq,) for seq, _ in rows])
            self._ids += len(rows)
            self._waiting_bytes -= sum(len(body) for _, body in rows)

    def _keep_aside(self, bodies: Sequence[bytes]) -> None:
        now = self._clock.now()
        rows = [(now, body[:SET_ASIDE_BYTES_MAX]) for body in bodies]
        self._connection.executemany("INSERT INTO set_aside (received_at, body) VALUES (?, ?)", rows)
        newest = "SELECT number FROM set_aside ORDER BY number DESC LIMIT ?"
        self._connection.execute(f"DELETE FROM set_aside WHERE number NOT IN ({newest})", (SET_ASIDE_MAX,))  # noqa: S608 - constants

    def _bytes_of(self, which: str, *values: int) -> int:
        query = f"SELECT coalesce(sum(length(body)), 0) FROM queries WHERE body IS NOT NULL AND {which}"  # noqa: S608 - constants
        return int(self._connection.execute(query, values).fetchone()[0])

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
            self._connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # the file may be gone; what was not committed is not kept
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.ProgrammingError, sqlite3.IntegrityError) as error:
            raise Unavailable(f"the spool of queries {self._path} cannot be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise Unreadable(
                f"the spool of queries {self._path} is damaged, or none: {error}",
                hint="move it away and start the server again; queries in it that were not counted are lost",
            ) from error
        except OSError as error:
            raise Unavailable(f"the spool of queries {self._path} cannot be opened: {error.strerror}") from error


def _kept_ms(query: QueryRecord) -> int:
    return LOG_IDS_KEPT_MS if query.source in (QuerySource.SPARK, QuerySource.SQL) else IDS_KEPT_MS


def _locked(path: Path) -> int:
    """The lock file of a spool, locked until it is closed. Raises ``OSError`` while another process has it."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise OSError(error.errno, "another process has it") from error
    return descriptor


def key_of(query: QueryRecord) -> bytes:
    """By what a query is known: 16 bytes of a digest of its source, its id and the tables that it reads.

    Of the tables too, since senders choose ids: who may report of one table hides no query of another.
    """
    parts = (query.source, query.query_id, *sorted({str(read.table) for read in query.tables}))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()[:16]
