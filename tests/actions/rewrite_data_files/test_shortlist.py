from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.inventory.row_removals import removal_wait_ms
from icewright.model.iceberg.files import DataFile, FileFormat, Partition
from icewright.model.plans.observation import Removals, WorkerAccess
from icewright.model.plans.plans import PartitionVerdict, Verdict
from tests.builders.observations import (
    BY_MONTH,
    DAY_MS,
    HOUR_MS,
    MIB,
    MINUTE_MS,
    NOW,
    WHOLE,
    Deletes,
    data_files,
    month,
    observe,
    policy,
    snapshot,
    table,
)
from tests.cases import each_case

SMALL = data_files(month(1), 8)


def verdicts(files: list[DataFile], **kinds: Any) -> list[PartitionVerdict]:
    return list(shortlist(observe(files, **kinds), policy(), NOW))


def said(files: list[DataFile], **kinds: Any) -> list[tuple[str, str]]:
    return [(verdict.verdict.value, verdict.reason.code) for verdict in verdicts(files, **kinds)]


def test_small_files_make_a_candidate() -> None:
    (verdict,) = verdicts([*SMALL, *data_files(month(1), 2, 300 * MIB)])
    assert (verdict.verdict, verdict.files_before, verdict.files_after) == (Verdict.REWRITE, 10, 3)
    assert verdict.reason.text == "8 small files (8.0 MiB) of 10"


LEFT = [
    ("no-small-files", data_files(month(1), 20, 200 * MIB)),
    ("few-small-files", data_files(month(1), 4)),
]


@pytest.mark.parametrize(("code", "files"), LEFT)
def test_left_as_they_are(code: str, files: list[DataFile]) -> None:
    assert said(files) == [("leave", code)]


def test_no_gain_where_merging_makes_as_many() -> None:
    observation = observe(data_files(month(1), 2, 80))
    little = policy(target_file_size_bytes=100, min_file_size_ratio=1.0, min_input_files=2)
    assert [verdict.reason.code for verdict in shortlist(observation, little, NOW)] == ["no-gain"]


@each_case("deletes", [Deletes(position=1), Deletes(vectors=1), Deletes(equality=1)])
def test_delete_files_of_any_kind_make_a_candidate(deletes: Deletes) -> None:
    files = [*SMALL, *data_files(month(2), 1), *data_files(month(3), 1)]
    told = [("rewrite", "small-files"), ("rewrite", "deletes"), ("leave", "few-small-files")]
    assert said(files, deletes={month(1): deletes, month(2): deletes}) == told


def test_equality_deletes_in_an_unpartitioned_spec_apply_everywhere() -> None:
    files = [*data_files(month(1), 1), *data_files(WHOLE, 1)]
    assert said(files, deletes={WHOLE: Deletes(equality=1)}) == [("rewrite", "deletes")] * 2
    assert said(files, deletes={WHOLE: Deletes(position=1)})[0] == ("leave", "few-small-files")


def test_only_so_many_delete_files_are_held_and_the_others_take_turns() -> None:
    files = [file for number in (1, 2, 3) for file in data_files(month(number), 8)]
    deletes = {month(1): Deletes(120_000), month(2): Deletes(vectors=90_000), month(3): Deletes(equality=200_001)}
    for number, expected in ((3, ["rewrite", "wait", "refuse"]), (1, ["wait", "rewrite", "refuse"])):
        metadata = table([replace(snapshot(1), sequence_number=number)])
        found = verdicts(files, deletes=deletes, metadata=metadata)
        assert [verdict.verdict.value for verdict in found] == expected
        assert {verdict.reason.code for verdict in found} == {"small-files", "many-delete-files"}
    assert said(files, deletes={month(1): Deletes(200_000)}) == [("rewrite", "small-files")] * 3


def test_deletes_without_data_files_are_left() -> None:
    assert said([], deletes={month(1): Deletes(position=1)}) == [("leave", "no-small-files")]


def test_other_formats_are_candidates() -> None:
    files = [*SMALL, *data_files(month(1), 1, 300 * MIB, file_format=FileFormat.ORC)]
    assert said(files) == [("rewrite", "small-files")]


