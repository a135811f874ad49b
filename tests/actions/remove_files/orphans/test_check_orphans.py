"""The second opinion: each rule by which a file may go, broken one at a time."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from icewright.actions.remove_files.orphans.check import OrphanEvidence, check_orphans
from icewright.core.completeness import Complete, Gaps
from icewright.model.actions.orphans import FoundFile, Sighting
from icewright.model.actions.remove_files import Doubt, OrphanFile, RemoveOrphanFiles
from icewright.model.iceberg.locations import Aliases, CanonicalPath, declared
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.objects import ListedObject
from icewright.model.iceberg.reachable_files import FileClass, ReachableFile
from icewright.model.iceberg.tables import PartitionField, PartitionSpec
from icewright.ownership.model import GoneUuid, Place
from tests.cases import each_case
from tests.inventory.test_footprint import snapshot, table

DAY_MS = 24 * 3_600_000
NOW = 1_750_000_000_000
ROOT = "s3://b/t/"
OLD = NOW - 40 * DAY_MS


def orphan(name: str = "data/left.parquet", **how: object) -> OrphanFile:
    facts = {"size_bytes": 5, "modified_at": OLD, "etag": "e", "version_id": None, "doubt": Doubt.UNFAMILIAR}
    return OrphanFile(**{"path": ROOT + name, **facts, "first_seen_at": OLD, "passes": 3, **how})  # type: ignore[arg-type]  # a sample


@dataclass(frozen=True)
class Files:
    needed: tuple[ReachableFile, ...]

    def files(self) -> Iterator[ReachableFile]:
        yield from self.needed


@dataclass(frozen=True)
class Case:
    """A removal of some files, and evidence that says so, unless something is changed in one of the two."""

    files: tuple[OrphanFile, ...] = field(default_factory=lambda: (orphan(),))
    needed: tuple[str, ...] = ("data/live.parquet",)
    action: Callable[[RemoveOrphanFiles], RemoveOrphanFiles] = lambda action: action
    evidence: Callable[[OrphanEvidence], OrphanEvidence] = lambda evidence: evidence
    aliases: Aliases = field(default_factory=Aliases)

    def codes(self) -> set[str]:
        metadata = table((snapshot(1, None, OLD),), (), 1)
        metadata = replace(metadata, metadata_location=ROOT + "metadata/00300-x.metadata.json")
        action = RemoveOrphanFiles(
            base_metadata_location=metadata.metadata_location,
            base_snapshot_id=1,
            roots=(ROOT,),
            files=self.files,
            listed_at=NOW - 1,
            as_of=NOW,
            age_min_ms=7 * DAY_MS,
            orphan_files=len(self.files),
            orphan_bytes=sum(file.size_bytes for file in self.files),
            budget_files=100,
            budget_bytes=10,
        )
        listed = [
            ListedObject(CanonicalPath(f.path), f.size_bytes, f.modified_at, f.etag, f.version_id) for f in self.files
        ]
        needed = [ReachableFile(CanonicalPath(_absolute(name)), FileClass.DATA, 1000, 1) for name in self.needed]
        found = [FoundFile(self.aliases.canonical(one.path), one) for one in listed]
        found += [FoundFile(file.path, ListedObject(file.path, 1000, OLD)) for file in needed]
        known = Gaps().judge(Files(tuple(needed)))
        assert isinstance(known, Complete)
        evidence = OrphanEvidence(
            table=metadata,
            place=Place(TableName("lake", ("db",), "t"), "u", (ROOT,), ()),
            needed=known,
            listed=found,
            sightings=[
                Sighting(self.aliases.canonical(f.path), f.size_bytes, f.modified_at, f.etag, f.version_id, *seen)
                for f in self.files
                for seen in [(f.first_seen_at, NOW, f.passes)]
            ],
            aliases=self.aliases,
            quarantine=("s3://b/t/quarantine/",),
        )
        found_wrong = check_orphans(self.action(action), self.evidence(evidence))
        assert all(text for _, text in found_wrong)
        return {code for code, _ in found_wrong}


def _absolute(name: str) -> str:
    return name if "://" in name else ROOT + name


def test_a_sound_removal_has_nothing_wrong() -> None:
    assert Case().codes() == set()
    assert Case(files=tuple(orphan(f"data/{number}") for number in range(9))).codes() == set()


GONE = ROOT + "metadata/00299-old.metadata.json"


def gone(evidence: OrphanEvidence, *, declared: str = "old", found: str = "old") -> OrphanEvidence:
    """Another table lay here, whose metadata is one of the files that go."""
    place = replace(evidence.place, gone=(GoneUuid(declared, NOW, "Ada", (ROOT,)),))
    return replace(evidence, place=place, gone={CanonicalPath(GONE): found})


@each_case(
    ("case", "codes"),
    [
        ({}, set()),
        ({"evidence": lambda one: one}, {"gone-table", "metadata-anchor"}),
        ({"evidence": lambda one: gone(one, declared="another")}, {"gone-table"}),
        ({"evidence": lambda one: gone(one, found="another")}, {"gone-table"}),
        ({"action": lambda one: one}, {"gone-table"}),
        ({"files": (orphan("metadata/00299-old.metadata.json", doubt=None),)}, {"no-doubt"}),
        ({"files": (orphan("metadata/00299-old.metadata.json", modified_at=NOW - 29 * DAY_MS),)}, {"metadata-anchor"}),
        ({"files": (orphan("metadata/00299-x.metadata.json"),)}, {"metadata-anchor"}),
    ],
)
def test_o5_metadata_of_another_table_goes_by_its_uuid_alone(case: dict[str, Any], codes: set[str]) -> None:
    usual = {
        "files": (orphan("metadata/00299-old.metadata.json"),),
        "action": lambda one: replace(one, gone=("old",)),
        "evidence": gone,
    }
    assert Case(**{**usual, **case}).codes() == codes


@each_case(
    ("modified_at", "doubt", "codes"),
    [(NOW - 1, None, {"no-doubt"}), (NOW + 1, None, set()), (NOW - 1, Doubt.GONE_TABLE, set())],
)
def test_o5_what_was_there_before_a_table_was_declared_gone_never_goes_unseen(
    modified_at: int, doubt: Doubt | None, codes: set[str]
) -> None:
    """Also when the other table's metadata is not there any more."""
    later = NOW + 30 * DAY_MS
    name = "data/00000-0-2dd664f9-d2c4-4ffe-878f-c6c70c1fb0cb-00001.parquet"
    one = replace(orphan(name, modified_at=modified_at, doubt=doubt), first_seen_at=modified_at)

    def declared(evidence: OrphanEvidence) -> OrphanEvidence:
        return replace(evidence, place=replace(evidence.place, gone=(GoneUuid("old", NOW, "Ada", (ROOT,)),)))

    case = Case(files=(one,), action=lambda made: replace(made, as_of=later), evidence=declared)
    assert case.codes() == codes


