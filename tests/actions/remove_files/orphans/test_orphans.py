"""Orphan files: what nothing needs goes after its time, and everything else stays, whatever the listing looks like."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from icewright.actions.remove_files.orphans.service import OrphansRefused
from icewright.core.completeness import Gap, Gaps
from icewright.core.errors import StorageUnavailable, TableReplaced
from icewright.core.reasons import Reason
from icewright.model.actions.orphans import SeenFiles, SeenOrphans
from icewright.model.actions.remove_files import OrphanBudget, OrphanPolicy
from icewright.model.iceberg.locations import CanonicalPath, declared
from icewright.model.iceberg.objects import Listed, OddEntry
from icewright.model.iceberg.reachable_files import FileClass, NamedFile
from icewright.model.iceberg.tables import PartitionField
from icewright.plans.repository import PlanRejected
from tests.builders.orphan_lake import ALL, DAY_MS, HOUR_MS, START, LakeTable, OrphanLake, complete, owns, planned
from tests.narrowing import not_none, of_type


@pytest.fixture
def lake() -> OrphanLake:
    return OrphanLake()


@pytest.fixture
def table(lake: OrphanLake) -> LakeTable:
    """Two commits and a day; three files of an attempt that failed."""
    made = lake.table()
    made.commit("data/1.parquet", "data/2.parquet")
    made.commit("data/3.parquet")
    lake.pass_time(DAY_MS)
    for number in range(3):
        lake.write(f"s3://b/t/data/left-{number}.parquet", size_bytes=7)
    lake.pass_time(DAY_MS)
    return made


LEFT = {f"s3://b/t/data/left-{number}.parquet" for number in range(3)}


def test_what_nothing_needs_goes_after_its_time_and_not_before(lake: OrphanLake, table: LakeTable) -> None:
    first = lake.found(table)
    assert (first.action, first.finished.number, first.finished.files) == (None, 1, 3)
    assert first.kept == {"young": 3}
    lake.pass_time(6 * DAY_MS)
    assert lake.found(table).kept == {"seen-lately": 3}
    lake.pass_time(DAY_MS)
    found = lake.found(table)
    assert found.action is not None
    assert planned(found) == LEFT
    assert {file.passes for file in found.action.files} == {3}
    assert {file.first_seen_at for file in found.action.files} == {START + 2 * DAY_MS}
    assert (found.action.size_bytes, found.orphans.files, found.needed.files) == (
        21,
        3,
        11,
    )  # a hint that no catalog wrote among them
    assert not_none(found.prediction).listed_files == 13


def test_o3_a_pass_says_how_far_each_of_its_orphans_is(lake: OrphanLake, table: LakeTable) -> None:
    began_at = lake.store_clock.now()
    assert lake.found(table).finished.seen == SeenOrphans(once=SeenFiles(3, 21), first_seen_at=began_at)
    lake.write("s3://b/t/data/another.parquet", size_bytes=20)
    lake.pass_time(DAY_MS)
    both = SeenOrphans(SeenFiles(1, 20), SeenFiles(3, 21), SeenFiles(), began_at)
    assert lake.found(table).finished.seen == both
    lake.pass_time(30 * DAY_MS)
    assert lake.found(table).finished.seen == SeenOrphans(removable=SeenFiles(4, 41), first_seen_at=began_at)


def test_o3_one_sighting_is_not_enough_however_old_a_file_is(lake: OrphanLake, table: LakeTable) -> None:
    lake.pass_time(400 * DAY_MS)
    assert lake.found(table).kept == {"seen-lately": 3}
    assert lake.found(table).kept == {"seen-lately": 3}


def test_s1_files_of_a_snapshot_that_expired_wait_from_then_on(lake: OrphanLake, table: LakeTable) -> None:
    """Somebody may still read them: their age is not that of the file, but that of our first sighting."""
    table.commit("data/4.parquet", remove=("s3://b/t/data/1.parquet",))
    lake.pass_time(100 * DAY_MS)
    assert planned(lake.look(table)) == set()
    lake.pass_time(10 * DAY_MS)
    table.expire(1, 2)
    found = lake.found(table)
    assert planned(found) == LEFT
    lake.pass_time(6 * DAY_MS)
    assert planned(lake.look(table)) == LEFT
    lake.pass_time(DAY_MS)
    late = {f"s3://b/t/metadata/snap-{n}.avro{m}" for n in (1, 2) for m in ("", ".m")} | {"s3://b/t/data/1.parquet"}
    assert planned(lake.look(table)) == LEFT | late


def test_i10_another_object_under_the_same_path_begins_anew(lake: OrphanLake, table: LakeTable) -> None:
    lake.look(table)
    lake.pass_time(10 * DAY_MS)
    again = lake.storage.objects[CanonicalPath("s3://b/t/data/left-0.parquet")].listed
    lake.write(again.path, modified_at=again.modified_at, size_bytes=again.size_bytes)  # the etag alone differs
    assert planned(lake.look(table)) == LEFT - {again.path}


def test_i10_what_was_needed_in_between_begins_anew(lake: OrphanLake, table: LakeTable) -> None:
    lake.look(table)
    lake.pass_time(10 * DAY_MS)
    table.commit("data/left-0.parquet")
    lake.look(table)
    table.expire(3)
    table.refs.clear()
    assert planned(lake.look(table)) == LEFT - {"s3://b/t/data/left-0.parquet"}


@pytest.mark.parametrize("asked_ms", [0, -1, 1, 71 * HOUR_MS])
def test_o15_nobody_can_ask_for_less_than_the_floor(lake: OrphanLake, table: LakeTable, asked_ms: int) -> None:
    policy = OrphanPolicy(age_min_ms=asked_ms, budget=OrphanBudget(1.0))
    assert lake.found(table, policy=policy).age_min_ms == 72 * HOUR_MS
    lake.pass_time(72 * HOUR_MS - 1)
    assert planned(lake.look(table, policy=policy)) == set()
    lake.pass_time(1)
    assert planned(lake.look(table, policy=policy)) == LEFT


@pytest.mark.parametrize(("took_days", "wait_days"), [(2, 7), (4, 12), (30, 90), (31, 7)])
def test_o3_a_table_whose_writers_are_slow_waits_three_times_as_long(
    lake: OrphanLake, took_days: int, wait_days: int
) -> None:
    """But for files that were imported long after they were written."""
    table = lake.table()
    lake.write("s3://b/t/data/slow.parquet")
    lake.pass_time(took_days * DAY_MS)
    table.commit("data/slow.parquet")
    lake.write("s3://b/t/data/left.parquet")
    assert lake.found(table).age_min_ms == wait_days * DAY_MS
    lake.pass_time(wait_days * DAY_MS - 1)
    assert planned(lake.look(table)) == set()
    lake.pass_time(1)
    assert planned(lake.look(table)) == {"s3://b/t/data/left.parquet"}


DAYS = 60 * DAY_MS


@pytest.mark.parametrize(
    "modified_at",
    [
        0,
        -1,
        -DAY_MS,
        -(2**63),
        1,
        START // 1000,
        START * 1000,
        START + DAYS + 5 * 60_000 + 1,
        4_102_444_800_000,
        2**63 - 1,
        START - 1,
        1_483_228_799_999,
    ],
)
def test_o4_a_bad_time_keeps_a_file(lake: OrphanLake, table: LakeTable, modified_at: int) -> None:
    """Unset, negative, in seconds, in microseconds, in the future, before the table, before Iceberg."""
    lake.write("s3://b/t/data/odd.parquet", modified_at=modified_at)
    assert lake.candidates(table, days=58) == LEFT


def test_o4_a_metadata_file_of_old_tells_that_the_table_was_there(lake: OrphanLake) -> None:
    """Everything was rewritten lately, and what it was written from has expired: garbage of before is garbage still."""
    table = lake.table()
    lake.pass_time(DAY_MS)
    lake.write("s3://b/t/data/left.parquet")
    lake.pass_time(DAY_MS)
    table.commit("data/rewritten.parquet")
    table.log.clear()
    assert lake.candidates(table) == {"s3://b/t/data/left.parquet"}


def test_o4_what_the_table_was_seen_to_have_once_is_remembered(lake: OrphanLake) -> None:
    table = lake.table()
    table.commit("data/old.parquet")
    lake.pass_time(DAY_MS)
    lake.write("s3://b/t/data/left.parquet")
    lake.look(table)
    lake.pass_time(DAY_MS)
    table.commit("data/rewritten.parquet", remove=("s3://b/t/data/old.parquet",))
    table.expire(1)
    table.log.clear()
    for path in list(lake.storage.objects):
        if path not in table.needed() and "left" not in path:
            lake.storage.remove(path)
    assert lake.candidates(table) == {"s3://b/t/data/left.parquet"}


def test_o4_a_file_without_any_time_stays(lake: OrphanLake, table: LakeTable) -> None:
    stored = lake.storage.objects[CanonicalPath("s3://b/t/data/left-0.parquet")]
    lake.storage.objects[stored.listed.path] = replace(stored, listed=replace(stored.listed, modified_at=None))
    assert lake.candidates(table) == LEFT - {stored.listed.path}


@pytest.mark.parametrize("years", [10, -10])
@pytest.mark.parametrize("whose", ["ours", "the storage's"])
def test_o4_a_clock_that_is_ten_years_off_makes_no_orphans(
    lake: OrphanLake, table: LakeTable, years: int, whose: str
) -> None:
    """Ages are told by the slower clock, first sightings by the faster one."""
    lake.look(table)
    lake.pass_time(HOUR_MS)
    clock = lake.store_clock if whose == "ours" else lake.clock
    clock.advance(years * 365 * DAY_MS)
    assert planned(lake.look(table)) == set()
    clock.advance(-years * 365 * DAY_MS)
    assert planned(lake.look(table)) == set()
    lake.pass_time(8 * DAY_MS)
    assert planned(lake.look(table)) == LEFT


def test_o6_a_sibling_whose_name_begins_alike_is_not_below_the_root(lake: OrphanLake, table: LakeTable) -> None:
    sibling = lake.table("s3://b/t_2")
    sibling.commit("data/1.parquet")
    lake.write("s3://b/t_2/data/left.parquet")
    lake.pass_time(DAY_MS)
    assert lake.candidates(table) == LEFT
    assert lake.candidates(sibling) == {"s3://b/t_2/data/left.parquet"}


@pytest.mark.parametrize("root", ["s3://b/t", "s3://b/t//"])
def test_o6_a_root_without_its_slash_is_refused(lake: OrphanLake, table: LakeTable, root: str) -> None:
    assert lake.refused(table, place=owns(root)).reason.code == "place-not-owned"


def test_o5_who_owns_no_place_is_told_why(lake: OrphanLake, table: LakeTable) -> None:
    shared = owns(findings=(Reason("shared-location", "its location overlaps that of lake.db.u"),))
    refused = lake.refused(table, place=shared)
    assert refused.reason.code == "place-not-owned"
    assert "overlaps that of lake.db.u" in refused.reason.text


def test_o5_metadata_of_another_table_below_the_root_refuses_the_run(lake: OrphanLake, table: LakeTable) -> None:
    lake.write_metadata("s3://b/t/other/metadata/1.metadata.json", "u9")
    refused = lake.refused(table)
    assert refused.reason.code == "place-not-owned"
    assert "of another table (u9 until " in refused.reason.text


def test_l4_the_place_of_another_table_is_not_its_own(lake: OrphanLake, table: LakeTable) -> None:
    assert lake.refused(table, place=owns(table.root, uuid="u9")).reason.code == "place-not-owned"


def test_o5_where_not_all_tables_are_known_nobody_owns_a_place(lake: OrphanLake, table: LakeTable) -> None:
    gaps = Gaps()
    gaps.add(Gap("lake.db.u", Reason("unclaimed", "not looked at yet")))
    known = gaps.judge(owns(table.root))
    refused = of_type(OrphansRefused, lake.finder(table).look(table.name, lambda _metadata: known, ALL))
    assert (refused.reason.code, refused.gaps[0].what) == ("place-unknown", "lake.db.u")


@pytest.mark.parametrize(
    "mark",
    [
        "_delta_log/00000000000000000000.json",
        "x/.hoodie/hoodie.properties",
        "schema/schema-0",
        "_spark_metadata/0",
        "p=1/delta_0000001_0000001/_orc_acid_version",
    ],
)
def test_o5_a_table_of_another_format_in_the_same_place_refuses_the_run(
    lake: OrphanLake, table: LakeTable, mark: str
) -> None:
    """It needs files that no Iceberg metadata names."""
    lake.write(f"s3://b/t/{mark}")
    assert lake.refused(table).reason.code == "other-table-format"


@pytest.mark.parametrize("file_class", [FileClass.STATISTICS, FileClass.PARTITION_STATISTICS])
def test_o7_statistics_are_needed(lake: OrphanLake, table: LakeTable, file_class: FileClass) -> None:
    lake.write("s3://b/t/metadata/stats.puffin")
    table.statistics.append(NamedFile("s3://b/t/metadata/stats.puffin", file_class, 10, 2))
    assert lake.candidates(table) == LEFT


def test_o8_a_commit_while_the_listing_goes_on_loses_nothing(lake: OrphanLake, table: LakeTable) -> None:
    """Its files are old, and listed; they are needed by the time when metadata is read."""
    lake.look(table)
    lake.pass_time(30 * DAY_MS)
    lake.fault_at = lake.reads + 5  # in the middle of the listing

    def committed() -> None:
        table.commit("data/left-0.parquet", "data/left-1.parquet")

    lake.fault = committed
    assert planned(lake.look(table)) == {"s3://b/t/data/left-2.parquet"}


def test_o11_what_is_staged_tagged_or_on_no_branch_is_needed(lake: OrphanLake, table: LakeTable) -> None:
    table.commit("data/staged.parquet", staged=True)
    table.tag("kept", 1)
    table.commit(remove=("s3://b/t/data/1.parquet",))
    assert lake.candidates(table) == LEFT


def test_o12_a_snapshot_that_is_not_told_of_is_a_gap_somewhere_and_plans_nothing(
    lake: OrphanLake, table: LakeTable
) -> None:
    table.gap = Gap("snapshots", Reason("unknown-field", "not all snapshots are there"))
    refused = lake.refused(table)
    assert (refused.reason.code, refused.gaps) == ("not-all-known", (table.gap,))
    assert lake.sightings.finished(table.metadata.table_id) is None


def test_o13_a_listing_that_breaks_off_plans_nothing_and_says_so(lake: OrphanLake, table: LakeTable) -> None:
    lake.look(table)
    lake.pass_time(10 * DAY_MS)
    lake.look(table)
    lake.fault_at = lake.reads + 2 + len(lake.storage.objects)  # the last object of all

    def away() -> None:
        raise StorageUnavailable("no answer")

    lake.fault = away
    found = lake.found(table)
    assert found.action is None, "what was not listed may be the metadata of another table"
    assert [gap.what for gap in found.listing_gaps] == ["s3://b/t/"]
    assert not found.finished.listing_is_complete
    lake.fault_at = None
    assert planned(lake.look(table)) == LEFT  # what it missed was not forgotten


def test_o13_a_pass_that_did_not_see_all_does_not_count(lake: OrphanLake, table: LakeTable) -> None:
    def away() -> None:
        raise StorageUnavailable("no answer")

    lake.fault, lake.fault_at = away, 2 + len(lake.storage.objects)
    lake.found(table)
    lake.pass_time(10 * DAY_MS)
    assert lake.found(table).kept == {"seen-lately": 1, "seen-once": 2}


@pytest.mark.parametrize(
    "name",
    [
        "data/.hidden/x.parquet",
        "data/.x/.y.parquet.crc",
        "_backup/x.parquet",
        ".icewright-quarantine/x",
        "metadata/version-hint.text",
        "data/folder/",
    ],
)
def test_o14_what_is_hidden_or_a_hint_stays(lake: OrphanLake, table: LakeTable, name: str) -> None:
    lake.write(f"s3://b/t/{name}")
    assert lake.candidates(table) == LEFT


def test_o14_what_is_in_quarantine_stays_there(lake: OrphanLake, table: LakeTable) -> None:
    lake.write("s3://b/t/quarantine/x.parquet")
    assert lake.candidates(table, quarantine=("s3://b/t/quarantine/",)) == LEFT


def test_o14_a_partition_may_begin_with_an_underscore(lake: OrphanLake) -> None:
    table = lake.table()
    table.fields = (PartitionField(1, 1000, "_day", "identity"),)
    table.commit("data/_day=1/1.parquet")
    lake.write("s3://b/t/data/_day=1/left.parquet")
    lake.write("s3://b/t/data/_night=1/kept.parquet")
    assert lake.candidates(table) == {"s3://b/t/data/_day=1/left.parquet"}


def test_o10_what_flink_puts_aside_stays_and_its_tables_wait_longer(lake: OrphanLake, table: LakeTable) -> None:
    table.commit("data/4.parquet", summary={"flink.job-id": "ab12"})
    lake.write("s3://b/t/metadata/ab12-00000-0-7-00001.avro")
    lake.write("s3://b/t/metadata/cd34-00000-0-7-00001.avro")
    lake.look(table)
    lake.pass_time(14 * DAY_MS - 1)
    assert planned(lake.look(table)) == set()
    lake.pass_time(1)
    assert planned(lake.look(table)) == LEFT | {"s3://b/t/metadata/cd34-00000-0-7-00001.avro"}


def test_o9_metadata_files_stay_to_go_back_to(lake: OrphanLake, table: LakeTable) -> None:
    """Three a day for a year, of which the log names none: the last hundred stay, a month, and one of each day."""
    for _ in range(365 * 3):
        lake.pass_time(8 * HOUR_MS)
        table.log.clear()
        table.save()
        table.log.clear()
    lake.look(table)
    lake.pass_time(7 * DAY_MS)
    gone = planned(lake.look(table)) - LEFT
    now = lake.clock.now()
    metadata = {
        path: stored.listed.modified_at or 0
        for path, stored in lake.storage.objects.items()
        if path.endswith(".metadata.json")
    }
    stays = metadata.keys() - gone
    newest = sorted(metadata)[-100:]
    assert set(newest) <= stays
    assert {path for path, at in metadata.items() if now - at < 30 * DAY_MS} <= stays
    days = {at // DAY_MS for at in metadata.values() if at > now - 90 * DAY_MS}
    assert {metadata[path] // DAY_MS for path in stays} >= days
    assert len(gone) > 900  # and no more than that is kept
    assert not gone & table.needed()


class TestDisagreement:
    """Listing and metadata that do not fit together are not believed."""

    @pytest.mark.parametrize("other", ["hdfs://node-2:8020/t", "hdfs:/t", "viewfs://c/t"])
    def test_o1_a_storage_under_another_name_refuses_the_run(self, lake: OrphanLake, other: str) -> None:
        table = lake.table("hdfs://node-1:8020/t")
        table.spelled = lambda path: path.replace("hdfs://node-1:8020/t", other)
        table.commit("data/1.parquet")
        assert lake.refused(table).reason.code == "spelled-otherwise"

    def test_o1_one_writer_among_many_that_uses_another_name_is_enough(self, lake: OrphanLake) -> None:
        table = lake.table("hdfs://node-1:8020/t")
        table.spelled = lambda path: path.replace("node-1", "node-2") if "late" in path else path
        table.commit(*(f"data/{number}.parquet" for number in range(300)))
        table.commit("data/late.parquet")
        assert lake.refused(table).reason.code == "spelled-otherwise"

    def test_o1_what_is_declared_to_be_one_is_one(self, lake: OrphanLake) -> None:
        aliases = declared({"hdfs://node-2:8020": "hdfs://node-1:8020", "hdfs://": "hdfs://node-1:8020"})
        table = lake.table("hdfs://node-1:8020/t")
        table.spelled = lambda path: path.replace("//node-1:8020", "//node-2:8020" if "metadata" in path else "")
        table.commit("data/1.parquet")
        lake.write("hdfs://node-1:8020/t/data/left.parquet")
        assert lake.candidates(table, aliases=aliases) == {"hdfs://node-1:8020/t/data/left.parquet"}

    @pytest.mark.parametrize("scheme", ["s3a", "s3n", "S3"])
    def test_e8_the_schemes_of_s3_are_one(self, lake: OrphanLake, table: LakeTable, scheme: str) -> None:
        table.spelled = lambda path: path.replace("s3://", f"{scheme}://")
        table.snapshots = [replace(one, manifest_list=table.spelled(one.manifest_list)) for one in table.snapshots]
        assert lake.candidates(table) == LEFT

    def test_o1_needed_files_that_are_not_listed_refuse_the_run(self, lake: OrphanLake, table: LakeTable) -> None:
        lake.storage.remove(CanonicalPath("s3://b/t/data/1.parquet"))
        refused = lake.refused(table)
        assert refused.reason.code == "views-disagree"
        assert refused.reason.figures == {"missing": 1, "needed": 7}

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_o1_what_the_planner_overlooks_the_checker_notices(
        self, lake: OrphanLake, table: LakeTable, number: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However many files are listed that nobody needs."""
        lake.look(table)
        lake.pass_time(10 * DAY_MS)
        lake.storage.remove(CanonicalPath(f"s3://b/t/data/{number}.parquet"))
        for young in range(20):
            lake.write(f"s3://b/t/data/young-{young}.parquet")
        monkeypatch.setattr("icewright.actions.remove_files.orphans.survey.MISSING_SHARE_MAX", 1.0)
        with pytest.raises(PlanRejected, match="views-disagree"):
            lake.look(table)

    def test_o1_a_few_among_many_may_be_missing(self, lake: OrphanLake) -> None:
        table = lake.table()
        table.commit(*(f"data/{number}.parquet" for number in range(198)))
        lake.storage.remove(CanonicalPath("s3://b/t/data/7.parquet"))
        lake.storage.remove(CanonicalPath("s3://b/t/data/8.parquet"))
        assert lake.found(table).needed.files == 203
        lake.storage.remove(CanonicalPath("s3://b/t/data/9.parquet"))
        assert lake.refused(table).reason.code == "views-disagree"

    def test_o1_below_a_root_where_nothing_is_needed_everything_stays(self, lake: OrphanLake, table: LakeTable) -> None:
        lake.write("s3://other/t/data/x.parquet")
        assert lake.candidates(table, place=owns(table.root, "s3://other/t/")) == LEFT

    def test_o1_where_nothing_at_all_is_found_nothing_is_believed(self, lake: OrphanLake, table: LakeTable) -> None:
        lake.write("s3://other/t/data/x.parquet")
        assert lake.refused(table, place=owns("s3://other/t/")).reason.code == "nothing-in-common"

    @pytest.mark.parametrize(
        ("listed", "needed"),
        [
            ("data/city=a b/1.parquet", "data/city=a%20b/1.parquet"),
            ("data/city=a%2Fb/1.parquet", "data/city=a%252Fb/1.parquet"),
            ("data/city=a+b/1.parquet", "data/city=a b/1.parquet"),
            ("data/city=\u00e9/1.parquet", "data/city=e\u0301/1.parquet"),
            ("data/City=A/1.parquet", "data/city=a/1.parquet"),
            ("data/x/1.parquet", "data//x/1.parquet"),
            ("data/1.parquet", "data/x/../1.parquet"),
            ("data/%F0%9F%A7%8A/1.parquet", "data/🧊/1.parquet"),
        ],
    )
    def test_o2_a_file_that_may_be_a_needed_one_in_other_letters_refuses_the_run(
        self, lake: OrphanLake, listed: str, needed: str
    ) -> None:
        table = lake.table()
        table.spelled = lambda path: path.replace(listed, needed)
        table.commit(*(f"data/{number}.x.parquet" for number in range(300)), listed)
        assert lake.refused(table).reason.code == "spelled-otherwise"

    def test_o2_two_objects_whose_names_differ_in_letters_both_stay(self, lake: OrphanLake, table: LakeTable) -> None:
        lake.write("s3://b/t/data/%31.parquet")
        lake.write("s3://b/t/DATA/1.parquet")
        lake.write("s3://b/t/data//1.parquet")
        assert lake.candidates(table) == LEFT

    @pytest.mark.parametrize(
        "name", ["%2F", "a b", "a+b", "a#b", "a?b", "🧊", "a..b", "x//y", "e\u0301", "'quoted\"", "new\nline", "100%"]
    )
    def test_o2_odd_keys_are_compared_and_planned_as_listed(
        self, lake: OrphanLake, table: LakeTable, name: str
    ) -> None:
        table.commit(f"data/{name}/live.parquet")
        lake.write(f"s3://b/t/data/{name}/left.parquet")
        assert lake.candidates(table) == LEFT | {f"s3://b/t/data/{name}/left.parquet"}

    def test_o2_two_listed_names_that_would_be_one_refuse_the_run(self, lake: OrphanLake, table: LakeTable) -> None:
        entry = lake.storage.objects[CanonicalPath("s3://b/t/data/left-0.parquet")]
        other = CanonicalPath("s3a://b/t/data/left-0.parquet")
        below = lake.objects.list

        def twice(root: CanonicalPath) -> Iterator[Listed]:
            yield from below(root)
            yield replace(entry.listed, path=other)

        lake.objects.list = twice  # type: ignore[method-assign]  # an adapter that is wrong
        assert lake.refused(table).reason.code == "spellings-collide"

    def test_o2_a_path_outside_of_what_was_asked_for_refuses_the_run(self, lake: OrphanLake, table: LakeTable) -> None:
        stray = lake.write("s3://b/u/x.parquet")

        def wrong(root: CanonicalPath) -> Iterator[Listed]:
            del root
            yield stray

        lake.objects.list = wrong  # type: ignore[method-assign]  # an adapter that is wrong
        assert lake.refused(table).reason.code == "outside-root"

    def test_o1_a_link_below_a_root_refuses_the_run(self, lake: OrphanLake, table: LakeTable) -> None:
        """What it points to has two names."""
        odd = OddEntry(CanonicalPath("s3://b/t/link"), Reason("link", "it is a symbolic link"))
        below = lake.objects.list

        def linked(root: CanonicalPath) -> Iterator[Listed]:
            yield from below(root)
            yield odd

        lake.objects.list = linked  # type: ignore[method-assign]  # a file system with links
        assert lake.refused(table).reason.code == "odd-entry"


