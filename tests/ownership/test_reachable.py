"""All files of a table: each manifest read once, over any history; and never complete when something was not read."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from icewright.catalogs import local_spool as on_disk
from icewright.catalogs.local_spool import OpenSpool, open_disk_spool
from icewright.catalogs.table_files_port import TableFiles
from icewright.core.completeness import GAPS_KEPT_MAX, Complete, Gap, Known, Partial
from icewright.core.errors import IcewrightError, StorageUnavailable, Unavailable, Unreadable, Unsupported
from icewright.footprint.storage_views import storage_view
from icewright.inventory.reference_bits import ReferenceBits, reference_bits
from icewright.inventory.snapshot_retention import retained_snapshots
from icewright.model.actions.expire_snapshots import ExpiryRule
from icewright.model.iceberg.files import UNPARTITIONED, FileContent, FileFormat, Partition
from icewright.model.iceberg.locations import Aliases, CanonicalPath, declared
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.reachable_files import (
    FileClass,
    ListedFile,
    ListedManifest,
    ManifestListing,
    NamedFile,
    ReachableFile,
    Roots,
)
from icewright.model.iceberg.tables import MAIN_BRANCH, RefKind, Snapshot, TableMetadata
from icewright.model.plans.plans import Reason
from icewright.ownership.reachable import Reachable, Step, reachable
from tests.cases import each_case
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.doubles.lake import MemoryFile
from tests.doubles.table_files import MemoryTableFiles
from tests.doubles.tables import LIST_BYTES, METADATA_BYTES
from tests.inventory.test_inventory_histories import NAME, Histories, chance, cities

RULES = (ExpiryRule(20), ExpiryRule(0, 1), ExpiryRule(0, 3))
SPELLINGS = ("s3://b/", "s3a://b/", "s3n://b/")
PATHS_REUSED = 3


def bits(metadata: TableMetadata, now: int = 0) -> ReferenceBits:
    return reference_bits(metadata, RULES, now)


@dataclass
class Reading(TableFiles):
    """Counts what is read of another implementation, and does something wrong at the k-th time."""

    files: TableFiles
    wrong_at: int | None = None
    fault: Callable[[Reading], None] = lambda _self: None
    after: int = 0
    reads: int = 0
    manifests_read: Counter[str] = field(default_factory=Counter)

    def roots(self, name: TableName) -> Roots:
        self._read()
        return self.files.roots(name)

    def size_bytes(self, table: TableMetadata, path: str) -> int:
        self._read()
        return self.files.size_bytes(table, path)

    def manifests(self, table: TableMetadata, path: str) -> ManifestListing:
        self._read()
        return self.files.manifests(table, path)

    def live_files(self, table: TableMetadata, manifest: ListedManifest) -> Iterator[ListedFile]:
        self.manifests_read[manifest.path] += 1
        found = self.files.live_files(table, manifest)
        for _ in range(self.after):
            one = next(found, None)
            if one is None:
                break
            yield one
        self._read()
        yield from found

    def _read(self) -> None:
        self.reads += 1
        if self.reads == self.wrong_at:
            self.fault(self)


def files_of(known: Known[Reachable]) -> dict[CanonicalPath, ReachableFile]:
    found = known.value if isinstance(known, Complete) else known.found
    files = list(found.files())
    by_path = {file.path: file for file in files}
    assert len(by_path) == len(files)
    return by_path


def reach(
    files: TableFiles, open_spool: OpenSpool = open_disk_spool, now: int = 0
) -> tuple[Known[Reachable], dict[CanonicalPath, ReachableFile]]:
    steps: list[tuple[Step, int, int]] = []
    with reachable(
        files,
        NAME,
        lambda metadata: bits(metadata, now),
        open_spool,
        aliases=Aliases(),
        progress=lambda step, done, total: steps.append((step, done, total)),
    ) as known:
        assert all(done <= total for _, done, total in steps)
        return known, files_of(known)


class Reached(Histories):
    """Writers do anything, in any spelling; after each step all files are put together anew."""

    def path(self) -> str:
        return f"{SPELLINGS[self.numbers % len(SPELLINGS)]}f{self.numbers}"

    @rule(random=chance, name=st.sampled_from(["one", "two"]))
    def tag(self, random: Random, name: str) -> None:
        chosen = random.choice(self.catalog.load(NAME).snapshots)
        self.catalog.set_ref(NAME, name, chosen.snapshot_id, kind=RefKind.TAG)

    @rule(city=cities, number=st.integers(1, PATHS_REUSED))
    def add_a_path_again(self, city: str, number: int) -> None:
        """Under any spelling; it may have been removed before, or never been there."""
        file = replace(self.file(city, 9), path=f"{SPELLINGS[self.numbers % len(SPELLINGS)]}again{number}")
        self.catalog.append(NAME, [file])

    @rule(snapshots=st.integers(1, 4))
    def expire_some(self, snapshots: int) -> None:
        """As Iceberg would, main's own past with them."""
        metadata = self.catalog.load(NAME)
        kept = retained_snapshots(metadata, ExpiryRule(0, snapshots), self.clock.now())
        self.catalog.expire(NAME, [one.snapshot_id for one in metadata.snapshots if one.snapshot_id not in kept])

    @invariant()
    def the_inventory_is_the_sum_of_the_manifests(self) -> None:
        """Another subject has that."""

    @invariant()
    def all_files_are_there_and_each_manifest_was_read_once(self) -> None:
        reading = Reading(MemoryTableFiles(self.catalog))
        known, files = reach(reading, self.open_spool, self.clock.now())
        assert isinstance(known, Complete)
        assert files == expected(self.catalog, self.clock.now())
        assert set(reading.manifests_read.values()) <= {1}

    open_spool: OpenSpool = staticmethod(open_disk_spool)


