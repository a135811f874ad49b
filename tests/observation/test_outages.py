"""What several looks at once tell of a catalog and of its storage, in whatever order they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from icewright.model.iceberg.names import TableName
from icewright.observation.outages import STORAGE_AWAY_MAX, Outages
from tests.doubles.clock import ManualClock

NAMES = [TableName("lake", ("db",), f"events_{number}") for number in range(STORAGE_AWAY_MAX)]
OTHER, ELSEWHERE = TableName("lake", ("db",), "orders"), TableName("far", ("db",), "orders")


@pytest.fixture
def outages() -> Outages:
    return Outages(ManualClock())


def test_storage_that_answers_none_of_several_looks_at_once_is_away(outages: Outages) -> None:
    outages.seen(OTHER)
    begun = outages.storage_answered("lake")
    outages.seen(ELSEWHERE)
    assert [outages.storage_fails(name, begun) for name in NAMES] == [False] * (STORAGE_AWAY_MAX - 1) + [True]


def test_looks_that_end_last_are_not_several_in_a_row_where_others_were_answered_since(outages: Outages) -> None:
    """Three tables with a storage of their own, which wait for it for long, stop no other table of their catalog."""
    begun = outages.storage_answered("lake")
    outages.seen(OTHER)
    assert not any(outages.storage_fails(name, begun) for name in NAMES)
    begun = outages.storage_answered("lake")
    assert [outages.storage_fails(name, begun) for name in NAMES] == [False] * (STORAGE_AWAY_MAX - 1) + [True]


class Guarded:
    """One of the books; whoever changes it has to have the lock."""

    def __init__(self, outages: Outages, name: str) -> None:
        self._outages, self._book = outages, getattr(outages, name)
        self.changes = 0
        setattr(outages, name, self)

    def __contains__(self, key: object) -> bool:
        return key in self._book

    def __len__(self) -> int:
        return len(self._book)

    def __getattr__(self, name: str) -> Any:
        assert self._outages._lock.locked(), "changed without its lock"
        self.changes += 1
        return getattr(self._book, name)

    def __getitem__(self, key: str) -> Any:
        return self.__getattr__("__getitem__")(key)


@pytest.mark.parametrize(
    "tell",
    [
        lambda outages: outages.seen(OTHER),
        lambda outages: outages.fails_alone(OTHER, doubtful=True),
        lambda outages: outages.storage_fails(OTHER, 0),
        lambda outages: outages.pause("lake"),
        lambda outages: outages.answered("lake"),
    ],
)
def test_what_is_told_by_several_threads_is_written_by_one_after_the_other(
    outages: Outages, tell: Callable[[Outages], object]
) -> None:
    guarded = [Guarded(outages, name) for name in ("_answered", "_suspects", "_storage_away_for")]
    tell(outages)
    assert sum(one.changes for one in guarded)
