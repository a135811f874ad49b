"""What ``icewright groups`` prints."""

from __future__ import annotations

import pytest

from icewright.model.policy.resource_groups import ResourceGroup, TenantCaps
from icewright.model.work.halts import HaltState, Part, PartKind
from icewright.terminal.cli import Terminal
from icewright.work.groups.cli import group_cells, print_group
from tests.work.groups.test_group_views import NEVER
from tests.work.groups.test_queue_waits import ask, introduce, lakehouse


def test_a_group_with_caps_what_is_held_and_what_keeps_it(capsys: pytest.CaptureFixture[str]) -> None:
    caps = (TenantCaps("ops", cores=2, tasks_max=1), TenantCaps("bi"))
    house = lakehouse(ResourceGroup("default", cores=8, windows=(NEVER,), tenants=caps), tables=2)
    introduce(house, cores=2, memory_bytes=2**30)
    ask(house, applications=1)
    house.control.halting.halt(Part(PartKind.GROUP, "default"), HaltState.PAUSED, "a fire")
    found = house.control.group_views.document("default")
    cells = group_cells(found.group)
    assert cells[:4] == ("default", "configuration", "0 of no cap", "0 of 8")
    assert cells[6:8] == ("2", "1")
    assert cells[8] == "1"
    assert cells[9].startswith("paused since")
    assert "no window" in cells[9]
    print_group(Terminal(as_json=False), found)
    out = capsys.readouterr().out
    assert "It takes no task: no window of group default is open" in out
    assert "group default is paused" in out
    assert "submitter-1 on edge-1: 1 of at most 2 applications, asked 20" in out
    assert "owner ops: at most 1 tasks, 2 cores" in out
    assert "owner bi: at most what the group has" in out
    assert "0 0 29 2 * UTC for" in out
    assert "Waiting" in out
    assert "Held" not in out


def test_what_runs_is_said_with_who_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    house = lakehouse(tables=2)
    introduce(house, cores=2, memory_bytes=2**30)
    assert house.control.dispatcher.claim("optimizer-a") is not None
    print_group(Terminal(as_json=False), house.control.group_views.document("default"))
    out = capsys.readouterr().out
    assert "1 of no cap" in out
    assert "optimizer-a" in out
    assert "1.0 GiB" in out
