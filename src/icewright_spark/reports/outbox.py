"""Reports of commits that nobody could be told of, kept in a local folder until somebody listens.

Each is a file of its own, whole or not there at all. Whoever reports next sends what waits as well, and so does

    python -m icewright_spark.reports.outbox flush --outbox FOLDER --url URL --token env:ICEWRIGHT_TOKEN
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from icewright.core.errors import IcewrightError, InvalidConfiguration, Rejected, Unavailable
from icewright_spark.reports.destination import Destination

WAITING_MAX: Final = 10_000
"""Reports that an outbox holds; beyond these a report is refused, and its commit is left to the sweep."""
SENT_AT_ONCE: Final = 500
FLUSH_S: Final = 300.0
_NAME: Final = re.compile(r"[0-9]{20}-[0-9a-f]{16}\.json\Z")
_BYTES_MAX: Final = 64 * 1024
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_EXIT_WAITING: Final = 1
_EXIT_WRONG_USE: Final = 2

Send = Callable[[Sequence[Any]], None]
"""Tells the server of events. Raises ``Rejected`` where it takes one of them for wrong, else ``Unavailable``."""


@dataclass(frozen=True, slots=True)
class Flushed:
    """What became of the reports in an outbox; refused ones are set aside, as ``*.refused``."""

    sent: int
    refused: int
    waiting: int


class Outbox:
    """A folder of reports. Any number of processes may use it at once: a report that is sent twice is one event."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, event: Any) -> None:
        """Keep a report, durably.

        Raises :class:`Unavailable` when the folder cannot be written, or is full, and ``InvalidConfiguration`` when
        others can write to it.
        """
        name = f"{time.time_ns():020d}-{secrets.token_hex(8)}.json"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if len(self._names()) >= WAITING_MAX:
                raise Unavailable(f"the outbox {self._folder} is full", hint="flush it, or check that a server runs")
            fresh = self._folder / f".{name}"
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                json.dump(event, file)
                file.flush()
                os.fsync(file.fileno())
            fresh.rename(self._folder / name)
        except OSError as error:
            raise Unavailable(f"the outbox {self._folder} cannot be written: {error.strerror}") from error

    def flush(self, send: Send, until_s: float) -> Flushed:
        """Send what waits, oldest first, until ``until_s`` by :func:`time.monotonic`.

        Raises as ``send`` does, and ``InvalidConfiguration`` when others can write to the folder.
        """
        sent = refused = 0
        for start in range(0, len(names := self._names()), SENT_AT_ONCE):
            if time.monotonic() >= until_s:
                break
            events, unreadable = self._read(names[start : start + SENT_AT_ONCE])
            refused += unreadable
            for some in _sendable(events, send):
                if isinstance(some, str):
                    self._set_aside(some)
                    refused += 1
                else:
                    for name in some:
                        (self._folder / name).unlink(missing_ok=True)
                    sent += len(some)
        return Flushed(sent, refused, len(self._names()))

    def _names(self) -> list[str]:
        try:
            if self._folder.stat().st_mode & _OTHERS_WRITE:
                raise InvalidConfiguration(
                    f"others can write to the outbox {self._folder}, and have anything sent in our name",
                    hint="take that from them: chmod go-w",
                )
            return sorted(path.name for path in self._folder.iterdir() if _NAME.match(path.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Unavailable(f"the outbox {self._folder} cannot be read: {error.strerror}") from error

    def _read(self, names: Sequence[str]) -> tuple[dict[str, Any], int]:
        found, unreadable = {}, 0
        for name in names:
            try:
                found[name] = json.loads(_bytes(self._folder / name))
            except FileNotFoundError:
                continue  # another process has sent it
            except (OSError, ValueError, RecursionError):
                self._set_aside(name)
                unreadable += 1
        return found, unreadable

    def _set_aside(self, name: str) -> None:
        try:
            (self._folder / name).rename(self._folder / f"{name}.refused")
        except OSError:
            return  # another process has done so, or nobody can


def _bytes(path: Path) -> bytes:
    """What a report has. Raises ``OSError``, also for what is no regular file: a pipe there is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return file.read(_BYTES_MAX)


def _sendable(events: dict[str, Any], send: Send) -> Any:
    """Send events together, or one by one where one of them is taken for wrong: lists of names, and names refused."""
    if not events:
        return
    try:
        send(list(events.values()))
    except Rejected:
        if len(events) == 1:
            yield next(iter(events))
            return
        for name, event in events.items():
            yield from _sendable({name: event}, send)
    else:
        yield list(events)


def main(arguments: Sequence[str] | None = None) -> int:
    """Flush an outbox: 0 when nothing waits in it any more, 1 when something does, 2 for wrong use."""
    parser = argparse.ArgumentParser(prog="python -m icewright_spark.reports.outbox", description=__doc__)
    parser.add_argument("action", choices=["flush"])
    parser.add_argument("--outbox", required=True, type=Path)
    parser.add_argument("--url", required=True, help="the address of the server")
    parser.add_argument("--token", default="env:ICEWRIGHT_TOKEN", help="env:NAME or file:/path, never the token itself")
    options = parser.parse_args(arguments)
    try:
        destination = Destination(options.url, options.token)
        until_s = time.monotonic() + FLUSH_S
        flushed = Outbox(options.outbox).flush(lambda events: destination.tell(events, until_s), until_s)
    except IcewrightError as error:
        print(f"{error.message}", file=sys.stderr)  # noqa: T201 - a command
        return _EXIT_WRONG_USE if isinstance(error, Rejected) else _EXIT_WAITING
    print(f"{flushed.sent} sent, {flushed.refused} refused, {flushed.waiting} waiting")  # noqa: T201 - a command
    return _EXIT_WAITING if flushed.waiting else 0


if __name__ == "__main__":
    sys.exit(main())
