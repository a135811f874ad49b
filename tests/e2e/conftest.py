"""A lake with the processes of icewright over it, ended with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.processes import Processes
from tests.lakes.sqlite import make_lake


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path, make_lake(tmp_path))
    try:
        yield found
    finally:
        found.end()
