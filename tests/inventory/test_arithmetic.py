"""The inventory's arithmetic: sums, differences, and what histograms and ratios say."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.inventory import histogram
from icewright.inventory.arithmetic import (
    EMPTY,
    add,
    advance,
    empty,
    manifest_changes,
    needing_remaining,
    optimization_ratio,
    recompute,
    subtract,
)
from icewright.inventory.commit_rate import commit_interval_ms
from icewright.inventory.histogram import NegativeCount, bucket
from icewright.inventory.manifest_summary import ManifestSums
from icewright.inventory.partitions import human_value, partition_path
from icewright.model.iceberg.files import UNPARTITIONED, FileContent, FileFormat, Partition
from icewright.model.iceberg.inventory import ManifestKey, PartitionCounts, SizeHistogram
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TASK_ID_KEY, PartitionField, Snapshot, TableMetadata
from tests.cases import each_case
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.doubles.lake import MemoryFile

MIB = 1024 * 1024
ALL = Partition(0, UNPARTITIONED)
NAME = TableName("lake", ("db",), "events")
sizes = st.integers(0, 2**60)


def counts_of(*sizes_bytes: int, deletes: int = 0) -> PartitionCounts:
    tally = ManifestSums()
    for size_bytes in sizes_bytes:
        tally.data_file(
            ALL,
            file_format=FileFormat.PARQUET,
            size_bytes=size_bytes,
            record_count=10,
            sequence_number=1,
            snapshot_id=1,
        )
    for _ in range(deletes):
        tally.delete_file(ALL, content=FileContent.POSITION_DELETES, file_format=FileFormat.PARQUET, record_count=3)
    summary = tally.summary(ManifestKey("m", 1, 1), FileContent.DATA)
    return summary.partitions[ALL].counts if summary.partitions else EMPTY


@given(st.integers(1, 2**60))
def test_a_bucket_holds_exactly_its_sizes(size_bytes: int) -> None:
    k = bucket(size_bytes)
    assert Fraction(2) ** k <= Fraction(size_bytes) ** 8 < Fraction(2) ** (k + 1)


@each_case(("size_bytes", "expected"), [(0, -1), (1, 0), (2, 8), (1023, 79), (1024, 80), (1 << 29, 232)])
def test_buckets_at_their_edges(size_bytes: int, expected: int) -> None:
    assert bucket(size_bytes) == expected


def test_no_file_has_a_negative_size() -> None:
    with pytest.raises(ValueError, match="-1 bytes"):
        bucket(-1)


@given(st.lists(sizes, max_size=20), sizes)
def test_small_files_are_never_overcounted_and_missed_by_a_bucket_at_most(files: list[int], threshold: int) -> None:
    found, found_bytes = histogram.small(counts_of(*files).sizes, threshold)
    surely = [size for size in files if size < threshold and bucket(size) < bucket(threshold)]
    assert (found, found_bytes) == (len(surely), sum(surely))
    missed = [size for size in files if size < threshold and size not in surely]
    assert all(size >= threshold * 0.917 - 1 for size in missed)


@given(st.lists(sizes, max_size=8), st.lists(sizes, max_size=8), st.integers(0, 3))
def test_what_was_added_can_be_subtracted(one: list[int], other: list[int], deletes: int) -> None:
    first, second = counts_of(*one), counts_of(*other, deletes=deletes)
    whole = add(first, second)
    assert whole == add(second, first)
    sizes_of_all = whole.sizes.buckets.values()
    assert (sum(files for files, _ in sizes_of_all), sum(size for _, size in sizes_of_all)) == (
        whole.data_files,
        whole.data_bytes,
    )
    assert subtract(whole, second) == first
    assert subtract(whole, first) == second
    assert empty(subtract(whole, whole))


@each_case(
    "part",
    [
        counts_of(1000, 1000),
        counts_of(2000),
        counts_of(1000, deletes=1),
        replace(counts_of(1000), records=11),
        replace(counts_of(1000), formats={FileFormat.ORC: 1}),
        replace(counts_of(1000), sizes=SizeHistogram({79: (1, 999)})),
    ],
)
def test_a_difference_below_zero_is_a_broken_inventory(part: PartitionCounts) -> None:
    with pytest.raises(NegativeCount):
        subtract(counts_of(1000), part)


def test_a_partition_is_empty_without_data_and_deletes() -> None:
    assert empty(EMPTY)
    assert not empty(counts_of(1))
    assert not empty(counts_of(deletes=1))


def test_delete_files_are_counted_by_kind() -> None:
    tally = ManifestSums()
    tally.delete_file(ALL, content=FileContent.POSITION_DELETES, file_format=FileFormat.PARQUET, record_count=2)
    tally.delete_file(ALL, content=FileContent.POSITION_DELETES, file_format=FileFormat.PUFFIN, record_count=5)
    tally.delete_file(ALL, content=FileContent.EQUALITY_DELETES, file_format=FileFormat.PARQUET, record_count=9)
    tally.removed(ALL)
    share = tally.summary(ManifestKey("m", 1, 1), FileContent.POSITION_DELETES).partitions[ALL]
    counts = share.counts
    assert (counts.position_delete_files, counts.deletion_vectors, counts.equality_delete_files) == (1, 1, 1)
    assert counts.deleted_records == 7
    assert counts.delete_files == 3
    assert share.removed_files == 1


def test_manifests_that_came_and_went() -> None:
    a, b, c = (ManifestKey(path, 1, 1) for path in "abc")
    reused = ManifestKey("a", 1, 2)
    assert manifest_changes([a, b], [b, c]) == ((c,), (a,))
    assert manifest_changes([a], [reused]) == ((reused,), (a,))


@each_case(
    ("files", "expected"),
    [
        ([], 1.0),
        ([MIB], 1.0),
        ([600 * MIB] * 7, 1.0),
        ([MIB] * 100, 1 / 100),
        ([600 * MIB] * 10 + [10 * MIB] * 90, 12 / 100),
        ([MIB, 600 * MIB], 1.0),
        ([MIB] * 3, 1.0),  # what is left of 3,000 files that were merged
        ([MIB] * 4, 1.0),
        ([MIB] * 5, 1 / 5),
        ([0] * 5, 1 / 5),
    ],
)
def test_the_optimization_ratio(files: list[int], expected: float) -> None:
    ratio = optimization_ratio(
        counts_of(*files), small_file_size_bytes=384 * MIB, target_file_size_bytes=512 * MIB, min_input_files=5
    )
    assert ratio == pytest.approx(expected)


@given(st.lists(st.integers(0, 10**9), max_size=30), st.integers(1, 10**9), st.integers(0, 10**8))
def test_the_ratio_stays_in_range_and_full_means_nothing_to_gain(files: list[int], target: int, slack: int) -> None:
    counts = counts_of(*files)
    ratio = optimization_ratio(
        counts, small_file_size_bytes=target, target_file_size_bytes=target + slack, min_input_files=5
    )
    assert 0 < ratio <= 1
    if histogram.small(counts.sizes, target)[0] < 5:
        assert ratio == 1.0


def table(*, v1: bool = False) -> tuple[MemoryCatalog, ManualClock]:
    clock = ManualClock(1_000)
    catalog = MemoryCatalog("lake", clock)
    catalog.create(NAME, format_version=1 if v1 else 2)
    return catalog, clock


def file(path: str) -> MemoryFile:
    return MemoryFile(path, ALL, 1000, 10)


def written_at(catalog: MemoryCatalog) -> int | None:
    metadata = catalog.load(NAME)
    snapshot = metadata.current_snapshot
    assert snapshot is not None
    keys = catalog.manifests(metadata, snapshot)
    (statistics,) = recompute(metadata, catalog.summarize(metadata, snapshot, keys))
    return statistics.written_at


@pytest.mark.parametrize("v1", [False, True])
def test_the_last_write_is_the_newest_commit_that_added_data(*, v1: bool) -> None:
    catalog, clock = table(v1=v1)
    catalog.append(NAME, [file("a"), file("b")])
    clock.advance(1_000)
    catalog.append(NAME, [file("c")])
    assert written_at(catalog) == 2_000
    clock.advance(1_000)
    catalog.delete(NAME, ["c"])
    assert written_at(catalog) == 1_000


def test_a_rewrite_is_no_write() -> None:
    catalog, clock = table()
    base = catalog.append(NAME, [file("a"), file("b")])
    clock.advance(1_000)
    first = catalog.commit_rewrite(NAME, base_snapshot_id=base.snapshot_id, remove=["a"], add=[file("a2")])
    assert written_at(catalog) == 1_000
    clock.advance(1_000)
    # Based on a rewrite, whose number the new file keeps: the write is the one before both.
    catalog.commit_rewrite(NAME, base_snapshot_id=first.snapshot_id, remove=["a2", "b"], add=[file("ab")])
    assert written_at(catalog) == 1_000


def test_a_rewrite_in_v1_leaves_no_known_write() -> None:
    catalog, _ = table(v1=True)
    base = catalog.append(NAME, [file("a"), file("b")])
    catalog.commit_rewrite(NAME, base_snapshot_id=base.snapshot_id, remove=["a", "b"], add=[file("ab")])
    assert written_at(catalog) is None


def test_an_expired_write_is_unknown_to_a_recomputation_and_remembered_by_the_inventory() -> None:
    catalog, clock = table()
    old = catalog.append(NAME, [file("a")])
    metadata = catalog.load(NAME)
    before = list(catalog.summarize(metadata, old, catalog.manifests(metadata, old)))
    known = {s.partition: s for s in recompute(metadata, before)}
    clock.advance(1_000)
    new = catalog.rewrite_manifests(NAME)
    catalog.expire(NAME, [old.snapshot_id])
    assert written_at(catalog) is None
    metadata = catalog.load(NAME)
    after = list(catalog.summarize(metadata, new, catalog.manifests(metadata, new)))
    change = advance(metadata, known, added=after, removed=before, remaining=())
    assert change.changed == ()
    assert change.removed == ()


@pytest.mark.parametrize("v1", [False, True])
def test_an_append_needs_nothing_of_what_was_there_before(*, v1: bool) -> None:
    catalog, clock = table(v1=v1)

    def needing(came: Snapshot, gone: Snapshot) -> frozenset[Partition]:
        metadata = catalog.load(NAME)
        keys = manifest_changes(catalog.manifests(metadata, gone), catalog.manifests(metadata, came))
        added, removed = (list(catalog.summarize(metadata, s, k)) for s, k in zip((came, gone), keys, strict=True))
        return needing_remaining(metadata, added, removed)

    first = catalog.append(NAME, [file("a"), file("b")])
    clock.advance(1_000)
    second = catalog.append(NAME, [file("c")])
    assert needing(second, first) == (frozenset({ALL}) if v1 else frozenset())
    third = catalog.delete(NAME, ["c"])
    assert needing(third, second) == {ALL}
    assert needing(catalog.rewrite_manifests(NAME), third) == {ALL}


def test_the_commit_interval_is_the_median_of_the_owners_gaps() -> None:
    catalog, clock = table()
    assert commit_interval_ms(catalog.load(NAME)) is None
    catalog.append(NAME, [file("0")])
    assert commit_interval_ms(catalog.load(NAME)) is None
    for number, gap in enumerate([10, 10, 1_000, 20, 10], start=1):
        clock.advance(gap)
        catalog.append(NAME, [file(str(number))])
    assert commit_interval_ms(catalog.load(NAME)) == 10


def test_neither_our_commits_nor_other_rewrites_set_the_rhythm() -> None:
    catalog, clock = table()
    for number in range(3):
        catalog.append(NAME, [file(f"a{number}")])
        clock.advance(1)
        catalog.append(NAME, [file(f"b{number}")], summary={TASK_ID_KEY: "task-1"})
        catalog.rewrite_manifests(NAME)
        clock.advance(99)
    assert commit_interval_ms(catalog.load(NAME)) == 100


def test_only_the_newest_commits_of_the_lineage_count() -> None:
    catalog, clock = table()
    for number in range(30):
        catalog.append(NAME, [file(str(number))])
        clock.advance(5_000 if number < 15 else 7)
    side = catalog.load(NAME).snapshots[-1].snapshot_id
    catalog.set_ref(NAME, "side", side)
    for number in range(50):
        clock.advance(1)
        catalog.append(NAME, [file(f"side{number}")], branch="side")
    # 14 gaps of 7 ms and 5 of 5 s among the newest 20 commits of main.
    assert commit_interval_ms(catalog.load(NAME)) == 7


def test_clocks_that_run_backwards_count_as_no_gap() -> None:
    catalog, clock = table()
    for _ in range(3):
        catalog.append(NAME, [])
        clock.advance(-50)
    assert commit_interval_ms(catalog.load(NAME)) == 0


def metadata_with(*fields: PartitionField) -> TableMetadata:
    catalog = MemoryCatalog("lake", ManualClock())
    catalog.create(NAME, partition_fields=fields)
    return catalog.load(NAME)


def test_a_partition_path_is_escaped_as_icebergs_directories_are() -> None:
    metadata = metadata_with(
        PartitionField(1, 1000, "m", "month"),
        PartitionField(2, 1001, "ci ty", "identity"),
        PartitionField(2, 1002, "gone", "void"),
    )
    assert partition_path(metadata, Partition(0, '[516,"a/b~*ö",null]')) == "m=2013-01/ci+ty=a%2Fb%7E*%C3%B6/gone=null"


@pytest.mark.parametrize("fields", [(), (PartitionField(2, 1000, "gone", "void"),)])
def test_the_unpartitioned_have_no_path(fields: tuple[PartitionField, ...]) -> None:
    assert partition_path(metadata_with(*fields), ALL) == ""


@each_case(
    ("transform", "value", "expected"),
    [
        ("year", 43, "2013"),
        ("year", -1, "1969"),
        ("month", -1, "1969-12"),
        ("month", 0, "1970-01"),
        ("day", "2013-01-02", "2013-01-02"),
        ("hour", 377_000, "2013-01-03-08"),
        ("hour", 10**12, "1000000000000"),
        ("bucket[16]", 7, "7"),
        ("identity", 516, "516"),
        ("identity", True, "true"),
        ("identity", None, "null"),
        ("identity", "null", "null"),
        ("identity", 1.5, "1.5"),
    ],
)
def test_values_for_people(transform: str, value: object, expected: str) -> None:
    assert human_value(transform, value) == expected
