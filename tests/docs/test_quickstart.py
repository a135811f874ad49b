"""The quickstart as it is written: its commands are carried out, and what they print is what the page says.

With ``ICEWRIGHT_WRITE_STORIES=1`` the page is written with what they print.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.builders.command_line import at_home, icewright, on_screen
from tests.cases import ROOT
from tests.servers.processes import running

pytestmark = pytest.mark.e2e

PAGE = ROOT / "docs/quickstart.md"
FOLDER = "/tmp/lake"  # noqa: S108 - as the page says; here it is the test's own
WRITE = "ICEWRIGHT_WRITE_STORIES"
FOUND = (["scan"], ["approve"])
"""What ends with the status 1 here: there are findings, a plan waits."""
_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
_PLAN = re.compile(r"\bplan-[0-9a-f-]{36}")
_WAIT_S_MAX = 120.0
_MASKS = (
    (re.compile(r"\b(?:plan|task)-[0-9a-f-]{8,36}|\b[0-9a-f]{8}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( UTC)?"), "TIME"),
    (re.compile(r"\b[\d,.]+ (ms|s|min|h)\b"), "DURATION"),
    (re.compile(r"\b[\d,.]+ ([KMG]iB|B)\b"), "BYTES"),  # metadata has paths in it
    (re.compile(r"[─-]{3,}"), "---"),
    (re.compile(r"\s+"), " "),
)


def masked(text: str) -> str:
    """What is the same each time, wherever lines are broken."""
    for pattern, name in _MASKS:
        text = pattern.sub(name, text)
    return text.strip()


def printed(command: str, folder: Path) -> str:
    """What a command of the page prints, by the folder that the page names."""
    here = command.replace(FOLDER, str(folder))
    if here.startswith("mkdir"):
        return ""
    if here.startswith("python "):
        writer, _, tail = here.partition(" | tail -n ")
        done = subprocess.run([sys.executable, *shlex.split(writer)[1:]], capture_output=True, text=True, check=True)  # noqa: S603 - the page's own command
        return "".join(done.stdout.splitlines(keepends=True)[-int(tail) :])
    words = shlex.split(here)[1:]
    ends_at = time.monotonic() + _WAIT_S_MAX
    if words == ["approve"]:  # within seconds, the page says
        while icewright("approve", "--json").json["items"] == []:
            assert time.monotonic() < ends_at, "no plan waits"
            time.sleep(0.2)
    if "PLAN_ID" in words:
        (plan,) = _PLAN.findall(icewright("approve", "--json").out)[:1]
        words = [plan if word == "PLAN_ID" else word for word in words]
    # As a terminal shows it: a pipe has all that was found of a table in one line.
    said = on_screen(*words, width=100) if words == ["scan"] else icewright(*words)
    assert said.status == (words in FOUND), said.err
    return said.out.replace(str(folder), FOLDER)


def played(block: str, folder: Path) -> str:
    commands = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{printed(command, folder)}" for command in commands)


def test_commands_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_home(tmp_path, monkeypatch)
    monkeypatch.setenv("COLUMNS", "100")
    text = PAGE.read_text(encoding="utf-8")
    (configuration,) = re.findall(r"^```toml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "icewright.toml").write_text(configuration.replace(FOLDER, str(tmp_path)))
    before, decide = text.split("## Start the server")
    played_before = _BLOCK.sub(lambda block: played(block[0], tmp_path), before)
    log = tmp_path / "log"
    command = [sys.executable, "-m", "icewright", "serve", "--port", "0"]
    with running(command, log=log, ready=lambda: "serving" in log.read_text()):
        played_after = _BLOCK.sub(lambda block: played(block[0], tmp_path), decide)
    found = f"{played_before}## Start the server{played_after}"
    if os.environ.get(WRITE):
        PAGE.write_text(found, encoding="utf-8")
        return
    assert masked(found) == masked(text), f"to write the page: {WRITE}=1"
    assert len(_BLOCK.findall(text)) >= 5


def test_a_page_that_says_something_else_would_be_noticed() -> None:
    said = "merge 59 small files (1.6 MiB) of plan-01a2185c-9849-7000-b5c6-b034997f3ef1 at 2026-11-26 14:57:31 UTC"
    assert masked(said) == "merge 59 small files (BYTES) of ID at TIME"
    assert masked(said.replace("59", "60")) != masked(said)
