"""Whose place is whose: by a forest of tables against every pair of them, and by each way in which tables were lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.core.completeness import Complete, Partial
from icewright.core.errors import InvalidConfiguration
from icewright.core.reasons import Reason
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.locations import Aliases, CanonicalPath, coarsened, declared
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import LoggedMetadata, PartitionStatisticsFile, StatisticsFile, TableMetadata
from icewright.ownership import claims, ownership
from icewright.ownership.claims import PATH_KEYS, REACHES_MAX, claim, claim_of_other, followed, outside
from icewright.ownership.location_rules import PlaceRules, place_rules
from icewright.ownership.model import Claim, Missing, Place
from icewright.ownership.ownership import Ownership
from tests.builders.forests import UNFOUNDED, forest, violations
from tests.conftest import CAMPAIGN
from tests.inventory.test_footprint import snapshot, table
from tests.narrowing import of_type

AWAY = Reason("unavailable", "it does not answer")


def named(number: int, catalog: str = "lake") -> TableName:
    return TableName(catalog, ("db",), f"t{number:03}")


def claiming(number: int, *roots: str, catalog: str = "lake", uuid: str | None = "", **more: object) -> Claim:
    """A claim to these roots, the first of which is its location."""
    made = Claim(named(number, catalog), f"u{number}" if uuid == "" else uuid, tuple(sorted(roots)), roots[0])
    return replace(made, **more)  # type: ignore[arg-type] # fields of a claim


def metadata_of(location: str, number: int = 0, **properties: str) -> TableMetadata:
    listed = replace(snapshot(1, None, 1), manifest_list=f"{location}/metadata/snap-1.avro")
    return replace(
        table((listed,), (), 1, **properties),
        name=named(number),
        table_id=TableId("lake", f"u{number}"),
        location=location,
        metadata_location=f"{location}/metadata/1.metadata.json",
    )


def place(found: Ownership, number: int, catalog: str = "lake") -> Place:
    known = found.place(named(number, catalog))
    assert isinstance(known, Complete)
    return known.value


def codes(found: Ownership, number: int, catalog: str = "lake") -> list[str]:
    return [reason.code for reason in found.findings.get(named(number, catalog), ())]


class TestForests:
    @settings(max_examples=2_000 if CAMPAIGN else 100)
    @given(st.integers(0, 2**32), st.one_of(st.integers(0, 60), st.integers(100, 200)))
    def test_o5_i9_no_path_is_owned_by_two_tables_nor_by_one_that_does_not_need_it(self, seed: int, count: int) -> None:
        assert list(violations(forest(seed, count))) == []

    def test_they_meet_often_enough_and_not_always(self) -> None:
        found = [bool(place.value.findings) for seed in range(20) for place in self._judged(seed)]
        assert 0.2 < sum(found) / len(found) < 0.9

    def _judged(self, seed: int) -> list[Complete[Place]]:
        from tests.builders.forests import judged  # noqa: PLC0415 - the name is used here alone

        return list(judged(forest(seed, 60)).values())

    @pytest.mark.parametrize(
        ("where", "name", "mutant"),
        [
            pytest.param(claims, "PATH_KEYS", (), id="o5_location_alone"),
            pytest.param(TableMetadata, "collects_garbage", True, id="l5_gc_enabled_ignored"),
            pytest.param(ownership, "same", lambda _named: {}, id="l6_uuid_ignored"),
            pytest.param(ownership, "overlaps", lambda _owners: {}, id="o5_overlaps_ignored"),
            pytest.param(ownership, "borrowers", lambda *_owners: {}, id="l5_imports_ignored"),
            pytest.param(ownership, "_PARTS_MIN", 0, id="o5_buckets_allowed"),
            pytest.param(Aliases, "canonical", lambda _self, location: location, id="o1_aliases_ignored"),
        ],
    )
    def test_i13_a_missing_guard_is_noticed(
        self, where: object, name: str, mutant: object, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By a table that owns what it must not; that one owns less than it could would not be enough."""
        if name == "canonical":
            monkeypatch.setattr(Aliases, "folder", lambda _self, location: location.rstrip("/") + "/")
        monkeypatch.setattr(where, name, mutant)
        assert any(UNFOUNDED not in found for seed in range(20) for found in violations(forest(seed, 40)))

    def test_o6_i13_a_place_without_a_slash_at_its_end_is_noticed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """By tables that own nothing since their siblings' names begin as theirs do."""
        monkeypatch.setattr(Aliases, "folder", lambda self, location: self.canonical(location.rstrip("/")))
        assert any(UNFOUNDED in found for seed in range(20) for found in violations(forest(seed, 40)))


