"""The stores that the contracts are checked on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icewright.adapters.memory.clock import ManualClock
from tests.contracts.stores import IMPLEMENTATIONS, Stores, opened


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=IMPLEMENTATIONS)
def stores(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[Stores]:
    with opened(request, tmp_path, clock) as stores:
        yield stores
