"""The full form of the benchmark of many tables works from end to end in small, and no commit is lost unnoticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from benchmarks import b7_full, stream
from benchmarks.__main__ import main
from benchmarks.b7 import SHORT_KINDS, single
from benchmarks.lake import Mismatch
from benchmarks.many_tables import CATALOG, Commit, Kind, ManyTables, Pointers
from benchmarks.results import Result, dumps, loads
from benchmarks.stream import Stream, lost
from icewright.api_client.client import Client
from icewright.core.errors import Unavailable
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.tables import Json
from icewright.store.engine import open_store
from tests.servers.postgres import find_programs


class _Server(Client):
    """Notes what it is told, and refuses the first event of some snapshots."""

    def __init__(self, refused: int = 0) -> None:
        super().__init__("http://127.0.0.1:1", "no-token")
        self.told, self._refused = list[CommitEvent](), refused

    def notify(self, event: CommitEvent) -> Json:
        if self._refused:
            self._refused -= 1
            raise Unavailable("the inbox is full")
        self.told.append(event)
        return {}


class _Store:
    """The part of a store that the stream looks at, and a lake of six tables."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.lake = url, ManyTables(folder, SHORT_KINDS, 6, 1)
        self.lake.write(["icewright"])
        open_store(url).dispose()
        dsn = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._connection = psycopg.connect(dsn, autocommit=True)

    def has(self, commit: Commit) -> None:
        """A server has seen a commit."""
        self._connection.execute(
            "INSERT INTO tables (catalog, table_uuid, name_digest, name, metadata_location, snapshot_id,"
            " format_version, observed_at, changed_at, next_look_at) VALUES (%s, %s, %s, 't', '', %s, 2, 0, 0, 0)"
            " ON CONFLICT (catalog, table_uuid) DO UPDATE SET snapshot_id = excluded.snapshot_id",
            (CATALOG, commit.table_uuid, commit.table_uuid, commit.snapshot_id),
        )

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def store(postgres_url: str, tmp_path: Path) -> Iterator[_Store]:
    with closing(_Store(postgres_url, tmp_path)) as made:
        yield made


@pytest.mark.servers
@pytest.mark.skipif(find_programs() is None, reason="PostgreSQL is not installed")
def test_the_short_form_runs_with_several_servers_and_then_one_and_keeps_what_each_phase_found(tmp_path: Path) -> None:
    said, kept = list[str](), list[Result]()
    result = b7_full.run(tmp_path, b7_full.short(seed=3), said.append, kept.append)
    assert loads(dumps(result)) == result
    assert result.benchmark == "B7-full"
    assert "minutes with 2 servers and as long with one" in result.title
    assert {(case.case, case.metric) for case in result.cases if case.met is not None} == {
        ("2 servers", "cpu_ratio"),
        ("2 servers", "lag p99, s"),
        ("2 servers", "memory of server 1, which leads, GiB"),
        ("2 servers", "memory of server 2, GiB"),
        ("1 server", "cpu_ratio"),
        ("1 server", "lag p99, s"),
        ("1 server", "memory of server 1, GiB"),
    }
    values = {(case.case, case.metric): case.value for case in result.cases}
    assert len(values) == len(result.cases), "each figure has a name of its own"
    for case in ("2 servers", "1 server"):
        assert 0 < values[case, "lag p50, s"] <= values[case, "lag p99, s"]
        assert values[case, "CPU a commit, ms: database"] > 0
        assert values[case, "cpu_ratio"] < values[case, "cpu_ratio, without our database"]
    assert values["all servers but one of 2 end", "buckets moved"] == 64
    assert values["all servers but one of 2 end", "moves to the fewest possible"] == 1
    phases = [one.title.partition("; broken off after ")[2] for one in kept]
    assert phases == [
        "first look",
        "nothing to do",
        "commits with all servers",
        "peer",
        "moves",
        "commits with one server",
    ]
    assert [one.cases for one in kept] == [result.cases[: len(one.cases)] for one in kept]
    assert len(kept[-1].cases) == len(result.cases)
    assert sum("what PyIceberg counts" in line for line in said) == 2
    for number in range(2):
        assert 'mode = "observe"' in (tmp_path / f"server-{number}" / "icewright.toml").read_text()