def expected(catalog: MemoryCatalog, now: int) -> dict[CanonicalPath, ReachableFile]:
    """By sets: which snapshots need a path, then which keepers have one of these."""
    metadata = catalog.load(NAME)
    needed: dict[str, set[int]] = {}
    facts: dict[str, tuple[FileClass, int]] = {}
    committed_at = {snapshot.snapshot_id: snapshot.committed_at for snapshot in metadata.snapshots}
    added: dict[str, set[int]] = {}
    for snapshot in metadata.snapshots:
        found: list[tuple[str, FileClass, int]] = [(snapshot.manifest_list, FileClass.MANIFEST_LIST, LIST_BYTES)]
        for manifest in catalog.manifests_of(metadata, snapshot):
            found.append((manifest.key.path, FileClass.MANIFEST, manifest.key.length_bytes))
            for entry in manifest.live:
                path = entry.file.path.replace("s3a:", "s3:").replace("s3n:", "s3:")
                found.append((path, class_of(entry.file), entry.file.size_bytes))
                if entry.snapshot_id in committed_at:
                    added.setdefault(path, set()).add(committed_at[entry.snapshot_id])
        for path, file_class, size_bytes in found:
            needed.setdefault(path, set()).add(snapshot.snapshot_id)
            before = facts.get(path, (file_class, 0))
            facts[path] = (before[0], max(before[1], size_bytes))
    bit = bits(metadata, now)
    keeping: list[tuple[int, set[int | None]]] = [(1, {metadata.current_snapshot_id})]
    keeping += [(number, {ref.snapshot_id}) for number, ref in bit.refs.items()]
    keeping += [(one.bit, set(retained_snapshots(metadata, one.rule, now))) for one in bit.expiries]
    files = {
        CanonicalPath(path): ReachableFile(
            CanonicalPath(path),
            *facts[path],
            sum(number for number, kept in keeping if kept & ids),
            min(added.get(path, ()), default=None),
        )
        for path, ids in needed.items()
    }
    log = [metadata.metadata_location, *(entry.location for entry in metadata.metadata_log)]
    own = [ReachableFile(CanonicalPath(one), FileClass.METADATA, METADATA_BYTES, bit.everything) for one in log]
    return {**files, **{one.path: one for one in own}}


def class_of(file: MemoryFile) -> FileClass:
    if file.content is FileContent.POSITION_DELETES:
        vector = file.file_format is FileFormat.PUFFIN
        return FileClass.DELETION_VECTORS if vector else FileClass.POSITION_DELETES
    return FileClass.DATA if file.content is FileContent.DATA else FileClass.EQUALITY_DELETES


class ReachedByDisk(Reached):
    """The same, through files in the temporary folder."""

    open_spool: OpenSpool = staticmethod(open_disk_spool)


Reached.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
ReachedByDisk.TestCase.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
test_all_files_over_any_history = Reached.TestCase
test_all_files_over_any_history_by_disk = ReachedByDisk.TestCase


