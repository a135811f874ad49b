"""Every read and every listed object fails once, in every way: what is planned is then nothing, or right (G6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from icewright.domain.errors import IcewrightError, StorageAway, Unavailable, Unreadable, Unsupported
from icewright.domain.reachable import FileClass, NamedFile
from icewright.services.orphans import OrphansFound, OrphansRefused
from tests.services.orphan_lake import DAY_MS, LakeTable, OrphanLake, planned


def plain(lake: OrphanLake) -> LakeTable:
    table = lake.table()
    table.commit("data/1.parquet", "data/2.parquet")
    return table


def with_history(lake: OrphanLake) -> LakeTable:
    table = plain(lake)
    table.tag("kept", 1)
    table.commit("data/3.parquet", remove=("s3://b/t/data/1.parquet",))
    table.commit("data/staged.parquet", staged=True)
    return table


def with_statistics(lake: OrphanLake) -> LakeTable:
    table = plain(lake)
    lake.write("s3://b/t/metadata/stats.puffin")
    table.statistics.append(NamedFile("s3://b/t/metadata/stats.puffin", FileClass.STATISTICS, 10, 1))
    return table


def with_spellings(lake: OrphanLake) -> LakeTable:
    table = with_history(lake)
    table.spelled = lambda path: path.replace("s3://", "s3a://")
    table.commit("data/a b.parquet", "data/%2F.parquet")
    return table


def with_siblings(lake: OrphanLake) -> LakeTable:
    other = lake.table("s3://b/t_2")
    other.commit("data/1.parquet")
    table = lake.table()
    table.commit("data/1.parquet", "data/2.parquet")
    return table


FIXTURES = (plain, with_history, with_statistics, with_spellings, with_siblings)
FAULTS = (StorageAway, Unreadable, Unsupported, Unavailable)


@pytest.mark.parametrize("error", FAULTS)
@pytest.mark.parametrize("fixture", FIXTURES)
@pytest.mark.parametrize("in_pass", [1, 2])
def test_o13_whatever_read_or_listing_fails_nothing_needed_is_planned(
    fixture: Callable[[OrphanLake], LakeTable], error: type[IcewrightError], in_pass: int
) -> None:
    outcomes: Counter[str] = Counter()
    number = 0
    while "whole" not in outcomes:
        number += 1
        lake = OrphanLake()
        table = fixture(lake)
        lake.pass_time(DAY_MS)
        garbage = {lake.write(f"{table.location}/data/left-{n}.parquet").path for n in range(4)}
        lake.pass_time(DAY_MS)

        def fail(lake: OrphanLake = lake) -> None:
            raise error(f"read {lake.reads}")

        lake.fault = fail
        planned_now: list[set[str]] = []
        for one in (1, 2):
            lake.reads, lake.fault_at = 0, number if one == in_pass else None
            try:
                found = lake.look(table)
            except IcewrightError:
                outcomes["raised"] += 1
                planned_now.append(set())
            else:
                planned_now.append(planned(found))
                outcomes["refused" if isinstance(found, OrphansRefused) else "found"] += 1
                partial = isinstance(found, OrphansFound) and found.listing_gaps
                outcomes["partial"] += bool(partial)
            if one == in_pass and lake.reads < number:
                outcomes["whole"] += 1
            lake.pass_time(10 * DAY_MS)
        for gone in planned_now:
            assert gone <= garbage
            assert not gone & {path for one in lake.tables for path in one.needed()}
        assert planned_now[0] == set()
    assert number > 15
    assert outcomes["raised"] or outcomes["refused"]
    if error is StorageAway:
        assert outcomes["partial"]
