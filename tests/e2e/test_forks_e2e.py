"""Commands that are forked: their output, environment and exit status are as of commands that are started."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from icewright import __version__
from tests.e2e.forks import Forked
from tests.e2e.processes import Processes

pytestmark = pytest.mark.e2e


def test_its_exit_status_and_all_it_says_are_those_of_the_command_line(tmp_path: Path) -> None:
    log, environ = tmp_path / "log", {**os.environ, "ICEWRIGHT_SERVER__PORT": "none"}
    started = Forked(["version"], environ, log)
    assert log.exists()
    assert started.wait(60) == 0
    assert log.read_text() == f"icewright {__version__}\n"
    assert Forked(["serve"], environ, log).wait(60) == 2
    assert "ICEWRIGHT_SERVER__PORT" in log.read_text()


def test_it_is_a_process_of_its_own_that_signals_end(processes: Processes) -> None:
    processes.start("serve")
    with processes.client() as client:
        killed = processes.running["serve"]
        assert (killed.poll(), psutil.Process(killed.pid).ppid() != os.getpid()) == (None, True)
        assert os.getsid(killed.pid) == killed.pid
        client.status()
    processes.kill("serve")
    assert killed.returncode == -signal.SIGKILL
    processes.start("serve")
    with processes.client():
        ended = processes.running["serve"]
    ended.terminate()
    assert ended.wait(60) == 0
    assert "serving" in processes.log("serve")
