"""What ``icewright tasks attempts`` prints of the tries of a task."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.model.work.jobs import Committed, Failed
from icewright.model.work.tasks import AttemptState, Progress
from icewright.terminal.cli import Terminal
from icewright.work.tasks.attempts import _cells, print_attempt
from icewright.work.tasks.task_views import attempt_document, listed_attempt
from tests.plans.evidence.test_measures import CONFLICT, report


def test_a_line_says_how_it_ended_and_why() -> None:
    failed = replace(report(1, Failed("disk-full", "no room", retryable=True)), state=AttemptState.FAILED)
    assert _cells(listed_attempt(failed))[:4] == ("1", "failed", "away", "-")
    assert _cells(listed_attempt(failed))[-1] == "no room"
    assert _cells(listed_attempt(report(2, Committed(7))))[-1] == "committed as snapshot 7"
    silent = replace(failed, report_json=None, state=AttemptState.LOST, progress=Progress("merging", 1, 2))
    assert _cells(listed_attempt(silent))[1:4] == ("lost", "lost", "merging 1/2")
    assert _cells(listed_attempt(silent))[-1] == "never reported"
    assert _cells(listed_attempt(replace(silent, state=AttemptState.RUNNING)))[-1] == ""


def test_one_by_itself_has_what_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    print_attempt(Terminal(as_json=False), attempt_document(report(1, Committed(7), left=(CONFLICT,))))
    lines = {line.split("  ")[0]: line.split("  ")[-1].strip() for line in capsys.readouterr().out.splitlines()}
    assert (lines["groups committed"], lines["groups left"], lines["bytes written"]) == ("1", "1", "200 B")
    assert lines["says"] == "committed as snapshot 7"
    print_attempt(Terminal(as_json=False), attempt_document(replace(report(1, Committed(7)), report_json=None)))
    assert "reported nothing" in capsys.readouterr().out