def test_o6_a_sibling_whose_name_begins_alike_is_not_below_the_root() -> None:
    found = ownership.ownership([claiming(1, "s3://w/d/t/"), claiming(2, "s3://w/d/t_2/")])
    assert found.findings == {}
    assert place(found, 1).roots == ("s3://w/d/t/",)
    assert place(found, 1).owns(CanonicalPath("s3://w/d/t/f"))
    for path in ("s3://w/d/t_2/f", "s3://w/d/t", "s3://w/d/t/", "s3://w/d/t2", "s3://v/d/t/f"):
        assert not place(found, 1).owns(CanonicalPath(path)), path


@pytest.mark.parametrize("path", ["file:///w/d/t/../u/f", "file:///w/d/t//f", "file:///w/d/t/./f"])
def test_t6_a_path_that_may_lead_elsewhere_is_not_owned(path: str) -> None:
    found = ownership.ownership([claiming(1, "file:///w/d/t/")])
    assert not place(found, 1).owns(CanonicalPath(path))


def test_o5_all_tables_of_a_cluster_of_overlaps_own_nothing() -> None:
    found = ownership.ownership(
        [
            claiming(1, "s3://w/wh/d/"),
            claiming(2, "s3://w/wh/d/two/"),
            claiming(3, "s3://w/wh/d/three/", "s3://v/wh/d/three/"),
            claiming(4, "s3://v/wh/d/three/data/four/"),
            claiming(5, "s3://w/wh/e/"),
        ]
    )
    assert [codes(found, number) for number in range(1, 6)] == [["shared-location"]] * 4 + [[]]
    assert "lake.db.t002, lake.db.t003" in found.findings[named(1)][0].text
    assert all(place(found, number).roots == () for number in range(1, 5))


def test_l6_i13_one_uuid_in_two_catalogs_or_under_two_names_owns_nothing() -> None:
    found = ownership.ownership(
        [
            claiming(1, "s3://w/d/1/", uuid="u"),
            claiming(2, "s3://w/d/2/", catalog="pond", uuid="u"),
            claiming(3, "s3://w/d/3/"),
        ]
    )
    assert codes(found, 1) == codes(found, 2, "pond") == ["shared-uuid"]
    assert place(found, 3).roots == ("s3://w/d/3/",)


def test_l6_a_table_that_is_gone_is_there_under_another_name_if_that_claims_all_that_it_did() -> None:
    renamed = claiming(2, "s3://w/d/1/", uuid="u")
    gone = claiming(1, "s3://w/d/1/", uuid="u", is_gone=True)
    assert ownership.ownership([gone, renamed]).findings == {}
    for more in (replace(gone, reaches=("s3://w/raw/",)), replace(gone, roots=("s3://w/d/",)), replace(gone, uuid="v")):
        assert codes(ownership.ownership([more, renamed]), 2) == ["shared-location"]


def test_l6_uuids_are_the_same_however_they_are_spelled() -> None:
    one = claim(replace(metadata_of("s3://w/d/1", 1), table_id=TableId("lake", "ABC ")), Aliases())
    two = claim(replace(metadata_of("s3://w/d/2", 2), table_id=TableId("lake", "abc")), Aliases())
    assert codes(ownership.ownership([one, two]), 1) == ["shared-uuid"]


def test_l4_a_table_without_a_uuid_owns_nothing() -> None:
    one = claim(replace(metadata_of("s3://w/d/1", 1), has_uuid=False), Aliases())
    assert one.uuid is None
    assert codes(ownership.ownership([one]), 1) == ["no-uuid"]


@pytest.mark.parametrize("value", ["false", "FALSE", "no", "0", "", " true"])
def test_l5_i13_nothing_is_owned_without_gc_enabled(value: str) -> None:
    found = ownership.ownership([claim(metadata_of("s3://w/d/1", 1, **{"gc.enabled": value}), Aliases())])
    assert codes(found, 1) == ["gc-disabled"]
    assert place(found, 1).roots == ()


def test_l5_a_clone_by_the_procedure_snapshot_owns_nothing_and_lends_nothing() -> None:
    source = claim(metadata_of("s3://w/d/source", 1), Aliases())
    clone = metadata_of("s3://w/d/clone", 2, snapshot="TRUE", **{"gc.enabled": "false"})
    found = ownership.ownership([source, claim(clone, Aliases(), ["s3://w/d/source/data/month=1"])])
    assert (codes(found, 1), codes(found, 2)) == (["lends-files"], ["clone"])
    assert "lake.db.t002" in found.findings[named(1)][0].text


def test_l5_x5_imported_files_are_not_ours_and_their_place_is_nobodys() -> None:
    lender = claim(metadata_of("s3://w/d/lender", 1), Aliases())
    borrower = claim(metadata_of("s3://w/d/borrower", 2), Aliases(), ["s3a://w/d/lender/data", "s3://w/raw/landing"])
    found = ownership.ownership([lender, borrower])
    assert (codes(found, 1), codes(found, 2)) == (["lends-files"], [])
    assert place(found, 2).not_ours == ("s3://w/d/lender/data/", "s3://w/raw/landing/")
    assert not place(found, 2).owns(CanonicalPath("s3://w/raw/landing/f"))


