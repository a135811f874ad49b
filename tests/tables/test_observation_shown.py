"""What ``icewright table observation`` prints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.core.codec import from_json
from icewright.core.reasons import Reason
from icewright.tables.api_views import ObservationView
from icewright.tables.observations import print_observation
from icewright.terminal.cli import Terminal
from tests.builders.served import Served


def test_what_the_last_look_saw(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    uuid = served.table()
    view = from_json(ObservationView, served.get(f"/tables/{uuid}/observations")["items"][0])
    print_observation(Terminal(as_json=False), view)
    lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines() if "  " in line)
    said = {name: value.strip() for name, value in lines.items()}
    assert (said["snapshot"], said["manifests"]) == (str(view.snapshot_id), "12")
    assert "problem" not in said
    bare = replace(view, figures=None, first_seen=(), considered=(), problem=Reason("unavailable", "no answer"))
    print_observation(Terminal(as_json=False), replace(bare, exclusions=(Reason("not-sorted", "by its key"),)))
    out = capsys.readouterr().out
    assert "not-sorted: by its key" in out
    assert "no answer" in out
    assert "Seen first" not in out
    assert "rows" not in out