def test_o13_nothing_goes_by_a_listing_that_broke_off() -> None:
    assert Case(evidence=lambda one: replace(one, listing_is_complete=False)).codes() == {"partial-listing"}


def elsewhere(evidence: OrphanEvidence) -> OrphanEvidence:
    """There is a root with all that is needed, and this one where nothing is."""
    return replace(evidence, place=replace(evidence.place, roots=(ROOT, "s3://b/data/")))


@each_case(
    ("needed", "doubt", "codes"),
    [
        (("s3://b/data/live.parquet",), Doubt.NOTHING_KNOWN, set()),
        (("s3://b/data/live.parquet",), None, {"nothing-known", "no-doubt"}),
        (("s3://b/data/live.parquet", "s3://b/other/live.parquet"), Doubt.NOTHING_KNOWN, {"nothing-known"}),
    ],
)
def test_o1_where_nothing_is_needed_all_that_is_needed_must_be_found(
    needed: tuple[str, ...], doubt: Doubt | None, codes: set[str]
) -> None:
    def of_two(action: RemoveOrphanFiles) -> RemoveOrphanFiles:
        return replace(action, roots=(ROOT, "s3://b/data/"), files=(replace(action.files[0], doubt=doubt),))

    assert Case(needed=needed, action=of_two, evidence=elsewhere).codes() == codes


def with_summary(evidence: OrphanEvidence) -> OrphanEvidence:
    one = replace(snapshot(1, None, OLD), summary={"flink.job-id": "ab12"})
    return replace(evidence, table=replace(evidence.table, snapshots=(one,)))


def with_partition(evidence: OrphanEvidence) -> OrphanEvidence:
    spec = PartitionSpec(0, (PartitionField(1, 1000, "_day", "identity"),))
    return replace(evidence, table=replace(evidence.table, specs=(spec,)))


