"""From orphans to freed bytes as a new user does it, in three commands each way; only the clock is moved."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from icewright.model.iceberg.catalog_entries import CatalogEntry
from tests.builders.command_line import Said, at_home, icewright, write_configuration
from tests.lakes.house import House, all_there, files, location, rows, serving
from tests.lakes.sqlite import append, make_lake, make_table, writer
from tests.spark.conftest import keep_checksums

UUID = "2dd664f9-d2c4-4ffe-878f-c6c70c1fb0c"
KINDS = {
    "an aborted write": f"data/00000-0-{UUID}0-00001.parquet",
    "its checksum": f"data/.00000-0-{UUID}0-00001.parquet.crc",
    "a manifest of an aborted commit": f"metadata/{UUID}1-m0.avro",
    "its manifest list": f"metadata/snap-7-1-{UUID}1.avro",
    "a job that died": f"data/_temporary/0/_temporary/attempt_1/part-00000-{UUID}2-c000.snappy.parquet",
    "a partition overwrite that died": f"data/.spark-staging-{UUID}3/p=1/part-00000-{UUID}3.c000.snappy.parquet",
    "a full refresh of before": f"data/00000-1-{UUID}4-00001.parquet",
    "a checksum without its file": f"data/.00000-2-{UUID}5-00001.parquet.crc",
}
OF_2020 = 1_580_000_000
Make = Callable[[CatalogEntry], None]


def by_pyiceberg(entry: CatalogEntry) -> None:
    """Checksums as Hadoop writes them, beside files of PyIceberg."""
    table = make_table(entry, ("db", "events"), properties={"icewright.mode": "auto"})
    for number in range(3):
        append(table, range(number * 100, number * 100 + 100))
    for path in [*location(table).rglob("*.*")]:
        path.with_name(f".{path.name}.crc").write_bytes(b"crc\0\0\0\2\0")


@pytest.fixture
def by_spark(spark: SparkSession) -> Iterator[Make]:
    """With Hadoop's own checksums."""

    def make(entry: CatalogEntry) -> None:
        for key, value in entry.spark_properties().items():
            spark.conf.set(key, value)
        spark.sql(
            f"CREATE TABLE {entry.name}.db.events (id BIGINT, p INT) USING iceberg PARTITIONED BY (p) "
            "TBLPROPERTIES ('icewright.mode' = 'auto')"
        )
        for number in range(3):
            spark.range(number * 100, number * 100 + 100).selectExpr("id", "1 AS p").writeTo(
                f"{entry.name}.db.events"
            ).append()
        assert [*location(writer(entry).load_table("db.events")).rglob(".*.crc")]

    keep_checksums(spark, wanted=True)
    yield make
    keep_checksums(spark, wanted=False)


def litter_of_all_kinds(table: Table) -> dict[str, bytes]:
    """One file of each kind."""
    made: dict[str, bytes] = {}
    for kind, name in KINDS.items():
        path = location(table) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(kind.encode())
        made[str(path)] = kind.encode()
    os.utime(location(table) / KINDS["a full refresh of before"], (OF_2020, OF_2020))
    return made


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Make, str], House]]:
    with pytest.MonkeyPatch.context():
        opened: list[Iterator[None]] = []

        def make(table: Make, name: str) -> House:
            entry = make_lake(tmp_path, name)
            table(entry)
            made = House(tmp_path, entry=entry)
            made.one_person = True
            write_configuration(tmp_path, made.entry)
            at_home(tmp_path, monkeypatch)
            serves = serving(made)
            serves.__enter__()
            opened.append(serves)  # type: ignore[arg-type]  # closed below
            return made

        yield make
        for one in opened:
            one.__exit__(None, None, None)  # type: ignore[attr-defined]  # a context manager


def test_orphans_of_a_new_user_go_come_back_go_again_and_free_their_bytes(
    house: Callable[[Make, str], House],
) -> None:
    the_way_of_a_new_user(house(by_pyiceberg, "lake"))


def test_the_same_where_spark_wrote_the_table_on_a_local_disk(
    house: Callable[[Make, str], House], by_spark: Make
) -> None:
    the_way_of_a_new_user(house(by_spark, "lake_of_orphans"))


def the_way_of_a_new_user(house: House) -> None:
    table = writer(house.entry).load_table("db.events")
    name = f"{house.entry.name}.db.events"
    before, ids = files(location(table)), rows(table)
    left = litter_of_all_kinds(table)
    house.days(0.5)

    # There: scan, orphans, approve.
    assert icewright("scan").status in (0, 1)
    seen = icewright("orphans", name)
    assert (seen.status, [path for path in left if path not in seen.out]) == (0, [])
    assert "removable from" in seen.out
    house.days(8, a_day=1)
    task_id = approved(icewright("orphans", name, "--json"))
    house.round()
    assert (files(location(table)), rows(table), all_there(table)) == (before, ids, True)

    # Back: tasks show, undo.
    assert f"{len(left)} files" in icewright("tasks", "show", task_id).out
    assert icewright("undo", task_id, "--yes").status == 0
    house.round()
    assert files(location(table)) == {**before, **left}

    # Again, and for good: orphans, approve, and a week.
    assert icewright("orphans", name).status == 0
    house.days(8, a_day=1)
    approved(icewright("orphans", name, "--json"))
    house.round()
    assert sum(map(len, files(house.held).values())) == sum(map(len, left.values()))
    house.days(8, a_day=2)
    assert (files(house.held), files(location(table)), rows(table)) == ({}, before, ids)
    assert all_there(table)


def approved(said: Said) -> str:
    """Approve what a pass found; tells the task."""
    plan = said.json["plan"]
    assert (said.status, plan["to_approve"]["code"]) == (1, "doubtful-files"), plan
    done = icewright("approve", plan["plan_id"], "--by", "Ada", "--json")
    assert done.status == 0, done.out
    assert "installation of one person" in icewright("approvals", "list").out
    assert "installation of one person" in icewright("audit", "list", "--json").out
    return str(done.json["task_id"])
