"""``icewright plan NAME --action expire-data``, without a server."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField

from icewright.actions.expire_data.cli import data_undo_pairs
from icewright.core.reasons import Reason
from icewright.model.actions.undo import UndoExpireDataPrediction
from tests.builders.command_line import at_home, icewright, write_configuration
from tests.lakes.sqlite import make_lake, make_table

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "day", DateType(), required=False))
BY_DAY = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="day"))
OWNER = {"icewright.expire-data.field": "day", "icewright.expire-data.older-than": "P30D"}


@pytest.fixture(autouse=True)
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = make_lake(tmp_path)
    table = make_table(entry, schema=SCHEMA, spec=BY_DAY, properties=OWNER)
    today = date.today()  # noqa: DTZ011 - any zone's will do
    days = [*[today] * 60, *[today - timedelta(days=20)] * 5, date(2020, 2, 29), date(2021, 1, 1), None]
    table.append(pa.table({"id": range(len(days)), "day": pa.array(days, pa.date32())}))
    write_configuration(tmp_path, entry)
    at_home(tmp_path, monkeypatch)


def test_a_plan_says_what_expires_and_what_stays() -> None:
    said = icewright("plan", "lake.db.events", "--action", "expire-data")
    assert said.status == 1
    assert "2 partitions with 2 files and 2 rows would expire, older than 30 d by day in UTC" in said.out
    assert "2 of 5: day=2020-02-29 to day=2021-01-01" in said.out
    assert "1 partition stays: no value of day" in said.out
    assert "DELETE FROM lake.db.events WHERE day < DATE '2021-01-02'" in said.out.replace("`", "")
    document = icewright("plan", "lake.db.events", "--action", "expire-data", "--json").json
    assert document["plan"]["prediction"]["kind"] == "expire_data"
    assert document["plan"]["prediction"]["needs_approval"] is False
    assert document["plan"]["actions"][0]["records"] == 2


def test_another_age_and_what_needs_a_person() -> None:
    assert icewright("plan", "lake.db.events", "--action", "expire-data", "--older-than", "P36500D").status == 0
    said = icewright("plan", "lake.db.events", "--action", "expire-data", "--older-than", "P10D")
    assert "7 of 68 rows would expire, and without approval it is 10 % at most" in said.out


def test_where_nothing_expires_the_plan_says_why_and_what_stays() -> None:
    said = icewright("plan", "lake.db.events", "--action", "expire-data", "--older-than", "P3650D")
    assert said.status == 0
    assert "no partition is older than" in said.out
    assert "1 partition stays: no value of day" in said.out


@pytest.mark.parametrize("age", ["PT1H", "30", "P1M"])
def test_x1_an_age_below_a_day_or_of_no_unit_is_refused(age: str) -> None:
    said = icewright("plan", "lake.db.events", "--action", "expire-data", "--older-than", age)
    assert said.status == 2
    assert "is no age that data may expire at" in said.err


def test_an_undo_says_what_is_inserted_again_and_from_where() -> None:
    said = UndoExpireDataPrediction("icewright-before-expire-data-t", 2, 3, 2048, 1500, 1, 7, ("note",), is_moved=False)
    shown = dict(data_undo_pairs(said, [Reason("columns-added", "columns that came since")]))
    assert shown == {
        "partitions": "2",
        "files": "3 (2.0 KiB) are read",
        "rows": "1,500, less what 1 delete file removed of them",
        "from": "the tag icewright-before-expire-data-t",
        "note": "columns that came since",
    }
