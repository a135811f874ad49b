"""What one table is made of over HTTP: within limits that are said, and for nobody who has gone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import httpx2
import pytest
from fastapi import Response

from icewright.core.errors import NotFound, Unavailable
from icewright.model.iceberg.files import Partition, Span
from icewright.model.iceberg.names import TableName
from icewright.tables import details
from icewright.web.bounded_reads import BoundedRead, Reads, Until
from tests.builders.served import BY_CITY, EVENTS, TOKEN, V1, Served, answer, at_a_port, problem
from tests.doubles.lake import MemoryFile
from tests.lakes.house import House
from tests.lakes.overlap import sales
from tests.lakes.sqlite import table_name
from tests.tables.test_api_tables import paged

SORTED = TableName("lake", ("db",), "sorted")
BONN = Partition(0, '["Bonn"]')
ALL_NULLS: Span = ((2, None), (2, None))


def value(lower: Any, upper: Any) -> tuple[Span, Span]:
    """The spans of a column with these bounds: by nulls last, and by nulls first."""
    span = ((1, lower), (1, upper))
    return span, span


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
    assert overlap == {
        "column": column["name"],
        "files": 4,
        "unknown_files": 1,
        "null_files": 1,
        "depth_max": 3,
        "depth_mean": pytest.approx(14 / 6),
    }
    assert found["both"] is None


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Bounds of the columns of ``sales``, a real table, as the API says them."""
    house = House(tmp_path_factory.mktemp("overlap"))
    name = table_name(sales(house.entry))
    house.control.maintainer.look(name)
    uuid = house.control.tables.record_by_name(name).table_id.uuid  # type: ignore[union-attr] # it was seen
    with at_a_port(house.control) as url:

        def ask(*columns: str) -> Any:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            return answer(httpx2.get(f"{url}{V1}/tables/{uuid}/bounds", params={"column": columns}, headers=headers))

        yield ask


def drawn(found: Any, place: int = 0) -> list[tuple[str, str, int, int]]:
    keys = ("min", "max", "min_rank", "max_rank")
    return [tuple(one["bounds"][place][key] for key in keys) for one in found["items"]]


class TestBoundsOfARealTable:
    def test_a_number(self, real: Callable[..., Any]) -> None:
        found = real("id")
        assert drawn(found) == [("1", "30", 0, 2), ("20", "50", 1, 5), ("30", "46", 2, 4), ("45", "60", 3, 6)]
        assert (found["files_total"], found["unknown_files"]) == (6, 2)
        # At 1, 20, 30, 45, 46, 50, 60 of the four: 1, 2, 3, 3, 3, 2, 1. The one without bounds is opened each time.
        assert found["overlap"] == [
            {
                "column": "id",
                "files": 5,
                "unknown_files": 1,
                "null_files": 1,
                "depth_max": 4,
                "depth_mean": pytest.approx(15 / 7 + 1),
            }
        ]

    def test_a_date(self, real: Callable[..., Any]) -> None:
        found = real("day")
        first = found["items"][0]["bounds"][0]
        assert (first["min"], first["max"]) == ("2026-01-01", "2026-01-10")
        assert (first["lower"], first["upper"]) == (20_454, 20_463)  # days since 1970
        # At 1, 5, 8, 10, 20, 22 and 31 of five: 1, 2, 2, 2, 2, 1, 1
        assert (found["overlap"][0]["depth_max"], found["overlap"][0]["null_files"]) == (2, 1)
        assert found["overlap"][0]["depth_mean"] == pytest.approx(11 / 7)

    def test_a_text_stands_in_the_order_of_its_code_points(self, real: Callable[..., Any]) -> None:
        found = real("drink")
        # ale 0, beer 1, cider 2, gin 3, mead 4, wine 5, \ufb01zz 6, the glass 7: JavaScript has the last two reversed
        assert drawn(found) == [
            ("ale", "mead", 0, 4),
            ("ale", "\ufb01zz", 0, 6),
            ("beer", "beer", 1, 1),
            ("cider", "cider", 2, 2),
            ("gin", "\U0001f377", 3, 7),
            ("wine", "wine", 5, 5),
        ]
        assert {one["bounds"][0]["lower"] for one in found["items"]} == {None}
        assert found["overlap"][0]["depth_max"] == 3

    def test_an_infinite_number_has_a_rank_and_no_number(self, real: Callable[..., Any]) -> None:
        found = real("price")
        assert drawn(found)[-1] == ("10.0", "Infinity", 6, 7)  # after 1.5, 2, 2.5, 3, 9 and 9.5
        last = found["items"][-1]["bounds"][0]
        assert (last["lower"], last["upper"]) == (10.0, None)

    def test_truth(self, real: Callable[..., Any]) -> None:
        assert drawn(real("sold")) == [
            ("false", "false", 0, 0),
            ("false", "true", 0, 1),
            ("false", "true", 0, 1),
            ("true", "true", 1, 1),
            ("true", "true", 1, 1),
        ]

    def test_a_column_without_bounds(self, real: Callable[..., Any]) -> None:
        found = real("note")
        assert (found["items"], found["unknown_files"]) == ([], 6)
        assert found["overlap"] == [
            {
                "column": "note",
                "files": 6,
                "unknown_files": 6,
                "null_files": 0,
                "depth_max": 6,
                "depth_mean": 6.0,
            }
        ]

    def test_two_columns(self, real: Callable[..., Any]) -> None:
        found = real("id", "day")
        assert [one["column"] for one in found["overlap"]] == ["id", "day"]
        assert [(low, high) for low, high, *_ in drawn(found, 1)] == [
            ("2026-01-01", "2026-01-10"),
            ("2026-01-05", "2026-01-05"),
            ("2026-01-08", "2026-01-20"),
            ("2026-01-20", "2026-01-22"),
        ]
        # Id 30 on the 8th is in the first and the third, id 20 on the 5th in the first and the second, id 45 on the
        # 20th in the third and the fourth. The file without bounds of ids has the 31st alone.
        # Of seven ids and seven days the files have 3 * 4, 5 * 1, 3 * 3, 4 * 2 and, without bounds of ids, 7 * 1.
        # Those are, of the days 1, 5, 8, 10, 20, 22, 31: 1 to 10, 5, 8 to 20, 20 to 22, 31.
        assert found["both"] == {"files": 5, "depth_max": 2, "depth_mean": pytest.approx(41 / 49)}
        assert found["unknown_files"] == 2


def test_a_lookup_by_both_is_not_counted_for_more_files_than_are_drawn(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = sorted_table(served, *(value(number, number) + value(0, 9) for number in range(3)))
    columns = [one["name"] for one in served.get(f"/tables/{uuid}/metadata")["columns"]]
    assert served.get(f"/tables/{uuid}/bounds", column=columns)["both"]["depth_max"] == 1
    monkeypatch.setattr(details, "FILES_DRAWN_MAX", 2)
    assert served.get(f"/tables/{uuid}/bounds", column=columns)["both"] is None


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
