"""What every store of claims must do, sentence by sentence of the port."""

from __future__ import annotations

import pytest

from icewright.model.iceberg.names import TableName
from icewright.ownership.claims_sql import SqlClaims
from icewright.ownership.model import Claim, SeenClaim
from tests.contracts.samples import HOSTILE_PARTS
from tests.contracts.stores import Stores


@pytest.fixture
def store(stores: Stores) -> SqlClaims:
    return stores.claims()


def seen(number: int = 1, name: str = "t", **more: object) -> SeenClaim:
    claim = Claim(
        TableName("lake", ("db",), name),
        "u",
        (f"s3://b/wh/{number}/",),
        **more,  # type: ignore[arg-type] # fields of a claim
    )
    return SeenClaim(claim, f"s3://b/wh/{number}/metadata/1.json", number)


def by_name(store: SqlClaims) -> dict[TableName, SeenClaim]:
    found = list(store.claims())
    assert len({one.claim.name for one in found}) == len(found)
    return {one.claim.name: one for one in found}


def test_what_was_kept_is_there_for_others(stores: Stores) -> None:
    kept = [
        seen(1, "one", location="s3://b/wh/1/", reaches=("s3://b/raw/",), gc_enabled=False, is_clone=True),
        seen(2, "two", unplaced=("relative", "\x00\udc80"), ambiguous=("file:///a//b",)),
        SeenClaim(Claim(TableName("pond", ("db", "x"), "one"), None, ()), "m", 3),
    ]
    stores.claims().keep(kept)
    assert by_name(stores.claims()) == {one.claim.name: one for one in kept}


def test_l6_one_uuid_may_have_several_names(store: SqlClaims) -> None:
    store.keep([seen(1, "one"), seen(1, "two")])
    assert len(by_name(store)) == 2


@pytest.mark.parametrize("part", HOSTILE_PARTS)
def test_hostile_names(store: SqlClaims, part: str) -> None:
    store.keep([seen(1, part)])
    store.keep([seen(2, part)])
    assert list(store.claims()) == [seen(2, part)]
    store.keep([], [TableName("lake", ("db",), part)])
    assert list(store.claims()) == []


def test_keeping_again_replaces_and_the_last_one_counts(store: SqlClaims) -> None:
    store.keep([seen(1), seen(2, "other")])
    store.keep([seen(3), seen(4)])
    assert by_name(store) == {seen().claim.name: seen(4), seen(1, "other").claim.name: seen(2, "other")}


def test_forgetting_and_keeping_at_once(store: SqlClaims) -> None:
    store.keep([seen(1, "one"), seen(2, "two")])
    store.keep([seen(3, "three")], [seen(1, "one").claim.name, TableName("lake", ("db",), "never")])
    assert set(by_name(store)) == {seen(2, "two").claim.name, seen(3, "three").claim.name}
    store.keep([])
    assert len(by_name(store)) == 2


def test_there_may_be_more_than_a_page_of_them(store: SqlClaims) -> None:
    store.keep([seen(number, f"t{number}") for number in range(1_000)])
    assert len(by_name(store)) == 1_000
    store.keep([seen(number, f"u{number}") for number in range(1_001)])
    assert len(by_name(store)) == 2_001


def test_what_any_server_kept_since_is_found_by_its_number(stores: Stores) -> None:
    stores.claims().keep([seen(1, "one"), seen(2, "two")])
    found, number = stores.claims().changed_since(0)
    assert {one.claim.name.name for one in found} == {"one", "two"}
    assert stores.claims().changed_since(number) == ([], number)
    stores.claims().keep([seen(3, "one")], [seen(2, "two").claim.name])
    assert stores.claims().changed_since(number) == ([seen(3, "one")], number + 1)
    stores.claims().keep([seen(4, "three")])
    assert [one.claim.name.name for one in stores.claims().changed_since(number)[0]] == ["one", "three"]