def test_o5_a_table_that_was_moved_still_has_files_where_it_was() -> None:
    moved = replace(metadata_of("s3://w/d/new", 1), snapshots=metadata_of("s3://w/d/old").snapshots)
    there = claim(metadata_of("s3://w/d/old/", 2), Aliases())
    found = ownership.ownership([claim(moved, Aliases()), there])
    assert (codes(found, 1), codes(found, 2)) == ([], ["lends-files"])


def test_o11_a_snapshot_that_no_ref_is_at_reaches_as_others_do() -> None:
    staged = replace(snapshot(2, 1, 2), manifest_list="s3://w/d/other/metadata/snap-2.avro")
    metadata = metadata_of("s3://w/d/t", 1)
    assert claim(replace(metadata, snapshots=(*metadata.snapshots, staged)), Aliases()).reaches == (
        "s3://w/d/other/metadata/",
    )


def test_l6_a_metadata_file_elsewhere_reaches_there() -> None:
    registered = replace(metadata_of("s3://w/d/new", 1), metadata_location="s3://w/d/old/metadata/9.json")
    assert claim(registered, Aliases()).reaches == ("s3://w/d/old/metadata/",)


@pytest.mark.parametrize("root", ["s3://bucket/", "s3://bucket/t/", "file:///", "file:///t/", "hdfs://c/t/"])
def test_o5_a_place_near_a_bucket_is_owned_by_nobody(root: str) -> None:
    assert codes(ownership.ownership([claiming(1, root)]), 1) == ["shallow-root"]


def test_o14_nothing_is_owned_where_icewrights_own_places_are() -> None:
    for reserved in ("s3://w/d/t/quarantine/", "s3://w/d/"):
        found = ownership.ownership([claiming(1, "s3://w/d/t/")], (), PlaceRules(reserved=(reserved,)))
        assert codes(found, 1) == ["reserved-place"]
    beside = PlaceRules(reserved=("s3://w/d/t_2/",))
    assert codes(ownership.ownership([claiming(1, "s3://w/d/t/")], (), beside), 1) == []


@pytest.mark.parametrize(
    ("root", "own"),
    [
        ("hdfs://node-1:8020/w/quarantine/run/", "hdfs://cluster/w/quarantine/"),
        ("file://host/w/quarantine/", "file:///w/quarantine/"),
        ("s3://key@bucket/w/", "s3://bucket/w/quarantine/"),
    ],
)
def test_o14_nor_where_they_may_be_by_another_name(root: str, own: str) -> None:
    for named_storages in (frozenset[str](), frozenset({own.partition("/w/")[0]})):
        rules = PlaceRules(reserved=(own,), storages=named_storages)
        assert codes(ownership.ownership([claiming(1, root)], (), rules), 1)[-1:] == ["reserved-place"]


class TestQuarantineAmongTables:
    """O14: a quarantine is never inside a table's place, whoever's files are to wait there."""

    LAKE = CatalogEntry("lake", CatalogKind.SQL, "sqlite:////x", "/w", quarantine=("s3://w/d/u/held", "hdfs://c/held"))
    POND = CatalogEntry("pond", CatalogKind.SQL, "sqlite:////y", "/w", quarantine=("s3://w/held",))
    RULES = place_rules([LAKE, POND])
    TABLES = (
        claiming(1, "s3://w/d/t/"),
        claiming(2, "hdfs://c/d/t/"),
        claiming(3, "s3://w/pond/t/", catalog="pond"),
    )

    def test_o14_what_is_removed_never_waits_in_the_place_of_another_table(self) -> None:
        around = claiming(4, "s3://w/d/u/", catalog="pond")
        found = ownership.ownership([*self.TABLES, around], (), self.RULES)
        assert codes(found, 1) == ["quarantine-in-table"]
        assert "pond.db.t004 is or has files" in found.findings[named(1)][0].text
        assert place(found, 1).roots == ()
        assert codes(found, 4, "pond") == ["reserved-place"]
        assert (codes(found, 2), codes(found, 3, "pond")) == ([], [])

    def test_o14_a_table_in_the_quarantine_of_its_own_catalog_is_not_beside_itself(self) -> None:
        found = ownership.ownership([claiming(4, "s3://w/d/u/held/t/")], (), self.RULES)
        assert codes(found, 4) == ["reserved-place"]

    def test_o14_nor_around_it_nor_by_another_name(self) -> None:
        for root in ("s3://w/d/u/held/run/t/", "s3://key@w/d/u/"):
            found = ownership.ownership([self.TABLES[0], claiming(4, root, catalog="pond")], (), self.RULES)
            assert codes(found, 1)[-1:] == ["quarantine-in-table"]

    def test_o14_l5_nothing_is_purged_that_another_table_has_taken_for_its_own(self) -> None:
        taker = claiming(4, "s3://w/d/v/", reaches=("s3://w/d/u/held/run-1/w/d/t/data/",))
        assert codes(ownership.ownership([*self.TABLES, taker], (), self.RULES), 1) == ["quarantine-in-table"]
        beside = replace(taker, reaches=("s3://w/d/u/held_2/",))
        assert ownership.ownership([*self.TABLES, beside], (), self.RULES).findings == {}


