"""What the commands print at 80 columns of a server with 16 tables, long names among them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from icewright.core.system_clock import SystemIds
from icewright.model.iceberg.names import TableName
from tests.builders import served as built
from tests.builders.command_line import beside, icewright, on_screen
from tests.builders.served import Served, at_a_port
from tests.cases import each_case

LONG = "page_views_by_country_and_hour_enriched_daily"
NAMES = [TableName("lake", ("db",), f"table_{number:02}") for number in range(15)]
NAMES.append(TableName("lake", ("sales_europe",), LONG))


@pytest.fixture(scope="module")
def served() -> Served:
    served = Served()
    for number, name in enumerate(NAMES):
        served.table(name, mode="approve" if number % 2 else "auto", cities=30 if number == 1 else 2, files=6)
    return served


@pytest.fixture(scope="module", autouse=True)
def home(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch, beside(served.control, folder, patch):
        yield


@each_case(
    ("command", "lines"),
    [
        ("tables list", 18),  # with the titles, and a line of its own for the long name
        ("tasks list", 17),  # with why below each of 8 tasks
        ("approve", 20),
        ("groups list", 4),
        ("health lake.db.table_01", 15),
        ("table partitions lake.db.table_01", 2),
        ("plan lake.db.table_01", 27),
        ("scan", 40),  # with what was found below each of 16 tables, and the command to begin with
    ],
)
def test_lists_take_few_lines_of_80_columns(command: str, lines: int) -> None:
    said = on_screen(*command.split())
    # The server's log, of the same process, and a statement to copy are not of the table.
    found = [line for line in said.out.splitlines() if not line.startswith(("  CALL", "20"))]
    assert len(found) <= lines, said.out
    assert all(len(line) <= 80 or "Spark statement" in line for line in found), said.out


@each_case(
    ("command", "names"),
    [
        ("tables list", 16),
        ("tasks list", 8),
        ("approve", 8),
        ("feed", 16),
        ("scan", 16),
        ("table show lake.db.table_01", 1),
    ],
)
def test_no_name_is_broken(command: str, names: int) -> None:
    said = on_screen(*command.split())
    assert sum(str(name) in said.out for name in NAMES) >= names, said.out


def test_the_most_important_columns_stay_and_the_others_are_named() -> None:
    said = on_screen("tables", "list")
    assert said.out.splitlines()[0].split() == [
        *("table", "health", "worst", "part", "bytes", "files", "small", "deletes", "mode")
    ]
    assert said.err.strip() == "left out, for want of room: last look, last task"
    assert "left out" not in on_screen("tables", "list", width=200).err


def test_a_pipe_loses_nothing() -> None:
    said = icewright("tables", "list")
    columns = "table", "health", "worst part", "bytes", "files", "small", "deletes", "mode", "last look", "last task"
    head, *rows = said.out.splitlines()
    assert head.split() == " ".join(columns).split()
    assert (len(rows), said.err) == (16, "")
    partitions = icewright("table", "partitions", "lake.db.table_01", "--limit", "0").out.splitlines()
    assert [line.split()[0] for line in partitions[1:]] == sorted(f"city=city-{number}" for number in range(30))
    assert icewright("plan", "lake.db.table_01").out.count("6 small files into 1") == 30


def test_equal_partitions_are_one_row_with_an_example() -> None:
    said = on_screen("table", "partitions", "lake.db.table_01")
    assert said.out.splitlines()[1].startswith("30 partitions, e.g. city=city-0      6  5.7 MiB"), said.out
    assert "30 partitions, the figures of each; a pipe, or --json, shows them one by one" in said.err
    assert len(json.loads(icewright("table", "partitions", "lake.db.table_01", "--json").out)["items"]) == 30
    assert on_screen("table", "partitions", "lake.db.table_02").out.count("city=city-") == 2
    explained = icewright("explain", "lake.db.table_01").out
    assert "- 30 partitions, e.g. city=city-0: rewrite, each: 6 small files into 1\n" in explained
    planned = on_screen("plan", "lake.db.table_01").out
    assert "30 partitions, e.g. city=city-0  rewrite             6            1     5.7 MiB\n" in planned


def test_unequal_partitions_are_rows_of_their_own(served: Served) -> None:
    name = TableName("lake", ("db",), "uneven")
    served.table(name, cities=30, files=5)
    served.append(name, "more", cities=1)
    served.control.maintainer.look(name)
    rows = on_screen("table", "partitions", str(name)).out.splitlines()[1:]
    assert [row.split("  ")[0] for row in rows] == ["city=city-0", "29 partitions, e.g. city=city-1"]
    assert on_screen("table", "partitions", str(name), "--limit", "1").err.endswith("--limit 0 shows all\n")


def test_what_a_list_shows_of_an_id_names_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built, "SequentialIds", SystemIds)
    served = Served()
    served.table(NAMES[0])
    with at_a_port(served.control) as url:
        monkeypatch.setenv("ICEWRIGHT_URL", url)
        (_, row, _) = on_screen("tasks", "list").out.splitlines()
        shown = row.split()[0]
        (task,) = icewright("tasks", "list", "--json").json["items"]
        assert (len(shown), task["task_id"].endswith(shown)) == (8, True)
        assert icewright("tasks", "show", shown, "--json").json["task"]["task_id"] == task["task_id"]
        assert task["task_id"] in icewright("tasks", "list").out
        assert icewright("tasks", "cancel", shown).status == 0
        said = icewright("tasks", "show", "0" * 8)
        assert (said.status, said.out) == (2, "")


@each_case(
    ("wrong", "meant"),
    [
        ("lake.db.tabel_03", "did you mean lake.db.table_03"),
        (f"lake.sales_eruope.{LONG}", f"did you mean lake.sales_europe.{LONG}?"),
        ("lak.db.table_03", "did you mean lake.db.table_03"),
        (f"lake.sales_europe.{LONG[:-1]}", f"did you mean lake.sales_europe.{LONG}?"),
        ("lake.db.customers", "it looks for new tables now and then"),
        ("lake.db.t", "it looks for new tables now and then"),
    ],
)
def test_a_misspelt_table_is_answered_with_those_that_are_spelt_alike(wrong: str, meant: str) -> None:
    said = icewright("health", wrong)
    assert (said.status, f"hint: {meant}" in said.err) == (2, True), said.err


def test_names_of_others_are_not_suggested(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with at_a_port(served.control) as url:
        monkeypatch.setenv("ICEWRIGHT_URL", url)
        made = icewright("token", "create", "reads", "--scope", "lake.sales_europe")
        monkeypatch.setenv("ICEWRIGHT_TOKEN", made.out.strip())
        said = icewright("health", "lake.db.tabel_03")
        assert (said.status, "table_03" in said.err, "did you mean" in said.err) == (2, False, False)
        assert "did you mean" in icewright("health", f"lake.sales_europe.{LONG[:-1]}").err
