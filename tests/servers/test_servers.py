"""The servers of the tests are what they say, and end with whoever started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.servers.postgres import PostgresServer
from tests.servers.processes import DidNotStart, accepts, free_port, running
from tests.servers.s3 import S3Server

ROOT = Path(__file__).parent.parent.parent
_LISTENS = "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', {port})); s.listen(); time.sleep(600)"
_STARTS_ONE = """
import sys, time
from pathlib import Path
from tests.servers.processes import accepts, running
port = {port}
with running([sys.executable, "-c", {code!r}], log=Path({log!r}), ready=lambda: accepts(port)):
    print("ready", flush=True)
    time.sleep(600)
"""


def test_postgres_gives_every_test_its_own_database(postgres: PostgresServer) -> None:
    first, second = postgres.new_database(), postgres.new_database()
    assert first != second
    name = second.rpartition("/")[2]
    postgres.execute("CREATE TABLE only_here (x int)", name)
    assert postgres.execute("SELECT count(*) FROM only_here", name).strip() == "0"
    with pytest.raises(subprocess.CalledProcessError):
        postgres.execute("SELECT count(*) FROM only_here", first.rpartition("/")[2])


def test_the_server_of_s3_keeps_what_is_written(s3: S3Server) -> None:
    bucket, other = s3.new_bucket(), s3.new_bucket()
    with s3.files().open_output_stream(f"{bucket}/a/b") as stream:
        stream.write(b"content")
    assert s3.files().open_input_stream(f"{bucket}/a/b").read() == b"content"
    assert bucket != other


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(DidNotStart, match="no such luck"),
        running([sys.executable, "-c", "raise SystemExit('no such luck')"], log=tmp_path / "l", ready=lambda: False),
    ):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux's kernel tells a process that its parent has ended")
def test_a_server_ends_with_the_killed_process_that_started_it(tmp_path: Path) -> None:
    port = free_port()
    script = _STARTS_ONE.format(port=port, code=_LISTENS.format(port=port), log=str(tmp_path / "log"))
    parent = subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    assert accepts(port)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    while accepts(port):  # the test's own time limit ends it
        time.sleep(0.05)