class TestUsers:
    """Who may need files that lay in some folders, of a table that is gone."""

    FOLDER = "s3://w/d/1/data/p=1/"

    def users(self, *claims: Claim) -> frozenset[TableName]:
        known = ownership.ownership(claims).users("U1", [self.FOLDER])
        assert isinstance(known, Complete)
        return known.value

    def test_l6_a_table_of_the_same_uuid_wherever_it_is(self) -> None:
        assert self.users(claiming(7, "s3://other/d/7/", uuid="u1"), claiming(8, "s3://w/d/8/")) == {named(7)}

    @pytest.mark.parametrize("root", ["s3://w/d/1/", "s3://w/d/1/data/p=1/", "s3://w/d/1/data/p=1/x/", "s3://key@w/d/"])
    def test_o5_a_table_with_a_place_at_above_or_below_them(self, root: str) -> None:
        assert self.users(claiming(7, root)) == {named(7)}

    def test_l5_a_table_that_has_files_there(self) -> None:
        assert self.users(claiming(7, "s3://w/d/7/", reaches=("s3://w/d/1/data/",))) == {named(7)}

    def test_o6_not_one_beside_them(self) -> None:
        beside = ("s3://w/d/1_2/", "s3://w/d/1/data/p=10/", "s3://w/d/1/metadata/", "s3://v/d/1/")
        assert self.users(*(claiming(number, root) for number, root in enumerate(beside, 7))) == frozenset()

    def test_o13_i8_whoever_is_not_known_may_be_there_wherever_their_catalog_has_its_roots(self) -> None:
        rules = PlaceRules(allowed={"pond": ("s3://elsewhere/",)})
        known = of_type(
            Partial, ownership.ownership([], [Missing("pond", "pond", AWAY)], rules).users("u1", [self.FOLDER])
        )
        assert [gap.what for gap in known.gaps] == ["pond"]


class TestAllowed:
    RULES = PlaceRules(allowed={"lake": ("s3://w/lake/",)})

    def test_t6_a_table_may_only_lie_where_the_administrator_says(self) -> None:
        found = ownership.ownership(
            [
                claiming(1, "s3://w/lake/d/1/", "s3://w/elsewhere/1/"),
                claiming(2, "s3://w/lake/d/2/", "s3://w/lake/data/2/"),
                claiming(3, "s3://w/lake_2/3/"),
                claiming(4, "s3://w/pond/4/", catalog="pond"),
            ],
            (),
            self.RULES,
        )
        assert [codes(found, number) for number in (1, 2, 3)] == [["root-not-allowed"], [], ["root-not-allowed"]]
        assert place(found, 2).roots == ("s3://w/lake/d/2/", "s3://w/lake/data/2/")
        assert place(found, 4, "pond").roots == ("s3://w/pond/4/",)

    def test_t6_a_place_that_only_a_property_names_is_owned_by_an_administrators_word_alone(self) -> None:
        found = ownership.ownership([claiming(1, "s3://w/d/1/", "s3://w/other-application/data/")])
        assert place(found, 1).roots == ("s3://w/d/1/",)
        assert place(found, 1).not_ours == ("s3://w/other-application/data/",)

    def test_t6_a_place_above_the_location_is_not_owned_either(self) -> None:
        found = ownership.ownership([claiming(1, "s3://w/wh/d/", location="s3://w/wh/d/1/")])
        assert place(found, 1).roots == ("s3://w/wh/d/1/",)
        assert not place(found, 1).owns(CanonicalPath("s3://w/wh/d/2/f"))


