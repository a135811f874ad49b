"""The demo as a person meets it: Ctrl-C leaves nothing running, and ``--clean`` removes what it made."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table.snapshots import Operation

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(600)]

DEMO = [sys.executable, "-m", "icewright", "demo"]


def test_ctrl_c_leaves_nothing_running_and_clean_removes_what_was_made(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    arguments = ["--no-browser", "--port", "0", "--folder", str(folder)]
    demo = subprocess.Popen([*DEMO, *arguments], stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own command
    assert demo.stdout is not None
    for line in demo.stdout:
        if " seen " in line:  # server, optimizer and writer are at work
            break
    started = psutil.Process(demo.pid).children(recursive=True)
    assert len(started) >= 3

    demo.send_signal(signal.SIGINT)
    said, _ = demo.communicate(timeout=120)

    assert demo.returncode == 0, said
    assert "nothing is left running" in said
    _, alive = psutil.wait_procs(started, timeout=20)
    assert alive == []

    subprocess.run([*DEMO, "--clean", "--folder", str(folder)], check=True, timeout=60)  # noqa: S603 - our own command
    assert not folder.exists()


def test_it_plays_to_its_end_and_every_promise_holds(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    command = [*DEMO, "--once", "--no-browser", "--days", "60", "--port", "0", "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)  # noqa: S603 - our own
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith("demo ok: 10 of 10 promises held; 60 files were committed, "), last
    catalog = load_catalog(
        "demo", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "warehouse")
    )
    for name in ("nyc.observations", "nyc.planes"):
        operations = [one.summary.operation for one in catalog.load_table(name).snapshots() if one.summary]
        # Whoever writes a table says when it may be touched: nothing was rewritten before its rows were deleted.
        assert Operation.REPLACE in operations
        assert operations.index(Operation.DELETE) < operations.index(Operation.REPLACE)


def test_a_folder_that_no_demo_made_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    for arguments in (["--clean"], ["--once", "--no-browser"]):
        command = [*DEMO, *arguments, "--folder", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - see above
        assert done.returncode in (1, 2)
        assert "was not made by the demo" in done.stderr
    assert (tmp_path / "precious.txt").read_text() == "mine"
