"""Without a server and without Java: what there is to see of a real lake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyarrow import parquet
from pyiceberg.table import Table

from icewright.core.codec import from_json
from icewright.footprint.storage_views import StorageView
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.reachable_files import FileClass
from icewright.model.plans.plans import RewritePrediction
from icewright.observation.figures import PartitionView
from icewright.plans.views import PlanView
from icewright.tables.views import FileView, ManifestView, RefView, SnapshotView, TableView
from tests.builders.command_line import HOSTILE, at_home, icewright, make_sample_lake, write_configuration
from tests.cases import each_case
from tests.lakes.sqlite import append, make_lake, make_table, rows, writer
from tests.narrowing import not_none


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    write_configuration(folder, make_sample_lake(folder))
    return folder


@pytest.fixture(autouse=True)
def here(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_home(lake, monkeypatch)


def test_scan_shows_all_tables_and_stops_at_none() -> None:
    said = icewright("scan")
    assert said.status == 1
    head, broken, empty, events, good, hostile, *commands, _, summary, unknown = said.out.splitlines()
    assert " ".join(head.split()) == "table files bytes small deletes done mode found"
    assert broken.startswith("lake.db.broken ")
    assert "cannot be opened" in broken
    assert empty.split()[:2] == ["lake.db.empty", "0"]
    assert events.split()[:2] == ["lake.db.events", "12"]
    assert "  merge 12 small files" in events
    assert good.split()[0] == "lake.db.good"
    assert [line.split()[-1] for line in (empty, good, hostile)] == ["observe"] * 3, "nothing was found of these"
    assert commands == ["", "small files, 1 table; begin with:", "  icewright plan lake.db.events"]
    assert hostile.startswith("lake.`we'ird`.`[bold]x``\\x1b[31m\\n\\u202e🧊` ")
    assert summary == "5 tables, 2 with findings."
    assert unknown.startswith("lake.db.broken: the places of these tables are unknown")


def test_scan_as_json_is_complete() -> None:
    said = icewright("scan", "--json")
    assert (said.status, said.json["found"], said.err) == (1, 2, "")
    tables = {row["name"]: row for row in said.json["tables"]}
    assert tables["lake.db.broken"]["problem"]["code"] == "unreadable"
    assert [one["what"] for one in said.json["unknown_places"]] == ["lake.db.broken"]
    assert tables["lake.db.events"]["figures"]["small_files"] == 12
    assert tables["lake.db.events"]["findings"][0]["text"].startswith("merge 12 small files")
    assert str(TableName("lake", (HOSTILE[0],), HOSTILE[1])) in tables


def test_a_catalog_is_scanned_by_its_uri_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lake: Path) -> None:
    text = (lake / "icewright.toml").read_text()
    uri = next(line.partition(" = ")[2] for line in text.splitlines() if line.startswith("uri"))
    warehouse = next(line.partition(" = ")[2] for line in text.splitlines() if line.startswith("warehouse"))
    at_home(tmp_path, monkeypatch)
    by_uri = icewright("scan", "--uri", json.loads(uri), "--warehouse", json.loads(warehouse), "--json")
    at_home(lake, monkeypatch)
    assert by_uri.json == icewright("scan", "--json").json
    assert (by_uri.status, by_uri.err) == (1, "")


@each_case(
    ("arguments", "says"),
    [
        (["--uri", "ftp://elsewhere"], "not the URI of a catalog"),
        (["--uri", "sqlite:////tmp/a.db"], "warehouse"),
        (["--warehouse", "/w"], "--warehouse needs --uri"),
        (["--uri", "postgresql://user:hunter2@host/db", "--warehouse", "/w"], "password"),
    ],
)
def test_a_uri_that_cannot_be_used_is_refused(arguments: list[str], says: str) -> None:
    said = icewright("scan", *arguments)
    assert (said.status, said.out) == (2, "")
    assert says in said.err
    assert "hunter2" not in said.err


def test_a_catalog_that_cannot_be_listed_is_a_row(lake: Path) -> None:
    text = (lake / "icewright.toml").read_text()
    other = lake / "two.toml"
    other.write_text(
        text + f'[[catalogs]]\nname = "gone"\ntype = "sql"\nuri = "sqlite:///{lake}/gone/x.db"\nwarehouse = "/w"\n'
    )
    rows = icewright("--config", str(other), "scan", "--json").json["tables"]
    assert [(row["name"], row["problem"]["code"]) for row in rows if row["figures"] is None] == [
        ("lake.db.broken", "unreadable"),
        ("gone", "unavailable"),
    ]
    alone = icewright("--config", str(other), "scan", "--json", "--catalog", "gone").json
    assert len(alone["tables"]) == 1
    assert {one["what"]: one["reason"]["code"] for one in alone["unknown_places"]} == {
        "gone": "unavailable",
        "lake": "not-looked-at",
    }
    assert icewright("scan", "--catalog", "pond").status == 2


def test_a_table_as_a_whole() -> None:
    said = icewright("table", "show", "db.events")
    assert said.status == 0
    assert "partitioned by  city" in said.out
    assert "icewright.mode" in said.out
    shown = icewright("table", "show", "lake.db.events", "--json").json
    assert shown.pop("reporting") is None  # no server runs, which would know
    view = from_json(TableView, shown)
    assert (view.figures.data_files, view.figures.records, view.snapshots) == (12, 60, 6)


@each_case(
    ("command", "cls", "count"),
    [
        ("partitions", PartitionView, 2),
        ("snapshots", SnapshotView, 6),
        ("manifests", ManifestView, 6),
        ("files", FileView, 12),
        ("refs", RefView, 1),
    ],
)
def test_what_a_table_is_made_of(command: str, cls: type[object], count: int) -> None:
    listed = icewright("table", command, "db.events", "--json").json
    assert len([from_json(cls, item) for item in listed["items"]]) == count
    said = icewright("table", command, "db.events")
    assert (said.status, len(said.out.splitlines())) == (0, count + 1)


@each_case("command", ["partitions", "snapshots", "manifests", "files", "refs", "show", "storage"])
def test_a_table_without_snapshots_is_no_special_case(command: str) -> None:
    assert icewright("table", command, "db.empty").status == 0


def test_long_lists_say_that_they_are_cut() -> None:
    said = icewright("table", "files", "db.events", "--limit", "5")
    assert len(said.out.splitlines()) == 6
    assert said.err == "the first 5 only; --limit 0 shows all\n"
    assert len(icewright("table", "files", "db.events", "--limit", "0").out.splitlines()) == 13


@each_case("command", ["table show", "table manifests", "table partitions", "plan"])
def test_a_misspelt_table_is_answered_with_those_of_the_catalog_that_are_spelt_alike(command: str) -> None:
    said = icewright(*command.split(), "db.evnts")
    assert (said.status, said.err.splitlines()[-1]) == (2, "hint: did you mean lake.db.events?")
    assert "did you mean" not in icewright(*command.split(), "db.customers").err


def test_files_of_one_partition() -> None:
    files = icewright("table", "files", "db.events", "--partition", "city=Bonn", "--json").json["items"]
    assert {file["partition"] for file in files} == {"city=Bonn"}
    assert len(files) == 6
    assert icewright("table", "files", "db.events", "--partition", "city=Rome").status == 2


def test_scan_says_whose_location_is_somebody_elses_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    entry = make_lake(tmp_path)
    write_configuration(tmp_path, entry)
    outer, table = make_table(entry, ("db", "t")), make_table(entry, ("db", "t_2"))
    make_table(entry, ("db", "below"), properties={"write.data.path": f"{outer.location()}/data/below"})
    writer(entry).register_table(("db", "again"), table.metadata_location)
    rows = {row["name"]: row for row in icewright("scan", "--json").json["tables"]}
    codes = {name: [reason["code"] for reason in row["findings"]] for name, row in rows.items()}
    assert codes == {
        "lake.db.t": ["shared-location"],
        "lake.db.below": ["shared-location"],
        "lake.db.t_2": ["shared-location", "shared-uuid"],
        "lake.db.again": ["shared-location", "shared-uuid"],
    }
    assert "lake.db.below" in rows["lake.db.t"]["findings"][0]["text"]
    assert "overlaps that of lake.db.t_2" in " ".join(icewright("scan").out.split())


def test_l6_l5_scan_says_what_keeps_a_table_from_owning_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lake, pond = make_lake(tmp_path, "lake"), make_lake(tmp_path, "pond")
    write_configuration(tmp_path, lake, f'roots = ["{lake.warehouse}/db"]\n')
    with (tmp_path / "icewright.toml").open("a") as file:
        file.write(f'[[catalogs]]\nname = "pond"\ntype = "sql"\nuri = "{pond.uri}"\nwarehouse = "{pond.warehouse}"\n')
    twice = make_table(lake, ("db", "twice"))
    writer(pond).create_namespace("db")
    writer(pond).register_table(("db", "again"), twice.metadata_location)
    make_table(lake, ("db", "kept"), properties={"gc.enabled": "false"})
    make_table(lake, ("db", "clone"), properties={"gc.enabled": "false", "snapshot": "true"})
    make_table(lake, ("sea", "elsewhere"))
    make_table(lake, ("db", "fine"))
    moved = make_table(lake, ("db", "moved"), properties={"write.data.path": "somewhere"})
    Path(append_nothing(moved)).unlink()
    said = icewright("scan", "--json")
    shown = {row["name"]: row for row in said.json["tables"]}
    assert {name: [reason["code"] for reason in row["findings"]] for name, row in shown.items()} == {
        "lake.db.twice": ["shared-location", "shared-uuid"],
        "pond.db.again": ["shared-location", "shared-uuid"],
        "lake.db.kept": ["gc-disabled"],
        "lake.db.clone": ["clone"],
        "lake.sea.elsewhere": ["root-not-allowed"],
        "lake.db.fine": [],
        "lake.db.moved": ["no-place"],
    }
    assert shown["lake.db.moved"]["problem"]["code"] == "unreadable"
    assert [one["what"] for one in said.json["unknown_places"]] == ["lake.db.moved"]


def test_l5_scan_sees_files_that_were_imported_from_another_tables_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lake = make_lake(tmp_path)
    write_configuration(tmp_path, lake)
    lender, borrower = make_table(lake, ("db", "lender")), make_table(lake, ("db", "borrower"))
    append(lender, range(3))
    raw = Path(lender.location().removeprefix("file://")) / "data" / "raw.parquet"
    parquet.write_table(rows(range(3)), raw)
    borrower.add_files([f"file://{raw}"])
    shown = {row["name"]: row for row in icewright("scan", "--json").json["tables"]}
    assert [reason["code"] for reason in shown["lake.db.lender"]["findings"]] == ["lends-files"]
    assert "lake.db.borrower has files in its place" in shown["lake.db.lender"]["findings"][0]["text"]
    assert shown["lake.db.borrower"]["findings"] == []
    place = icewright("table", "show", "lake.db.borrower", "--json").json["place"]
    assert place["not_ours"] == [f"file://{raw.parent}/"]
    assert [gap["what"] for gap in place["unknown"]] == ["all other tables"]
    said = icewright("table", "show", "lake.db.borrower")
    assert "not ours" in said.out
    assert f"file://{raw.parent}/" in said.out


def append_nothing(table: Table) -> str:
    """A commit whose manifest list can be removed; its path."""
    table.append(rows([1]))
    return not_none(table.refresh().current_snapshot()).manifest_list.removeprefix("file://")


def test_where_the_bytes_are() -> None:
    said = icewright("table", "storage", "db.events")
    assert (said.status, said.err) == (0, "")
    assert "known      all of it" in said.out
    assert "all but the last 1 " in said.out
    view = from_json(StorageView, icewright("table", "storage", "db.events", "--json").json)
    by_class = {share.file_class: share for share in view.classes}
    assert by_class[FileClass.DATA].live.files == 12
    assert by_class[FileClass.MANIFEST_LIST].by_history.files == 5
    assert (view.complete, view.gaps, view.total.unsized) == (True, (), 0)
    assert view.total.files == sum((one.live + one.by_refs + one.by_history).files for one in view.classes)
    assert next(one.freed.files for one in view.expiries if one.rule.retain_last == 1) == 5
    assert icewright("table", "storage", "db.broken").status == 1


def test_what_one_expiry_would_free() -> None:
    def asked(*options: str) -> list[tuple[int, int | None, int]]:
        view = from_json(StorageView, icewright("table", "storage", "db.events", *options, "--json").json)
        return [(one.rule.older_than_ms, one.rule.retain_last, one.snapshots) for one in view.expiries]

    assert asked("--older-than", "P5D") == [(5 * 86_400_000, None, 0)]
    assert asked("--older-than", "PT0S", "--retain-last", "2") == [(0, 2, 4)]
    assert asked("--retain-last", "6") == [(0, 6, 0)]
    assert (
        "older than 5 d, all but the last 3"
        in icewright("table", "storage", "db.events", "--older-than", "P5D", "--retain-last", "3").out
    )
    for wrong in (("--older-than", "5d"), ("--older-than", "P1M"), ("--retain-last", "0"), ("--older-than", "")):
        assert icewright("table", "storage", "db.events", *wrong).status == 2


def test_what_is_not_known_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    entry = make_lake(tmp_path)
    write_configuration(tmp_path, entry)
    table = make_table(entry)
    for first in range(2):
        append(table, range(first, first + 2))
    manifest = table.metadata.snapshots[0].manifests(table.io)[0].manifest_path
    Path(manifest.removeprefix("file://")).write_bytes(b"")
    said = icewright("table", "storage", "db.events")
    assert said.status == 1
    assert "NOT all of it" in said.out
    assert manifest in said.out
    as_json = icewright("table", "storage", "db.events", "--json")
    assert (as_json.status, as_json.json["complete"], as_json.json["gaps_count"]) == (1, False, 1)
    assert as_json.json["gaps"][0]["reason"]["code"] == "unreadable"


def test_a_hostile_name_can_be_asked_for() -> None:
    name = str(TableName("lake", (HOSTILE[0],), HOSTILE[1]))
    for command in (["table", "show"], ["table", "files"], ["table", "storage"], ["plan"], ["explain"]):
        said = icewright(*command, name)
        assert said.status == 0
        assert all(line.isprintable() for line in (said.out + said.err).split("\n"))


def test_a_plan_without_a_server_says_that_it_cannot_be_applied() -> None:
    said = icewright("plan", "db.events")
    assert said.status == 1
    assert "files     12 -> 2" in said.out
    assert "city=Bonn" in said.out
    assert "CALL `lake`.system.rewrite_data_files(table => '`db`.`events`'" in said.out
    assert "icewright serve" in said.out.splitlines()[-1]
    assert "icewright apply" not in said.out
    assert said.err == "planned here: no server is running\n"
    answer = icewright("plan", "db.events", "--json").json
    view = from_json(PlanView, answer["plan"])
    assert (answer["from_server"], view.can_apply) == (False, True)
    assert isinstance(view.prediction, RewritePrediction)
    assert view.prediction.data_files_after == 2


def test_a_migration_is_planned_alone() -> None:
    said = icewright("plan", "db.events", "--migrate", "spec")
    assert said.status == 0
    assert "migrates  spec" in said.out
    assert "nothing to do: all files are of the current partition spec" in said.out
    assert icewright("plan", "db.events", "--migrate", "everything").status == 2


def test_nothing_to_do_is_explained() -> None:
    assert icewright("plan", "db.good").status == 0
    said = icewright("explain", "db.good")
    assert said.status == 0
    assert said.out.startswith("lake.db.good: nothing to compact:")


@each_case(
    ("arguments", "status", "message"),
    [
        (["plan", "db.gone"], 2, "no table lake.db.gone"),
        (["plan", "x.db.events"], 2, "no catalog 'x' in the configuration"),
        (["plan", "gone"], 2, "not a full table name: 'gone'"),
        (["plan", "db.broken"], 1, "cannot be opened"),
        (["apply", "plan-1"], 1, "no server is running"),
        (["tasks", "list"], 1, "no server is running"),
        (["--config", "gone.toml", "scan"], 2, "--config: there is no file"),
    ],
)
def test_errors_are_clear_and_have_a_status(arguments: list[str], status: int, message: str) -> None:
    said = icewright(*arguments)
    assert said.status == status
    line = next(line for line in said.err.splitlines() if line.startswith("icewright: "))
    assert message in line
    as_json = icewright(*arguments, "--json")
    assert (as_json.status, as_json.err) == (status, "")
    assert message in as_json.json["error"]["detail"]


def test_looking_changes_nothing(lake: Path) -> None:
    def state() -> dict[str, bytes]:
        return {str(file): file.read_bytes() for file in lake.rglob("*") if file.is_file()}

    before = state()
    for arguments in (
        ["scan"],
        ["plan", "db.events"],
        ["table", "files", "db.events"],
        ["table", "partitions", "db.events"],
        ["table", "storage", "db.events"],
    ):
        icewright(*arguments)
    assert state() == before


def test_without_any_catalog_the_next_step_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".pyiceberg.yaml").write_text("catalog:\n  cloud:\n    type: glue\n")
    for command in (["scan"], ["plan", "db.events"]):
        said = icewright(*command)
        assert said.status == 2
        assert "cloud of" in said.err
        assert "icewright config init" in said.err


def test_a_list_that_breaks_off_ends_in_an_error_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    entry = make_lake(tmp_path)
    table = make_table(entry)
    for first in range(2):
        append(table, [first])
    write_configuration(tmp_path, entry)
    snapshot = not_none(table.refresh().current_snapshot())
    last = snapshot.manifests(table.io)[-1].manifest_path
    Path(last.removeprefix("file://")).write_bytes(b"damaged")
    said = icewright("table", "manifests", "db.events", "--json")
    assert said.status == 1
    assert json.loads(said.err)["error"]["code"] == "unreadable"
    assert "error" not in said.out


def test_a_table_under_two_names_is_planned_under_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = make_lake(tmp_path)
    table = make_table(entry, ("db", "first"))
    append(table, range(5))
    writer(entry).register_table(("db", "second"), table.metadata_location)
    write_configuration(tmp_path, entry)
    at_home(tmp_path, monkeypatch)
    said = icewright("scan", "--json").json
    assert {found["name"]: found["problem"] for found in said["tables"]} == {
        "lake.db.first": None,
        "lake.db.second": None,
    }


@each_case(
    "options",
    [
        ("--action", "compute-statistics", "--older-than", "P5D"),
        ("--action", "compute-statistics", "--migrate", "all"),
        ("--action", "expire-data", "--retain-last", "3"),
        ("--action", "remove-dangling-deletes", "--migrate", "all"),
        ("--action", "rewrite-manifests", "--migrate", "all"),
        ("--action", "rewrite-position-delete-files", "--migrate", "all"),
        ("--columns", "id"),
    ],
)
def test_a_plan_is_for_one_thing(options: tuple[str, ...]) -> None:
    said = icewright("plan", "lake.db.events", *options)
    assert said.status != 0
    assert "these options cannot be combined" in said.err
