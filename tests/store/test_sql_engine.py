"""Opening a SQLite database: what durability and exclusion rest on. What holds on both databases is beside this."""

import re
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, inspect, text

from icewright.core.errors import InvalidConfiguration, OutcomeUnknown, Unavailable
from icewright.store import sqlite as sqlite_module
from icewright.store.engine import open_store
from icewright.store.migrate import VERSION_TABLE, upgrade
from icewright.store.sqlite import switch_to_wal
from icewright.store.timeouts import Timeouts
from icewright.store.transactions import asking, reading, writing
from icewright.store_admin.all_tables import metadata
from tests.cases import each_case
from tests.lakes.stores import new_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "state" / "icewright.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = open_store(url, patience=Timeouts(lock_ms=50))
    yield engine
    engine.dispose()


class Failing(sqlite3.Connection):
    """A connection that fails a few times, and then does what it is told."""

    errors: Sequence[sqlite3.OperationalError] = ()

    def execute(self, *args: Any) -> sqlite3.Cursor:
        if self.errors:
            first, *self.errors = self.errors
            raise first
        return super().execute(*args)


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[Failing]:
    with closing(sqlite3.connect(tmp_path / "new.db", factory=Failing)) as connection:
        yield connection


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def ddl(engine: Engine) -> dict[str, list[str]]:
    """The statements that made the schema, in parts: neither their order nor the space between words says anything."""
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")).all()
    found = {}
    for name, sql in rows:
        words = re.sub(r"\s*([(),]|\s)\s*", r"\1", re.sub(r"\s+", " ", sql))
        # The name of a table that was made anew is quoted.
        found[name] = sorted(words.replace(f'CREATE TABLE "{name}"', f"CREATE TABLE {name}").split(","))
    return {name: parts for name, parts in found.items() if name != VERSION_TABLE}


