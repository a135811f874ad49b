"""Bugs that lost tables elsewhere, put in here one by one: each of them must be noticed (G8).

A mutation takes one guard away. It is noticed when what is planned then has a file among it that must not go, which is
what all other tests look for, or when the second opinion refuses the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from icewright.actions.remove_files.orphans import metadata_anchors, service
from icewright.actions.remove_files.orphans import survey as orphans
from icewright.actions.remove_files.orphans.foreign_metadata import ForeignMetadata
from icewright.actions.remove_files.orphans.rules import OrphanRules
from icewright.core.completeness import Complete, Partial
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import Listed
from icewright.model.iceberg.reachable_files import FileClass, NamedFile, Roots
from icewright.ownership.model import Place
from icewright.plans.repository import PlanRejected
from tests.builders.orphan_lake import DAY_MS, HOUR_MS, START, LakeTable, OrphanLake, owns, planned
from tests.cases import each_case

Patch = pytest.MonkeyPatch
LEFT = CanonicalPath("s3://b/t/data/left.parquet")


@dataclass(frozen=True)
class Mutation:
    """A world in which a guard matters, and that guard taken away. ``lost`` are paths that must not be planned."""

    name: str
    world: Callable[[OrphanLake], LakeTable]
    mutate: Callable[[Patch, OrphanLake, LakeTable], None]
    lost: Callable[[OrphanLake, LakeTable], set[str]]
    meanwhile: Callable[[OrphanLake, LakeTable], None] = lambda _lake, _table: None


def needed(lake: OrphanLake, _table: LakeTable) -> set[str]:
    return {str(path) for one in lake.tables for path in one.needed()}


def these(*paths: str) -> Callable[[OrphanLake, LakeTable], set[str]]:
    return lambda _lake, _table: set(paths)


def plain(lake: OrphanLake) -> LakeTable:
    table = lake.table()
    table.commit("data/1.parquet", "data/2.parquet")
    lake.pass_time(DAY_MS)
    lake.write(LEFT)
    lake.pass_time(DAY_MS)
    return table


def with_sibling(lake: OrphanLake) -> LakeTable:
    table = plain(lake)
    sibling = lake.table("s3://b/t_2")
    sibling.commit("data/1.parquet")
    return table


def spelled(other: Callable[[str], str], location: str = "hdfs://nn1/t") -> Callable[[OrphanLake], LakeTable]:
    def world(lake: OrphanLake) -> LakeTable:
        table = lake.table(location)
        table.commit(*(f"data/{number}.parquet" for number in range(300)))
        table.spelled = other
        table.commit("data/a b.parquet")
        return table

    return world


def with_statistics(lake: OrphanLake) -> LakeTable:
    table = plain(lake)
    path = "s3://b/t/metadata/stats.puffin"
    lake.write(path)
    table.statistics.append(NamedFile(path, FileClass.STATISTICS, 10, 1))
    return table


def with_odd_times(lake: OrphanLake) -> LakeTable:
    table = plain(lake)
    lake.write("s3://b/t/data/zero.parquet", modified_at=0)
    return table


def with_metadata(lake: OrphanLake) -> LakeTable:
    table = plain(lake)
    for _ in range(5):
        table.save()
    table.log.clear()
    return table


def staged(lake: OrphanLake) -> LakeTable:
    table = plain(lake)
    table.commit("data/3.parquet")
    table.commit("data/staged.parquet", staged=True)
    table.save()
    return table


# What takes the guards away.


def no_slash(patch: Patch, lake: OrphanLake, _table: LakeTable) -> None:
    """O6: prefixes compared without their slash, on both sides."""

    def bare(place: Place) -> Place:
        return replace(place, roots=tuple(root.rstrip("/") for root in place.roots))

    patch.setattr(lake.objects, "list", lambda root: _startswith(lake, root.rstrip("/")), raising=False)
    patch.setattr(service, "_owned_alone", bare)
    patch.setattr(service, "ForeignMetadata", NoForeignMetadata)


def _startswith(lake: OrphanLake, prefix: str) -> Iterator[Listed]:
    yield from [stored.listed for path, stored in lake.storage.objects.items() if path.startswith(prefix)]


class NoForeignMetadata(ForeignMetadata):
    def watched(self, listing: Iterable[Listed]) -> Iterator[Listed]:
        yield from listing


def no_foreign_metadata(patch: Patch, _lake: OrphanLake, _table: LakeTable) -> None:
    patch.setattr(service, "ForeignMetadata", NoForeignMetadata)


def no_disagreement(patch: Patch, _lake: OrphanLake, _table: LakeTable) -> None:
    """O1, O2: neither ratio nor comparison of keys, in planner and checker."""
    patch.setattr(orphans.Survey, "disagreement", lambda _self: None)
    patch.setattr(orphans, "comparison_key", lambda path: path)


def times_do_not_matter(patch: Patch, _lake: OrphanLake, _table: LakeTable) -> None:
    """O4: a time of 0 is a time."""
    patch.setattr(OrphanRules, "_odd_time", lambda _self, _at: None)


def no_statistics(patch: Patch, _lake: OrphanLake, table: LakeTable) -> None:
    """O7: what the metadata names itself is not all looked at."""
    roots = table.roots

    def without(name: Any) -> Roots:
        found = roots(name)
        return replace(found, files=tuple(one for one in found.files if one.file_class is not FileClass.STATISTICS))

    patch.setattr(table, "roots", without, raising=False)


def stale_handle(patch: Patch, _lake: OrphanLake, table: LakeTable) -> None:
    """O8: the table as it was when somebody first looked, for ever."""
    first = table.roots(table.name)
    patch.setattr(table, "roots", lambda _name: first, raising=False)


def refs_only(patch: Patch, _lake: OrphanLake, table: LakeTable) -> None:
    """O12: snapshots that no ref is at are not told of."""
    roots = table.roots

    def without(name: Any) -> Roots:
        found = roots(name)
        at = {ref.snapshot_id for ref in found.metadata.refs}
        kept = tuple(one for one in found.metadata.snapshots if one.snapshot_id in at)
        return replace(found, metadata=replace(found.metadata, snapshots=kept))

    patch.setattr(table, "roots", without, raising=False)


def partial_is_complete(patch: Patch, _lake: OrphanLake, table: LakeTable) -> None:
    """O13: what could not be read is passed over."""
    from icewright.core.errors import Unreadable  # noqa: PLC0415 - one use

    manifests = table.manifests

    def missing(metadata: Any, path: str) -> Any:
        if path.endswith("snap-1.avro"):
            raise Unreadable("damaged")
        return manifests(metadata, path)

    patch.setattr(table, "manifests", missing, raising=False)
    patch.setattr(service, "_complete", lambda known: Complete(known.found) if isinstance(known, Partial) else known)
    patch.setattr(orphans.Survey, "disagreement", lambda _self: None)


def no_age(patch: Patch, _lake: OrphanLake, _table: LakeTable) -> None:
    """O3: as old as anybody likes."""
    patch.setattr(orphans, "age_min_ms", lambda _asked, _table, _slowest: 0)


def no_sightings(patch: Patch, _lake: OrphanLake, _table: LakeTable) -> None:
    """O3, S-2: by modification time alone, at the first sight."""
    waits = OrphanRules.waits

    def at_once(self: OrphanRules, found: Any, sighting: Any) -> Any:
        return waits(self, found, replace(sighting, first_seen_at=0, passes=9))

    patch.setattr(OrphanRules, "waits", at_once)


def no_anchors(patch: Patch, _lake: OrphanLake, _table: LakeTable) -> None:
    patch.setattr(metadata_anchors.MetadataAnchors, "keeps", lambda _self, _found: False)


def no_flink(patch: Patch, _lake: OrphanLake, _table: LakeTable) -> None:
    patch.setattr(orphans, "flink_prefixes", lambda _table: ())


def nothing_hidden(patch: Patch, _lake: OrphanLake, _table: LakeTable) -> None:
    patch.setattr(OrphanRules, "_is_hidden", lambda _self, _path: False)


def commit_late(lake: OrphanLake, table: LakeTable) -> None:
    """A writer that was slow: its file was seen, and is needed by now."""
    del lake
    table.commit("data/left.parquet")


def copy_old(lake: OrphanLake, table: LakeTable) -> None:
    """A file that somebody has just put there, with the time of the one that it was copied from."""
    del table
    lake.write("s3://b/t/data/young.parquet", modified_at=START + 1)


def write_young(lake: OrphanLake, table: LakeTable) -> None:
    del table
    lake.write("s3://b/t/data/young.parquet")


def with_flink(lake: OrphanLake) -> LakeTable:
    table = plain(lake)
    table.commit("data/4.parquet", summary={"flink.job-id": "ab12"})
    lake.write("s3://b/t/metadata/ab12-0-1.avro")
    return table


def with_hidden(lake: OrphanLake) -> LakeTable:
    table = plain(lake)
    lake.write("s3://b/t/.trash/x.parquet")
    return table


def with_foreign(lake: OrphanLake) -> LakeTable:
    table = plain(lake)
    inner = lake.table("s3://b/t/inner")
    inner.commit("data/1.parquet")
    return table


MUTATIONS = (
    Mutation("o1 aliases", spelled(lambda path: path.replace("nn1", "nn2")), no_disagreement, needed),
    Mutation("o2 encodings", spelled(lambda path: path.replace(" ", "%20"), "s3://b/t"), no_disagreement, needed),
    Mutation("o3 floor", plain, no_age, these("s3://b/t/data/young.parquet"), write_young),
    Mutation("o3 sightings", plain, no_sightings, these("s3://b/t/data/young.parquet"), copy_old),
    Mutation("o4 times", with_odd_times, times_do_not_matter, these("s3://b/t/data/zero.parquet")),
    Mutation("o5 nested table", with_foreign, no_foreign_metadata, needed),
    Mutation("o6 slash", with_sibling, no_slash, needed),
    Mutation("o7 statistics", with_statistics, no_statistics, needed),
    Mutation("o8 handle", plain, stale_handle, needed, commit_late),
    Mutation("o9 anchors", with_metadata, no_anchors, these("s3://b/t/metadata/00003-u0.metadata.json")),
    Mutation("o10 flink", with_flink, no_flink, these("s3://b/t/metadata/ab12-0-1.avro")),
    Mutation("o12 refs only", staged, refs_only, needed),
    Mutation("o13 partial", plain, partial_is_complete, needed),
    Mutation("o14 hidden", with_hidden, nothing_hidden, these("s3://b/t/.trash/x.parquet")),
)


def outcome(mutation: Mutation, patch: Patch | None) -> tuple[set[str], str]:
    """What must not be planned and is, in passes two weeks apart and then hours; and what the second opinion says."""
    lake = OrphanLake()
    table = mutation.world(lake)
    if patch is not None:
        mutation.mutate(patch, lake, table)
    said, lost = "", set[str]()
    for number in range(4):
        try:
            planned_now = planned(lake.look(table, place=owns(table.root, uuid=table.uuid)))
            lost |= planned_now & mutation.lost(lake, table)
        except PlanRejected as error:
            said = error.message
        if number == 1:
            mutation.meanwhile(lake, table)
        lake.pass_time(2 * HOUR_MS if number else 15 * DAY_MS)
    return lost, said


@each_case("mutation", MUTATIONS, ids=lambda one: one.name)
def test_g8_with_all_guards_nothing_is_lost_and_the_second_opinion_agrees(mutation: Mutation) -> None:
    assert outcome(mutation, None) == (set(), "")


@each_case("mutation", MUTATIONS, ids=lambda one: one.name)
def test_g8_each_guard_that_is_taken_away_is_noticed(mutation: Mutation, monkeypatch: Patch) -> None:
    lost, said = outcome(mutation, monkeypatch)
    assert lost or said, f"{mutation.name}: nobody noticed"
