"""A store has one identity, whoever asks for it first and when."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import pytest

from icewright.server.cluster.store_identity import store_identity
from tests.contracts.stores import DATABASES, stores_on
from tests.doubles.clock import ManualClock
from tests.lakes.stores import new_store


@pytest.mark.parametrize("database", DATABASES)
def test_servers_that_ask_at_once_are_told_the_same(
    database: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, together = stores_on(database, request, ManualClock()).engine, Barrier(4)

    drawn, draws = Barrier(2), list[int]()

    def draw(_bits: int) -> int:
        """Wait for somebody else who draws: whoever is alone in the store waits in vain."""
        draws.append(len(draws) + 1)
        with suppress(BrokenBarrierError):
            drawn.wait(0.5)
        return draws[-1]

    monkeypatch.setattr("secrets.randbits", draw)

    def ask(_number: int) -> str:
        together.wait()
        return store_identity(engine)

    with ThreadPoolExecutor(4) as pool:
        told = set(pool.map(ask, range(4)))
    assert told == {store_identity(engine)} == {f"{1:016x}"}
    assert draws == [1]


def test_another_store_has_another_identity() -> None:
    first, second = new_store(), new_store()
    assert store_identity(first) != store_identity(second)
