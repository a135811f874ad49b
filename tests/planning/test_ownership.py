"""Tables that share a place are told of each other, whatever forest of places there is; neighbours are not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.domain.locations import Aliases, declared
from icewright.domain.names import TableId, TableName
from icewright.planning.ownership import Claim, claim, contested
from tests.planning.test_footprint import table

roots = st.lists(st.sampled_from(["a", "a_2", "b", "a%20"]), min_size=1, max_size=4).map(
    lambda parts: "s3://w/" + "".join(f"{part}/" for part in parts)
)


def named(number: int) -> TableName:
    return TableName("lake", ("db",), f"t{number:03}")


def overlap(one: Claim, other: Claim) -> bool:
    return any(a.startswith(b) or b.startswith(a) for a in one.roots for b in other.roots)


@given(st.lists(st.tuples(st.lists(roots, min_size=1, max_size=2), st.sampled_from(["u", "v", None])), max_size=30))
def test_whoever_shares_a_place_or_is_the_same_table_is_told(made: list[tuple[list[str], str | None]]) -> None:
    claims = [Claim(named(number), uuid, tuple(places)) for number, (places, uuid) in enumerate(made)]
    found = contested(claims)
    for one in claims:
        others = [other for other in claims if other is not one]
        sharing = {str(other.name) for other in others if overlap(one, other)}
        same = {str(other.name) for other in others if one.uuid is not None and other.uuid == one.uuid}
        said = {reason.code: reason.text for reason in found.get(one.name, ())}
        assert said.keys() == {code for code, names in (("shared-location", sharing), ("shared-uuid", same)) if names}
        for code, names in (("shared-location", sharing), ("shared-uuid", same)):
            told = {name for other in claims if (name := str(other.name)) in said.get(code, "")}
            assert told <= names


def test_a_name_that_begins_alike_is_no_overlap() -> None:
    claims = [Claim(named(1), "u", ("s3://w/t/",)), Claim(named(2), "v", ("s3://w/t_2/",))]
    assert contested(claims) == {}


def test_the_first_three_are_named() -> None:
    found = contested([Claim(named(number), None, ("s3://w/t/",)) for number in range(5)])
    (reason,) = found[named(0)]
    assert "lake.db.t001, lake.db.t002, lake.db.t003 and others" in reason.text
    few = contested([Claim(named(number), None, ("s3://w/t/",)) for number in range(4)])
    assert "lake.db.t001, lake.db.t002, lake.db.t003:" in few[named(0)][0].text


@pytest.mark.parametrize(
    ("places", "count"), [(lambda _number: "s3://w/t/", 3000), (lambda number: "s3://w/" + "a/" * number, 1000)]
)
def test_many_in_one_place_or_in_a_row_are_no_trouble(places: object, count: int) -> None:
    assert callable(places)
    found = contested([Claim(named(number), None, (str(places(number)),)) for number in range(count)])
    assert len(found) == count


def test_what_a_table_lays_claim_to() -> None:
    metadata = replace(
        table(
            (),
            (),
            None,
            **{"write.data.path": "s3n://other/data", "write.metadata.path": "relative", "other": "s3://x"},
        ),
        location="s3a://w/t/",
        table_id=TableId("lake", "u"),
    )
    assert claim(metadata, Aliases()).roots == ("s3://other/data/", "s3://w/t/")
    assert claim(metadata, declared({"s3://other": "s3://w"})).roots == ("s3://w/data/", "s3://w/t/")
    assert claim(metadata, Aliases()).uuid == "u"
    assert claim(replace(metadata, has_uuid=False), Aliases()).uuid is None
