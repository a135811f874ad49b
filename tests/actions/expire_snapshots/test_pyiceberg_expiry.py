"""What is particular to expiring snapshots of real tables: what is kept, what is asked, and answers that were lost."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from icewright.actions.expire_snapshots.commit import problem_of_expiry
from icewright.actions.expire_snapshots.iceberg import PyIcebergExpiry
from icewright.actions.expire_snapshots.plan import decide_expiry
from icewright.catalogs.pointers import table_commits
from icewright.catalogs.pointers.pointers import Pointed
from icewright.catalogs.pointers.rest_commits import RestCommits
from icewright.catalogs.pointers.sql_pointers import SqlCommits
from icewright.catalogs.pointers.table_commits import TRIES_MAX
from icewright.core.errors import Conflict, NotAllowed, OutcomeUnknown, Unavailable, Unreadable
from icewright.core.system_clock import SystemClock
from icewright.model.actions.expire_snapshots import ExpireSnapshots, ExpiryRule
from icewright.model.actions.undo import SIGNATURE_KEY
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.policy.effective import effective_policy
from tests.catalogs.pointers.test_pyiceberg_properties import NAME, put, seen
from tests.contracts.undoing import UNDOING, Shelf, decided, whole_undo
from tests.lakes import sqlite
from tests.lakes.moves import Move, moving
from tests.narrowing import not_none

SHELF = Shelf()


@pytest.fixture
def entry(tmp_path: Path) -> CatalogEntry:
    made = sqlite.make_lake(tmp_path)
    table = sqlite.make_table(made, (*NAME.namespace, NAME.name))
    for number in range(4):
        sqlite.append(table, [number])
    return made


def raw(location: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(urlsplit(location).path).read_bytes())
    return found


def planned(metadata: TableMetadata) -> ExpireSnapshots:
    policy, now = effective_policy(metadata, ()), metadata.updated_at + 60_000
    return not_none(decide_expiry(metadata, policy, ExpiryRule(0, 1), now, can_put_back=True).action)


def expire(entry: CatalogEntry, action: ExpireSnapshots) -> None:
    PyIcebergExpiry(entry, SystemClock()).expire(
        NAME, seen(entry).table_id, action, may_commit=lambda: None, keep=SHELF.keep
    )


def put_back(entry: CatalogEntry, action: ExpireSnapshots) -> None:
    now = seen(entry)
    PyIcebergExpiry(entry, SystemClock()).put_back(
        NAME,
        now.table_id,
        whole_undo(now, action),
        SHELF.content,
        task_id=UNDOING,
        may_commit=lambda: None,
        first_missing=lambda _: None,
    )


def statistics(snapshot_id: int, path: str) -> dict[str, Any]:
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": path,
        "file-size-in-bytes": 9,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }


def test_e2_what_nobody_here_knows_is_kept_and_so_are_parents_and_counters(entry: CatalogEntry) -> None:
    before = raw(seen(entry).metadata_location)
    first, second, third, fourth = (one["snapshot-id"] for one in before["snapshots"])
    before |= {"format-version": 3, "next-row-id": 7, "encryption-keys": [], "of-the-future": {"a": 1.5}}
    before["snapshots"][3] |= {"first-row-id": 3, "added-rows": 1, "of-the-future": True}
    before["statistics"] = [statistics(second, "s2"), statistics(fourth, "s4")]
    before["partition-statistics"] = [{"snapshot-id": third, "statistics-path": "p3", "file-size-in-bytes": 1}]
    put(entry, before)
    expire(entry, planned(seen(entry)))
    after = raw(seen(entry).metadata_location)
    assert after.pop("snapshots") == before.pop("snapshots")[3:]
    assert after.pop("snapshot-log") == before.pop("snapshot-log")[3:]
    assert after.pop("statistics") == before.pop("statistics")[1:]
    assert (after.pop("partition-statistics"), len(before.pop("partition-statistics"))) == ([], 1)
    assert after.pop("last-updated-ms") >= before.pop("last-updated-ms")
    assert len(after.pop("metadata-log")) == len(before.pop("metadata-log")) + 1
    assert after == before
    assert seen(entry).snapshots[0].parent_id == third
    assert first not in {one.snapshot_id for one in seen(entry).snapshots}


def test_all_of_it_comes_back_statistics_too(entry: CatalogEntry) -> None:
    before = raw(seen(entry).metadata_location)
    second = before["snapshots"][1]["snapshot-id"]
    before["statistics"] = [statistics(second, "s2")]
    before["snapshots"][1]["of-the-future"] = {"a": 1}
    put(entry, before)
    action = planned(seen(entry))
    expire(entry, action)
    put_back(entry, action)
    after = raw(seen(entry).metadata_location)
    assert after.pop("last-updated-ms") >= before.pop("last-updated-ms")
    assert len(after.pop("metadata-log")) == len(before.pop("metadata-log")) + 2
    assert after.pop("properties") == {**before.pop("properties"), SIGNATURE_KEY: UNDOING}
    assert after == before


def test_e14_it_comes_back_without_the_metadata_files_of_before(entry: CatalogEntry) -> None:
    """Writers may delete them; what is needed is kept elsewhere."""
    before = seen(entry)
    action = planned(before)
    expire(entry, action)
    for entry_of_log in seen(entry).metadata_log:
        Path(urlsplit(entry_of_log.location).path).unlink()
    put_back(entry, action)
    assert (seen(entry).snapshots, seen(entry).refs) == (before.snapshots, before.refs)


def test_properties_are_not_kept(entry: CatalogEntry) -> None:
    put(entry, {**raw(seen(entry).metadata_location), "properties": {"password": "hunter2"}})
    expire(entry, planned(seen(entry)))
    assert b"hunter2" not in gzip.decompress(SHELF.content)


def test_v4_after_an_upgrade_the_counters_stay_as_high_as_they_are(entry: CatalogEntry) -> None:
    action = planned(seen(entry))
    expire(entry, action)
    put(entry, {**raw(seen(entry).metadata_location), "format-version": 3, "next-row-id": 70})
    before = raw(seen(entry).metadata_location)
    put_back(entry, action)
    after = raw(seen(entry).metadata_location)
    counters = ("format-version", "next-row-id", "last-sequence-number", "last-column-id", "last-partition-id")
    assert [after[key] for key in counters] == [before[key] for key in counters]
    assert len(after["snapshots"]) == 4


@pytest.mark.parametrize("counter", ["last-sequence-number", "next-row-id"])
def test_nothing_comes_back_into_a_table_that_counts_lower(entry: CatalogEntry, counter: str) -> None:
    """It was put back to an older state by hand: its next commits would use the numbers once more."""
    metadata = raw(seen(entry).metadata_location) | {"format-version": 3, "next-row-id": 70}
    metadata["snapshots"][2] |= {"first-row-id": 10, "added-rows": 5}
    put(entry, metadata)
    action = planned(seen(entry))
    expire(entry, action)
    put(entry, {**raw(seen(entry).metadata_location), counter: 1})
    before = seen(entry)
    with pytest.raises(Conflict, match="counts lower"):
        put_back(entry, action)
    assert seen(entry) == before


def test_e10_nothing_comes_back_where_another_schema_has_the_id_of_then(entry: CatalogEntry) -> None:
    action = planned(seen(entry))
    expire(entry, action)
    metadata = raw(seen(entry).metadata_location)
    other = json.loads(json.dumps(metadata["schemas"]))
    other[0]["fields"][0]["name"] = "another"
    put(entry, {**metadata, "schemas": other})
    with pytest.raises(Conflict, match="schema 0"):
        put_back(entry, action)


def test_nothing_comes_back_where_another_snapshot_has_the_id(entry: CatalogEntry) -> None:
    action = planned(seen(entry))
    expire(entry, action)
    metadata = raw(seen(entry).metadata_location)
    other = {**metadata["snapshots"][-1], "snapshot-id": action.snapshot_ids[0]}
    put(entry, {**metadata, "snapshots": [other, *metadata["snapshots"]]})
    with pytest.raises(Conflict, match=str(action.snapshot_ids[0])):
        put_back(entry, action)
    found = decided(PyIcebergExpiry(entry, SystemClock()), seen(entry), action, SHELF.content)
    assert (found.action, found.reason.code) == (None, "snapshot-other")


def test_nothing_comes_back_into_a_table_that_lost_its_schemas(entry: CatalogEntry) -> None:
    table = sqlite.writer(entry).load_table((*NAME.namespace, NAME.name))
    with table.update_schema() as update:
        update.delete_column("city")
    action = planned(seen(entry))
    expire(entry, action)
    metadata = raw(seen(entry).metadata_location)
    put(entry, {**metadata, "schemas": [one for one in metadata["schemas"] if one["schema-id"] == 1]})
    with pytest.raises(Conflict, match="schema 0"):
        put_back(entry, action)


def test_c1_a_commit_whose_answer_was_lost_is_looked_for(entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    action = planned(seen(entry))
    tries: list[int] = []

    def lost(move: Move) -> bool:
        tries.append(1)
        move()
        raise Unavailable("no answer")

    moving(monkeypatch, lost)
    expire(entry, action)
    assert (len(tries), len(seen(entry).snapshots)) == (1, 1)


def test_c1_a_commit_that_may_still_come_is_unknown_and_nothing_is_cleaned_up(
    entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    action, before = planned(seen(entry)), seen(entry)
    folder = Path(urlsplit(before.metadata_location).path).parent
    files = {file.name for file in folder.iterdir()}
    late: list[Move] = []

    def lost(move: Move) -> bool:
        late.append(move)
        raise Unavailable("no answer")

    moving(monkeypatch, lost)
    with pytest.raises(OutcomeUnknown):
        expire(entry, action)
    assert seen(entry) == before
    assert {file.name for file in folder.iterdir()} > files
    assert late[0]()  # it comes after all, and is found by whoever looks again
    expire(entry, action)
    assert (len(late), len(seen(entry).snapshots)) == (1, 1)


def test_c1_a_look_that_fails_as_well_is_unknown(entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    action = planned(seen(entry))

    def lost(_: Move) -> bool:
        monkeypatch.setattr(SqlCommits, "load", gone)
        raise Unavailable("no answer")

    def gone(*_: object) -> Pointed:
        raise Unavailable("still none")

    moving(monkeypatch, lost)
    with pytest.raises(OutcomeUnknown, match="still none"):
        PyIcebergExpiry(entry, SystemClock()).expire(
            NAME, seen(entry).table_id, action, may_commit=lambda: None, keep=SHELF.keep
        )


def test_nobody_tries_for_ever(entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Move] = []

    def others_always_come_first(move: Move) -> bool:
        tries.append(move)
        return False

    action = planned(seen(entry))
    moving(monkeypatch, others_always_come_first)
    with pytest.raises(Conflict, match="all the time"):
        expire(entry, action)
    assert len(tries) == TRIES_MAX


class TestCommitOf:
    def test_it_is_found_behind_many_commits(self, entry: CatalogEntry) -> None:
        table = sqlite.writer(entry).load_table((*NAME.namespace, NAME.name))
        action = planned(seen(entry))
        sqlite.append(table, [5])
        before = seen(entry)
        expire(entry, action)
        after = seen(entry)
        for number in range(9):
            sqlite.append(table.refresh(), [number])
        found = not_none(PyIcebergExpiry(entry, SystemClock()).commit_of(NAME, after.table_id, action))
        assert found.before is not None
        assert (found.before.metadata_location, found.after.metadata_location) == (
            before.metadata_location,
            after.metadata_location,
        )
        assert problem_of_expiry(found.before, found.after, action) is None

    def test_e6_without_the_metadata_of_before_nobody_can_tell(self, entry: CatalogEntry) -> None:
        action = planned(seen(entry))
        expiry, table_id = PyIcebergExpiry(entry, SystemClock()), seen(entry).table_id
        assert expiry.commit_of(NAME, table_id, action) is None
        expire(entry, action)
        put(entry, {**raw(seen(entry).metadata_location), "metadata-log": []})
        found = not_none(expiry.commit_of(NAME, table_id, action))
        reason = not_none(problem_of_expiry(found.before, found.after, action))
        assert reason.code == "expiry-unseen"


def rest_over(entry: CatalogEntry, asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> PyIcebergExpiry:
    """A REST catalog that gives out the table of another one, writes down what it is asked, and does not do it."""
    metadata = seen(entry)

    def post(_self: RestCommits, _name: TableName, body: Any) -> tuple[int, Any]:
        asked.append(body)
        return 403, None

    pointed = Pointed(metadata.metadata_location, raw(metadata.metadata_location))
    monkeypatch.setattr(RestCommits, "_post", post)
    monkeypatch.setattr(RestCommits, "load", lambda *_: pointed)
    monkeypatch.setattr(RestCommits, "file_io", lambda _, location: SqlCommits(entry).file_io(location))
    return PyIcebergExpiry(CatalogEntry("lake", CatalogKind.REST, "http://127.0.0.1:1", ""), SystemClock())


def test_e6_a_rest_catalog_is_asked_for_the_place_of_every_ref(
    entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = sqlite.writer(entry).load_table((*NAME.namespace, NAME.name))
    ids = [one.snapshot_id for one in table.metadata.snapshots]
    table.manage_snapshots().create_tag(ids[0], "old", 1).create_branch(ids[2], "side").commit()
    asked: list[Any] = []
    metadata, rest = seen(entry), rest_over(entry, asked, monkeypatch)
    with pytest.raises(NotAllowed):
        rest.expire(NAME, metadata.table_id, planned(metadata), may_commit=lambda: None, keep=SHELF.keep)
    assert asked[0]["requirements"] == [
        {"type": "assert-table-uuid", "uuid": metadata.table_id.uuid},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": ids[3]},
        {"type": "assert-ref-snapshot-id", "ref": "old", "snapshot-id": ids[0]},
        {"type": "assert-ref-snapshot-id", "ref": "side", "snapshot-id": ids[2]},
    ]
    assert asked[0]["updates"] == [
        {"action": "remove-snapshot-ref", "ref-name": "old"},
        {"action": "remove-snapshots", "snapshot-ids": [ids[0]]},
        {"action": "remove-snapshots", "snapshot-ids": [ids[1]]},
    ]


def test_e9_a_rest_catalog_is_told_that_statistics_go_with_their_snapshot(
    entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Iceberg's own client tells it: not every catalog knows by itself."""
    before = raw(seen(entry).metadata_location)
    first, second, third, fourth = (one["snapshot-id"] for one in before["snapshots"])
    before["statistics"] = [statistics(second, "s2"), statistics(fourth, "s4")]
    of_partitions = [(second, "p2"), (fourth, "p4")]
    before["partition-statistics"] = [
        {"snapshot-id": one, "statistics-path": path, "file-size-in-bytes": 1} for one, path in of_partitions
    ]
    put(entry, before)
    asked: list[Any] = []
    metadata, rest = seen(entry), rest_over(entry, asked, monkeypatch)
    with pytest.raises(NotAllowed):
        rest.expire(NAME, metadata.table_id, planned(metadata), may_commit=lambda: None, keep=SHELF.keep)
    assert asked[0]["updates"] == [
        {"action": "remove-snapshots", "snapshot-ids": [first]},
        {"action": "remove-snapshots", "snapshot-ids": [second]},
        {"action": "remove-statistics", "snapshot-id": second},
        {"action": "remove-partition-statistics", "snapshot-id": second},
        {"action": "remove-snapshots", "snapshot-ids": [third]},
    ]


