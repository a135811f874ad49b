"""What the store promises of its database, on SQLite and on PostgreSQL: schema, migrations, transactions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, inspect, select, text, update
from sqlalchemy.exc import IntegrityError

from icewright.core.errors import InvalidConfiguration, InvalidMessage, StoreTaken, Unavailable
from icewright.store import engine as engine_module
from icewright.store import migrate
from icewright.store.engine import open_store
from icewright.store.migrate import VERSION_TABLE, upgrade
from icewright.store.schema import FENCING_TOKEN, counters
from icewright.store.timeouts import Timeouts
from icewright.store.transactions import EPOCH, now, reading, server_epoch, writing
from icewright.store_admin.all_tables import metadata
from tests.lakes.stores import next_version

SCRIPTS = ScriptDirectory(str(migrate._MIGRATIONS))


def test_the_newest_schema_is_told_by_the_names_of_the_migrations() -> None:
    assert SCRIPTS.get_heads() == [migrate.newest_revision()]
    assert sorted(script.revision for script in SCRIPTS.walk_revisions()) == migrate.known_revisions()


@pytest.fixture
def engine(migrated_url: str) -> Iterator[Engine]:
    engine = open_store(migrated_url, patience=Timeouts(lock_ms=50))
    yield engine
    engine.dispose()


def token(connection: Connection) -> int:
    return int(connection.scalar(select(counters.c.value).where(counters.c.name == FENCING_TOKEN)) or 0)


def set_token(connection: Connection, value: int) -> None:
    connection.execute(update(counters).where(counters.c.name == FENCING_TOKEN).values(value=value))


def differences(engine: Engine) -> list[Any]:
    """By how much the database is not what the schema says."""
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        )
        return list(compare_metadata(context, metadata))


class TestSchema:
    def test_migrations_and_metadata_agree(self, engine: Engine) -> None:
        assert differences(engine) == []

    def test_a_store_of_this_version_becomes_that_of_the_next_and_keeps_what_is_there(
        self, migrated_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        before = open_store(migrated_url)
        with writing(before) as connection:
            set_token(connection, 41)
        before.dispose()
        with monkeypatch.context() as later:
            following = next_version(later, tmp_path)
            engine = open_store(migrated_url)
            assert [(kind, column.name) for kind, _, _, column in differences(engine)] == [("remove_column", "of_next")]
            with reading(engine) as connection:
                assert token(connection) == 41
                assert server_epoch(connection) == 0
            engine.dispose()
        with pytest.raises(InvalidConfiguration, match=f"schema {following}, which this version .* does not know"):
            open_store(migrated_url)

    def test_constraints_and_partial_indexes_are_those_of_the_metadata(self, store_url: str) -> None:
        """Alembic compares neither conditions of indexes nor checks."""
        open_store(store_url).dispose()
        direct = create_engine(store_url)
        found = shape(direct)
        with direct.begin() as connection:
            metadata.drop_all(connection)
            metadata.create_all(connection)
        assert found == shape(direct)
        direct.dispose()

    def test_everything_has_a_name(self) -> None:
        for table in metadata.tables.values():
            assert all(constraint.name for constraint in table.constraints)

    def test_a_database_of_a_newer_icewright_is_refused_and_left_alone(self, engine: Engine, migrated_url: str) -> None:
        with writing(engine) as connection:
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))  # noqa: S608 - our constant
        with pytest.raises(InvalidConfiguration, match="9999"):
            open_store(migrated_url)
        with reading(engine) as connection:
            assert connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) == "9999"  # noqa: S608 - ditto

    @pytest.mark.parametrize("revision", ["0038", "0001"])
    def test_a_database_from_before_the_baseline_is_refused_and_left_alone(
        self, engine: Engine, migrated_url: str, revision: str
    ) -> None:
        with writing(engine) as connection:
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{revision}'"))  # noqa: S608 - constants
        with pytest.raises(InvalidConfiguration, match=f"schema {revision}, .* upgrades none before 0039") as raised:
            open_store(migrated_url)
        assert raised.value.hint.startswith("upgrade it by an earlier version first, whose newest schema is 0039")
        with reading(engine) as connection:
            assert connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) == revision  # noqa: S608 - ditto
        assert differences(engine) == []

    def test_a_database_of_somebody_else_is_refused_and_left_alone(self, store_url: str) -> None:
        stranger = create_engine(store_url)
        with stranger.begin() as connection:
            connection.execute(text("CREATE TABLE iceberg_tables (x INTEGER)"))
        with pytest.raises(InvalidConfiguration, match="iceberg_tables"):
            open_store(store_url)
        assert inspect(stranger).get_table_names() == ["iceberg_tables"]
        stranger.dispose()

    def test_a_migration_that_fails_leaves_nothing_behind(
        self, store_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(connection: Connection) -> None:
            upgrade(connection)
            raise RuntimeError("halfway")

        monkeypatch.setattr(engine_module, "upgrade", fail)
        with pytest.raises(RuntimeError, match="halfway"):
            open_store(store_url)
        bare = create_engine(store_url)
        assert inspect(bare).get_table_names() == []
        bare.dispose()

    def test_several_that_start_at_once_migrate_once(self, store_url: str) -> None:
        barrier = threading.Barrier(4)

        def start(_server: int) -> Engine:
            barrier.wait()
            return open_store(store_url)

        with ThreadPoolExecutor(4) as pool:
            for engine in list(pool.map(start, range(4))):
                with reading(engine) as connection:
                    assert connection.scalar(text("SELECT COUNT(*) FROM counters")) == 7
                engine.dispose()


def shape(engine: Engine) -> dict[str, object]:
    """Indexes with their conditions, and constraints, of all tables."""
    looking = inspect(engine)
    return {
        name: (
            sorted((i["name"], i["column_names"], i["unique"], conditions(i)) for i in looking.get_indexes(name)),
            sorted((c["name"], c["sqltext"]) for c in looking.get_check_constraints(name)),
            looking.get_pk_constraint(name),
            sorted(key["name"] or "" for key in looking.get_foreign_keys(name)),
            sorted(unique["name"] or "" for unique in looking.get_unique_constraints(name)),
        )
        for name in metadata.tables
    }


def conditions(index: object) -> list[str]:
    options: dict[str, object] = index.get("dialect_options", {})  # type: ignore[attr-defined]  # SQLAlchemy's dictionary
    return sorted(f"{key}={value}" for key, value in options.items() if key.endswith("_where"))


class TestTransactions:
    def test_a_second_writer_waits_and_then_is_told_that_the_store_is_away(
        self, engine: Engine, migrated_url: str
    ) -> None:
        other = open_store(migrated_url, patience=Timeouts(lock_ms=50))  # as another process has it
        with writing(engine), pytest.raises(Unavailable, match="lock") as raised, writing(other):
            pass
        assert raised.value.__cause__ is not None
        other.dispose()
        with writing(engine), pytest.raises(Unavailable, match="lock"), writing(engine):
            pass
        with writing(engine):  # and then it goes on
            pass

    def test_a_writer_that_waited_sees_what_the_other_one_wrote(self, migrated_url: str) -> None:
        engine = open_store(migrated_url)
        asked = threading.Event()

        def second() -> int:
            asked.set()
            with writing(engine) as connection:
                seen = token(connection)
                set_token(connection, seen + 1)
            return seen

        with ThreadPoolExecutor(1) as pool:
            with writing(engine) as connection:
                waiting = pool.submit(second)
                asked.wait()
                until_one_waits(engine)
                set_token(connection, 5)
            assert waiting.result() == 5
        engine.dispose()

    def test_a_reader_sees_one_state(self, engine: Engine) -> None:
        with reading(engine) as reader:
            assert token(reader) == 0
            with writing(engine) as writer:
                set_token(writer, 5)
            assert token(reader) == 0

    def test_an_error_rolls_everything_back(self, engine: Engine) -> None:
        with pytest.raises(IntegrityError), writing(engine) as connection:  # noqa: PT012 - both in one transaction
            set_token(connection, 5)
            connection.execute(text("INSERT INTO counters SELECT * FROM counters"))
        with reading(engine) as connection:
            assert token(connection) == 0

    def test_foreign_keys_hold(self, engine: Engine) -> None:
        with pytest.raises(IntegrityError), writing(engine) as connection:
            connection.execute(text("INSERT INTO task_history VALUES ('task-9', 1, 'queued', 0, 0, '{}')"))

    @pytest.mark.parametrize("value", [2**63, "\udc80"])
    def test_values_that_no_column_holds_are_refused(self, engine: Engine, value: object) -> None:
        with pytest.raises(InvalidMessage), writing(engine) as connection:
            connection.execute(
                text("UPDATE counters SET value = :value" if isinstance(value, int) else "SELECT :value"),
                {"value": value},
            )

    def test_the_databases_clock_is_the_wall_clock_in_milliseconds(self, engine: Engine) -> None:
        expected = {
            "sqlite": "SELECT strftime('%s', 'now')",
            "postgresql": "SELECT floor(extract(epoch FROM clock_timestamp()))",
        }[engine.dialect.name]
        with reading(engine) as connection:
            before = int(connection.scalar(text(expected)) or 0)
            told = now(connection)
            after = int(connection.scalar(text(expected)) or 0)
        assert before * 1_000 <= told <= (after + 1) * 1_000

    def test_the_clock_goes_on_within_a_transaction(self, engine: Engine) -> None:
        for begin in (reading, writing):
            with begin(engine) as connection:
                first = now(connection)
                eventually(lambda connection=connection, first=first: now(connection) > first)  # type: ignore[misc]  # of this turn

    def test_a_server_that_was_replaced_writes_nothing(self, engine: Engine) -> None:
        fenced = engine.execution_options(**{EPOCH: 0})
        with writing(fenced) as connection:
            set_token(connection, 1)
        with writing(engine) as connection:
            connection.execute(text("UPDATE counters SET value = 1 WHERE name = 'server_epoch'"))
        with pytest.raises(StoreTaken), writing(fenced) as connection:
            set_token(connection, 2)
        with reading(fenced) as connection:
            assert token(connection) == 1


def until_one_waits(engine: Engine) -> None:
    """Return once a writer waits for another. SQLite does not tell: there it is enough that it has asked."""
    if engine.dialect.name == "sqlite":
        return
    query = text("SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")

    def waits() -> bool:
        with reading(engine) as connection:
            return bool(connection.scalar(query))

    eventually(waits)


def eventually(holds: Callable[[], bool]) -> None:
    while not holds():
        pass
