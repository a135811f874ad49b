"""Upkeep as B9 measures it: what was not verified does not count.

With Spark it is ``python -m benchmarks B9 --short``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.upkeep import Upkeep
from icewright.core.reasons import Reason
from icewright.maintenance.dispatch import verification
from icewright.model.iceberg.catalog_entries import CatalogEntry
from tests.lakes.sqlite import append, make_lake, make_table, writer


@pytest.fixture
def entry(tmp_path: Path) -> CatalogEntry:
    entry = make_lake(tmp_path)
    table = make_table(entry, properties={"icewright.mode": "approve"})
    for number in range(3):
        append(table, range(number, number + 1))
    return entry


def expire(entry: CatalogEntry, state: Path) -> None:
    Upkeep(entry, state).expire(["db", "events"], older_than="PT0S", retain_last=1)


def test_an_expiry_that_was_verified_counts(entry: CatalogEntry, tmp_path: Path) -> None:
    expire(entry, tmp_path)
    assert len(writer(entry).load_table("db.events").snapshots()) == 1


def test_an_expiry_with_which_nothing_could_be_compared_does_not(
    entry: CatalogEntry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task succeeds."""
    monkeypatch.setattr(verification, "expired", lambda *_: Reason("unverified", "there is nothing to compare with"))
    with pytest.raises(RuntimeError, match=r"succeeded.*nothing to compare with"):
        expire(entry, tmp_path)
