"""What is asked of levels does not depend on how fast the machine is, and notices each thing that levels could miss."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.acceptance.lookups import LiveFile, Lookups, check_at_rest, check_level_2, look_up
from tests.lakes.sqlite import ARROW_SCHEMA, make_lake, make_table

ARRIVED, FRESH, LEVEL_1, LEVEL_2 = 1, 2, 3, 4
LOOKUPS = 50
ALONE = Lookups(
    {f"a{n}": LiveFile(ARRIVED, 64) for n in range(136)}, [frozenset(f"a{n}" for n in range(136))] * LOOKUPS
)
"""As it was told by a machine where the check of all files failed: (136.0, 136)."""


def table(*, fresh: int = 24, level_1: int = 0, level_2: int = 72, worst: int = 1) -> Lookups:
    """Every fresh file is opened by every lookup, and one of each run; ``worst`` of Level 2's by one of the lookups."""
    counts = {FRESH: fresh, LEVEL_1: level_1, LEVEL_2: level_2}
    files = {f"{by}-{n}": LiveFile(by, 64) for by, count in counts.items() for n in range(count)}
    always = {f"{FRESH}-{n}" for n in range(fresh)} | ({f"{LEVEL_1}-0"} if level_1 else set())
    opened = [frozenset(always | {f"{LEVEL_2}-{n % level_2}"}) for n in range(LOOKUPS)]
    return Lookups(files, [frozenset(always | {f"{LEVEL_2}-{n}" for n in range(worst)}), *opened[1:]])


def after_level_2(found: Lookups) -> None:
    check_level_2(found, LEVEL_2, {ARRIVED, LEVEL_1}, ALONE)


def at_rest(found: Lookups) -> None:
    check_at_rest(found, {LEVEL_1, LEVEL_2}, level_1_size_bytes=512, level_2_runs=3, alone=ALONE)


@pytest.mark.parametrize("fresh", [0, 24, 1000])
def test_what_arrived_while_level_2_was_at_work_does_not_count(fresh: int) -> None:
    found = table(fresh=fresh)
    assert (found.mean, len(found.files)) == (1 + fresh, 72 + fresh)
    after_level_2(found)


@pytest.mark.parametrize(
    "found",
    [
        table(level_1=8),  # it left a run
        table(level_2=8),  # too few files for one of them to be a tenth
        table(worst=3),  # three of its files have the same value
    ],
)
def test_a_level_2_that_does_not_put_a_table_in_order_is_noticed(found: Lookups) -> None:
    with pytest.raises(AssertionError):
        after_level_2(found)


def test_a_level_2_that_leaves_a_file_that_it_knew_is_noticed() -> None:
    with pytest.raises(AssertionError, match="left 1 files"):
        check_level_2(table(fresh=1), LEVEL_2, {FRESH}, ALONE)


def test_a_level_2_whose_files_are_all_opened_is_noticed() -> None:
    files = {str(n): LiveFile(LEVEL_2, 64) for n in range(72)}
    with pytest.raises(AssertionError):
        after_level_2(Lookups(files, [frozenset(files)] * LOOKUPS))


def test_what_is_too_little_for_a_level_1_may_be_left_at_the_end() -> None:
    at_rest(table(fresh=7, level_1=8, level_2=90))


@pytest.mark.parametrize(
    "found",
    [
        table(fresh=8),  # enough for a Level 1
        Lookups(table(fresh=0).files, [frozenset(f"{LEVEL_2}-{n}" for n in range(4))] * LOOKUPS),  # as of four runs
        table(fresh=0, level_2=4),  # too few files for one of them to be a fifth
    ],
)
def test_a_table_that_has_something_left_to_do_is_noticed(found: Lookups) -> None:
    with pytest.raises(AssertionError):
        at_rest(found)


def test_files_are_told_by_the_snapshots_that_added_them_and_by_what_they_hold(tmp_path: Path) -> None:
    written = make_table(make_lake(tmp_path))
    added = []
    for first in (0, 10, 5):
        written.append(pa.table({"id": range(first, first + 10), "city": ["Ghent"] * 10}, schema=ARROW_SCHEMA))
        snapshot = written.current_snapshot()
        assert snapshot is not None
        added.append(snapshot.snapshot_id)
    found = look_up(written, "id", [3, 7, 12, 99])
    assert {file.added_by for file in found.files.values()} == set(added)
    assert [len(paths) for paths in found.opened] == [1, 2, 2, 0]
    assert [len(paths) for paths in found.added_by({added[1]}).opened] == [0, 0, 1, 0]
    before = look_up(written, "id", [7], added[1])
    assert (str(before), before.size_bytes < found.size_bytes) == ("1 of 2", True)
