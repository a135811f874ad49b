"""An action is added: what of the sources has to be touched for it, counted, and that nothing else is needed.

The action lies in a folder of its own (``tests/toy_action``). It is registered in a copy of the sources by the lines
below, and nothing else of the copy is changed. Then it is planned, checked, queued, carried out, verified and shown.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

import icewright

ROOT: Final = Path(__file__).parent.parent
SOURCES: Final = Path(icewright.__file__).parent


class Line(NamedTuple):
    """Text that is put into a file, right before or behind the first place where ``at`` stands."""

    path: str
    at: str
    text: str
    before: bool = False


LINES: Final = (
    Line(
        "model/actions/actions.py",
        "\n\nclass Executor(",
        "from tests.toy_action.model import TRAITS as COUNT_SNAPSHOTS_TRAITS\n",
        before=True,
    ),
    Line(
        "model/actions/actions.py",
        "    ROLLBACK_TO_SNAPSHOT = rollback.TRAITS\n",
        "    COUNT_SNAPSHOTS = COUNT_SNAPSHOTS_TRAITS\n",
    ),
    Line(
        "maintenance/registry/services.py",
        "_ALL: Final",
        "from tests.toy_action.service import COUNT_SNAPSHOTS  # noqa: F401 - registered below\n",
        before=True,
    ),
    Line(
        "maintenance/registry/cli.py",
        "ACTION_WORDS: Final",
        "from tests.toy_action.cli import WORDS as _COUNT_SNAPSHOTS  # noqa: F401 - registered below\n",
        before=True,
    ),
)


def test_so_much_has_to_be_touched() -> None:
    assert len({line.path for line in LINES}) == 3
    assert sum(line.text.count("\n") for line in LINES) == 4


def test_the_folder_knows_only_rooms_below_the_actions() -> None:
    """So that it can stand among the other actions, as the contract on layers has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = contracts[0]["layers"]
    lowest = max(number for number, layer in enumerate(layers) if "actions." in layer)
    below = {room.strip() for layer in layers[lowest + 1 :] for room in layer.split("|")}
    imported = {
        (node.module or "").split(".")[1]
        for name in ("model", "service", "cli")
        for node in ast.walk(ast.parse((ROOT / "tests" / "toy_action" / f"{name}.py").read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("icewright.")
    }
    assert imported, "nothing is imported"
    assert imported <= below


def patched(folder: Path) -> None:
    """A copy of the package with the lines above; it is never reached through the tests' own ``icewright``."""
    shutil.copytree(SOURCES, folder / "icewright")
    for line in LINES:
        path = folder / "icewright" / line.path
        text = path.read_text()
        assert line.at in text, line
        new = line.text + line.at if line.before else line.at + line.text
        path.write_text(text.replace(line.at, new, 1))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the scenario says, in a process of its own with the copy."""
    folder = tmp_path_factory.mktemp("patched")
    patched(folder)
    environ = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "HOME": str(folder)}
    command = [sys.executable, str(ROOT / "tests" / "toy_action" / "scenario.py")]
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["icewright"] == str(folder / "icewright" / "__init__.py")
    return said


def test_it_is_planned_and_checked(found: Any) -> None:
    assert found["plan"]["prediction"] == {"kind": "count_snapshots", "snapshots": 12, "call": ""}
    assert found["plan"]["actions"][0]["kind"] == "count_snapshots"
    assert found["plan"]["can_apply"]


def test_it_is_queued_carried_out_and_verified(found: Any) -> None:
    task = found["task"]
    assert (task["state"], task["outcome"]["reason"]["code"]) == ("succeeded", "verified")
    assert task["outcome"]["reason"]["figures"] == {"snapshots": 12}


def test_it_is_shown_by_the_command_line(found: Any) -> None:
    assert "counts    12 snapshots" in found["planned"]
    assert "count 12 snapshots" in found["queued"]
    assert "outcome   the table has 12 snapshots" in found["shown"]
    assert "work      12 snapshots are counted" in found["shown"]
    assert "cannot be undone: it changed nothing" in found["undo"]


def test_it_is_in_the_api_document(found: Any) -> None:
    names = ["AskedCountSnapshots", "CountSnapshots", "CountSnapshotsFigures", "CountSnapshotsPrediction"]
    assert found["schemas"] == names
