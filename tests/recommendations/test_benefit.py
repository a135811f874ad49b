"""What our work has brought and cost: by week, in figures that can be added up by hand, at a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from icewright.core.system_clock import SystemClock
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.queries.queries import Operator
from icewright.model.queries.recommendations import Recommendation
from icewright.model.queries.templates import WEEK_MS, FilteredColumn, Sums, Template, TemplateWeek, week_of
from icewright.recommendations.effects import scanned
from tests.builders.command_line import beside, icewright, on_screen
from tests.builders.queries import measurement, of_format, recommendation
from tests.builders.served import EVENTS, Served
from tests.doubles.clock import ManualClock

WIDTH = 80
BY_USER = Template((FilteredColumn("user_id", (Operator.EQ,)),))
OTHER = TableName("lake", ("db",), "other")
BY_CITY = recommendation(EVENTS, "city")


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    made = Served(clock=ManualClock(SystemClock().now()))
    with beside(made.control, tmp_path, monkeypatch):
        yield made


def read(served: Served, table_id: TableId, weeks: dict[int, int], number: int = 1) -> None:
    """Ten queries in each week, so many weeks before this one, that read so many bytes each of ten files of ten."""
    now = week_of(served.clock.now())
    sums = [
        TemplateWeek(
            table_id,
            now - ago * WEEK_MS,
            BY_USER,
            Sums(queries=10, with_bytes=10, bytes_read=10 * size, with_files=10, files_read=size // 10),
        )
        for ago, size in weeks.items()
    ]
    served.control.queries.sums.add(f"spool-{number}", 0, 1, sums)


def carried_out(served: Served, table_id: TableId, weeks_ago: int, said: Recommendation = BY_CITY) -> str:
    """Accepted, carried out and measured so many weeks ago; as of now."""
    store = served.control.recommendations.store
    found = store.keep(table_id, f"task-{'7' * 32}", served.clock.now(), said)
    served.control.recommendations.accept(found, "ann")
    at = served.clock.now() - weeks_ago * WEEK_MS
    store.measurements.keep(measurement(table_id, found, "task-m", at, after=0))
    return found


def test_weeks_are_compared_with_those_before_the_change(served: Served) -> None:
    table_id = TableId("lake", served.table())
    read(served, table_id, {4: 1_000, 3: 3_000, 2: 500, 1: 200, 0: 6_000})
    carried_out(served, table_id, 2)
    found = served.get(f"/tables/{table_id.uuid}/benefit")
    weeks = {week["week_at"]: week for week in found["weeks"]}
    now = week_of(served.clock.now())
    # 2,000 bytes a query before: ten of them would have read 20,000.
    last = weeks[now - WEEK_MS]
    assert (last["expected_bytes"], last["compared_bytes"], last["saved_bytes"]) == (20_000, 2_000, 18_000)
    assert (last["expected_files"], last["compared_files"], last["saved_files"]) == (200, 20, 180)
    assert last["predicted_bytes"]["mean"] == pytest.approx(19_600)  # predicted: 98 % less
    assert last["saved_cpu_ms"] == pytest.approx(1_000 * (18_000 / 200e6 + 180 * 0.00105))
    assert weeks[now]["saved_bytes"] == -40_000  # what reads more is a loss, and not left out
    assert [weeks[now - ago * WEEK_MS]["saved_bytes"] for ago in (2, 3, 4)] == [None] * 3
    assert found["total"]["saved_bytes"] == 18_000 - 40_000
    assert found["accepted"][0]["effect"] == "better"
    (cause,) = found["causes"]
    assert (cause["cause"], cause["saved_cpu_ms"]) == ("layout", found["total"]["saved_cpu_ms"])
    assert cause["predicted_cpu_ms"] == pytest.approx(1_000 * found["total"]["predicted_bytes"]["mean"] / 200e6)


def test_what_other_table_properties_save_is_not_said_to_be_of_a_layout(served: Served) -> None:
    table_id = TableId("lake", served.table())
    read(served, table_id, {4: 1_000, 3: 3_000, 2: 500, 1: 200, 0: 6_000})
    carried_out(served, table_id, 2, of_format())
    found = served.get(f"/tables/{table_id.uuid}/benefit")
    (cause,) = found["causes"]
    assert (cause["cause"], cause["saved_cpu_ms"]) == ("properties", found["total"]["saved_cpu_ms"])
    assert cause["predicted_cpu_ms"] == pytest.approx(1_000 * found["total"]["predicted_bytes"]["mean"] / 200e6)


def test_without_queries_nothing_is_said_to_be_saved(served: Served) -> None:
    served.table()
    shown = on_screen("benefit", str(EVENTS))
    assert shown.status == 0, shown.out
    assert "Nothing is said of what was saved" in " ".join(shown.out.split())


def test_what_was_not_carried_out_saves_nothing(served: Served) -> None:
    """Accepted, and no task has run: no prediction is shown as if it were at work."""
    table_id = TableId("lake", served.table())
    read(served, table_id, {4: 1_000, 3: 1_000})
    store = served.control.recommendations.store
    found = store.keep(table_id, "task-1", served.clock.now(), recommendation(EVENTS, "city"))
    served.control.recommendations.accept(found, "ann")
    served.clock.advance(WEEK_MS)
    read(served, table_id, {0: 1_000}, 2)
    answer = served.get(f"/tables/{table_id.uuid}/benefit")
    assert answer["total"]["saved_bytes"] == 0
    assert answer["total"]["predicted_bytes"] is None
    assert [(one["cause"], one["saved_cpu_ms"]) for one in answer["causes"]] == [("several", 0)]
    assert (answer["accepted"][0]["effect"], answer["accepted"][0]["reason"]) == (None, "not measured yet")
    assert any("not measured yet" in note for note in answer["notes"])


def test_other_templates_are_no_saving(served: Served) -> None:
    table_id = TableId("lake", served.table())
    read(served, table_id, {4: 1_000})
    other = Template((FilteredColumn("day", (Operator.EQ,)),))
    week = TemplateWeek(table_id, week_of(served.clock.now()), other, Sums(queries=9, with_bytes=9, bytes_read=9))
    served.control.queries.sums.add("spool-2", 0, 1, [week])
    carried_out(served, table_id, 2)
    assert served.get(f"/tables/{table_id.uuid}/benefit")["total"]["saved_bytes"] is None


def test_the_fleet_is_the_sum_of_its_tables_at_80_columns(served: Served) -> None:
    table_id, other_id = TableId("lake", served.table()), TableId("lake", served.table(OTHER))
    read(served, table_id, {4: 1_000, 0: 100})
    read(served, other_id, {1: 70}, 2)
    carried_out(served, table_id, 2)
    fleet = icewright("benefit", "--fleet", "--json").json
    assert {row["table"]: row["total"]["saved_bytes"] for row in fleet["tables"]} == {
        str(EVENTS): 9_000,
        str(OTHER): None,
    }
    assert fleet["total"]["saved_bytes"] == sum(week["saved_bytes"] or 0 for week in fleet["weeks"]) == 9_000
    assert fleet["total"]["bytes_read"] == 10_000 + 1_000 + 700
    for command in (("benefit", "--fleet"), ("benefit", str(EVENTS))):
        shown = on_screen(*command)
        assert shown.status == 0, shown.out
        lines = [line for line in shown.out.splitlines() if "recommendation-" not in line]
        assert [line for line in lines if len(line) > WIDTH and not line.startswith("20")] == []
        assert "8.8 KiB" in shown.out
        (row,) = [line for line in lines if line.startswith("layout ")]
        assert row.split()[-3:] == ["-", "-", "0"]
    assert "predicted: -98 %" in on_screen("benefit", str(EVENTS)).out
    assert icewright("benefit").status != 0
    assert 'icewright_accepted_recommendations{effect="better"} 1.0' in served.http.get("/api/v1/metrics").text


def test_who_reads_a_table_is_told_of_no_other_by_its_measurements(served: Served) -> None:
    """What it is compared with may be tables of others: how many there are is enough."""
    table_id = TableId("lake", served.table())
    found = carried_out(served, table_id, 5)
    now = week_of(served.clock.now())
    other = TableId("lake", served.table(OTHER))
    for one in (table_id, other):
        read(served, one, dict.fromkeys(range(1, 11), 1_000), 3 if one == other else 4)
    sums = served.control.queries.sums
    since = now - 12 * WEEK_MS
    compared = scanned(
        sums.of_table(table_id, since), [sums.of_table(other, since)], now - 5 * WEEK_MS, now - 5 * WEEK_MS, now
    )
    assert compared.others == 1
    told = measurement(table_id, found, "task-n", served.clock.now())
    served.control.recommendations.store.measurements.keep(replace(told, scanned=compared))
    for path in (f"/recommendations/{found}/measurements", f"/tables/{table_id.uuid}/benefit"):
        answer = served.get(path)
        assert "other" not in json.dumps(answer).replace('"others"', "").replace("log_ratio_of_others", ""), path
    assert answer["accepted"][0]["compared_tables"] == 1
