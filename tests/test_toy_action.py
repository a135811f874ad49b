"""An action is added: what of the sources has to be touched for it, counted, and that nothing else is needed.

The action lies in a folder of its own (``tests/toy_action``). It is put into a copy of the sources: its words among
those of the other actions, its service and commands into a folder among theirs, and one line of registration. Nothing
else of the copy is changed. Then it is planned, checked, queued, carried out, verified and shown.
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
from typing import Any, Final

import pytest

import icewright

ROOT: Final = Path(__file__).parent.parent
SOURCES: Final = Path(icewright.__file__).parent


REGISTRY: Final = "model/actions/actions.py"
NEIGHBOUR: Final = '    ANALYZE_QUERIES = traits_in("analyze_queries")\n'
LINE: Final = '    COUNT_SNAPSHOTS = traits_in("count_snapshots")\n'
WORDS: Final = "model/actions/count_snapshots.py"
FOLDER: Final = "actions/count_snapshots"


def test_one_line_is_touched_and_what_comes_is_a_folder_and_its_words(tmp_path: Path) -> None:
    add_action(tmp_path)
    package = tmp_path / "icewright"
    before = {path.relative_to(SOURCES): path.read_text() for path in SOURCES.rglob("*.py")}
    after = {path.relative_to(package): path.read_text() for path in package.rglob("*.py")}
    assert [str(path) for path in before if after[path] != before[path]] == [REGISTRY]
    assert after[Path(REGISTRY)].replace(LINE, "", 1) == before[Path(REGISTRY)]
    added = {str(path) for path in after.keys() - before.keys()}
    assert added == {WORDS, *(f"{FOLDER}/{name}.py" for name in ("__init__", "cli", "service"))}


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


def add_action(folder: Path) -> None:
    """A copy of the package with the action; it is never reached through the tests' own ``icewright``."""
    package = folder / "icewright"
    shutil.copytree(SOURCES, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / FOLDER).mkdir()
    (package / FOLDER / "__init__.py").touch()
    for name, place in (("model", WORDS), ("service", f"{FOLDER}/service.py"), ("cli", f"{FOLDER}/cli.py")):
        text = (ROOT / "tests" / "toy_action" / f"{name}.py").read_text()
        text = text.replace("tests.toy_action.model", "icewright.model.actions.count_snapshots")
        (package / place).write_text(text)
    registry = (package / REGISTRY).read_text()
    assert NEIGHBOUR in registry
    (package / REGISTRY).write_text(registry.replace(NEIGHBOUR, LINE + NEIGHBOUR, 1))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the scenario says, in a process of its own with the copy."""
    folder = tmp_path_factory.mktemp("patched")
    add_action(folder)
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
