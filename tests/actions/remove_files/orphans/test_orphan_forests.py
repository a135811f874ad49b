"""Forests of tables with sibling names, aliases and odd keys: no table loses what any of them needs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.actions.remove_files.orphans.service import OrphansRefused
from icewright.catalogs import local_spool as on_disk
from icewright.catalogs.local_spool import open_disk_spool
from icewright.model.iceberg.locations import Aliases, CanonicalPath, declared, is_ambiguous
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.path_aliasing import comparison_key
from icewright.ownership.model import Place
from tests.builders.orphan_lake import DAY_MS, PLAIN, LakeTable, OrphanLake, planned
from tests.conftest import CAMPAIGN

ODD = ("%2F", "%20", " ", "+", "#", "?", "//", "/../", "..", "\u00e9", "e\u0301", "🧊", "\n", "A", "a", "=", "x")
DECLARED = declared({"hdfs://nn2": "hdfs://nn1"})
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
names = st.lists(st.one_of(st.sampled_from(ODD), texts), max_size=4)
keys = names.map(lambda parts: f"data/{''.join(parts)}/f")
LOCATIONS = (
    "s3://b/w/t",
    "s3://b/w/t_2",
    "s3://b/w/t%202",
    "s3://b/w/T",
    "s3://c/w/t",
    "s3://b/w/u/t",
    "hdfs://nn1/w/t",
)


def as_written(location: str) -> str:
    return location


def by_s3a(location: str) -> str:
    return location.replace("s3://", "s3a://")


def by_s3n(location: str) -> str:
    return location.replace("s3://", "S3N://")


def by_another_node(location: str) -> str:
    return location.replace("hdfs://nn1", "hdfs://nn2")


def encoded(location: str) -> str:
    return location.replace(" ", "%20").replace("\u00e9", "%C3%A9")


SPELLED: tuple[Callable[[str], str], ...] = (as_written, by_s3a, by_s3n, by_another_node, encoded)


@st.composite
def lakes(draw: st.DrawFn) -> OrphanLake:
    """Up to four tables with commits, garbage and spellings of their own."""
    lake = OrphanLake()
    for location in draw(st.lists(st.sampled_from(LOCATIONS), min_size=1, max_size=4, unique=True)):
        table = lake.table(location, draw(st.sampled_from(SPELLED)))
        for files in draw(st.lists(st.lists(keys, max_size=3, unique=True), min_size=1, max_size=3)):
            table.commit(*files)
        lake.pass_time(DAY_MS)
        for key in draw(st.lists(keys, max_size=3)):
            path = PLAIN.canonical(f"{location}/{key}")
            if path not in lake.storage.objects:
                lake.write(path)
    lake.pass_time(DAY_MS)
    return lake


def owned(table: LakeTable, lake: OrphanLake) -> Place:
    """As the registry has it: nothing where another table's root is at, above or below."""
    others = [one.root for one in lake.tables if one is not table]
    shared = any(table.root.startswith(root) or root.startswith(table.root) for root in others)
    return Place(TableName("lake", ("db",), "t"), table.uuid, () if shared else (table.root,), ())


def needed(lake: OrphanLake) -> set[CanonicalPath]:
    """Everything that any table needs, by sets, where it really is."""
    return {path for table in lake.tables for path in table.needed()}


@settings(max_examples=8_000 if CAMPAIGN else 75, deadline=None)
@given(lakes(), st.sampled_from([PLAIN, DECLARED]))
def test_o5_o1_o2_o6_candidates_are_never_in_the_reachable_set_of_any_table(lake: OrphanLake, aliases: Aliases) -> None:
    for table in lake.tables:
        lake.look(table, place=owned(table, lake), aliases=aliases)
    lake.pass_time(30 * DAY_MS)
    for table in lake.tables:
        gone = planned(lake.look(table, place=owned(table, lake), aliases=aliases))
        assert not gone & needed(lake)
        assert all(path.startswith(table.root) for path in gone)
        assert gone <= lake.storage.objects.keys()


@settings(max_examples=800 if CAMPAIGN else 20, deadline=None)
@given(lakes())
def test_o2_the_same_is_found_by_way_of_the_disk(lake: OrphanLake) -> None:
    """In many small parts: paths that are alike must meet in one of them."""
    disk = OrphanLake(lake.clock, lake.store_clock, open_disk_spool, lake.tables)
    disk.storage, disk.objects = lake.storage, lake.objects
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_disk, "PER_PART", 3)
        for table in lake.tables:
            place = owned(table, lake)
            assert lake.candidates(table, place=place) == disk.candidates(table, place=place)


@settings(max_examples=2_000 if CAMPAIGN else 25, deadline=None)
@given(lakes())
def test_g18_nearly_all_garbage_goes_after_the_window(lake: OrphanLake) -> None:
    """Safety is not bought by doing nothing: what is kept of plain garbage is like a needed file, or hidden."""
    for table in lake.tables:
        place = owned(table, lake)
        garbage = {path for path in lake.storage.objects if path.startswith(table.root)} - table.needed()
        lake.look(table, place=place)
        lake.pass_time(30 * DAY_MS)
        found = lake.look(table, place=place)
        if isinstance(found, OrphansRefused):
            assert found.reason.code in ("not-all-known", "spelled-otherwise", "place-not-owned")
            continue
        gone = planned(found)
        like = {comparison_key(path) for path in table.needed()}
        for path in garbage - gone:
            hidden = any(part.startswith((".", "_")) for part in path[len(table.root) :].split("/"))
            assert comparison_key(path) in like or hidden or is_ambiguous(path)


ABORTED = (
    *(f"data/day={{day}}/{number:05}-{{day}}-0-left.parquet" for number in range(28)),
    *(f"data/day={{day}}/2026_{{day}}_{number}-left" for number in range(4)),
    "data/day={day}/00000-{day}-left-deletes.parquet",
    "data/day={day}/00000-{day}-left-deletes.puffin",
    "metadata/{day}-left-m0.avro",
    "metadata/{day}-left-m1.avro",
    "metadata/snap-{day}-1-left.avro",
    "metadata/2026-{day}-left.stats",
    "metadata/00007-left-{day}.metadata.json",
    "data/day={day}/.00000-left.parquet.crc",
)
"""What a job leaves that died before its commit, as Iceberg's writers and Hadoop's call their files."""
NEVER = ("metadata.json",)
"""What of it no pass takes: metadata files for long."""


def test_g18_nearly_all_that_aborted_jobs_leave_goes() -> None:
    """The goal is 95 % of it, by the end of nine days."""
    lake = OrphanLake()
    table = lake.table()
    for day in range(30):
        table.commit(*(f"data/day={day}/{number:05}-live.parquet" for number in range(20)))
        for name in ABORTED:
            path = f"s3://b/t/{name.format(day=day)}"
            lake.write_metadata(path, table.uuid) if path.endswith(".json") else lake.write(path)
        lake.pass_time(DAY_MS)
    garbage = {path for path in lake.storage.objects if "left" in path}
    assert len(garbage) == 30 * len(ABORTED)
    gone: set[str] = set()
    for _ in range(9):
        lake.pass_time(DAY_MS)
        gone |= planned(lake.look(table))
    assert not gone & table.needed()
    share = len(gone & garbage) / len(garbage)
    print(f"G18: {len(gone & garbage):,} of {len(garbage):,} files, {share:.1%}")  # noqa: T201 - the figure of docs/bad-days.md
    assert share >= 0.95
    assert all(path.endswith(NEVER) for path in garbage - gone)
