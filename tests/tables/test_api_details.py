"""What one table is made of over HTTP: within limits that are said, and for nobody who has gone."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest
from fastapi import Response

from icewright.core.errors import NotFound, Unavailable
from icewright.model.iceberg.files import Partition, Span
from icewright.model.iceberg.names import TableName
from icewright.tables import details
from icewright.web.bounded_reads import BoundedRead, Reads, Until
from tests.builders.served import BY_CITY, EVENTS, V1, Served, problem
from tests.doubles.lake import MemoryFile
from tests.tables.test_api_tables import paged

SORTED = TableName("lake", ("db",), "sorted")
BONN = Partition(0, '["Bonn"]')
ALL_NULLS: Span = ((2, None), (2, None))


def value(lower: Any, upper: Any) -> tuple[Span, Span]:
    """The spans of a column with these bounds: by nulls last, and by nulls first."""
    span = ((1, lower), (1, upper))
    return span, span


@pytest.fixture
def served() -> Served:
    return Served()


def sorted_table(served: Served, *spans: tuple[Span | None, ...], sizes: tuple[int, ...] = ()) -> str:
    """A table with one file for each of these spans; its uuid."""
    table_id = served.lake.create(SORTED, partition_fields=BY_CITY)
    files = [
        MemoryFile(f"f{number}.parquet", BONN, sizes[number] if sizes else 1_000 + number, 10 * number, spans=one)
        for number, one in enumerate(spans)
    ]
    served.lake.append(SORTED, files)
    served.control.maintainer.look(SORTED)
    return table_id.uuid


def test_files_come_largest_first_and_in_pages(served: Served) -> None:
    uuid = sorted_table(served, *[()] * 7)
    whole = served.get(f"/tables/{uuid}/files")
    assert [one["size_bytes"] for one in whole["items"]] == list(range(1006, 999, -1))
    assert (whole["files_read"], whole["files_total"], whole["truncated"]) == (7, 7, False)
    assert whole["items"][0]["partition"] == "city=Bonn"
    assert isinstance(whole["items"][0]["snapshot_id"], str)
    for sort in ("size", "-records", "partition"):
        assert (
            paged(served, f"/tables/{uuid}/files", sort=sort) == served.get(f"/tables/{uuid}/files", sort=sort)["items"]
        )
    only = {"spec_id": 0, "partition": '["Kyoto"]'}
    assert served.get(f"/tables/{uuid}/files", **only)["items"] == []
    assert len(served.get(f"/tables/{uuid}/files", spec_id=0, partition='["Bonn"]', small="true")["items"]) == 7
    problem(served.http.get(f"{V1}/tables/{uuid}/files", params={"spec_id": 0}), 400, "invalid-message")
    problem(served.http.get(f"{V1}/tables/{uuid}/files", params={"sort": "path"}), 400, "invalid-request")


def test_a_page_of_a_table_that_changed_is_refused_rather_than_mixed(served: Served) -> None:
    uuid = sorted_table(served, *[()] * 4)
    cursor = served.get(f"/tables/{uuid}/files", limit=2)["next_cursor"]
    served.lake.append(SORTED, [MemoryFile("late.parquet", BONN, 5, 5)])
    refused = served.http.get(f"{V1}/tables/{uuid}/files", params={"limit": 2, "cursor": cursor})
    assert "begin without a cursor" in problem(refused, 400, "invalid-message")["hint"]


def test_files_of_a_commit_that_no_look_has_seen_are_there(served: Served) -> None:
    uuid = sorted_table(served, (), ())
    served.lake.append(SORTED, [MemoryFile("late.parquet", Partition(0, '["new"]'), 5, 5)])
    assert served.get(f"/tables/{uuid}/files", sort="size")["items"][0]["partition"] == "city=new"


def test_a_read_that_reaches_its_limit_says_so(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    uuid = sorted_table(served, *[()] * 9)
    monkeypatch.setattr(details, "FILES_READ_MAX", 4)
    found = served.get(f"/tables/{uuid}/files")
    assert (found["files_read"], found["files_total"], found["truncated"]) == (4, 9, True)


def test_a_read_that_is_out_of_time_answers_with_what_it_has_and_keeps_nothing(served: Served) -> None:
    uuid = sorted_table(served, *[()] * 9)
    served.app.state.reads = Reads(seconds=-1.0)
    found = served.get(f"/tables/{uuid}/files")
    assert (found["files_read"], found["truncated"]) == (0, True)
    served.app.state.reads = Reads()
    assert served.get(f"/tables/{uuid}/files")["files_read"] == 9


def test_what_was_read_last_is_not_read_again_until_the_table_changes(served: Served) -> None:
    uuid = sorted_table(served, (), ())
    reads: list[int] = []
    genuine = served.lake.data_files

    def counted(*args: Any) -> Any:
        reads.append(1)
        return genuine(*args)

    served.lake.data_files = counted  # type: ignore[assignment,method-assign] # counts what passes
    for sort in ("size", "-size", "records"):
        served.get(f"/tables/{uuid}/files", sort=sort)
    assert len(reads) == 1
    served.lake.append(SORTED, [MemoryFile("late.parquet", BONN, 5, 5)])
    assert served.get(f"/tables/{uuid}/files")["files_read"] == 3
    assert len(reads) == 2


def test_manifests_come_by_path_from_the_store(served: Served) -> None:
    uuid = served.table(files=5)
    served.lake.available = False
    whole = served.get(f"/tables/{uuid}/manifests")
    paths = [one["path"] for one in whole["items"]]
    assert (len(paths), paths, whole["truncated"]) == (5, sorted(paths), False)
    assert paged(served, f"/tables/{uuid}/manifests") == whole["items"]
    assert whole["items"][0]["data_files"] == 1
    served.app.state.reads = Reads(seconds=-1.0)
    assert served.get(f"/tables/{uuid}/manifests") == {"items": [], "next_cursor": None, "truncated": True}


def test_metadata_has_schema_specs_order_and_properties_without_secrets(served: Served) -> None:
    uuid = served.table()
    served.lake.set_properties(EVENTS, {"write.format.default": "orc", "s3.secret-access-key": "very secret"})
    found = served.get(f"/tables/{uuid}/metadata")
    assert found["properties"]["write.format.default"] == "orc"
    assert found["properties"]["s3.secret-access-key"] == "***"
    assert [one["name"] for one in found["columns"]] == ["id", "city"]
    (spec,) = (one for one in found["partition_specs"] if one["is_default"])
    assert (spec["text"], spec["fields"][0]["name"]) == ("city", "city")
    assert found["sort_order"]["text"] == ""
    assert isinstance(found["current_snapshot_id"], str)


def test_the_histogram_has_a_bucket_for_each_power_of_two_up_to_the_largest_file(served: Served) -> None:
    uuid = sorted_table(served, *[()] * 5, sizes=(0, 1, 1_000, 1_023, 5_000))
    found = served.get(f"/tables/{uuid}/histogram")
    counts = {(one["from_bytes"], one["to_bytes"]): (one["files"], one["bytes"]) for one in found["buckets"]}
    assert counts[(0, 1)] == (1, 0)
    assert counts[(1, 2)] == (1, 1)
    assert counts[(512, 1024)] == (2, 2_023)
    assert counts[(1024, 2048)] == (0, 0)
    assert counts[(4096, 8192)] == (1, 5_000)
    assert list(counts) == sorted(counts)
    assert sum(files for files, _ in counts.values()) == 5
    assert found["small_file_size_bytes"] <= found["target_file_size_bytes"]
    assert (found["partitions_read"], found["truncated"]) == (1, False)


def test_the_histogram_of_a_table_without_files_is_empty(served: Served) -> None:
    uuid = served.lake.create(SORTED, partition_fields=BY_CITY).uuid
    served.control.maintainer.look(SORTED)
    assert served.get(f"/tables/{uuid}/histogram")["buckets"] == []


def test_bounds_are_drawn_in_order_and_the_overlap_is_counted_over_all_files(served: Served) -> None:
    uuid = sorted_table(served, value(20, 30), value(1, 25), value(40, 50), (None, None), (ALL_NULLS, ALL_NULLS))
    column = served.get(f"/tables/{uuid}/metadata")["columns"][0]
    found = served.get(f"/tables/{uuid}/bounds", column=column["name"])
    shown = [(one["path"], one["bounds"][0]["lower"], one["bounds"][0]["upper"]) for one in found["items"]]
    assert shown == [("f1.parquet", 1.0, 25.0), ("f0.parquet", 20.0, 30.0), ("f2.parquet", 40.0, 50.0)]
    assert (found["files_read"], found["unknown_files"], found["sampled"]) == (5, 2, False)
    # By hand: the file without bounds may have any value, the one of nulls alone has none. 20..25 is in both of two.
    # At 1, 20, 25, 30, 40, 50 one begins or ends: 2, 3, 3, 2, 2 and 2 files are opened.
    (overlap,) = found["overlap"]
    assert overlap == {"column": column["name"], "files": 4, "depth_max": 3, "depth_mean": pytest.approx(14 / 6)}


def test_of_many_files_every_so_many_are_drawn_and_all_are_counted(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(details, "FILES_DRAWN_MAX", 5)
    uuid = sorted_table(served, *(value(number, number) for number in range(20)))
    column = served.get(f"/tables/{uuid}/metadata")["columns"][0]["name"]
    found = served.get(f"/tables/{uuid}/bounds", column=column)
    assert [one["bounds"][0]["min"] for one in found["items"]] == ["0", "4", "8", "12", "16"]
    assert (found["sampled"], found["overlap"][0]["files"], found["overlap"][0]["depth_max"]) == (True, 20, 1)


def test_bounds_of_what_is_no_column_are_refused(served: Served) -> None:
    uuid = served.table()
    address = f"{V1}/tables/{uuid}/bounds"
    problem(served.http.get(address, params={"column": "absent"}), 404, "not-found")
    problem(served.http.get(address), 400, "invalid-request")
    problem(served.http.get(address, params={"column": ["a", "b", "c"]}), 400, "invalid-request")


def test_storage_says_what_is_live_and_what_old_snapshots_keep(served: Served) -> None:
    uuid = served.lake.create(SORTED, partition_fields=BY_CITY).uuid
    old, stays, new = (f"s3://lake/db/sorted/data/{name}.parquet" for name in ("old", "stays", "new"))
    served.lake.append(SORTED, [MemoryFile(old, BONN, 100, 1), MemoryFile(stays, BONN, 200, 1)])
    served.control.maintainer.look(SORTED)
    base = served.lake.load(SORTED).current_snapshot_id
    assert base is not None
    served.lake.commit_rewrite(SORTED, base_snapshot_id=base, remove=[old], add=[MemoryFile(new, BONN, 50, 1)])
    found = served.get(f"/tables/{uuid}/storage")
    (data,) = (one for one in found["classes"] if one["file_class"] == "data")
    assert (data["live"]["files"], data["live"]["size_bytes"]) == (2, 250)
    assert (data["by_history"]["files"], data["by_history"]["size_bytes"]) == (1, 100)
    assert isinstance(found["current_snapshot_id"], str)
    served.app.state.reads = Reads(seconds=-1.0)
    refused = problem(served.http.get(f"{V1}/tables/{uuid}/storage"), 422, "rejected")
    assert "icewright table storage" in refused["hint"]


class TestBoundedReads:
    def test_a_client_that_goes_ends_its_read(self) -> None:
        begun, seen = threading.Event(), []

        def read(until: Until) -> Response:
            begun.set()
            while not until():
                threading.Event().wait(0.001)
            seen.append("ended")
            return Response()

        async def receive() -> Any:
            await anyio.to_thread.run_sync(begun.wait)
            return {"type": "http.disconnect"}

        async def send(_message: Any) -> None:
            seen.append("sent")

        anyio.run(BoundedRead(Reads(seconds=60.0), read), {"type": "http", "path": "/"}, receive, send)
        assert seen == ["ended"]

    def test_an_error_is_raised_as_it_is(self) -> None:
        def read(_until: Until) -> Response:
            raise NotFound("no such thing")

        async def receive() -> Any:
            await anyio.sleep_forever()

        async def send(_message: Any) -> None:
            """Nothing is sent."""

        with pytest.raises(NotFound):
            anyio.run(BoundedRead(Reads(), read), {"type": "http", "path": "/"}, receive, send)

    def test_who_has_waited_too_long_for_a_turn_reads_nothing(self) -> None:
        def read(_until: Until) -> Response:
            raise AssertionError("its turn came too late")

        async def receive() -> Any:
            await anyio.sleep_forever()

        async def send(_message: Any) -> None:
            """Nothing is sent."""

        with pytest.raises(Unavailable, match="other long reads"):
            anyio.run(BoundedRead(Reads(wait_s=-1.0), read), {"type": "http", "path": "/"}, receive, send)

    def test_at_most_two_read_at_the_same_time(self) -> None:
        running, most = [], []
        lock = threading.Lock()

        def read(_until: Until) -> Response:
            with lock:
                running.append(1)
                most.append(len(running))
            threading.Event().wait(0.01)
            with lock:
                running.pop()
            return Response()

        async def receive() -> Any:
            await anyio.sleep_forever()

        async def send(_message: Any) -> None:
            """Nobody looks at it."""

        async def all_at_once() -> None:
            reads = Reads()
            async with anyio.create_task_group() as group:
                for _ in range(6):
                    group.start_soon(BoundedRead(reads, read), {"type": "http", "path": "/"}, receive, send)

        anyio.run(all_at_once)
        assert (len(most), max(most)) == (6, 2)