@pytest.fixture
def catalog() -> MemoryCatalog:
    """Four snapshots, a tag, a side branch, deletes; several manifests are shared."""
    found = MemoryCatalog("lake", ManualClock(1_000))
    found.create(NAME, format_version=2)
    first = found.append(NAME, [made(1), made(2)])
    found.append(NAME, [made(3)])
    found.overwrite(NAME, add=[made(4, FileContent.POSITION_DELETES)], remove=["s3://b/1"])
    found.set_ref(NAME, "kept", first.snapshot_id, kind=RefKind.TAG)
    found.set_ref(NAME, "side", first.snapshot_id)
    found.append(NAME, [made(5)], branch="side")
    return found


def made(number: int, content: FileContent = FileContent.DATA) -> MemoryFile:
    return MemoryFile(f"s3://b/{number}", Partition(0, UNPARTITIONED), number, 1, content=content)


def test_o11_staged_snapshots_and_those_of_branches_and_tags_alone_are_reached(catalog: MemoryCatalog) -> None:
    """By way of all snapshots, not by refs: what was staged is at no ref, and a tag's lineage has expired."""
    history = catalog.load(NAME).snapshots
    catalog.set_ref(NAME, "staging", history[-1].snapshot_id)
    staged = catalog.append(NAME, [made(6)], branch="staging")
    unstaged = tuple(ref for ref in catalog.load(NAME).refs if ref.name != "staging")
    catalog._change(NAME, lambda table: replace(table, metadata=replace(table.metadata, refs=unstaged)))
    catalog.expire(NAME, [history[1].snapshot_id])
    metadata = catalog.load(NAME)
    assert staged.snapshot_id not in {ref.snapshot_id for ref in metadata.refs}
    known, files = reach(MemoryTableFiles(catalog))
    assert isinstance(known, Complete)
    assert {f"s3://b/{number}" for number in range(1, 7)} <= files.keys()
    assert {snapshot.manifest_list for snapshot in metadata.snapshots} <= files.keys()


def unreadable(_reading: Reading) -> None:
    raise Unreadable("damaged")


def unsupported(_reading: Reading) -> None:
    raise Unsupported("of a later version")


def away(_reading: Reading) -> None:
    raise StorageUnavailable("no answer")


@each_case("after", [0, 1])
@each_case("fault", [unreadable, unsupported, away])
def test_o13_e7_a_read_that_fails_is_never_a_smaller_complete_answer(
    catalog: MemoryCatalog, fault: Callable[[Reading], None], after: int
) -> None:
    """Every single read, one after the other; a manifest also when some of its entries have been given out."""
    whole = Reading(MemoryTableFiles(catalog), after=after)
    _, everything = reach(whole)
    outcomes: Counter[str] = Counter()
    for number in range(1, whole.reads + 1):
        reading = Reading(MemoryTableFiles(catalog), number, fault, after)
        try:
            known, files = reach(reading)
        except IcewrightError:
            outcomes["raised"] += 1
            continue
        if isinstance(known, Complete):
            # The size of a metadata file is the one thing that hides nothing.
            assert files.keys() == everything.keys()
            outcomes["complete"] += 1
            continue
        assert files.keys() <= everything.keys()
        outcomes["partial"] += 1
    sizes = 1 + len(catalog.load(NAME).metadata_log)
    assert whole.reads == 1 + 4 + sizes + 5  # metadata, lists, sizes of metadata files, manifests
    partial = whole.reads - 1 - sizes
    expected = {"raised": whole.reads} if fault is away else {"raised": 1, "partial": partial, "complete": sizes}
    assert outcomes == expected


def test_o13_e7_storage_that_does_not_answer_stops_everything(catalog: MemoryCatalog) -> None:
    reading = Reading(MemoryTableFiles(catalog), 4, away)
    with pytest.raises(Unavailable):
        reach(reading)
    assert reading.reads == 4


@dataclass
class CutOff(Reading):
    """Manifest lists without their last line, as a file looks that was cut off between two blocks."""

    counts: bool = True

    def manifests(self, table: TableMetadata, path: str) -> ManifestListing:
        found = super().manifests(table, path)
        lines = found.manifests[:-1] if self.counts else found.manifests
        if not self.counts:
            lines = tuple(replace(one, entries=None, live_files=None) for one in lines)
        return replace(found, manifests=lines)


def test_a_manifest_list_with_too_few_lines_is_noticed(catalog: MemoryCatalog) -> None:
    known, _ = reach(CutOff(MemoryTableFiles(catalog)))
    assert isinstance(known, Partial)
    assert {gap.reason.code for gap in known.gaps} == {"too-few-files"}
    assert known.gaps_count == 4


