"""Whether a snapshot did what its action of rewriting manifests says: every fault is noticed by one of the guards."""

from __future__ import annotations

from dataclasses import replace

from icewright.actions.rewrite_manifests.evidence import (
    ManifestsChanged,
    live_entries,
    problem_of_manifests,
    verified_manifests,
)
from icewright.model.actions.rewrite_manifests import (
    InputManifest,
    ManifestCause,
    ManifestClass,
    ManifestContent,
    OutputManifest,
    RewriteManifests,
    Share,
)
from icewright.model.iceberg.files import DataFile, Partition
from icewright.model.iceberg.inventory import ManifestKey
from icewright.model.iceberg.tables import PROOF_KEY, Operation, Snapshot
from tests.builders.observations import WHOLE, data_file, month, position_deletes, snapshot
from tests.cases import each_case

DATA, DELETES = ManifestClass(0, ManifestContent.DATA), ManifestClass(0, ManifestContent.DELETES)
OLD = [ManifestKey(f"file:/lake/t/metadata/{number}.avro", 4000, number) for number in (1, 2, 3)]
NEW = [ManifestKey(f"file:/lake/t/metadata/new-{number}.avro", 5000, 9) for number in (1, 2)]
FILES = [data_file(month(1), 0), data_file(month(1), 1, first_row_id=500), data_file(month(2), 2)]
VECTORS = [position_deletes(month(1), 0, of=FILES[0])]
ACTION = RewriteManifests(
    base_snapshot_id=3,
    causes=(ManifestCause.MANY_SMALL,),
    manifests=(
        InputManifest(OLD[0].path, 4000, 1, DATA, 2, 0),
        InputManifest(OLD[1].path, 4000, 2, DATA, 1, 1),
        InputManifest(OLD[2].path, 4000, 3, DELETES, 1, 0),
    ),
    outputs=(
        OutputManifest(DATA, (Share("[1]", 2), Share("[2]", 1))),
        OutputManifest(DELETES, (Share("[1]", 1),)),
    ),
    target_size_bytes=8 << 20,
)
PLACES = {
    (ManifestContent.DATA, month(1)): 2,
    (ManifestContent.DATA, month(2)): 1,
    (ManifestContent.DELETES, month(1)): 1,
}
PARENT = snapshot(8, summary={"total-data-files": "3", "total-records": "90"})
SNAPSHOT = replace(
    snapshot(9, operation=Operation.REPLACE, summary={**PARENT.summary, PROOF_KEY: "digest"}), parent_id=8
)
CHANGED = ManifestsChanged(
    frozenset(OLD), frozenset(NEW), live_entries(FILES, VECTORS), live_entries(reversed(FILES), VECTORS), PLACES
)


def problem(
    changed: ManifestsChanged = CHANGED, made: Snapshot = SNAPSHOT, action: RewriteManifests = ACTION
) -> str | None:
    return problem_of_manifests(action, PARENT, made, changed)


def with_entries(*files: DataFile, deletes: int = 1) -> ManifestsChanged:
    return replace(CHANGED, after=live_entries(files, VECTORS * deletes))


def test_a_commit_that_is_as_it_should_be() -> None:
    assert problem() is None
    reason = verified_manifests(ACTION, CHANGED)
    assert reason.text == "3 manifests became 2, with the same 4 entries"
    assert reason.figures["removed_entries"] == 1


class TestEntries:
    def test_w8_one_that_is_lost(self) -> None:
        assert problem(with_entries(*FILES[:2])) == "3 data and 1 delete files were live in them, and 2 and 1 are"
        assert (
            problem(with_entries(*FILES, deletes=0)) == "3 data and 1 delete files were live in them, and 3 and 0 are"
        )

    def test_w8_one_that_is_there_twice(self) -> None:
        assert problem(with_entries(*FILES, FILES[0])) == "3 data and 1 delete files were live in them, and 4 and 1 are"
        assert "entries changed" in (problem(with_entries(FILES[0], FILES[0], FILES[2])) or "")

    @each_case(
        "wrong",
        [
            replace(FILES[1], path="file:/lake/t/data/other.parquet"),
            replace(FILES[1], partition=month(2)),
            replace(FILES[1], snapshot_id=7),
            replace(FILES[1], data_sequence_number=7),
            replace(FILES[1], record_count=7),
            replace(FILES[1], size_bytes=7),
        ],
        ids=["path", "partition", "snapshot", "sequence number", "rows", "bytes"],
    )
    def test_w8_one_that_is_another(self, wrong: DataFile) -> None:
        assert "entries changed" in (problem(with_entries(FILES[0], wrong, FILES[2])) or "")

    @each_case("first_row_id", [None, 0, 501])
    def test_v1_row_ids_are_kept(self, first_row_id: int | None) -> None:
        wrong = replace(FILES[1], first_row_id=first_row_id)
        assert "entries changed" in (problem(with_entries(FILES[0], wrong, FILES[2])) or "")

    def test_v1_rows_from_before_an_upgrade_get_their_ids_with_the_first_commit(self) -> None:
        before = [replace(file, first_row_id=None) for file in FILES]
        after = [replace(file, first_row_id=number) for number, file in enumerate(FILES)]
        upgraded = replace(CHANGED, before=live_entries(before, VECTORS), after=live_entries(after, VECTORS))
        assert problem(upgraded) is None
        lost = replace(upgraded, after=live_entries([after[0], after[0], after[2]], VECTORS))
        assert problem(lost) is not None


class TestManifests:
    def test_one_that_stayed(self) -> None:
        text = problem(replace(CHANGED, went=frozenset(OLD[:2])))
        assert text == f"1 manifest stayed, first {OLD[2].path}"

    def test_w8_one_that_went_though_nobody_planned_it(self) -> None:
        other = ManifestKey("file:/lake/t/metadata/7.avro", 4000, 7)
        text = problem(replace(CHANGED, went=frozenset([*OLD, other])))
        assert text == f"1 manifest removed though not planned, first {other.path}"

    def test_more_or_fewer_than_planned(self) -> None:
        assert problem(replace(CHANGED, came=frozenset(NEW[:1]))) == "1 manifests came, the action says 2"

    def test_one_of_another_snapshot(self) -> None:
        foreign = replace(NEW[0], added_snapshot_id=4)
        text = problem(replace(CHANGED, came=frozenset([foreign, NEW[1]])))
        assert text == f"manifest {foreign.path} is said to be of snapshot 4"

    @each_case(
        "places",
        [
            {**PLACES, (ManifestContent.DATA, month(2)): 2},
            {**PLACES, (ManifestContent.DATA, WHOLE): 1},
            {**PLACES, (ManifestContent.DELETES, Partition(0, "[2]")): 1},
            {key: count for key, count in PLACES.items() if key[0] is ManifestContent.DATA},
        ],
        ids=["count", "spec", "content", "missing"],
    )
    def test_w8_entries_in_another_place(self, places: dict[tuple[ManifestContent, Partition], int]) -> None:
        assert "came, the action says" in (problem(replace(CHANGED, places=places)) or "")


class TestSummary:
    def test_without_a_proof(self) -> None:
        assert problem(made=replace(SNAPSHOT, summary=PARENT.summary)) == "its summary has no proof"

    def test_another_operation(self) -> None:
        made = replace(SNAPSHOT, operation=Operation.OVERWRITE)
        assert problem(made=made) == "it is a snapshot of operation overwrite"

    def test_w8_totals_that_changed(self) -> None:
        made = replace(SNAPSHOT, summary={**SNAPSHOT.summary, "total-records": "91"})
        assert problem(made=made) == "its summary has total-records='91', and the one before it '90'"
