"""The stores that the contracts are checked on."""

from __future__ import annotations

import pytest

from icewright.ports.store import TaskStore
from tests.contracts.stores import DATABASES, Stores, stores_on
from tests.doubles.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=DATABASES)
def stores(request: pytest.FixtureRequest, clock: ManualClock) -> Stores:
    return stores_on(request.param, request, clock)


@pytest.fixture
def store(stores: Stores) -> TaskStore:
    """The store of tasks, unless a contract is about another one."""
    return stores.tasks()