def test_o12_a_rest_catalog_that_leaves_snapshots_out_is_found_by_the_file(
    entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    metadata, rest = seen(entry), rest_over(entry, asked, monkeypatch)
    file = replace(metadata, snapshots=(*metadata.snapshots, replace(metadata.snapshots[0], snapshot_id=1)))
    monkeypatch.setattr(table_commits, "state", lambda *_: file)
    with pytest.raises(Unreadable, match="is not what is in"):
        rest.expire(NAME, metadata.table_id, planned(metadata), may_commit=lambda: None, keep=SHELF.keep)
    assert asked == []


def test_entries_that_cannot_be_read_are_said_to_be_and_nothing_is_done(entry: CatalogEntry) -> None:
    put(entry, {**raw(seen(entry).metadata_location), "statistics": [{"statistics-path": "of-no-snapshot"}]})
    location = seen(entry).metadata_location
    with pytest.raises(Unreadable, match="damaged"):
        expire(entry, planned(seen(entry)))
    assert seen(entry).metadata_location == location


def test_a_number_of_metadata_files_that_is_too_long_is_the_default(entry: CatalogEntry) -> None:
    long = {"write.metadata.previous-versions-max": "9" * 5_000}
    put(entry, {**raw(seen(entry).metadata_location), "properties": long})
    expire(entry, planned(seen(entry)))
    assert (len(seen(entry).snapshots), len(seen(entry).metadata_log)) == (1, 5)
