"""A copy of a store on SQLite while a server writes to it, and a store put in the place of another.

A file is copied by SQLite's own means: copying it by others misses what is in its log, or gets half of a page. At no
moment is there no store at its place: a server that found none would begin with an empty one.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from icewright.core.errors import Conflict, InvalidConfiguration, NotFound, StoreUnavailable, Unreadable
from icewright.store.migrate import VERSION_TABLE

_IS_STORE = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?"
_PAGES_AT_ONCE = 4_096
"""Copied between two looks whether somebody wrote: 16 MiB."""


def copy_to(store: Path, target: Path) -> int:
    """Copy a store to a new file of its owner alone; its size in bytes. The copy is whole, or the file is empty.

    Raises :class:`NotFound`, :class:`Conflict` where there is something at ``target``, and :class:`StoreUnavailable`.
    """
    if not store.is_file():
        raise NotFound(f"there is no store {store}")
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))  # its name is taken
    except FileExistsError as error:
        raise Conflict(f"{target} is there already", hint="a backup never replaces a file") from error
    except OSError as error:
        raise InvalidConfiguration(f"{target} cannot be written: {error.strerror}") from error
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    _copy(store, partial)
    problem = problem_of(partial)
    if problem is not None:
        raise Unreadable(f"the copy {partial} is damaged: {problem}")
    partial.replace(target)
    _to_disk(target)
    return target.stat().st_size


def problem_of(store: Path) -> str | None:
    """What SQLite finds wrong with a file; None when it finds nothing. Raises :class:`NotFound`."""
    if not store.is_file():
        raise NotFound(f"there is no file {store}")
    try:
        with closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            if not connection.execute(_IS_STORE, [VERSION_TABLE]).fetchall():
                return "it is no store of icewright's"
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)")]
            lost = connection.execute("PRAGMA foreign_key_check").fetchmany(5)
    except sqlite3.Error as error:
        return str(error)
    if found != ["ok"]:
        return "; ".join(found)
    return f"rows of {lost[0][0]} belong to rows of {lost[0][2]} that are not there" if lost else None


def stage(backup: Path, store: Path) -> Path:
    """A copy of a backup beside the store that it is to replace. Raises :class:`Unreadable` and :class:`NotFound`."""
    problem = problem_of(backup)
    if problem is not None:
        raise Unreadable(f"the backup {backup} is damaged: {problem}", hint="take another one")
    staged = store.with_name(f"{store.name}.{os.getpid()}.restoring")
    if staged.exists():
        raise Conflict(f"{staged} is there already", hint="remove what an earlier restore has left")
    _copy(backup, staged)
    return staged


def put_in_place(staged: Path, store: Path, stamp: str) -> Path | None:
    """Put a staged store in the place of another, which is kept beside it; where, None if there was none.

    Nobody else may have either open.
    """
    _to_disk(staged)
    kept = store.with_name(f"{store.name}.before-{stamp}")
    if not store.exists():
        staged.replace(store)
        _to_disk(store)
        return None
    try:
        with closing(sqlite3.connect(store)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error:
        pass  # damaged: what of it can be saved lies in its files, which are kept
    os.link(store, kept)
    for suffix in ("-wal", "-shm"):
        log = store.with_name(f"{store.name}{suffix}")
        if log.exists():
            log.replace(kept.with_name(f"{kept.name}{suffix}"))
    staged.replace(store)
    _to_disk(store)
    return kept


def _copy(source: Path, target: Path) -> None:
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as reading,
            closing(sqlite3.connect(target)) as writing,
        ):
            reading.backup(writing, pages=_PAGES_AT_ONCE, sleep=0.01)
            writing.execute("PRAGMA journal_mode = DELETE")
    except OSError as error:
        raise InvalidConfiguration(f"{target} cannot be written: {error.strerror}") from error
    except sqlite3.Error as error:
        raise StoreUnavailable(f"{source} could not be copied: {error}") from error


def _to_disk(file: Path) -> None:
    for path in (file, file.parent):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