@each_case(
    ("case", "codes"),
    [
        (Case(action=lambda a: replace(a, base_metadata_location="s3://b/t/other")), {"other-metadata"}),
        (Case(action=lambda a: replace(a, base_snapshot_id=None)), {"other-snapshot"}),
        (Case(action=lambda a: replace(a, roots=("s3://b/t", ROOT))), {"other-roots"}),
        (Case(action=lambda a: replace(a, roots=("s3://b/t",))), {"other-roots", "not-below-a-root"}),
        (Case(files=()), {"number-of-files"}),
        (Case(action=lambda a: replace(a, files=a.files * 2)), {"file-twice", "wrong-figures"}),
        (Case(action=lambda a: replace(a, orphan_files=0)), {"wrong-figures"}),
        (Case(action=lambda a: replace(a, orphan_bytes=0)), {"wrong-figures"}),
        (Case(action=lambda a: replace(a, budget_bytes=11)), {"wrong-budget"}),
        (Case(action=lambda a: replace(a, budget_files=10_001)), {"wrong-budget"}),
        (Case(action=lambda a: replace(a, listed_at=NOW + 1)), {"wrong-order"}),
        (Case(action=lambda a: replace(a, age_min_ms=3 * DAY_MS - 1)), {"age-floor"}),
    ],
)
def test_i11_what_is_wrong_with_the_whole_is_found(case: Case, codes: set[str]) -> None:
    assert case.codes() == codes


@each_case(
    ("file", "codes"),
    [
        (orphan(modified_at=NOW - 7 * DAY_MS), set()),
        (orphan(modified_at=NOW - 7 * DAY_MS + 1), {"too-young"}),
        (orphan(modified_at=NOW + DAY_MS), {"too-young"}),
        (orphan(modified_at=0), {"too-young"}),
        (orphan(modified_at=1_483_228_799_999), {"too-young"}),
        (orphan(first_seen_at=NOW - 7 * DAY_MS), set()),
        (orphan(first_seen_at=NOW - 7 * DAY_MS + 1), {"seen-too-lately"}),
        (orphan(first_seen_at=0), {"seen-too-lately"}),
        (orphan(passes=2), set()),
        (orphan(passes=1), {"seen-too-seldom"}),
        (orphan(size_bytes=-1), {"wrong-size"}),
    ],
)
def test_o3_o4_what_is_too_young_or_has_an_odd_time_is_found(file: OrphanFile, codes: set[str]) -> None:
    assert Case(files=(file,)).codes() == codes


@each_case(
    ("name", "codes"),
    [
        ("data/.x", {"hidden"}),
        ("_x/y", {"hidden"}),
        ("data/_day=1/x", {"hidden"}),
        ("quarantine/x", {"in-quarantine"}),
        ("metadata/version-hint.text", {"version-hint"}),
        ("metadata/00301-x.metadata.json", {"metadata-anchor"}),
        ("metadata/00201-x.metadata.json", {"metadata-anchor"}),
        ("metadata/00200-x.metadata.json", set()),
        ("metadata/v200.gz.metadata.json", set()),
        ("metadata/x.metadata.json", {"metadata-anchor"}),
        ("metadata/snap-1.avro", set()),
        ("data/folder/", {"not-below-a-root"}),
    ],
)
def test_o9_o14_a_name_that_must_stay_is_found(name: str, codes: set[str]) -> None:
    assert Case(files=(orphan(name),)).codes() == codes


def test_o9_a_young_metadata_file_is_found() -> None:
    file = orphan("metadata/00100-x.metadata.json", modified_at=NOW - 29 * DAY_MS)
    assert Case(files=(file,)).codes() == {"metadata-anchor"}


def test_o14_a_partition_is_not_hidden() -> None:
    assert Case(files=(orphan("data/_day=1/x"),), evidence=with_partition).codes() == set()


def test_o10_flinks_files_and_times_are_found() -> None:
    assert Case(files=(orphan("metadata/ab12-0.avro"),), evidence=with_summary).codes() == {
        "age-floor",
        "flink-manifest",
    }
    old_enough = Case(action=lambda a: replace(a, age_min_ms=14 * DAY_MS), evidence=with_summary)
    assert old_enough.codes() == set()


@each_case("path", ["s3://b/t_2/x", "s3://b/u/x", "s3://c/t/x", "s3://b/t"])
def test_o6_what_is_not_below_the_root_is_found(path: str) -> None:
    assert "not-below-a-root" in Case(files=(orphan(path=path),)).codes()


@each_case(
    ("needed", "code"),
    [
        ("data/left.parquet", "needed"),
        ("s3://other/t/data/left.parquet", "like-a-needed-file"),
        ("data//left.parquet", "like-a-needed-file"),
        ("data/LEFT.parquet", "like-a-needed-file"),
        ("data/%6Ceft.parquet", "like-a-needed-file"),
        ("data/x/../left.parquet", "like-a-needed-file"),
    ],
)
def test_o1_o2_what_is_needed_by_any_name_is_found(needed: str, code: str) -> None:
    assert code in Case(needed=("data/live.parquet", needed)).codes()


def test_e8_what_is_needed_by_a_declared_alias_is_found() -> None:
    file = orphan(path="s3a://b/t/data/live.parquet")
    assert "needed" in Case(files=(file,)).codes()
    aliases = declared({"s3://old": "s3://b"})
    assert "needed" in Case(files=(orphan(path="s3://old/t/data/live.parquet"),), aliases=aliases).codes()


