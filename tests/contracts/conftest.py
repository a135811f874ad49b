"""The stores that the contracts are checked on."""

from __future__ import annotations

import pytest

from tests.contracts.stores import IMPLEMENTATIONS, Stores, stores_for
from tests.doubles.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=IMPLEMENTATIONS)
def stores(request: pytest.FixtureRequest, clock: ManualClock) -> Stores:
    return stores_for(request, clock)