class TestMissing:
    """Nothing is owned where somebody may be whose places are not known."""

    CLAIMS = (claiming(1, "s3://w/lake/d/1/"), claiming(2, "s3://w/pond/d/2/", catalog="pond"))
    GONE = Missing("lake", "lake.db.broken", AWAY)

    def both(self, *missing: Missing, rules: PlaceRules | None = None, more: tuple[Claim, ...] = ()) -> list[bool]:
        found = ownership.ownership((*self.CLAIMS, *more), missing, rules)
        return [isinstance(found.place(one.name), Complete) for one in self.CLAIMS]

    def test_o5_a_table_that_cannot_be_read_may_be_anywhere(self) -> None:
        assert self.both() == [True, True]
        assert self.both(self.GONE) == [False, False]

    def test_o5_it_is_below_its_catalogs_roots_where_these_are_said(self) -> None:
        assert self.both(self.GONE, rules=PlaceRules(allowed={"lake": ("s3://w/lake/",)})) == [False, True]
        above = PlaceRules(allowed={"lake": ("s3://w/lake/", "s3://w/pond/d/2/x/")})
        assert self.both(self.GONE, rules=above) == [False, False]  # the other catalog's table lies around a root
        assert self.both(self.GONE, rules=PlaceRules(allowed={"pond": ("s3://w/pond/",)})) == [False, False]

    def test_o5_roots_that_a_table_does_not_keep_to_say_nothing_of_others(self) -> None:
        rules = PlaceRules(allowed={"lake": ("s3://w/lake/",)})
        stray = claiming(3, "s3://w/stray/3/")
        assert self.both(self.GONE, rules=rules, more=(stray,)) == [False, False]
        borrower = claiming(3, "s3://w/lake/3/", reaches=("s3://w/raw/landing/",))
        assert self.both(self.GONE, rules=rules, more=(borrower,)) == [False, False]
        assert self.both(rules=rules, more=(stray,)) == [True, True]

    def test_o5_what_is_missing_is_said(self) -> None:
        known = of_type(Partial, ownership.ownership(self.CLAIMS, [self.GONE]).place(named(2, "pond")))
        assert [(gap.what, gap.reason) for gap in known.gaps] == [("lake.db.broken", AWAY)]

    def test_o5_a_table_that_nobody_looked_at_owns_nothing(self) -> None:
        known = of_type(Partial, ownership.ownership(self.CLAIMS).place(named(9)))
        assert known.found.roots == ()
        assert known.gaps[0].reason.code == "unclaimed"

    @pytest.mark.parametrize("location", ["", "relative", "data/t", "s3:b/t", "../t", "C:\\t"])
    def test_o1_a_location_that_names_no_place_may_be_anywhere(self, location: str) -> None:
        odd = claim(metadata_of("s3://w/d/1", 3, **{"write.data.path": location}), Aliases())
        assert odd.unplaced == (location,)
        found = ownership.ownership((*self.CLAIMS, odd))
        assert codes(found, 3) == ["no-place"]
        assert self.both(more=(odd,)) == [False, False]
        lost = ownership.ownership((*self.CLAIMS, odd), lost=[odd.name])
        assert codes(lost, 3) == ["no-place"]
        assert all(isinstance(lost.place(one.name), Complete) for one in self.CLAIMS)

    def test_o1_nor_is_it_known_where_files_are_whose_place_has_no_name(self) -> None:
        metadata = metadata_of("s3://w/d/1", 3)
        listed = replace(metadata.snapshots[0], manifest_list="metadata/snap-1.avro")
        odd = claim(replace(metadata, snapshots=(listed,)), Aliases())
        assert (odd.unplaced, odd.roots) == (("metadata",), ("s3://w/d/1/",))
        assert self.both(more=(odd,)) == [False, False]

    def test_what_is_an_iceberg_table_by_now_is_of_no_other_format(self) -> None:
        one = self.CLAIMS[0]
        found = ownership.ownership(self.CLAIMS, others=[replace(one, roots=("s3://w/pond/d/",))])
        assert (found.findings, found.foreign) == ({}, frozenset())
        assert place(found, 1).roots == one.roots

    def test_a_place_with_a_further_finding_owns_nothing(self) -> None:
        known = place(ownership.ownership(self.CLAIMS), 1)
        assert known.refused(()) == known
        assert (known.refused((AWAY,)).roots, known.refused((AWAY,)).findings) == ((), (AWAY,))