def test_o1_views_that_disagree_are_found() -> None:
    needed = tuple(f"data/{number}" for number in range(100))

    def unlisted(evidence: OrphanEvidence) -> OrphanEvidence:
        return replace(evidence, listed=[one for one in evidence.listed if "/data/1" not in one.path])

    assert Case(needed=needed).codes() == set()
    assert Case(needed=needed, evidence=unlisted).codes() == {"views-disagree"}


@pytest.mark.parametrize("sample_max", [50_000, 200])
def test_o1_files_that_are_not_needed_do_not_stand_for_needed_ones(
    sample_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icewright.actions.remove_files.orphans.check._SAMPLE_MAX", sample_max)
    needed = tuple(f"data/{number}" for number in range(1_000))

    def young_instead(evidence: OrphanEvidence, gone: int) -> OrphanEvidence:
        names = {ROOT + name for name in needed[:gone]}
        young = [CanonicalPath(f"{ROOT}data/young-{number}") for number in range(5_000)]
        listed = [one for one in evidence.listed if one.path not in names]
        return replace(evidence, listed=[*listed, *(FoundFile(one, ListedObject(one, 1, NOW)) for one in young)])

    assert Case(needed=needed, evidence=lambda one: young_instead(one, 0)).codes() == set()
    assert Case(needed=needed, evidence=lambda one: young_instead(one, 1_000)).codes() == {
        "views-disagree",
        "nothing-known",
    }
    assert Case(needed=needed, evidence=lambda one: young_instead(one, 300)).codes() == {"views-disagree"}


def test_o1_views_are_compared_below_each_root() -> None:
    other = "s3://other/t/"
    needed = (*(f"data/{number}" for number in range(100)), f"{other}data/1")

    def unlisted(evidence: OrphanEvidence) -> OrphanEvidence:
        return replace(evidence, listed=[one for one in evidence.listed if not one.path.startswith(other)])

    def two(evidence: OrphanEvidence) -> OrphanEvidence:
        return replace(evidence, place=replace(evidence.place, roots=(ROOT, other)))

    def of_two(action: RemoveOrphanFiles) -> RemoveOrphanFiles:
        return replace(action, roots=(ROOT, other))

    assert Case(needed=needed, action=of_two, evidence=two).codes() == set()
    assert Case(needed=needed, action=of_two, evidence=lambda one: unlisted(two(one))).codes() == {"views-disagree"}


@each_case(
    ("change", "codes"),
    [
        (lambda one: replace(one, listed=replace(one.listed, etag="other")), {"not-as-listed"}),
        (lambda one: replace(one, listed=replace(one.listed, size_bytes=6)), {"not-as-listed"}),
        (lambda one: replace(one, listed=replace(one.listed, modified_at=OLD + 1)), {"not-as-listed"}),
        (lambda one: replace(one, listed=replace(one.listed, version_id="v")), {"not-as-listed"}),
        (lambda one: replace(one, listed=replace(one.listed, path=CanonicalPath("s3://b/t/x"))), {"not-listed"}),
    ],
)
def test_what_is_not_as_it_was_listed_is_found(change: Callable[[FoundFile], FoundFile], codes: set[str]) -> None:
    def changed(evidence: OrphanEvidence) -> OrphanEvidence:
        return replace(evidence, listed=[change(one) if "left" in one.path else one for one in evidence.listed])

    assert Case(evidence=changed).codes() == codes


@each_case(
    ("change", "codes"),
    [
        (lambda one: replace(one, etag="other"), {"seen-as-another-one"}),
        (lambda one: replace(one, first_seen_at=OLD + 1), {"wrong-sighting"}),
        (lambda one: replace(one, passes=2), {"wrong-sighting"}),
        (lambda one: replace(one, path=CanonicalPath("s3://b/t/x")), {"never-seen"}),
    ],
)
def test_what_was_not_seen_so_before_is_found(change: Callable[[Sighting], Sighting], codes: set[str]) -> None:
    def changed(evidence: OrphanEvidence) -> OrphanEvidence:
        return replace(evidence, sightings=[change(one) for one in evidence.sightings])

    assert Case(evidence=changed).codes() == codes


def test_of_many_that_are_wrong_some_are_named() -> None:
    case = Case(files=tuple(orphan(f"_x/{number}") for number in range(50)))
    assert case.codes() == {"hidden"}


def test_the_checker_shares_nothing_with_the_planner() -> None:
    own = check_orphans.__module__
    names = {value.__module__ for value in vars(sys.modules[own]).values() if hasattr(value, "__module__")}
    assert not {name for name in names if re.match(r"icewright\.(?!core\.|model\.|ownership\.model)", name)} - {own}
    assert not {name for name in names if name.endswith("path_aliasing")}