class TestOpening:
    def test_creates_the_file_for_its_owner_alone(self, engine: Engine, path: Path) -> None:
        with writing(engine) as connection:
            connection.execute(text("UPDATE counters SET value = 5"))
            files = sorted(each.name for each in path.parent.iterdir())
            assert files == ["icewright.db", "icewright.db-shm", "icewright.db-wal"]
            assert {mode(each) for each in path.parent.iterdir()} == {0o600}
        assert mode(path.parent) == 0o700

    def test_leaves_the_mode_of_an_existing_directory_alone(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o755)
        open_store(f"sqlite:///{tmp_path}/s.db").dispose()
        assert mode(tmp_path) == 0o755

    @pytest.mark.parametrize(
        ("pragma", "value"), [("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1), ("busy_timeout", 50)]
    )
    def test_sets_what_durability_rests_on_for_every_connection(
        self, engine: Engine, pragma: str, value: str | int
    ) -> None:
        with engine.connect() as one, engine.connect() as other:
            for connection in (one, other):
                assert connection.scalar(text(f"PRAGMA {pragma}")) == value

    def test_again_is_harmless_and_keeps_what_is_there(self, engine: Engine, url: str) -> None:
        with writing(engine) as connection:
            connection.execute(text("UPDATE counters SET value = 5"))
        again = open_store(url)
        with reading(again) as connection:
            assert connection.scalar(text("SELECT MIN(value) FROM counters")) == 5
        again.dispose()

    def test_the_switch_of_a_new_file_to_a_write_ahead_log_is_tried_again_while_others_switch_it(
        self, failing: Failing
    ) -> None:
        busy = sqlite3.OperationalError("database is locked")
        busy.sqlite_errorcode = sqlite3.SQLITE_BUSY_SNAPSHOT
        failing.errors = [busy, busy]
        assert switch_to_wal(failing) == "wal"
        assert not failing.errors

    def test_another_trouble_with_the_switch_is_not_tried_again(self, failing: Failing) -> None:
        full = sqlite3.OperationalError("database or disk is full")
        full.sqlite_errorcode = sqlite3.SQLITE_FULL
        failing.errors = [full, full]
        with pytest.raises(sqlite3.OperationalError, match="full"):
            switch_to_wal(failing)
        assert failing.errors == [full]

    def test_migrations_of_two_databases_at_once_keep_apart(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        running: list[bool] = []
        overlaps: list[bool] = []

        def watched(config: Config, revision: str) -> None:
            overlaps.append(bool(running))
            running.append(True)
            command_upgrade(config, revision)
            running.pop()

        command_upgrade = command.upgrade
        monkeypatch.setattr(command, "upgrade", watched)
        with ThreadPoolExecutor(4) as pool:
            for engine in list(pool.map(lambda n: open_store(f"sqlite:///{tmp_path}/{n}.db"), range(8))):
                assert "tasks" in inspect(engine).get_table_names()
                engine.dispose()
        assert overlaps == [False] * 8

    @each_case(
        "wrong",
        ["nonsense", "nosuch://x", "sqlite://", "sqlite:///:memory:", "sqlite:///file:x?uri=true", "mysql://h/db"],
    )
    def test_refuses_urls_that_cannot_be_used(self, wrong: str) -> None:
        with pytest.raises(InvalidConfiguration):
            open_store(wrong)

    def test_refuses_a_path_that_cannot_be_opened(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(InvalidConfiguration, match="cannot be opened"):
            open_store(f"sqlite:///{tmp_path}/file/s.db")

    def test_says_so_when_the_file_is_no_database(self, tmp_path: Path) -> None:
        (tmp_path / "s.db").write_bytes(b"not a database at all" * 100)
        with pytest.raises(Unavailable, match="not a database"):
            open_store(f"sqlite:///{tmp_path}/s.db")

    def test_refuses_where_sqlite_cannot_keep_a_write_ahead_log(
        self, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class NoWal(sqlite3.Connection):
            def execute(self, sql: str, *args: object) -> sqlite3.Cursor:
                return super().execute(sql.replace("journal_mode = WAL", "journal_mode = DELETE"), *args)  # type: ignore[arg-type]  # passed through

        def create(parsed: object, connect_args: dict[str, object]) -> Engine:
            return create_engine(str(parsed), connect_args={**connect_args, "factory": NoWal})

        monkeypatch.setattr(sqlite_module, "create_engine", create)
        with pytest.raises(InvalidConfiguration, match="WAL"):
            open_store(url)


class TestSchema:
    def test_migrations_and_metadata_agree_also_in_what_alembic_does_not_compare(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        direct = create_engine(f"sqlite:///{tmp_path}/direct.db")
        metadata.create_all(direct)
        assert ddl(engine) == ddl(direct)
        direct.dispose()

    def test_the_baseline_makes_what_the_migrations_before_it_made(self, engine: Engine, tmp_path: Path) -> None:
        with closing(sqlite3.connect(tmp_path / "former.db")) as connection:
            connection.executescript((Path(__file__).parent / "store_0039.sql").read_text(encoding="utf-8"))
        former, baseline = (create_engine(f"sqlite:///{tmp_path}/{name}.db") for name in ("former", "baseline"))
        with baseline.begin() as connection:
            upgrade(connection, "0039")
        assert ddl(baseline) == ddl(former)
        with former.begin() as connection:
            upgrade(connection)
        assert ddl(engine) == ddl(former)
        for one in (former, baseline):
            one.dispose()

    def test_a_database_of_somebody_else_is_refused_and_left_alone(self, path: Path, url: str) -> None:
        path.parent.mkdir(parents=True)
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE iceberg_tables (x)")
        with pytest.raises(InvalidConfiguration, match="iceberg_tables"):
            open_store(url)
        stranger = create_engine(url)
        assert inspect(stranger).get_table_names() == ["iceberg_tables"]
        stranger.dispose()


class TestTransactions:
    def test_readers_and_a_writer_do_not_wait_for_each_other(self, engine: Engine) -> None:
        with writing(engine) as writer:
            writer.execute(text("UPDATE counters SET value = 5"))
            with reading(engine) as reader:
                assert reader.scalar(text("SELECT MAX(value) FROM counters")) == 0

    def test_the_lock_is_taken_before_the_first_read(self, engine: Engine) -> None:
        with writing(engine) as connection:
            connection.execute(text("SELECT 1"))
            with pytest.raises(Unavailable), writing(engine):
                pass

    def test_a_commit_that_could_not_be_flushed_is_unknown(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC

        def fail(_connection: object) -> None:
            raise error

        with pytest.raises(OutcomeUnknown, match="disk I/O error"), writing(engine):
            monkeypatch.setattr(engine.dialect, "do_commit", fail)

    def test_a_full_disk_is_told_and_loses_nothing(self, engine: Engine) -> None:
        def write_too_much() -> None:
            with writing(engine) as connection:
                pages = int(connection.scalar(text("PRAGMA page_count")) or 0)
                connection.execute(text(f"PRAGMA max_page_count = {pages + 2}"))
                connection.execute(text("UPDATE counters SET value = 7"))
                connection.execute(text("CREATE TABLE much (bytes BLOB)"))
                connection.execute(text("INSERT INTO much VALUES (zeroblob(1000000))"))

        with pytest.raises(Unavailable, match="full"):
            write_too_much()
        with reading(engine) as connection:
            assert connection.scalar(text("SELECT MAX(value) FROM counters")) == 0


@pytest.mark.parametrize("statements", [["SELECT 1", "SELECT 2"], ["DELETE FROM tables"]])
def test_whatever_asks_without_a_transaction_for_more_than_one_thing_is_noticed(statements: Sequence[str]) -> None:
    """By every store that tests are given: two statements may see two states, and no fence is before a write."""

    def ask() -> None:
        with asking(new_store()) as connection:
            for statement in statements:
                connection.execute(text(statement))

    with pytest.raises(AssertionError, match="needs a transaction"):
        ask()
