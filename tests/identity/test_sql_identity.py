"""What of tokens and sessions is particular to a database: who takes the writers' turn there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from icewright.identity import sql as identity
from icewright.identity.sql import SqlIdentities
from icewright.model.access.identity import NewCode
from icewright.model.access.permissions import OWNER
from icewright.store.engine import open_store
from tests.doubles.clock import ManualClock
from tests.lakes.stores import sqlite_store
from tests.narrowing import not_none


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_store(sqlite_store(tmp_path / "store.db"))
    yield engine
    engine.dispose()


def test_t13_a_stranger_with_a_code_that_is_none_does_not_take_the_writers_turn(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    store = SqlIdentities(engine, clock)
    store.add_code("too-old", NewCode(OWNER, 1_000))
    clock.advance(1_000)
    store.add_code("good", NewCode(OWNER, 1_000))

    def turn(_engine: Engine) -> None:
        raise AssertionError("the writers' turn")

    with monkeypatch.context() as patched:
        patched.setattr(identity, "writing", turn)
        assert store.log_in("made-up", "s1") is None
        assert store.log_in("too-old", "s1") is None
        with pytest.raises(AssertionError, match="turn"):
            store.log_in("good", "s1")
    assert not_none(store.log_in("good", "s1")).principal == OWNER
    assert store.log_in("good", "s2") is None
