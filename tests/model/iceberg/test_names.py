"""Names are input from strangers: what is written is what was meant, whatever characters it has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import InvalidName
from icewright.model.iceberg.names import PART_LENGTH_MAX, TableName, did_you_mean, quote_part, split_parts
from tests.cases import each_case

parts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30) | st.sampled_from(
    ["`", "``", "a.b", ".", "'", "\n", "🧊", "--", "a`.`b"]
)


@given(parts, st.lists(parts, min_size=1, max_size=3), parts)
def test_parse_undoes_str(catalog: str, namespace: list[str], name: str) -> None:
    table = TableName(catalog, tuple(namespace), name)
    assert TableName.parse(str(table)) == table


@given(st.lists(parts, min_size=1, max_size=4))
def test_quoted_parts_are_split_where_they_were_joined(given_parts: list[str]) -> None:
    assert split_parts(".".join(quote_part(part) for part in given_parts)) == given_parts


def test_plain_words_stay_bare() -> None:
    assert str(TableName("lake", ("sales", "eu"), "orders_2026")) == "lake.sales.eu.orders_2026"
    assert str(TableName("lake", ("db",), "a b")) == "lake.db.`a b`"


def test_a_name_of_two_parts_is_in_the_default_catalog() -> None:
    assert TableName.parse("db.events", default_catalog="lake") == TableName("lake", ("db",), "events")


@each_case("text", ["", "a", "a.b", "a..b", ".a.b", "a.b.", "a.b.`c", "a.b.c`d", "a.b.`c`d", "a.`.b.c"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        TableName.parse(text)


@each_case(("catalog", "namespace", "name"), [("", ("a",), "b"), ("a", (), "b"), ("a", ("",), "b")])
def test_no_part_may_be_empty(catalog: str, namespace: tuple[str, ...], name: str) -> None:
    with pytest.raises(InvalidName):
        TableName(catalog, namespace, name)


@each_case("part", ["\0", "a\0b", "\ud800", "a\udcff"])
def test_what_no_catalog_can_be_asked_for_is_no_name(part: str) -> None:
    for text in (f"`{part}`.ns.t", f"lake.`{part}`.t", f"lake.ns.`{part}`"):
        with pytest.raises(InvalidName, match="not a name"):
            TableName.parse(text)


def test_ten_thousand_characters_are_a_name_and_more_are_not() -> None:
    assert TableName.parse(str(TableName("c", ("n",), "x" * PART_LENGTH_MAX))).name == "x" * PART_LENGTH_MAX
    with pytest.raises(InvalidName, match="longer than"):
        TableName("c", ("n",), "x" * (PART_LENGTH_MAX + 1))


@each_case(
    ("wrong", "others", "said"),
    [
        ("l.db.evnts", ["l.db.events", "l.db.orders"], "did you mean l.db.events?"),
        ("l.db.EVENTS", ["l.db.events"], "did you mean l.db.events?"),
        ("l.db.event", ["l.db.events", "l.db.events2", "l.db.event_s", "l.db.eventz"], "l.db.event"),
        ("l.db.events", ["l.db.events"], ""),
        ("l.db.a", ["l.db.b", "l.db.ab"], ""),
        ("l.sales.events", ["l.prices.events"], ""),
        ("l.db." + "a" * 9_000, ["l.db." + "a" * 9_001], ""),
        ("l.db.x", [], ""),
    ],
)
def test_what_is_spelt_alike_is_suggested_part_by_part(wrong: str, others: list[str], said: str) -> None:
    found = did_you_mean(TableName.parse(wrong), [TableName.parse(other) for other in others] * 2)
    assert (said in found, bool(said)) == (True, bool(found))
    assert found.count(" or ") <= 2
