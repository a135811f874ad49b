"""Which manifests a query for one partition opens, against the rule of the spec said plainly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.inventory.partition_order import SAMPLE_MAX, PartitionOrder, Pruning
from icewright.model.iceberg.tables import PartitionField, PartitionSpec
from tests.builders.observations import table
from tests.cases import each_case

SPEC = PartitionSpec(0, (PartitionField(1, 1000, "month", "identity"), PartitionField(2, 1001, "carrier", "identity")))
METADATA = table(specs=(SPEC,))
ORDER = PartitionOrder(METADATA, SPEC)

partitions = st.tuples(st.none() | st.integers(-3, 3), st.none() | st.sampled_from("abc"))
manifests = st.lists(st.lists(partitions, min_size=1, max_size=5), max_size=12)


def text(values: tuple[Any, ...]) -> str:
    return json.dumps(values, separators=(",", ":"))


def may_have(manifest: list[tuple[Any, ...]], wanted: tuple[Any, ...]) -> bool:
    """Whether each value lies within the least and greatest of its field, or is null where the field has nulls."""
    for place, value in enumerate(wanted):
        column = [values[place] for values in manifest]
        known = [each for each in column if each is not None]
        if value is None and len(known) == len(column):
            return False
        if value is not None and not (known and min(known) <= value <= max(known)):
            return False
    return True


@given(manifests)
def test_a_query_opens_what_the_bounds_of_each_field_do_not_rule_out(found: list[list[tuple[Any, ...]]]) -> None:
    every = sorted({values for manifest in found for values in manifest}, key=lambda values: ORDER.key(text(values)))
    pruning = Pruning(ORDER.key(text(values)) for values in every)
    masks = [pruning.within(ORDER.box(map(text, manifest))) for manifest in found]
    assert pruning.partitions == len(every)
    assert pruning.opened(masks) == [sum(may_have(manifest, values) for manifest in found) for values in every]


@given(st.lists(partitions, min_size=2))
def test_nulls_come_first_and_then_values_in_their_order(found: list[tuple[Any, ...]]) -> None:
    by_key = sorted(found, key=lambda values: ORDER.key(text(values)))
    assert by_key == sorted(
        found,
        key=lambda values: tuple(
            (value is not None, value or "" if place else value or 0) for place, value in enumerate(values)
        ),
    )


def test_of_very_many_partitions_some_are_looked_at_evenly_spaced() -> None:
    pruning = Pruning(ORDER.key(f'[{number},"a"]') for number in range(10 * SAMPLE_MAX))
    assert SAMPLE_MAX // 2 < pruning.partitions <= SAMPLE_MAX
    half = pruning.within(ORDER.box(['[0,"a"]', f'[{5 * SAMPLE_MAX},"a"]']))
    assert half.bit_count() == pytest.approx(pruning.partitions / 2, rel=0.01)


def test_the_one_partition_of_an_unpartitioned_spec_is_in_every_manifest() -> None:
    order = PartitionOrder(METADATA, PartitionSpec(1, ()))
    pruning = Pruning([order.key("[]")])
    assert pruning.opened([pruning.within(order.box(["[]"]))] * 3) == [3]


@each_case("values", [["-1", "0", "10"], ['"9999-12-31"', "2932897"], ["-800000", '"0001-01-01"'], ["false", "true"]])
def test_instants_that_python_has_no_form_of_keep_their_place(values: list[str]) -> None:
    order = PartitionOrder(METADATA, PartitionSpec(0, SPEC.fields[:1]))
    keys = [order.key(f"[{value}]") for value in values]
    assert keys == sorted(keys)
