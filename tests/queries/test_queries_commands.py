"""``icewright queries``, ``send-queries`` and ``recommendations``, at a real server in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from icewright.core.codec import to_json
from icewright.core.system_clock import SystemClock
from icewright.model.iceberg.names import TableId
from icewright.model.queries.recommendations import AggregationCandidate
from icewright.queries.spool import QuerySpool
from tests.builders.command_line import beside, icewright, on_screen
from tests.builders.queries import equal, leave, of_format, query, read_of, recommendation
from tests.builders.served import EVENTS, Served
from tests.doubles.clock import ManualClock

WIDTH = 80


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    clock = ManualClock(SystemClock().now())  # about that of the command, which leaves out what is too long ago
    with closing(QuerySpool(tmp_path / "queries.db", 1 << 20, clock)) as spool:
        made = Served(clock=clock, spool=spool)
        with beside(made.control, tmp_path, monkeypatch):
            yield made


def is_narrow(text: str) -> bool:
    """But for ids, which are to be copied, and the log of the server, which is of this process."""
    lines = [line for line in text.splitlines() if "recommendation-" not in line and not line.startswith("20")]
    return all(len(line) <= WIDTH for line in lines)


def test_queries_of_a_table_are_shown_at_80_columns(served: Served) -> None:
    served.table()
    at = served.clock.now()
    many = [
        query(n, read_of(EVENTS, equal("a_column_with_a_long_name", str(n)), equal("city", "x")), at=at)
        for n in range(9)
    ]
    served.post("/queries", {"queries": [to_json(one) for one in many]})
    assert "no queries are known" in icewright("queries").out
    served.control.queries.count()
    listed = icewright("queries")
    assert str(EVENTS) in listed.out
    shown = on_screen("queries", str(EVENTS))
    assert (shown.status, is_narrow(shown.out)) == (0, True), shown.out
    assert "9 queries since" in shown.out
    assert "a_column_with_a_long_name eq, city eq" in " ".join(shown.out.split())
    assert icewright("queries", str(EVENTS), "--json").json["total"]["queries"] == 9


def test_a_file_of_sql_is_sent_once_however_often(served: Served, tmp_path: Path) -> None:
    served.table()
    file = tmp_path / "report.sql"
    statements = (
        "select id from lake.db.events where city = 'Ann Example' and id > 3",
        "select * from lake.db.other where x in (1, 2)",
        "this is no SQL at all (",
    )
    file.write_text("".join(f"{one};\n" for one in statements))
    os.utime(file, (SystemClock().now() / 1_000,) * 2)
    sent = icewright("send-queries", str(file), "--format", "sql", "--catalog", "lake")
    assert sent.status == 0, sent.err
    assert "2 queries accepted, 0 of them known before" in sent.out
    assert "left out" in sent.err
    again = icewright("send-queries", str(file), "--format", "sql", "--catalog", "lake")
    assert "2 of them known before" in again.out
    served.control.queries.count()
    (template,) = icewright("queries", str(EVENTS), "--json").json["templates"]
    assert template["text"] == "city eq, id gt"
    kept = served.control.queries.spool.after(0, 9)
    assert "Ann Example" not in str(kept)


def test_long_statements_are_sent_in_requests_that_the_server_takes(served: Served, tmp_path: Path) -> None:
    served.table()
    file = tmp_path / "report.sql"
    long = ", ".join(f"'{number:060}'" for number in range(70))
    statement = f"select id from lake.db.events where city in ({long}) and id > "  # noqa: S608 - a statement of a report, which nobody runs
    file.write_text("".join(f"{statement}{number};\n" for number in range(300)))
    os.utime(file, (SystemClock().now() / 1_000,) * 2)
    sent = icewright("send-queries", str(file), "--format", "sql", "--catalog", "lake")
    assert (sent.status, sent.out.splitlines()[0][:20]) == (0, "300 queries accepted"), sent.err


def test_what_the_server_would_refuse_is_left_out_alone(served: Served, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    for name, at in (("old.sql", 0), ("now.sql", SystemClock().now() / 1_000)):
        (folder / name).write_text("select id from lake.db.events;\n")
        os.utime(folder / name, (at, at))
    sent = icewright("send-queries", str(folder), "--format", "sql", "--catalog", "lake")
    assert (sent.status, sent.out.splitlines()[0][:16]) == (0, "1 query accepted"), sent.err
    assert "more than 400 days ago" in sent.err
    assert served.control.queries.spool.figures().waiting == 1


def test_recommendations_are_listed_shown_and_decided(served: Served) -> None:
    table_id = TableId("lake", served.table())
    store = served.control.recommendations.store
    found = store.keep(table_id, "task-0190a1b2-0000-7000-8000-0123456789ab", 1_000, recommendation(EVENTS, "city"))
    listed = icewright("recommendations", "list", "--open")
    assert "sort(city)" in listed.out
    shown = on_screen("recommendations", "show", found[-8:])
    assert (shown.status, is_narrow(shown.out)) == (0, True), shown.out
    for said in ("sort(city)", "40.0 of 40 files now", "CPU seconds a day", "icewright.layout", "Next: icewright"):
        assert said in " ".join(shown.out.split())
    accepted = icewright("recommendations", "accept", found)
    assert "is accepted; set: icewright.layout = sort(city)" in " ".join(accepted.out.split())
    assert served.lake.load(EVENTS).properties["icewright.layout"] == "sort(city)"
    refused = icewright("recommendations", "reject", found, "--why", "no")
    assert refused.status == 1
    assert "is accepted by" in refused.err
    assert "no recommendations" in icewright("recommendations", "list", "--open").out


def test_settings_of_the_file_format_are_shown_and_accepted(served: Served) -> None:
    table_id = TableId("lake", served.table())
    found = served.control.recommendations.store.keep(table_id, "task-1", 1_000, of_format(EVENTS))
    shown = on_screen("recommendations", "show", found)
    assert (shown.status, is_narrow(shown.out)) == (0, True), shown.out
    for part in (
        "sets write.parquet.compression-codec = zstd",
        "20,000 rows of 4 files, written 5 times: 9.5 MiB now, 5.7 MiB then",
        "to write them 0.30 CPU seconds now and 0.50 (0.40 to 0.60) then",
        "note 4.3 MiB 2.8 MiB",
        "sort(user_id)",
    ):
        assert part in " ".join(shown.out.split()), shown.out
    accepted = icewright("recommendations", "accept", found)
    assert accepted.status == 0, accepted.err
    properties = served.lake.load(EVENTS).properties
    assert properties["write.parquet.compression-codec"] == "zstd"
    assert properties["write.parquet.compression-level"] == "9"


def test_to_leave_a_table_is_shown_with_the_reason(served: Served) -> None:
    table_id = TableId("lake", served.table())
    found = served.control.recommendations.store.keep(table_id, "task-1", 1_000, leave(EVENTS))
    shown = icewright("recommendations", "show", found)
    assert "No candidate pays." in shown.out
    assert "Next:" not in shown.out
    assert "not built" not in shown.out


def test_sums_that_queries_ask_for_are_shown_as_recorded_alone(served: Served) -> None:
    table_id = TableId("lake", served.table())
    sums = AggregationCandidate(("city", "kind"), ("count(*)", "sum(price)"), 30, 0, 40_000, 1_000)
    said = replace(leave(EVENTS), aggregations=(sums,))
    found = served.control.recommendations.store.keep(table_id, "task-1", 1_000, said)
    shown = on_screen("recommendations", "show", found)
    assert (shown.status, is_narrow(shown.out)) == (0, True), shown.out
    for part in ("recorded, not built by icewright yet", "city, kind", "1,000", "40,000", "sum(price)"):
        assert part in " ".join(shown.out.split())


def test_without_a_table_of_queries_recommend_says_what_to_set(served: Served) -> None:
    served.table()
    said = icewright("recommend", str(EVENTS))
    assert said.status == 1
    assert "queries.catalog" in said.err
