"""What a person reads of an expiry in a catalog that takes no old snapshots, before it and before it is undone."""

from __future__ import annotations

import pytest

from icewright.maintenance.cli import Planned, print_plan
from icewright.maintenance.explain import plan_view
from icewright.maintenance.tasks_cli import _print_document
from icewright.model.plans.plans import Plan
from icewright.model.work.tasks import Task
from icewright.terminal.cli import Terminal
from icewright.work.tasks.task_views import task_document
from tests.actions.expire_snapshots.test_expiry_service import ended
from tests.actions.undo.test_second_tables_service import lakehouse, second_of
from tests.actions.undo.test_undo_service import ALL_OLD, table, undone
from tests.builders.lakehouse import ALL_AUTO, NAME, Lakehouse


def test_the_plan_the_task_and_the_preview_name_the_second_table_and_what_it_means(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    house = lakehouse(monkeypatch, ALL_AUTO)
    asked = house.control.maintainer.plan_asked(NAME, ALL_OLD)
    before = table(house).metadata_location
    said = plan_text(capsys, asked)
    expiry = ended(house, house.control.dispatcher.apply(asked.plan_id))
    undo = house.control.undoer.plan(expiry.task_id)
    second = str(second_of(undo))
    assert f"can be registered as a second one, {second}, for 7 d" in said
    assert "both say gc.enabled=false" in said
    told = task_text(house, capsys, expiry)
    assert f"icewright undo {expiry.task_id}, until " in told
    assert f"as a second table, {second}" in told

    preview = plan_text(capsys, undo)
    for part in (
        f"{second}, with 5 snapshots",
        before,
        f"gc.enabled=false is set on lake.db.events and on {second}",
        "nothing expires and no file is removed of either by icewright",
        f"drop {second} without PURGE",
    ):
        assert part in preview
    assert f"5 snapshots in a second table, {second}" in task_text(house, capsys, undone(house, undo))


def plan_text(capsys: pytest.CaptureFixture[str], plan: Plan) -> str:
    capsys.readouterr()
    print_plan(Terminal(as_json=False), Planned(plan_view(plan), from_server=True))
    return " ".join(capsys.readouterr().out.split())


def task_text(house: Lakehouse, capsys: pytest.CaptureFixture[str], task: Task) -> str:
    capsys.readouterr()
    document = task_document(task.listed(), house.tasks.history(task.task_id), house.tasks.attempts(task.task_id))
    _print_document(Terminal(as_json=False), document)
    return " ".join(capsys.readouterr().out.split())
