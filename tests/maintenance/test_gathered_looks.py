"""Looks whose writes are gathered: what comes of those that cannot be written, and of those that are lost."""

from collections.abc import Mapping, Sequence

import pytest

from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.core.errors import IcewrightError
from icewright.core.times import Instant
from icewright.model.actions.orphans import FinishedPass
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policy import Policy, PolicyRule
from icewright.model.work.breaker import Thresholds
from icewright.ports.table_records import BeforeLook
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.builders.lakehouse import AUTO, HOUR_MS, NAME, Lakehouse
from tests.lakes.stores import new_store
from tests.narrowing import not_none

OBSERVE = {**AUTO, "icewright.mode": "observe"}
ORPHANS = {**AUTO, "icewright.remove-orphan-files.enabled": "true"}
OTHER = TableName("lake", ("open",), "other")


def lakehouse(properties: Mapping[str, str], others: Mapping[str, str] = ORPHANS) -> Lakehouse:
    """On SQLite, with a table that was looked at; ``others`` are the properties of tables in another namespace."""
    engine = new_store()
    made = Lakehouse(
        rules=(PolicyRule("lake", ("db",), properties), PolicyRule("lake", OTHER.namespace, others)),
        stores=lambda clock: (SqlTableStore(engine, clock), SqlTaskStore(engine, clock)),
        has_files=True,
    )
    made.create()
    made.append(1)
    made.rounds(3)
    return made


def asked_of(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> Sequence[tuple[TableName, Instant | None]]:
    """Of which tables the search for orphan files is told from now on, and until when it need not be told again."""
    maintainer, asked = lake.control.maintainer, list[tuple[TableName, Instant | None]]()
    want = maintainer._want_pass

    def want_pass(metadata: TableMetadata, policy: Policy, limits: Thresholds, found: BeforeLook) -> Instant | None:
        asked.append((metadata.name, want(metadata, policy, limits, found)))
        return asked[-1][1]

    monkeypatch.setattr(maintainer, "_want_pass", want_pass)
    return asked


@pytest.mark.parametrize("has_commit", [True, False])
def test_what_the_store_cannot_hold_stands_in_the_record_and_is_looked_at_later(*, has_commit: bool) -> None:
    lake = lakehouse(OBSERVE)
    lake.catalog.change(lake.metadata(), {"write.data.path": "s3://b/\ud800"})
    if has_commit:
        lake.append(1)
    lake.pass_time(2 * HOUR_MS)
    lake.rounds(1)
    record = not_none(lake.tables.record_by_name(NAME))
    assert not_none(record.problem).code == "invalid-message"
    assert not_none(record.next_look_at) > lake.clock.now()


def test_a_renamed_table_is_not_searched_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lakehouse(ORPHANS)
    passes = SqlSightings(lake.tables._engine, lake.store_clock)  # type: ignore[attr-defined]  # that of SQL
    table_id = lake.metadata().table_id
    passes.begin(table_id)
    passes.finish(table_id, FinishedPass(1, lake.clock.now(), True, 0, 0, None))
    lake.catalog.rename(NAME, OTHER)
    lake.restart()
    asked = asked_of(lake, monkeypatch)
    lake.control.maintainer.look(OTHER)
    assert asked
    assert all(until is not None and until > lake.clock.now() for _, until in asked)


def test_nobody_searches_by_a_second_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gives a table a second name in another namespace does not so decide about its files."""
    lake = lakehouse(OBSERVE)
    asked = asked_of(lake, monkeypatch)
    lake.catalog.register(OTHER, lake.metadata().metadata_log[-1].location)
    with pytest.raises(IcewrightError, match="is looked after"):
        lake.control.maintainer.look(OTHER)
    assert list(asked) == []
    lake.rounds(2)
    assert {plan.table_name for plan in lake.tables.plans(lake.metadata().table_id, limit=9)} == {NAME}
