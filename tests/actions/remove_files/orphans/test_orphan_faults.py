"""Every read and every listed object fails once, in every way: what is planned is then nothing, or right (G6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from icewright.actions.remove_files.orphans.service import OrphansFound, OrphansRefused
from icewright.core.errors import IcewrightError, StorageUnavailable, Unavailable, Unreadable, Unsupported
from icewright.model.iceberg.reachable_files import FileClass, NamedFile
from tests.builders.orphan_lake import DAY_MS, LakeTable, OrphanLake, planned
from tests.cases import each_case
from tests.conftest import CAMPAIGN


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
FAULTS = (StorageUnavailable, Unreadable, Unsupported, Unavailable)
DRAWN = 36 if CAMPAIGN else 9
"""Fixtures at random, by their seeds: with the others there are more than 40 in the campaign."""


def drawn(seed: int) -> Callable[[OrphanLake], LakeTable]:
    """Commits, files that left, tags, snapshots that are staged or have expired, statistics, and a sibling."""

    def made(lake: OrphanLake) -> LakeTable:
        dice = Random(seed)  # noqa: S311 - a made-up lake, no secret
        if dice.random() < 0.3:
            lake.table("s3://b/t_2").commit("data/0.parquet", "data/left-0.parquet")
        table = lake.table()
        if dice.random() < 0.4:
            table.spelled = lambda path: path.replace("s3://", dice.choice(("s3a://", "S3N://")))
        files = 0
        for _ in range(dice.randint(1, 5)):
            names = [f"data/{dice.choice(('', 'day=1/', 'a b/', '%2F'))}{files + n}.parquet" for n in range(2)]
            files += 2
            live = sorted(table.live[table.snapshots[-1].snapshot_id]) if table.snapshots else []
            gone = dice.sample(live, dice.randint(0, len(live)))
            table.commit(*names, remove=tuple(gone), staged=bool(live) and dice.random() < 0.2)
            if dice.random() < 0.3:
                table.tag(f"tag-{files}", dice.choice(table.snapshots).snapshot_id)
        kept = {ref.snapshot_id for ref in table.refs.values()}
        table.expire(
            *(one.snapshot_id for one in table.snapshots if one.snapshot_id not in kept and dice.random() < 0.5)
        )
        if dice.random() < 0.3:
            lake.write("s3://b/t/metadata/stats.puffin")
            table.statistics.append(NamedFile("s3://b/t/metadata/stats.puffin", FileClass.STATISTICS, 10, 1))
        return table

    return made


CASES = [
    (fixture, error, in_pass)
    for place, fixture in enumerate(FIXTURES)
    for number, error in enumerate(FAULTS)
    for in_pass in (1, 2)
    if CAMPAIGN or in_pass == 1 + (place + number) % 2
]
"""Each pair of two of them; in the campaign all three together."""


@each_case("fixture, error, in_pass", CASES)
def test_o13_whatever_read_or_listing_fails_nothing_needed_is_planned(
    fixture: Callable[[OrphanLake], LakeTable], error: type[IcewrightError], in_pass: int
) -> None:
    assert every_fault(fixture, error, in_pass) > 15


def test_g6_o13_whatever_fails_over_many_tables_nothing_needed_is_planned() -> None:
    """The plan is right or there is none, for each of the reads and listed objects of each of them.

    The campaign counts those of the fixtures above as well, which the test before this one has.
    """
    fixtures = FIXTURES if CAMPAIGN else ()
    faults = sum(every_fault(drawn(seed), FAULTS[seed % len(FAULTS)], 2) for seed in range(DRAWN))
    faults += sum(every_fault(fixture, error, 2) for fixture in fixtures for error in FAULTS)
    print(f"G6: {DRAWN + len(fixtures)} tables, {faults:,} faults")  # noqa: T201 - the figure of docs/bad-days.md
    assert faults > (1_000 if CAMPAIGN else 300)


def every_fault(fixture: Callable[[OrphanLake], LakeTable], error: type[IcewrightError], in_pass: int) -> int:
    """Let the k-th read fail in one of two passes, for each k there is, and look at what is planned: how many."""
    outcomes: Counter[str] = Counter()
    number = 0
    while "whole" not in outcomes:
        number += 1
        lake = OrphanLake()
        table = fixture(lake)
        lake.pass_time(DAY_MS)
        garbage = {lake.write(f"{table.location}/data/left-{n}.parquet").path for n in range(4)}
        garbage |= {path for path in lake.storage.objects if path.startswith(table.root)} - table.needed()
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
        if "whole" in outcomes:
            assert planned_now[1]
    assert outcomes["raised"] or outcomes["refused"]
    if error is StorageUnavailable:
        assert outcomes["partial"]
    return number - 1