def test_where_lists_do_not_count_the_entries_are_counted(catalog: MemoryCatalog) -> None:
    known, files = reach(CutOff(MemoryTableFiles(catalog), counts=False))
    assert isinstance(known, Complete)
    assert files == reach(MemoryTableFiles(catalog))[1]


@dataclass
class Altered(Reading):
    """Roots with something else in them."""

    alter: Callable[[Roots], Roots] = lambda roots: roots

    def roots(self, name: TableName) -> Roots:
        return self.alter(super().roots(name))


def gap_codes(catalog: MemoryCatalog, alter: Callable[[Roots], Roots]) -> set[str]:
    known, _ = reach(Altered(MemoryTableFiles(catalog), alter=alter))
    return {gap.reason.code for gap in known.gaps} if isinstance(known, Partial) else set()


def test_a_snapshot_that_says_nothing_of_its_manifests_is_a_gap(catalog: MemoryCatalog) -> None:
    def without_list(roots: Roots) -> Roots:
        head, *rest = roots.metadata.snapshots
        return replace(roots, metadata=replace(roots.metadata, snapshots=(replace(head, manifest_list=""), *rest)))

    assert gap_codes(catalog, without_list) == {"no-manifest-list"}


HUGE = {"total-data-files": "9" * 5_000, "total-delete-files": "0"}


@pytest.mark.parametrize("summary", [{}, {"total-data-files": "1"}, {"total-data-files": "many"}, HUGE])
def test_a_snapshot_that_does_not_say_how_many_files_it_has_is_a_gap(
    catalog: MemoryCatalog, summary: dict[str, str]
) -> None:
    def without_totals(roots: Roots) -> Roots:
        head, *rest = roots.metadata.snapshots
        return replace(roots, metadata=replace(roots.metadata, snapshots=(replace(head, summary=summary), *rest)))

    assert gap_codes(catalog, without_totals) == {"unverified-listing"}


def test_a_ref_whose_snapshot_is_gone_is_a_gap(catalog: MemoryCatalog) -> None:
    def without_last(roots: Roots) -> Roots:
        return replace(roots, metadata=replace(roots.metadata, snapshots=roots.metadata.snapshots[:-1]))

    assert gap_codes(catalog, without_last) == {"missing-snapshot"}


def test_gaps_of_the_metadata_are_gaps(catalog: MemoryCatalog) -> None:
    unknown = Gap("materialised-views", Reason("unknown-field", "nobody knows"))
    assert gap_codes(catalog, lambda roots: replace(roots, gaps=(unknown,))) == {"unknown-field"}


def test_o7_a_class_that_the_format_version_does_not_have_is_a_gap(catalog: MemoryCatalog) -> None:
    def as_v1(roots: Roots) -> Roots:
        return replace(roots, metadata=replace(roots.metadata, format_version=1))

    assert gap_codes(catalog, as_v1) == {"unknown-class"}


@each_case(
    ("path", "codes"),
    [
        ("s3://b/a//b", set()),
        ("s3a://b/a//b", {"ambiguous-location"}),
        ("/a/../b", {"ambiguous-location"}),
        ("a/b", {"invalid-location"}),
        ("", {"invalid-location"}),
        ("s3://b/%2F ü\n?#", set()),
    ],
)
def test_a_location_that_is_not_the_name_of_one_object_is_a_gap(
    catalog: MemoryCatalog, path: str, codes: set[str]
) -> None:
    statistics = NamedFile(path, FileClass.STATISTICS, 1)
    assert gap_codes(catalog, lambda roots: replace(roots, files=(*roots.files, statistics))) == codes


@each_case("size_bytes", [-1, -5, 1 << 63, 1 << 70])
def test_a_size_that_no_file_has_is_a_gap_and_in_no_sum(catalog: MemoryCatalog, size_bytes: int) -> None:
    """Metadata may be anybody's; JSON has no largest number."""
    wrong = NamedFile("s3://b/stats", FileClass.STATISTICS, size_bytes)
    files = Altered(MemoryTableFiles(catalog), alter=lambda roots: replace(roots, files=(*roots.files, wrong)))
    known, found = reach(files)
    assert isinstance(known, Partial)
    assert [gap.reason.code for gap in known.gaps] == ["impossible-size"]
    assert found[CanonicalPath("s3://b/stats")].size_bytes is None