def test_commits_are_told_in_turn_and_again_and_wait_until_the_store_has_them_or_later_ones(store: _Store) -> None:
    servers = _Server(), _Server(refused=1)
    commits = list(islice(store.lake.mixed(50), 50))
    last = {commit.table_uuid: commit for commit in commits}
    behind: list[int] = []
    with (
        closing(Pointers(store.lake.entry("icewright"))) as pointers,
        Stream(store.url, pointers, servers) as sent,
    ):
        sent.send(commits, 1_000.0, lambda: None)
        assert sent.behind == 50
        assert lost(store.url, list(last.values())) == list(last.values())

        def seen_one_by_one() -> None:
            behind.append(sent.behind)
            if last:
                store.has(last.popitem()[1])

        sent.drain(seen_one_by_one)
    assert lost(store.url, list({commit.table_uuid: commit for commit in commits}.values())) == []
    assert len(sent.lags_s) == 50
    assert (behind[0], behind[-1]) == (50, 0)
    assert sent.told_again == 1
    assert [[event.snapshot_id for event in one.told] for one in servers] == [
        [commit.snapshot_id for commit in commits[0::2]],
        [commit.snapshot_id for commit in commits[1::2]],
    ]


def test_a_store_that_has_only_an_earlier_snapshot_lost_the_commit(
    store: _Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_STALLED_S", 0.3)
    earlier, later = store.lake.commits(SHORT_KINDS[0], 40)[:2], store.lake.commits(SHORT_KINDS[0], 40)
    table = next(commit for commit in later if commit.table_uuid == earlier[0].table_uuid)
    store.has(earlier[0])
    assert lost(store.url, [table]) == [table]
    with (
        closing(Pointers(store.lake.entry("icewright"))) as pointers,
        Stream(store.url, pointers, [_Server()]) as sent,
    ):
        sent.send([table], 1_000.0, lambda: None)
        with pytest.raises(Mismatch, match="1 commits never came into the inventory"):
            sent.drain(lambda: None)


def test_what_a_run_found_until_it_was_broken_off_is_kept_beside_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = (single("all", "first", 1.0), single("all", "second", 2.0))
    found = Result("B7-full", "title", "2026-11-27", {}, 2, {}, 1, cases)

    def broken_off(_folder: Path, options: b7_full.Options, _say: b7_full.Say, keep: b7_full.Keep) -> Result:
        assert options == b7_full.full(7)
        keep(replace(found, cases=cases[:1]))
        raise Mismatch("a server died")

    def ended(_folder: Path, _options: b7_full.Options, _say: b7_full.Say, keep: b7_full.Keep) -> Result:
        keep(found)
        return found

    arguments = ["B7", "--full", "--seed", "7", "--results", str(tmp_path)]
    monkeypatch.setattr(b7_full, "run", broken_off)
    with pytest.raises(Mismatch, match="a server died"):
        main(arguments)
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json")] == ["partial/B7-full.json"]
    assert loads((tmp_path / "partial" / "B7-full.json").read_text()).cases == cases[:1]
    monkeypatch.setattr(b7_full, "run", ended)
    assert main(arguments) == 0
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json")] == ["B7-full.json"]
    assert loads((tmp_path / "B7-full.json").read_text()).cases == cases


def test_mixed_commits_are_of_all_tables_alike_and_are_written_when_they_are_asked_for(tmp_path: Path) -> None:
    kinds = Kind("few", 3, 2, 2), Kind("more", 1, 2, 3)
    lake = ManyTables(tmp_path, kinds, 40, 1)
    lake.write(["icewright"])
    commits = lake.mixed(600)
    before = len(list(tmp_path.rglob("*.metadata.json")))
    first = next(commits)
    assert len(list(tmp_path.rglob("*.metadata.json"))) == before + 1
    of_kind = Counter(lake.kind_of(commit.name).name for commit in (first, *commits))
    assert of_kind.total() == 600
    assert 0.7 < of_kind["few"] / 600 < 0.8
