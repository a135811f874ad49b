"""Which entries go into which manifest, without Spark."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.model.actions.rewrite_manifests import ManifestClass, ManifestContent, OutputManifest, Share
from icewright_spark.actions.rewrite_manifests import Deal
from icewright_spark.iceberg.manifest_entries import EntriesDigest
from icewright_spark.parquet.errors import ProofFailed

DATA = ManifestClass(0, ManifestContent.DATA)


def output(**shares: int) -> OutputManifest:
    return OutputManifest(DATA, tuple(Share(values, entries) for values, entries in shares.items()))


def test_a_partition_goes_into_its_manifests_in_their_order() -> None:
    deal = Deal([output(a=2), output(a=1, b=2)])
    assert deal.values == ("a", "b")
    assert deal.out([0, 1, 0]) == {0: [0, 2], 1: [1]}
    assert deal.left == 2
    assert deal.out([1, 0]) == {1: [0, 1]}
    assert deal.left == 0


@pytest.mark.parametrize("partition", [0, None])
def test_w8_an_entry_without_a_place_stops_everything(partition: int | None) -> None:
    deal = Deal([output(a=1)])
    deal.out([0])
    with pytest.raises(ProofFailed, match="has no place in any new manifest"):
        deal.out([partition])


def test_w8_live_entries_are_never_left_out_where_none_was_planned() -> None:
    with pytest.raises(ProofFailed):
        Deal([]).out([0])


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(1, 5), min_size=1), min_size=1), st.randoms())
def test_w8_each_manifest_gets_what_was_planned_in_whatever_order_entries_come(
    planned: list[dict[str, int]], chance: Random
) -> None:
    deal = Deal([output(**shares) for shares in planned])
    entries = [
        number for number, values in enumerate(deal.values) for each in planned for _ in range(each.get(values, 0))
    ]
    chance.shuffle(entries)
    found = [Counter[str]() for _ in planned]
    while entries:
        some, entries = entries[:3], entries[3:]
        for number, places in deal.out(some).items():
            found[number].update(deal.values[some[place]] for place in places)
    assert found == [Counter(shares) for shares in planned]
    assert deal.left == 0


@given(st.lists(st.integers(0, 2**256 - 1)), st.randoms())
def test_a_multiset_is_the_same_in_any_order_and_in_any_parts(hashes: list[int], chance: Random) -> None:
    whole = EntriesDigest().plus(hashes)
    shuffled = list(hashes)
    chance.shuffle(shuffled)
    half = len(shuffled) // 2
    assert EntriesDigest().plus(shuffled[:half]).both(EntriesDigest().plus(shuffled[half:])) == whole
    assert whole.plus([1]) != whole