def test_storage_that_nobody_has_tried_is_waited_for() -> None:
    (verdict,) = verdicts(SMALL, access=WorkerAccess.UNKNOWN)
    assert (verdict.verdict, verdict.reason.code, verdict.wait_until) == (
        Verdict.WAIT,
        "worker-access",
        NOW + MINUTE_MS,
    )
    assert said(SMALL, access=WorkerAccess.REFUSED) == [("rewrite", "small-files")]
    assert said(data_files(month(1), 1), access=WorkerAccess.UNKNOWN) == [("leave", "few-small-files")]


def test_a_partition_of_a_spec_that_is_not_there_is_refused() -> None:
    assert said(data_files(Partition(7, "[1]"), 8)) == [("refuse", "unknown-spec")]
    assert said(SMALL, metadata=table(specs=(BY_MONTH,))) == [("rewrite", "small-files")]


WAITS = [
    (MINUTE_MS, 0, None, 3 * MINUTE_MS),
    (MINUTE_MS, 4 * MINUTE_MS, None, 4 * MINUTE_MS),
    (MINUTE_MS, 4 * MINUTE_MS, 2 * HOUR_MS, 2 * HOUR_MS),
    (HOUR_MS, 4 * MINUTE_MS, 2 * HOUR_MS, 2 * HOUR_MS),
    (19 * MINUTE_MS, 4 * MINUTE_MS, None, 57 * MINUTE_MS),
    (DAY_MS, 4 * MINUTE_MS, None, HOUR_MS),
    (None, 0, None, HOUR_MS),
    (MINUTE_MS, 40 * 365 * DAY_MS, None, DAY_MS),
    (MINUTE_MS, 40 * 365 * DAY_MS, 2 * DAY_MS, 2 * DAY_MS),
    (0, 0, None, 0),
]


@each_case(("interval_ms", "run_ms", "window_ms", "wait_ms"), WAITS)
def test_the_wait_is_the_longest_of_three(
    interval_ms: int | None, run_ms: int, window_ms: int | None, wait_ms: int
) -> None:
    observation = observe(SMALL, removals=Removals(writer_run_ms_max=run_ms), interval_ms=interval_ms)
    assert removal_wait_ms(observation, policy(write_window_ms=window_ms)) == wait_ms


def test_w9_a_partition_that_lost_rows_waits_to_the_millisecond() -> None:
    removed_at = NOW - 3 * MINUTE_MS
    files = [*SMALL, *data_files(month(2), 8)]
    just, not_yet = (Removals({month(2): at}) for at in (removed_at, removed_at + 1))
    assert [verdict.verdict for verdict in verdicts(files, removals=just)] == [Verdict.REWRITE, Verdict.REWRITE]
    waiting = verdicts(files, removals=not_yet)
    assert [verdict.verdict for verdict in waiting] == [Verdict.REWRITE, Verdict.WAIT]
    assert waiting[1].wait_until == NOW + 1
    assert waiting[1].reason.code == "recent-removals"


def test_unknown_removals_put_every_partition_off_and_the_latest_counts() -> None:
    files = [*SMALL, *data_files(month(2), 8)]
    removals = Removals({month(2): NOW - HOUR_MS}, everywhere_at=NOW - MINUTE_MS)
    assert [verdict.wait_until for verdict in verdicts(files, removals=removals)] == [NOW + 2 * MINUTE_MS] * 2


def test_a_table_with_an_obstacle_has_no_candidates() -> None:
    assert verdicts(SMALL, metadata=table(format_version=4)) == []


def test_a_removal_dated_in_the_future_puts_nothing_off() -> None:
    ahead, far_ahead = (Removals({month(1): NOW + by_ms}) for by_ms in (MINUTE_MS, MINUTE_MS + 1))
    assert [verdict.verdict for verdict in verdicts(SMALL, removals=ahead)] == [Verdict.WAIT]
    assert [verdict.verdict for verdict in verdicts(SMALL, removals=far_ahead)] == [Verdict.REWRITE]
    everywhere = Removals(everywhere_at=NOW + MINUTE_MS + 1)
    assert [verdict.verdict for verdict in verdicts(SMALL, removals=everywhere)] == [Verdict.REWRITE]


def test_appends_never_put_a_partition_off() -> None:
    observation = replace(observe(SMALL), commit_interval_ms=1)
    assert [verdict.verdict for verdict in shortlist(observation, policy(), NOW)] == [Verdict.REWRITE]