def test_l4_a_table_that_was_replaced_while_it_was_listed_raises(lake: OrphanLake, table: LakeTable) -> None:
    lake.fault_at = 4

    def replaced() -> None:
        table.uuid = "another"
        table.save()

    lake.fault = replaced
    with pytest.raises(TableReplaced):
        lake.look(table)


def test_o5_a_place_that_changes_while_it_is_listed_plans_nothing(lake: OrphanLake, table: LakeTable) -> None:
    places = iter([owns(table.root), owns("s3://b/")])
    found = lake.finder(table).look(table.name, lambda _metadata: complete(next(places)), ALL)
    assert getattr(found, "reason", None) is not None
    assert planned(found) == set()


def grow(lake: OrphanLake, table: LakeTable) -> None:
    """Let each data file have 1,000 bytes, by the manifests and in the storage."""
    table.file_bytes = 1_000
    for path in table.needed():
        found = lake.storage.objects.get(path)
        if found is not None and "/data/" in path:
            lake.write(path, size_bytes=1_000, modified_at=found.listed.modified_at)


class TestBudget:
    """S-10: what is beyond the budget needs a person."""

    @pytest.mark.parametrize(
        ("budget", "needs"),
        [
            (OrphanBudget(1.0, 3), False),
            (OrphanBudget(1.0, 2), True),
            (OrphanBudget(0.007, 3), False),
            (OrphanBudget(0.0068, 3), True),
            (OrphanBudget(), False),
            (OrphanBudget(-1.0, -1), True),
        ],
    )
    def test_i11_the_lesser_of_bytes_and_files(
        self, lake: OrphanLake, table: LakeTable, budget: OrphanBudget, *, needs: bool
    ) -> None:
        grow(lake, table)
        policy = OrphanPolicy(budget=budget)
        lake.look(table, policy=policy)
        lake.pass_time(10 * DAY_MS)
        found = lake.found(table, policy=policy)
        assert found.action is not None
        assert found.prediction is not None
        assert found.action.is_beyond_budget is needs
        assert found.action.needs_approval  # by their names

    @pytest.mark.parametrize("budget", [OrphanBudget(), OrphanBudget(1.0, 10**9)])
    def test_i11_nobody_can_ask_for_more_than_the_deleter_takes(
        self, lake: OrphanLake, table: LakeTable, budget: OrphanBudget, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        policy = OrphanPolicy(budget=budget)
        lake.look(table, policy=policy)
        lake.pass_time(10 * DAY_MS)
        of_bytes = lake.found(table, policy=policy)
        grow(lake, table)
        monkeypatch.setattr("icewright.model.actions.remove_files.BUDGET_FILES", 2)
        of_files = lake.found(table, policy=policy)
        for found in (of_bytes, of_files):
            assert not_none(found.action).is_beyond_budget

    def test_i11_the_budget_is_of_all_that_may_go_also_of_what_is_left_for_later(
        self, lake: OrphanLake, table: LakeTable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("icewright.actions.remove_files.orphans.plan.FILES_MAX", 1)
        policy = OrphanPolicy(budget=OrphanBudget(1.0, 2))
        lake.look(table, policy=policy)
        lake.pass_time(10 * DAY_MS)
        found = lake.found(table, policy=policy)
        assert found.action is not None
        assert found.prediction is not None
        assert len(found.action.files) == 1
        assert (found.action.orphan_files, found.prediction.left_for_later) == (3, 2)
        assert found.action.needs_approval


def test_more_than_are_remembered_wait_for_their_turn(
    lake: OrphanLake, table: LakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icewright.actions.remove_files.orphans.service.SIGHTINGS_MAX", 2)
    first = lake.found(table)
    assert (first.finished.files, first.kept) == (2, {"young": 2, "too-many": 1})
    lake.pass_time(10 * DAY_MS)
    found = lake.found(table)
    gone = planned(found)
    assert len(gone) == 2
    for path in gone:
        lake.storage.remove(CanonicalPath(path))
    assert lake.found(table).kept == {"seen-lately": 1}
