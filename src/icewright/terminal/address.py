"""Files that only the owner of a server can read: where it listens, for the CLI and the optimizer, and its secrets."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from icewright.core.codec import from_json, to_json
from icewright.core.errors import InvalidMessage, NotFound, Unreadable

SECRET_LENGTH_MIN: Final = 32


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The URL of a running server, its bearer token, and its process id."""

    url: str
    token: str = field(repr=False)
    pid: int


def write_address(path: Path, address: ServerAddress) -> None:
    """Write the file with mode 0600, in one step: a reader sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)  # what another process of that id left behind, whoever may read it
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(to_json(address), file)
    fresh.replace(path)


def read_address(path: Path) -> ServerAddress:
    """The address of the running server.

    Raises :class:`NotFound` when no server has written one, and :class:`Unreadable` when it cannot be understood or
    other users of the machine could have written it.
    """
    try:
        text = read_private(path)
    except FileNotFoundError:
        raise NotFound("no server is running", hint="start one: `icewright serve`") from None
    try:
        return from_json(ServerAddress, json.loads(text))
    except (ValueError, InvalidMessage) as error:
        raise Unreadable(f"{path} is not the address of a server: {error}", hint="start the server again") from error


def read_private(path: Path) -> str:
    """The text of a file that nobody else can read or write. Raises ``FileNotFoundError`` and :class:`Unreadable`."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())  # of what is read, whatever the path leads to a moment later
            if status.st_uid != os.getuid() or status.st_mode & 0o077:
                raise Unreadable(
                    f"{path} can be read or written by others; it is not to be trusted",
                    hint="delete it and start again",
                )
            return file.read().decode()
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path} cannot be read: {error}") from error


QUERIES_KEY: Final = "queries-key"
"""The secret by which strings in queries are hashed, where none is configured."""


def lasting_secret(state_dir: Path, name: str) -> str:
    """A secret of this state directory, made when it is first asked for and kept with mode 0600.

    The bearer token outlives the process, so that an optimizer in the middle of a task can report to a server that was
    restarted. Raises :class:`Unreadable` for one that others can read, or that is none.
    """
    path = state_dir / name
    state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileNotFoundError):
        return _read_secret(path)
    # Written whole, then named: a crash in between must not leave an empty secret behind.
    fresh = state_dir / f"{name}.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(32))
        file.flush()
        os.fsync(file.fileno())
    with suppress(FileExistsError):  # another server of this directory was faster: its secret counts
        path.hardlink_to(fresh)
    fresh.unlink()
    return _read_secret(path)


def _read_secret(path: Path) -> str:
    secret = read_private(path).strip()
    if len(secret) < SECRET_LENGTH_MIN:
        raise Unreadable(f"{path} holds no {path.name}", hint="delete it and start again")
    return secret


def remove_address(path: Path, address: ServerAddress) -> None:
    """Remove the file if it is still this server's."""
    try:
        if read_address(path) == address:
            path.unlink()
    except (NotFound, Unreadable, FileNotFoundError):
        return  # it is not ours any more