def test_o1_e8_what_is_declared_to_be_one_is_one(catalog: MemoryCatalog) -> None:
    spelled = ("hdfs://n1:8020/a", "hdfs://cluster/a", "hdfs:/a", "hdfs://n2:8020/a")
    named = tuple(NamedFile(path, FileClass.STATISTICS, 1) for path in spelled)
    aliases = declared({"hdfs://n1:8020": "hdfs://cluster", "hdfs://": "hdfs://cluster"})
    files = Altered(MemoryTableFiles(catalog), alter=lambda roots: replace(roots, files=named))
    with reachable(files, NAME, bits, open_disk_spool, aliases=aliases, progress=lambda *_: None) as known:
        found = {path for path in files_of(known) if path.startswith("hdfs:")}
    assert found == {"hdfs://cluster/a", "hdfs://n2:8020/a"}


def test_a_damaged_table_does_not_fill_the_memory_with_gaps(catalog: MemoryCatalog) -> None:
    many = tuple(NamedFile(f"relative/{number}", FileClass.STATISTICS, 1) for number in range(3 * GAPS_KEPT_MAX))
    known, _ = reach(Altered(MemoryTableFiles(catalog), alter=lambda roots: replace(roots, files=many)))
    assert isinstance(known, Partial)
    assert (len(known.gaps), known.gaps_count) == (GAPS_KEPT_MAX, 3 * GAPS_KEPT_MAX)


def test_a_table_without_snapshots_is_its_metadata(catalog: MemoryCatalog) -> None:
    for one in catalog.load(NAME).refs:
        assert one.name in {MAIN_BRANCH, "kept", "side"}
    empty = MemoryCatalog("lake", ManualClock())
    empty.create(NAME)
    known, files = reach(MemoryTableFiles(empty))
    assert isinstance(known, Complete)
    assert [file.file_class for file in files.values()] == [FileClass.METADATA]


@dataclass(frozen=True)
class Large(TableFiles):
    """Many snapshots that share most of their manifests, made up as they are asked for."""

    snapshots: int
    manifests_each: int
    files_each: int

    def roots(self, _name: TableName) -> Roots:
        empty = MemoryCatalog("lake", ManualClock())
        empty.create(NAME)
        totals = {"total-data-files": str(self.manifests_each * self.files_each), "total-delete-files": "0"}
        snapshots = tuple(
            Snapshot(number + 1, number or None, number, number, None, f"s3://b/list-{number}", None, totals)
            for number in range(self.snapshots)
        )
        return Roots(replace(empty.load(NAME), snapshots=snapshots, current_snapshot_id=self.snapshots), ())

    def size_bytes(self, _table: TableMetadata, path: str) -> int:
        raise AssertionError(f"{path}: its size stands in the manifest list")

    def manifests(self, _table: TableMetadata, path: str) -> ManifestListing:
        first, count = int(path.rpartition("-")[2]), self.files_each
        paths = (f"s3://b/manifest-{first + number}" for number in range(self.manifests_each))
        return ManifestListing(9, tuple(ListedManifest(path, 7, is_data=True, live_files=count) for path in paths))

    def live_files(self, _table: TableMetadata, manifest: ListedManifest) -> Iterator[ListedFile]:
        for number in range(self.files_each):
            yield ListedFile(f"{manifest.path}/{number}", FileClass.DATA, 5)


def peak_bytes(files: Large) -> int:
    """The most memory at a time while all is read and summed up."""
    tracemalloc.start()
    try:
        view = storage_view(
            files, NAME, RULES, open_disk_spool, aliases=Aliases(), progress=lambda *_: None, now=lambda: 0
        )
        distinct_manifests = files.snapshots + files.manifests_each - 1
        assert view.complete
        assert view.total.files == files.snapshots + distinct_manifests * (1 + files.files_each)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sixth of what all of them take, where no more than some twentieth of them is held at a time."""
    large = Large(snapshots=6, manifests_each=10, files_each=1000)
    monkeypatch.setattr(on_disk, "PER_PART", 750)
    monkeypatch.setattr(on_disk, "_IN_MEMORY_BYTES", 10_000)
    in_parts = peak_bytes(large)
    monkeypatch.setattr(on_disk, "PER_PART", 10**9)
    monkeypatch.setattr(on_disk, "_IN_MEMORY_BYTES", 10**9)
    assert 6 * in_parts < peak_bytes(large)