class TestAliases:
    def test_o1_storages_that_may_be_one_are_not_taken_for_two(self) -> None:
        for one, other in (
            ("hdfs://node-1:8020/w/d/t/", "hdfs://cluster/w/d/t/"),
            ("hdfs:///w/d/t/", "hdfs://cluster/w/d/"),
            ("webhdfs://node-1:9870/w/d/t/", "hdfs://cluster/w/d/t/x/"),
            ("swebhdfs://node-1:9871/w/d/t/", "viewfs://cluster/w/d/t/"),
            ("file:///w/d/t/", "file://host/w/d/t/"),
            ("wasbs://c@a.blob.example/w/d/t/", "abfss://c@a.dfs.example/w/d/t/"),
            ("s3://key@bucket/w/d/t/", "s3://bucket/w/d/t/"),
            ("s3://Bucket/w/d/t/", "s3://bucket/w/d/t/"),
            ("abfss://C@A.dfs.example/w/d/t/", "abfss://c@a.dfs.example/w/d/t/"),
        ):
            found = ownership.ownership([claiming(1, one), claiming(2, other)])
            assert codes(found, 1) == codes(found, 2) == ["undeclared-alias"], one

    def test_o1_two_clusters_are_two_when_that_is_declared(self) -> None:
        two = [claiming(1, "hdfs://one/w/d/t/"), claiming(2, "hdfs://two/w/d/t/")]
        assert codes(ownership.ownership(two), 1) == ["undeclared-alias"]
        declared_as_two = PlaceRules(storages=frozenset({"hdfs://one", "hdfs://two"}))
        assert codes(ownership.ownership(two, (), declared_as_two), 1) == []

    def test_o1_a_storage_that_is_named_may_be_the_one_behind_a_name_that_nobody_declared(self) -> None:
        """Only two that are both named are two."""
        rules = PlaceRules(storages=frozenset({"hdfs://cluster", "hdfs://other", "s3://b"}))
        one, other = claiming(1, "hdfs://cluster/w/d/t/"), claiming(2, "hdfs://node-1:8020/w/d/t/x/")
        found = ownership.ownership([one, other, claiming(3, "hdfs://other/w/d/u/")], (), rules)
        assert [codes(found, number) for number in (1, 2, 3)] == [["undeclared-alias"], ["undeclared-alias"], []]
        borrower = claiming(2, "hdfs://other/w/d/2/", reaches=("hdfs://node-1:8020/w/d/t/data/",))
        assert codes(ownership.ownership([one, borrower], (), rules), 1) == ["lends-files"]
        borrower = replace(borrower, reaches=("hdfs://other/w/d/t/data/",))
        assert ownership.ownership([one, borrower], (), rules).findings == {}

    def test_o1_a_quarantine_for_each_name_of_a_cluster_does_not_make_it_two(self) -> None:
        entry = CatalogEntry("lake", CatalogKind.SQL, "sqlite:////x", "/w", quarantine=("hdfs://one/q", "hdfs://two/q"))
        found = ownership.ownership(
            [claiming(1, "hdfs://one/w/d/t/"), claiming(2, "hdfs://two/w/d/t/")], (), place_rules([entry])
        )
        assert codes(found, 1) == codes(found, 2) == ["undeclared-alias"]

    def test_o1_buckets_of_other_names_are_others(self) -> None:
        found = ownership.ownership([claiming(1, "s3://one/w/d/t/"), claiming(2, "s3://two/w/d/t/")])
        assert found.findings == {}

    def test_o1_imports_are_seen_through_names_that_nobody_declared(self) -> None:
        borrower = claiming(2, "hdfs://one/w/d/2/", reaches=("hdfs://other/w/d/1/data/",))
        assert codes(ownership.ownership([claiming(1, "hdfs://one/w/d/1/"), borrower]), 1) == ["lends-files"]

    def test_o1_aliases_of_one_catalog_hold_for_the_others(self) -> None:
        lake = CatalogEntry("lake", CatalogKind.SQL, "sqlite:////x", "/w", aliases={"hdfs://n": "hdfs://c"})
        pond = CatalogEntry("pond", CatalogKind.SQL, "sqlite:////y", "/w", roots=("hdfs://n/pond", "s3a://b/p/"))
        rules = place_rules([lake, pond], ["s3a://quarantine/q"])
        assert rules.allowed == {"pond": ("hdfs://c/pond/", "s3://b/p/")}
        assert rules.reserved == ("s3://quarantine/q/",)
        assert rules.storages == {"hdfs://c", "s3://b"}
        odd = replace(pond, aliases={"hdfs://n": "hdfs://d"})
        assert place_rules([lake, odd]).aliases_of("pond").folder("hdfs://n/x") == "hdfs://d/x/"
        assert place_rules([lake, odd]).aliases_of("lake").folder("hdfs://n/x") == "hdfs://c/x/"
        assert place_rules([]).aliases_of("sea").folder("s3a://b/x") == "s3://b/x/"

    def test_o1_aliases_that_contradict_those_of_a_catalog_are_not_its_own(self) -> None:
        lake = CatalogEntry("lake", CatalogKind.SQL, "sqlite:////x", "/w", aliases={"hdfs://n": "hdfs://c"})
        pond = CatalogEntry("pond", CatalogKind.SQL, "sqlite:////y", "/w", aliases={"hdfs://c": "hdfs://d"})
        rules = place_rules([lake, pond])
        assert rules.aliases_of("lake").folder("hdfs://n/x") == "hdfs://c/x/"
        assert rules.aliases_of("pond").folder("hdfs://c/x") == "hdfs://d/x/"
        assert rules.storages == {"hdfs://c", "hdfs://d"}

    def test_l5_whoever_has_files_around_a_place_is_seen_beside_its_own_table_there(self) -> None:
        lender = claiming(1, "s3://w/a/d/1/", reaches=("s3://w/a/d/",))
        for around in ("s3://w/a/", "s3://w/a/d/"):
            borrower = claiming(2, "s3://v/d/2/", reaches=(around,))
            assert codes(ownership.ownership([lender, borrower]), 1) == ["lends-files"]

    @pytest.mark.parametrize("root", ["relative", "", "s3:b", "/a/../b", "s3a://b//x"])
    def test_t6_roots_that_are_no_place_are_refused(self, root: str) -> None:
        with pytest.raises(InvalidConfiguration, match="root"):
            CatalogEntry("lake", CatalogKind.SQL, "sqlite:////x", "/w", roots=(root,)).check_places()


