"""Every hazard has its row on ``docs/hazards.md``, and every row a test whose name begins with its id, or a reason."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.cases import each_case

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "hazards.md"

HAZARDS = {"O": 15, "E": 14, "W": 13, "C": 2, "P": 10, "L": 8, "S": 5, "V": 6, "X": 6}
"""How many there are of each letter, counted from 1: a row that went would be missed."""

CAMPAIGN = "## The adversarial campaign"
"""The heading of a list of its own, with the tests of ``tests/adversary/``: its ids may be those of other rows."""

OF_CAMPAIGN = {"F": 12, "R": 6, "S": 10}

OF_OTHER_LISTS = frozenset("GIQT")
"""Letters of ids that are no hazards: goals, what always holds, the queue and its servers, threats by people."""

_NO_PROXY = "there is no proxy"
NOT_YET = {
    "W3": "deletes that point to files which are gone are not looked for yet",
    **{f"P{number}": _NO_PROXY for number in range(1, 11)},
    "L7": "nobody looks yet whether data files are there",
    "V6": "no tables are moved",
    "X6": "it is not told yet how far back a table's data can be had",
}
"""Rows whose guard is not there yet, each with its reason. Whoever brings the first test of one takes it off this list,
and names the test on the page."""

Node = tuple[str, str]
"""The file of a test from the root of the tree, and its name, in a class as ``Class::name``."""

NONE_YET = "none yet"
_ROW = re.compile(r"^\| ([A-Z]\d+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
_IDS = re.compile(r"^test_((?:[a-z]\d{1,2}_)+)")
_OF_SOME = re.compile(r"\bdef test_[a-z]\d")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")


class Row(NamedTuple):
    """One hazard as the page has it, with the tests that it names."""

    hazard: str
    tests: tuple[Node, ...]
    has_none_yet: bool


def rows(page: str) -> list[Row]:
    return [
        Row(hazard, tuple(_TEST.findall(tests)), tests == NONE_YET)
        for hazard, _happened, _today, tests in _ROW.findall(page)
    ]


def ids(name: str) -> tuple[str, ...]:
    """The ids at the front of a test's name."""
    found = _IDS.match(name)
    return tuple(found[1].upper().rstrip("_").split("_")) if found else ()


def sections(page: str) -> tuple[str, str]:
    """The section of the campaign, and the page without it."""
    before, _heading, after = page.partition(f"\n{CAMPAIGN}\n")
    section, *others = re.split(r"^(?=## )", after, maxsplit=1, flags=re.MULTILINE)
    return section, before + "".join(others)


@cache
def by_ids(*, campaign: bool) -> Mapping[str, AbstractSet[Node]]:
    """The tests of ``tests/adversary/``, or all others, by their ids."""
    found: dict[str, set[Node]] = defaultdict(set)
    adversary = ROOT / "tests" / "adversary"
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path.is_relative_to(adversary) != campaign:
            continue
        text = path.read_text(encoding="utf-8")
        for name in functions(ast.parse(text)) if _OF_SOME.search(text) else ():  # most files are of none
            for one in ids(name.rpartition("::")[2]):
                found[one].add((str(path.relative_to(ROOT)), name))
    return found


def functions(module: ast.Module) -> Iterator[str]:
    """The test functions that pytest finds in a module, those of classes as ``Class::name``."""
    for node in module.body:
        match node:
            case ast.FunctionDef(name) if name.startswith("test_"):
                yield name
            case ast.ClassDef(name, body=body) if name.startswith("Test"):
                yield from (f"{name}::{one}" for one in functions(ast.Module(body, [])))


def all_ids(counts: Mapping[str, int]) -> list[str]:
    return [f"{letter}{number}" for letter, count in counts.items() for number in range(1, count + 1)]


def problems(
    page: list[Row], found: Mapping[str, AbstractSet[Node]], not_yet: AbstractSet[str], expected: Sequence[str]
) -> Iterator[str]:
    """Where page, tests and the list of what is not there yet differ."""
    if [row.hazard for row in page] != expected:
        differing = sorted({*expected} ^ {row.hazard for row in page})
        yield f"the rows are not all hazards, each once and in order: {differing}"
    for hazard in sorted(not_yet - {*expected}):
        yield f"{hazard} is on the list NOT_YET and no hazard"
    for row in page:
        tests = found.get(row.hazard, frozenset())
        yield from without_tests(row, tests) if row.hazard in not_yet else with_tests(row, tests)
    for one, tests in sorted(found.items()):
        if one not in expected and one[0] not in OF_OTHER_LISTS:
            yield f"there is no hazard {one}; a test may not be named for it: {'::'.join(min(tests))}"


