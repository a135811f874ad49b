"""What was predicted and what was measured stand side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.maintenance.tasks_cli import _print_document
from icewright.model.work.jobs import Committed
from icewright.model.work.tasks import Attempt
from icewright.terminal.cli import Terminal
from icewright.work.tasks.task_views import task_document
from tests.builders.lakehouse import MINUTE_MS, NAME, Lakehouse
from tests.builders.worker import Worker
from tests.plans.evidence.test_measures import CONFLICT, report

ALL = {
    "groups": "1 2",
    "files replaced": "8 8",
    "files written": "1 2",
    "bytes replaced": "8.0 MiB 800 B",
    "bytes written": "8.0 MiB 200 B",
    "rows read": "80 80",
    "rows deleted": "- 2",
    "of which proof": "- 0.0 s",
    "time": "- 0.1 s",
    "bytes wasted": "- 0 B",
}


def shown(capsys: pytest.CaptureFixture[str], *attempts: Attempt, layout: str = "none") -> dict[str, str]:
    house = Lakehouse()
    house.create(properties={"icewright.layout": layout, "icewright.level-1.size-bytes": "1000000"})
    house.append(8)
    house.pass_time(5 * MINUTE_MS)
    house.control.maintainer.look(NAME)
    task = house.control.verifier.verify(Worker(house).carry_out())
    capsys.readouterr()
    _print_document(Terminal(as_json=False), task_document(task.listed(), house.tasks.history(task.task_id), attempts))
    out = capsys.readouterr().out
    if "Figures" not in out:
        return {}
    rows = out.split("Figures\n")[1].split("\n\n")[0].splitlines()[1:]
    cells = [[cell.strip() for cell in row.split("  ") if cell.strip()] for row in rows]
    return {name: " ".join(rest) for name, *rest in cells}


def test_the_prediction_stands_beside_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, report(1, Committed(1)))
    assert found["CPU"].endswith(" s 0.0 s")
    assert {name: found.get(name) for name in ALL} == ALL
    assert "groups left: conflicts" not in found


def test_groups_that_were_left_and_bytes_that_were_wasted_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, report(1, Committed(1), left=(CONFLICT,)))
    assert (found["groups left: conflicts"], found["groups left: failures"]) == ("- 1", "- 0")
    assert found["bytes wasted"] == "- 100 B"


def test_before_a_report_there_is_nothing_to_compare(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys) == {}


def test_proofs_that_nobody_measured_are_not_said_to_cost_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    attempt = report(1, Committed(1))
    assert attempt.report_json is not None
    found = shown(capsys, replace(attempt, report_json=attempt.report_json.replace(',"proof_cpu_ms":3', "")))
    assert "CPU" in found
    assert "of which proof" not in found


def test_lookups_by_each_column_of_the_layout_are_among_them(capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, report(1, Committed(1)), layout="hilbert(id, city)")
    assert found["files with one id"] == found["files with one city"] == "1.0 (1 at most) 1.0 (1 at most)"