def hostile() -> list[str]:
    """500 ways to spell or to meet the place of another table, ``s3://victim/wh/db/t``, and some that miss it."""
    heads = ("s3://victim", "s3a://victim", "s3n://victim", "S3://victim", "S3A://victim")
    keys = (
        "/wh/db/t", "/wh/db/t/", "/wh/db/t//", "/wh/db", "/wh", "", "/", "/wh/db/t/data", "/wh/db/t/metadata",
        "/wh/db/t/data/x=1", "/wh/db/t/a b", "/wh/db/t/*", "/wh/db/t/?", "/wh/db/t/#", "/wh/db/t/%2e%2e", "/wh/db/t/\n",
        "/wh/db/t/${x}", "/wh/db/t/\x00", "/wh/db/t/\u202e", "/wh/db/t/.", "/wh/db/t/..", "/wh/db/./t", "/wh/x/../db/t",
        "/wh/db//t", "//wh/db/t",
    )  # fmt: skip
    return [f"{head}{key}" for head in heads for key in keys]


@pytest.mark.parametrize("key", ["location", *PATH_KEYS[:3]])
def test_t6_whatever_a_table_says_of_its_places_nothing_of_another_one_is_owned(key: str) -> None:
    victim = claim(metadata_of("s3://victim/wh/db/t", 1), Aliases())
    files = [
        CanonicalPath(f"s3://victim/wh/db/t/{name}") for name in ("data/f", "metadata/1.metadata.json", "data/x=1/f")
    ]
    variants = hostile()
    assert len(variants) * 4 == 500
    for location in variants:
        own = location if key == "location" else "s3://attacker/wh/db/t"
        properties = {} if key == "location" else {key: location}
        attacker = claim(metadata_of(own, 2, **properties), Aliases())
        for rules in (PlaceRules(), PlaceRules(allowed={"lake": ("s3://victim/", "s3://attacker/")})):
            known = ownership.ownership([victim, attacker], (), rules).place(named(2))
            owned = known.value if isinstance(known, Complete) else None
            assert owned is None or not any(owned.owns(file) for file in files), location


