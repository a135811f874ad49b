"""One server per store, never a lock that outlives its holder, and a server that ends once it is not alone."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from icewright.adapters.sql.engine import open_store
from icewright.app.alone import Watch, alone_with
from icewright.domain.errors import NotAllowed, StoreAway, StoreTaken
from tests.servers.postgres import PostgresServer

_HOLD = """
import sys
from icewright.adapters.sql.engine import open_store
from icewright.app.alone import alone_with
with alone_with(open_store(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_second_server_is_refused_until_the_first_has_ended(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/icewright.db"
    if database == "postgresql":
        postgres: PostgresServer = request.getfixturevalue("postgres")
        url = postgres.new_database()
    engine = open_store(url)
    first = subprocess.Popen(  # noqa: S603 - our own interpreter, as a list
        [sys.executable, "-c", _HOLD, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None
    assert first.stdout.readline() == "held\n"

    with pytest.raises(NotAllowed, match="another server holds the store"), alone_with(engine):
        pass
    first.kill()
    first.communicate()
    with alone_with(engine) as alone:
        alone.check()
        if database == "sqlite":
            assert (tmp_path / "icewright.db.lock").stat().st_mode & 0o777 == 0o600
    engine.dispose()


def watched(answers: list[Exception | None]) -> tuple[Watch, threading.Event]:
    """A watch whose checks go as ``answers`` say, in turn; and whether it has ended its server."""
    ended, asked = threading.Event(), iter(answers)

    def check() -> None:
        answer = next(asked, None)
        if answer is not None:
            raise answer

    end: Callable[[], None] = ended.set
    return Watch(check, end, interval_s=0.001), ended


def test_a_server_whose_store_was_taken_over_ends() -> None:
    taken = StoreTaken("another server")
    watch, ended = watched([None, StoreAway("for a while"), None, taken])
    with capture_logs() as logs, watch:
        assert ended.wait(30)
    assert watch.taken is taken
    assert [entry["event"] for entry in logs] == ["store away", "store taken over"]


def test_a_server_that_is_alone_goes_on() -> None:
    watch, ended = watched([None])
    with watch:
        pass
    assert not ended.is_set()
    assert watch.taken is None
