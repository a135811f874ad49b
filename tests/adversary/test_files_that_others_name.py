"""What else names a file: other formats around a place, links, manifests alone, tables that a catalog does not show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from icewright.domain.deletion import IntentState
from tests.adapters.test_expired_files import expired, overwritten
from tests.adversary.test_files_of_others import Lake, findings
from tests.lakes.house import House, all_there, files, location
from tests.lakes.sqlite import append, make_table, with_tables, writer


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def moved(lake: Lake) -> list[str]:
    """Files that were moved or purged."""
    return [name for name, state in lake.states().items() if state is not IntentState.SKIPPED]


def test_f8_a_file_that_another_table_reaches_by_a_link_stays(lake: Lake) -> None:
    """Not a link of a folder: of one file, in that table's own place."""
    (imported,) = lake.foreign("imported.parquet")
    link = location(lake.b) / "data" / "link.parquet"
    link.symlink_to(imported)
    lake.b.refresh().add_files([f"file://{link}"])
    lake.days(8)
    assert imported.exists()
    assert moved(lake) == []


def test_f8_a_manifest_that_is_all_that_another_table_has_here_stays(lake: Lake) -> None:
    """Its metadata lay here once: of that one manifest is left, whose files, list and log are elsewhere."""
    here = location(lake.a) / "data" / "kept"
    here.mkdir()
    c = make_table(
        lake.house.entry,
        ("other", "c"),
        properties={
            "icewright.mode": "observe",
            "write.metadata.path": f"file://{here}",
            "write.metadata.previous-versions-max": "1",
        },
    )
    append(c, range(5))
    first = c.refresh().current_snapshot()
    assert first is not None
    with c.transaction() as change:
        change.remove_properties("write.metadata.path")
    append(c, range(5))
    append(c, range(5))
    c.refresh().maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    append(c, range(5))
    for path in (*here.glob("*.metadata.json"), *here.glob("snap-*")):
        path.unlink()  # as engines delete them
    (manifest,) = here.iterdir()
    lake.days(10)
    assert manifest.exists()
    assert c.refresh().scan().to_arrow().num_rows == 20
    assert moved(lake) == []


SPARKS = "part-00000-2dd664f9-d2c4-4ffe-878f-c6c70c1fb0cb-c000.snappy.parquet"


@pytest.mark.parametrize("mark", ["_delta_log/0.json", ".hoodie/hoodie.properties", "schema/schema-0"])
def test_f9_files_of_a_table_of_another_format_around_the_place_stay(lake: Lake, mark: str) -> None:
    """The owner of a table keeps it in a folder of somebody's table, such as that of one of its partitions."""
    log = location(lake.a).parent / mark
    log.parent.mkdir()
    log.write_text("{}")
    (theirs,) = lake.foreign(SPARKS)
    lake.days(8)
    assert theirs.exists()
    assert moved(lake) == []
    assert findings(lake) == {"other-table-format"}


def test_f9_files_of_an_iceberg_table_of_nobody_around_the_place_stay(lake: Lake, tmp_path: Path) -> None:
    elsewhere = with_tables(replace(lake.house.entry, name="elsewhere", uri=f"sqlite:///{tmp_path}/elsewhere.db"))
    catalog = writer(elsewhere)
    catalog.create_namespace("db")
    around = catalog.create_table(("db", "around"), lake.b.schema(), location=f"file://{location(lake.a).parent}")
    (theirs,) = lake.foreign(SPARKS)
    around.add_files([f"file://{theirs}"])
    lake.days(8)
    assert theirs.exists()
    assert moved(lake) == []
    assert all_there(around)


def test_f9_what_expired_stays_where_a_table_of_another_format_has_the_same_files(tmp_path: Path) -> None:
    house = House(tmp_path)
    table = overwritten(house)
    log = location(table) / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text("{}")
    house.days(0.25)
    before = files(location(table))
    expired(house, table)
    house.days(2)
    for waiting in house.control.tables.waiting(limit=10):
        house.control.dispatcher.approve(waiting.plan_id, "Ada")
    house.days(2)
    assert before.keys() - files(location(table)).keys() == set()
