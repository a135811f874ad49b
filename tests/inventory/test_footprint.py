"""Sums by bits against plain sets: every figure is counted anew from which snapshot needs which file."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.inventory import reference_bits as keepers_module
from icewright.inventory.footprint import Amount, distinct, footprint
from icewright.inventory.reference_bits import ReferenceBits, reference_bits
from icewright.inventory.snapshot_retention import retained_snapshots
from icewright.model.actions.expire_snapshots import ExpiryRule
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.reachable_files import FileClass, ReachableFile
from icewright.model.iceberg.tables import PartitionSpec, Ref, RefKind, Schema, Snapshot, SortOrder, TableMetadata

NOW = 1_000
RULES = (ExpiryRule(300), ExpiryRule(0, 1), ExpiryRule(0, 2), ExpiryRule(600, 3), ExpiryRule(0))


def table(
    snapshots: tuple[Snapshot, ...], refs: tuple[Ref, ...], current: int | None, **properties: str
) -> TableMetadata:
    return TableMetadata(
        table_id=TableId("lake", "u"),
        name=TableName("lake", ("db",), "t"),
        metadata_location="s3://b/t/metadata/1.json",
        location="s3://b/t",
        format_version=2,
        updated_at=NOW,
        current_snapshot_id=current,
        snapshots=snapshots,
        refs=refs,
        schemas=(Schema(0, ()),),
        current_schema_id=0,
        specs=(PartitionSpec(0, ()),),
        default_spec_id=0,
        sort_order=SortOrder(0, ()),
        properties=properties,
    )


def snapshot(snapshot_id: int, parent_id: int | None, committed_at: int) -> Snapshot:
    return Snapshot(snapshot_id, parent_id, snapshot_id, committed_at, None, f"s3://b/{snapshot_id}", None, {})


@st.composite
def tables(draw: st.DrawFn) -> TableMetadata:
    """Snapshots in a tree, some of whose parents are gone; a current one, branches and tags anywhere."""
    count = draw(st.integers(0, 8))
    snapshots = tuple(
        snapshot(number, draw(st.one_of(st.none(), st.integers(0, number - 1))), draw(st.integers(0, NOW + 50)))
        for number in range(1, count + 1)
    )
    if not snapshots:
        return table((), (), None)
    ids = st.integers(1, count)
    ages = st.one_of(st.none(), st.integers(0, NOW))
    refs = tuple(
        Ref(
            f"r{number}",
            draw(st.sampled_from(RefKind)),
            draw(ids),
            draw(ages),
            draw(ages),
            draw(st.sampled_from([None, 1, 2])),
        )
        for number in range(draw(st.integers(0, 4)))
    )
    current = draw(ids)
    return table(snapshots, (*refs, Ref("main", RefKind.BRANCH, current)), current)


def count(paths: set[str], sizes: dict[str, int | None]) -> Amount:
    known = [size for path in paths if (size := sizes[path]) is not None]
    return Amount(len(paths), sum(known), len(paths) - len(known))


@given(tables(), st.data(), st.sampled_from([1, 2, 500]))
def test_e1_e2_e3_e4_e5_every_figure_is_what_sets_give(
    metadata: TableMetadata, data: st.DataObject, refs_max: int
) -> None:
    ids = [one.snapshot_id for one in metadata.snapshots]
    paths = [f"s3://b/{number}" for number in range(data.draw(st.integers(0, 8)))]
    sizes = {path: data.draw(st.one_of(st.none(), st.integers(0, 99))) for path in paths}
    classes = {path: data.draw(st.sampled_from([FileClass.DATA, FileClass.MANIFEST])) for path in paths}
    needed = {one: {path for path in paths if data.draw(st.booleans())} for one in ids}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keepers_module, "REFS_MAX", refs_max)
        bits = reference_bits(metadata, RULES, NOW)
    # Every snapshot mentions its files for itself, as manifests do.
    mentions = [
        ReachableFile(CanonicalPath(path), classes[path], sizes[path], bits.of(one))
        for one in ids
        for path in needed[one]
    ]
    own = ReachableFile(CanonicalPath("s3://b/own"), FileClass.METADATA, 7, bits.of(None))
    sums = footprint(distinct([*mentions, own]), bits)

    every = set().union(*needed.values())
    live = needed.get(metadata.current_snapshot_id or 0, set())
    at = {ref.name: needed[ref.snapshot_id] for ref in metadata.refs}
    by_refs = set().union(*at.values()) - live
    for share in sums.classes:
        mine = {path for path in paths if classes[path] is share.file_class}
        if share.file_class is FileClass.METADATA:
            assert (share.live, share.by_refs, share.by_history) == (Amount(1, 7, 0), Amount(), Amount())
            continue
        assert share.live == count(live & mine, sizes)
        assert share.by_refs == count(by_refs & mine, sizes)
        assert share.by_history == count((every - live - by_refs) & mine, sizes)
    assert {share.file_class for share in sums.classes} == {classes[path] for path in every} | {FileClass.METADATA}
    for held in sums.refs:
        others = set().union(*(found for name, found in at.items() if name != held.ref.name))
        assert held.reachable == count(at[held.ref.name], sizes)
        assert held.only_here == count(at[held.ref.name] - others, sizes)
    assert len(sums.refs) + bits.other_refs == len(metadata.refs)
    for expiry, rule in zip(sums.expiries, RULES, strict=True):
        kept = retained_snapshots(metadata, rule, NOW)
        still = set().union(*(needed[one] for one in kept))
        assert expiry.freed == count(every - still, sizes)
        assert expiry.snapshots == len(set(ids) - kept)


def test_e9_v5_a_path_of_two_mentions_is_one_file() -> None:
    one = ReachableFile(CanonicalPath("s3://b/1"), FileClass.STATISTICS, None, 1)
    other = replace(one, file_class=FileClass.DELETION_VECTORS, size_bytes=5, kept_by=4)
    for order in ([one, other], [other, one]):
        assert list(distinct(order)) == [replace(other, kept_by=5)]


def test_a_version_hint_is_no_file_to_be_counted() -> None:
    hint = ReachableFile(CanonicalPath("s3://b/h"), FileClass.VERSION_HINT, None, 1)
    assert footprint([hint], bits_of_nothing()).classes == ()


def bits_of_nothing() -> ReferenceBits:
    return reference_bits(table((), (), None), RULES, NOW)
