"""The named places where processes may die: each is in the code once, and nothing in the code makes use of them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from icewright.core import fault_points as faults
from icewright.core.fault_points import Fault, arm, fault

SRC = Path(__file__).parent.parent / "src"
MODULES = sorted(SRC.rglob("*.py"))


def calls(path: Path, name: str) -> Iterator[ast.Call]:
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if name in text else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == name:
            yield node


def placed() -> Counter[str]:
    return Counter(ast.unparse(call.args[0]) for path in MODULES for call in calls(path, "fault"))


def test_each_place_is_in_the_code_exactly_once() -> None:
    assert placed() == Counter({f"Fault.{point.name}": 1 for point in Fault})


def test_nothing_in_the_code_arms_a_process() -> None:
    assert [path.name for path in MODULES if list(calls(path, "arm"))] == []


def test_coming_by_a_place_does_nothing_unless_a_test_armed_it() -> None:
    seen: list[Fault] = []
    arm(seen.append)
    try:
        fault(Fault.COMMIT_AFTER)
    finally:
        arm(None)
    fault(Fault.COMMIT_BEFORE)
    assert seen == [Fault.COMMIT_AFTER]
    assert faults._armed is None


def test_what_a_hook_raises_passes_through() -> None:
    def die(point: Fault) -> None:
        raise SystemExit(point.value)

    arm(die)
    try:
        with pytest.raises(SystemExit, match=r"server\.plan\.before"):
            fault(Fault.PLAN_BEFORE)
    finally:
        arm(None)