class TestClaims:
    def test_a_snapshot_of_format_v1_without_a_manifest_list_is_in_no_place_of_its_own(self) -> None:
        """Its manifests are in the metadata itself, and read one by one; nothing of it is anywhere."""
        metadata = metadata_of("s3://w/t", 1)
        oldest = replace(snapshot(0, None, 0), manifest_list="")
        made = claim(replace(metadata, format_version=1, snapshots=(oldest, *metadata.snapshots)), Aliases())
        assert made == claim(metadata, Aliases())
        assert (made.unplaced, made.reaches) == ((), ())

    def test_what_a_table_lays_claim_to(self) -> None:
        metadata = metadata_of("s3a://w/t", 1, **{"write.data.path": "s3n://other/data", "other": "s3://x"})
        assert claim(metadata, Aliases()).roots == ("s3://other/data/", "s3://w/t/")
        assert claim(metadata, declared({"s3://other": "s3://w"})).roots == ("s3://w/data/", "s3://w/t/")
        assert claim(metadata, Aliases()).reaches == ()
        assert claim(metadata, Aliases()).location == "s3://w/t/"

    def test_places_below_its_own_places_are_not_said_twice(self) -> None:
        metadata = metadata_of(
            "s3://w/t", 1, **{"write.data.path": "s3a://w/t/data", "write.metadata.path": "s3://w/t_2"}
        )
        assert claim(metadata, Aliases()).roots == ("s3://w/t/", "s3://w/t_2/")

    @pytest.mark.parametrize(
        ("location", "roots"),
        [
            ("s3a://w/x/../t", ("s3://w/t/", "s3://w/x/../t/")),
            ("file:///w/d//t", ("file:///w/d//t/", "file:///w/d/t/")),
            ("hdfs://c/../../w/t", ("hdfs://c/../../w/t/", "hdfs://c/w/t/")),
            ("hdfs://c/w/..", ("hdfs://c/",)),
        ],
    )
    def test_t6_a_folder_that_may_be_another_one_is_both(self, location: str, roots: tuple[str, ...]) -> None:
        made = claim(metadata_of(location, 1), Aliases())
        assert made.roots == roots
        assert made.ambiguous == (location,)
        assert "ambiguous-location" in codes(ownership.ownership([made]), 1)

    def test_all_that_metadata_names_reaches_where_it_is(self) -> None:
        metadata = replace(
            metadata_of("s3://w/t", 1),
            metadata_log=(LoggedMetadata(0, "s3://w/log/0.metadata.json"),),
            statistics=(StatisticsFile(1, "s3://w/puffin/s.stats", 1, 1, ()),),
            partition_statistics=(PartitionStatisticsFile(1, "s3://w/parts/p.parquet", 1),),
        )
        assert claim(metadata, Aliases()).reaches == ("s3://w/log/", "s3://w/parts/", "s3://w/puffin/")
        many = [f"s3://w/raw/{number}" for number in range(REACHES_MAX + 1)]
        assert claim(metadata_of("s3://w/t", 1), Aliases(), many[1:]).reaches == tuple(
            sorted(f"{a}/" for a in many[1:])
        )
        assert claim(metadata_of("s3://w/t", 1), Aliases(), many).reaches == ("s3://w/raw/",)

    def test_links_lead_to_places_that_are_claimed_as_well(self) -> None:
        made = claiming(1, "file:///w/link/", reaches=("file:///w/around/", "file:///w/in/", "file:///w/raw/"))
        leads = {
            "file:///w/link/": "file:///d/t/",
            "file:///w/raw/": "file:///d/raw/",
            "file:///w/in/": "file:///d/t/data/",
            "file:///w/around/": "file:///d/",
        }
        found = followed(made, lambda place: leads.get(place, place))
        assert found.roots == ("file:///d/t/", "file:///w/link/")
        assert found.reaches == ("file:///d/", "file:///w/around/", "file:///w/in/", "file:///w/raw/")
        assert found.linked == ("file:///w/around/", "file:///w/in/")
        assert codes(ownership.ownership([found]), 1) == ["linked-place"] * 2
        unlinked = claiming(1, "file:///w/d/t/", reaches=("file:///w/d/",))
        assert followed(unlinked, str) == unlinked

    def test_t6_a_table_of_another_format_may_be_in_another_folder_too(self) -> None:
        other = claim_of_other(named(1), ["file:///w/d/x/../t"], Aliases())
        assert (other.roots, other.ambiguous) == (("file:///w/d/t/", "file:///w/d/x/../t/"), ("file:///w/d/x/../t",))

    def test_t6_a_folder_that_may_be_another_one_is_outside_of_a_root_that_it_begins_with(self) -> None:
        metadata = metadata_of("file:///w/d/t", 1)
        places = ["file:///w/d/t/data", "file:///w/d/t/../u", "file:///w/d/u", "relative"]
        assert outside(metadata, Aliases(), places) == frozenset(places[1:])

    def test_many_places_become_few_that_have_them_all(self) -> None:
        many = tuple(sorted(f"s3://w/raw/{year}/{day}/" for year in range(10) for day in range(30)))
        few = coarsened(many, 50)
        assert few == tuple(f"s3://w/raw/{year}/" for year in range(10))
        assert all(place.startswith(few) for place in many)
        buckets = tuple(f"s3://w{number:02}/" for number in range(60))
        assert coarsened(buckets, 50) == buckets
        assert coarsened(("file:///a/", "file:///b/", "s3://b/x/y/"), 1) == ("file:///", "s3://b/")


def test_the_first_three_are_named() -> None:
    found = ownership.ownership([claiming(number, "s3://w/d/t/") for number in range(5)])
    assert "lake.db.t001, lake.db.t002, lake.db.t003 and others" in found.findings[named(0)][0].text
    few = ownership.ownership([claiming(number, "s3://w/d/t/") for number in range(4)])
    assert "lake.db.t001, lake.db.t002, lake.db.t003:" in few.findings[named(0)][0].text


@pytest.mark.parametrize(
    ("places", "count"), [(lambda _number: "s3://w/d/t/", 3000), (lambda number: "s3://w/" + "a/" * (number + 2), 1000)]
)
def test_many_in_one_place_or_in_a_row_are_no_trouble(places: Callable[[int], str], count: int) -> None:
    found = ownership.ownership([claiming(number, places(number)) for number in range(count)])
    assert len(found.findings) == count


def test_o5_a_row_of_places_of_one_table_hides_no_other() -> None:
    row = [f"hdfs://{number}/" + "a/" * (number + 3) for number in range(10)]
    inner = "hdfs://c/" + "a/" * 13
    found = ownership.ownership([claiming(1, *row), claiming(2, inner), claiming(3, "hdfs://d/a/a/")])
    assert codes(found, 2) == codes(found, 3) == codes(found, 1) == ["undeclared-alias"]
