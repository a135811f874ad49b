from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from icewright.model.iceberg.files import DataFile
from icewright.model.iceberg.layouts import Layout, Level
from icewright.model.iceberg.tables import Snapshot
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import MODE_KEY
from icewright.plans.layouts import resolve
from icewright.policy.effective import effective_policy
from icewright.policy.missing_rules import rules
from icewright.policy.settings import LAYOUT_KEY, LEVEL_1_SIZE_KEY, LEVEL_2_RUNS_KEY, TRIGGER_KEY
from tests.actions.rewrite_data_files.layouts.test_levels import SORTED
from tests.actions.rewrite_data_files.test_level_laws import ours
from tests.builders.observations import DAY_MS, MIB, NOW, data_files, month, observe, snapshot, table

BY_CARRIER = {LAYOUT_KEY: "sort(carrier)", LEVEL_1_SIZE_KEY: str(100 * MIB), LEVEL_2_RUNS_KEY: "3"}


def said(
    files: Sequence[DataFile], properties: dict[str, str], snapshots: Sequence[Snapshot] = (snapshot(1),)
) -> list[str]:
    metadata = table(snapshots, properties)
    policy = effective_policy(metadata, ())
    return [rule.text for rule in rules(observe(files, metadata), policy, resolve(metadata, policy))]


def test_without_a_layout_rows_stay_as_they_come() -> None:
    assert said([], {}) == [
        "Level 0, small files are merged: trigger levels (default), from 5 files below 144.0 MiB on",
        "No layout: rows stay in the order in which they came; icewright.layout asks for one",
    ]
    assert said([], {LAYOUT_KEY: "none"})[1].endswith("as icewright.layout says")


def test_another_trigger_is_named_with_where_it_comes_from() -> None:
    assert said([], {TRIGGER_KEY: "mse"})[0].endswith("trigger mse (table property)")


def test_a_layout_that_cannot_be_used_says_why() -> None:
    assert said([], {LAYOUT_KEY: "sort(carier)"})[1] == (
        "No layout, because the layout sort(carier) names carier, which the table does not have; "
        "perhaps carrier is meant"
    )


def test_what_is_missing_until_level_1_and_2() -> None:
    files = [*data_files(month(1), 3, 10 * MIB), *data_files(month(2), 7, 10 * MIB)]
    _, layout, level_1, level_2 = said(files, BY_CARRIER)
    assert layout == "Layout sort(carrier) (table property)"
    rule, _, progress = level_1.partition(" (icewright.level-1.size-bytes, table property); ")
    assert rule == "Level 1, what came is put in its order: from 100.0 MiB in a partition on"
    assert progress == "70.0 MiB of 100.0 MiB gathered in month=2"
    rule, _, progress = level_2.partition(" (icewright.level-2.runs, table property); ")
    assert rule == "Level 2, a partition is put in order as a whole: from 3 runs of Level 1 on"
    assert progress == "nothing gathered yet"


def test_runs_are_counted_and_are_in_order() -> None:
    snapshots = [
        snapshot(1),
        *(ours(snapshot(number, NOW - DAY_MS), Level.LEVEL_1, SORTED.key) for number in (2, 3)),
    ]
    files = [file for number in (2, 3) for file in data_files(month(1), 4, 50 * MIB, snapshot_id=number)]
    _, _, level_1, level_2 = said(files, BY_CARRIER, snapshots)
    assert level_1.endswith("nothing gathered yet")
    assert level_2.endswith("2 of 3 runs in month=1")


def test_partitions_that_are_due_are_counted() -> None:
    files = [*data_files(month(1), 10, 10 * MIB), *data_files(month(2), 11, 10 * MIB), *data_files(month(3), 1)]
    assert said(files, BY_CARRIER)[2].endswith("2 partitions due")


@given(st.lists(st.integers(0, 2**40), max_size=5), st.sampled_from([None, SORTED, Reason("layout-transform", "why")]))
def test_whatever_there_is_each_rule_is_one_line(sizes: list[int], layout: Layout | Reason | None) -> None:
    files = [replace(data_files(month(number), 1)[0], size_bytes=size) for number, size in enumerate(sizes)]
    metadata = table(properties={MODE_KEY: "auto"})
    for rule in rules(observe(files, metadata), effective_policy(metadata, ()), layout):
        assert rule.text.isprintable()
        assert rule.code.startswith("rule-")
