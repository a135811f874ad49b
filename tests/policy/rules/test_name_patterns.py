from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import InvalidName
from icewright.model.iceberg.names import TableName, quote_part
from icewright.policy.rules.name_patterns import glob, name_pattern
from tests.cases import each_case

PARTS = st.text("ab.*`", min_size=1, max_size=5)
NAMES = st.builds(TableName, PARTS, st.lists(PARTS, min_size=1, max_size=3).map(tuple), PARTS)


def name(text: str) -> TableName:
    return TableName.parse(text)


MATCHES = [
    ("lake.sales.orders", "lake.sales.orders", True),
    ("lake.sales.orders", "lake.sales.order", False),
    ("lake.sales.*", "lake.sales.orders", True),
    ("lake.sales.*", "lake.sales.eu.orders", False),
    ("lake.sales.**", "lake.sales.eu.orders", True),
    ("lake.sales.**", "lake.sales_archive.orders", False),
    ("lake.sales*.**", "lake.sales_archive.orders", True),
    ("**", "lake.sales.orders", True),
    ("**.orders", "lake.sales.eu.orders", True),
    ("lake.**.orders", "lake.sales.eu.orders", True),
    ("lake.**.orders", "lake.orders.x", False),
    ("*.*.*", "lake.sales.eu.orders", False),
    ("lake.sales.`*`", "lake.sales.orders", False),
    ("lake.sales.`*`", "lake.sales.`*`", True),
    ("lake.`sa.les`.*", "lake.`sa.les`.x", True),
    ("`**`.a.b", "lake.a.b", False),
]


@each_case(("pattern", "table", "matches"), MATCHES)
def test_x3_a_pattern_matches_what_it_says_and_nothing_else(pattern: str, table: str, *, matches: bool) -> None:
    assert name_pattern(pattern).matches(name(table)) is matches


@each_case(
    ("pattern", "said"),
    [
        ("", "empty part"),
        ("lake", "no full name"),
        ("lake.sales", "no full name"),
        ("lake.**.a.**", "more than one"),
        ("lake.sa**.x", "not a part of its own"),
        ("lake.sales.[ab]", "no pattern"),
        ("lake.sales.order?", "no pattern"),
        ("lake.{a,b}.c", "no pattern"),
        ("!lake.a.b", "no pattern"),
        ("lake..b", "empty part"),
        ("lake.`a.b", "unclosed"),
        ("a" * 1_001, "longer than"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(InvalidName, match=re.escape(said)):
        name_pattern(pattern)


@given(st.text("ab*", max_size=12), st.text("ab", max_size=12))
def test_a_glob_is_what_a_regular_expression_would_be(text: str, subject: str) -> None:
    expected = re.fullmatch(".*".join(re.escape(piece) for piece in text.split("*")), subject) is not None
    assert glob(text).matches(subject) is expected


@given(NAMES)
def test_every_name_is_a_pattern_of_itself_and_nothing_is_more_specific(found: TableName) -> None:
    parts = [quote_part(part) for part in (found.catalog, *found.namespace, found.name)]
    itself = name_pattern(".".join(f"`{part}`" if part[0] != "`" and "*" in part else part for part in parts))
    assert itself.matches(found)
    assert itself.specificity >= max(name_pattern(one).specificity for one in ("**", "*.*.*", f"{parts[0]}.**"))


@given(NAMES, st.data())
def test_more_of_a_name_is_more_specific(found: TableName, data: st.DataObject) -> None:
    """What narrows a pattern never makes it give way to the one that it was made from."""
    parts = [quote_part(part) for part in (found.catalog, *found.namespace, found.name)]
    stars = [data.draw(st.booleans()) for _ in parts]
    wide = [("*" if star else part) for star, part in zip(stars, parts, strict=True)]
    narrow = list(wide)
    at = data.draw(st.integers(0, len(parts) - 1))
    narrow[at] = parts[at]
    one, other = name_pattern(".".join(narrow)), name_pattern(".".join(wide))
    assert one.matches(found)
    assert other.matches(found)
    assert one.specificity >= other.specificity
    end = data.draw(st.integers(1, len(parts) - 1))
    below = name_pattern(".".join([*wide[:end], "**"]))
    assert below.matches(found)
    assert other.specificity >= below.specificity


def test_t13_hostile_patterns_and_names_take_no_time_to_speak_of() -> None:
    pattern = name_pattern("lake.db." + "*a" * 490 + "*b")
    assert not pattern.matches(TableName("lake", ("db",), "a" * 10_000))
