"""The store by itself, without a server: copied, put back, and looked through.

Why a restore is more than a copy: ``docs/decisions``, 0043.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, make_url

from icewright.config.model import Config
from icewright.config.secrets import resolve
from icewright.core.errors import NotAllowed, Unreadable
from icewright.core.times import Instant
from icewright.model.work.retention import DAY_MS, SETTING_OF, Pruned, Retention, RowKind, Rows
from icewright.retention.prunings_sql import SqlPrunings
from icewright.store.engine import store_engine, upgrade_store
from icewright.store.transactions import writing
from icewright.store_admin import backup
from icewright.store_admin.integrity_check import problems
from icewright.store_admin.leader_lock import lock_store, lock_store_file
from icewright.store_admin.restore import Restored, prepare_restored_store


@dataclass(frozen=True, slots=True)
class PutBack:
    """What a restore found, and where the store that was replaced is kept; None where none was."""

    found: Restored
    kept: Path | None


def back_up(config: Config, target: Path) -> int:
    """Copy the store to a new file, whatever a server does meanwhile; the size of the copy in bytes.

    Raises :class:`NotAllowed` for a store on PostgreSQL, which has means of its own, and what copying raises.
    """
    file = _file_of(config)
    if file is None:
        raise NotAllowed(
            "the store is on PostgreSQL, which is backed up by its own means",
            hint="pg_dump --format=custom, or the backup of the database server; then `icewright store check`",
        )
    return backup.copy_to(file, target)


def restore(config: Config, environ: Mapping[str, str], source: Path | None, now: Instant) -> PutBack:
    """Put a backup in the place of the store; of PostgreSQL, make fit what was put back into the database already.

    Raises :class:`NotAllowed` while any server holds the store, and where ``source`` is missing or too many; and what
    reading the backup raises. The store is as it was unless all of it went well.
    """
    file = _file_of(config)
    if file is None:
        if source is not None:
            hint = "put the backup into the database with pg_restore, then run this without a file"
            raise NotAllowed("the store is on PostgreSQL: files are put back by its own means", hint=hint)
        with (
            _engine(config.server.store_url, _password(config, environ)) as engine,
            lock_store(engine) as own,
            writing(own) as connection,
        ):
            return PutBack(prepare_restored_store(connection), None)
    if source is None:
        raise NotAllowed("which file?", hint="icewright store restore FILE")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with lock_store_file(file):
        staged = backup.stage(source, file)
        with _engine(f"sqlite:///{staged}", None) as engine:
            upgrade_store(engine)
            with writing(engine) as connection:
                found = prepare_restored_store(connection)
        return PutBack(found, backup.put_in_place(staged, file, str(now)))


def check(config: Config, environ: Mapping[str, str]) -> list[str]:
    """What is wrong with the store, in sentences. Nothing is changed. Raises :class:`NotFound` where there is none."""
    file = _file_of(config)
    if file is not None:
        damage = backup.problem_of(file)
        if damage is not None:
            return [f"the file is damaged: {damage}"]
    with _engine(config.server.store_url, _password(config, environ)) as engine:
        return problems(engine)


@dataclass(frozen=True, slots=True)
class KindKept:
    """How long rows of a kind are kept, how many there are, and what became of others.

    ``setting`` is by which setting, empty where there is none. ``kept_days`` is null where they are kept for good, or
    by their number; ``kept_count`` that number for each table. ``pruned_at`` is null, and ``removed`` 0, before the
    first time.
    """

    kind: RowKind
    setting: str
    kept_days: int | None
    kept_count: int | None
    rows: int
    oldest_at: Instant | None
    pruned_at: Instant | None
    removed: int


def retention(config: Config, environ: Mapping[str, str]) -> list[KindKept]:
    """How much of the past the store keeps, kind by kind, counted now. Nothing is changed.

    Raises :class:`Unreadable` where the store is damaged, or not as this icewright knows it; :class:`NotFound` where
    there is none.
    """
    troubles = check(config, environ)
    if troubles:
        raise Unreadable(f"the store cannot be looked through: {troubles[0]}", hint="icewright store check")
    with _engine(config.server.store_url, _password(config, environ)) as engine:
        prunings = SqlPrunings(engine)
        rows, pruned = prunings.rows(), prunings.pruned()
    return [_kind_kept(kind, config.server.retention, rows[kind], pruned.get(kind)) for kind in RowKind]


def _kind_kept(kind: RowKind, keep: Retention, rows: Rows, pruned: Pruned | None) -> KindKept:
    kept_ms = keep.spans_ms.get(kind)
    return KindKept(
        kind,
        f"server.{SETTING_OF[kind]}" if kind in SETTING_OF else "",
        None if kept_ms is None else kept_ms // DAY_MS,
        keep.plans if kind is RowKind.PLANS else None,
        rows.count,
        rows.oldest_at,
        None if pruned is None else pruned.pruned_at,
        0 if pruned is None else pruned.removed,
    )


def _file_of(config: Config) -> Path | None:
    """The file of a store on SQLite, which may not be there; None of one on PostgreSQL."""
    url = make_url(config.server.store_url)
    return Path(str(url.database)) if url.get_backend_name() == "sqlite" else None


def _password(config: Config, environ: Mapping[str, str]) -> str | None:
    password = config.server.store_password
    return None if password is None else resolve(password, key="server.store_password", environ=environ)


@contextmanager
def _engine(url: str, password: str | None) -> Iterator[Engine]:
    engine = store_engine(url, password=password)
    try:
        yield engine
    finally:
        engine.dispose()