def without_tests(row: Row, tests: AbstractSet[Node]) -> Iterator[str]:
    """What is wrong with a row of the list."""
    if tests:
        test = "::".join(min(tests))
        yield f"{row.hazard} has a test now, {test}: take it off NOT_YET, and say in its row what is done and name it"
    if not row.has_none_yet:
        yield f"{row.hazard} is on the list NOT_YET, and its row does not say {NONE_YET!r}"


def with_tests(row: Row, tests: AbstractSet[Node]) -> Iterator[str]:
    """What is wrong with any other row."""
    if not tests:
        yield f"{row.hazard} has no test whose name begins with test_{row.hazard.lower()}_, and is not on NOT_YET"
    if not row.tests:
        yield f"the row of {row.hazard} names no test"
    for test in row.tests:
        if test not in tests:
            yield f"the row of {row.hazard} names {'::'.join(test)}, which is no test with its id"


def test_every_hazard_has_a_test_or_says_why_not() -> None:
    _, page = sections(PAGE.read_text(encoding="utf-8"))
    found = list(problems(rows(page), by_ids(campaign=False), NOT_YET.keys(), all_ids(HAZARDS)))
    assert found == [], "\n".join(found)


def test_every_row_of_the_campaign_has_a_test_of_it() -> None:
    section, _ = sections(PAGE.read_text(encoding="utf-8"))
    others = {one for one in all_ids(HAZARDS) if one[0] not in OF_CAMPAIGN}  # a test may be of a row above as well
    tests = {one: nodes for one, nodes in by_ids(campaign=True).items() if one not in others}
    found = list(problems(rows(section), tests, frozenset(), all_ids(OF_CAMPAIGN)))
    assert found == [], "\n".join(found)


def test_the_campaign_has_a_section_of_its_own() -> None:
    assert sections(f"a\n\n{CAMPAIGN}\n\nb\n\n## C\n\nd\n") == ("\nb\n\n", "a\n## C\n\nd\n")
    assert sections("a\n\n## C\n") == ("", "a\n\n## C\n")


def test_reasons_are_given() -> None:
    assert [hazard for hazard, reason in NOT_YET.items() if len(reason.split()) < 3] == []


@each_case(
    ("name", "found"),
    [
        ("test_o6_a_sibling", ("O6",)),
        ("test_e11_l3_each_snapshot", ("E11", "L3")),
        ("test_i13_o5_x", ("I13", "O5")),
        ("test_a_table_of_o6_is", ()),
        ("test_e2e_runs", ()),
        ("test_int96_is_refused", ()),
    ],
)
def test_ids_are_at_the_front_of_a_name(name: str, found: tuple[str, ...]) -> None:
    assert ids(name) == found


def test_tests_in_classes_are_found_and_functions_within_tests_are_not() -> None:
    module = """
def test_o1_a():
    def test_o2_b(): ...
class TestC:
    def test_o3_d(self): ...
class E:
    def test_o4_f(self): ...
def helper(): ...
"""
    assert list(functions(ast.parse(module))) == ["test_o1_a", "TestC::test_o3_d"]


OF_O1: Node = ("tests/test_a.py", "test_o1_a")
ROWS = f"| O1 | a | b | `{'::'.join(OF_O1)}` |\n| O2 | a | b | {NONE_YET} |\n"


@each_case(
    ("page", "found", "not_yet", "said"),
    [
        (ROWS, {"O1": {OF_O1}}, {"O2"}, None),
        (ROWS, {"O1": {OF_O1}, "T1": {OF_O1}}, {"O2"}, None),
        (ROWS.splitlines()[0], {"O1": {OF_O1}}, {"O2"}, r"each once and in order: \['O2'\]"),
        (ROWS + ROWS, {"O1": {OF_O1}}, {"O2"}, "each once"),
        (ROWS, {}, {"O2"}, "O1 has no test"),
        (ROWS, {"O1": {("tests/test_a.py", "test_o1_b")}}, {"O2"}, "no test with its id"),
        (ROWS, {"O1": {OF_O1}}, set(), "O2 has no test"),
        (ROWS, {"O1": {OF_O1}, "O2": {OF_O1}}, set(), "O2 names no test"),
        (ROWS, {"O1": {OF_O1}, "O2": {OF_O1}}, {"O2"}, "take it off NOT_YET"),
        (ROWS, {}, {"O1", "O2"}, "does not say 'none yet'"),
        (ROWS, {"O1": {OF_O1}}, {"O2", "O3"}, "O3 is on the list"),
        (ROWS, {"O1": {OF_O1}, "O3": {OF_O1}}, {"O2"}, "no hazard O3"),
        (ROWS, {"O1": {OF_O1}, "B1": {OF_O1}}, {"O2"}, "no hazard B1"),
    ],
)
def test_the_check_would_notice(page: str, found: dict[str, set[Node]], not_yet: set[str], said: str | None) -> None:
    told = list(problems(rows(page), found, not_yet, all_ids({"O": 2})))
    assert told == [] if said is None else any(re.search(said, one) for one in told), told
