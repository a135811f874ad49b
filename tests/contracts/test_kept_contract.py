"""What every store of what tasks took must do, sentence by sentence of the port."""

from __future__ import annotations

import pytest

from icewright.core.errors import Unsupported
from icewright.model.actions.undo import KEPT_BYTES_MAX, Kept
from icewright.model.iceberg.names import TableId
from icewright.ports.undo_records import UndoRecordStore
from tests.contracts.stores import Stores


@pytest.fixture
def store(stores: Stores) -> UndoRecordStore:
    return stores.kept()


def kept(number: int, at: int = 0, content: bytes = b"\x00\xff") -> Kept:
    return Kept(f"task-{number}", TableId("lake", "u"), at, content)


def test_what_was_kept_is_there_for_the_next_server(stores: Stores) -> None:
    stores.kept().keep(kept(1))
    assert stores.kept().kept("task-1") == kept(1)
    assert stores.kept().kept("task-2") is None


def test_a_later_try_replaces_it(store: UndoRecordStore) -> None:
    store.keep(kept(1, 1, b"a"))
    store.keep(kept(2, 1, b"b"))
    store.keep(kept(1, 2, b"c"))
    assert store.kept("task-1") == kept(1, 2, b"c")
    assert store.kept("task-2") == kept(2, 1, b"b")


def test_what_is_old_is_forgotten_oldest_first(store: UndoRecordStore) -> None:
    for number in range(5):
        store.keep(kept(number, at=10 - number))
    assert store.forget(9, 2) == 2
    assert [number for number in range(5) if store.kept(f"task-{number}") is not None] == [0, 1, 2]
    assert store.forget(9, 2) == 1
    assert store.forget(9, 2) == 0
    assert [number for number in range(5) if store.kept(f"task-{number}") is not None] == [0, 1]


def test_more_than_can_be_kept_is_refused_and_what_was_kept_stays(store: UndoRecordStore) -> None:
    store.keep(kept(1, content=b"a"))
    with pytest.raises(Unsupported, match="can be kept"):
        store.keep(kept(1, content=bytes(KEPT_BYTES_MAX + 1)))
    assert store.kept("task-1") == kept(1, content=b"a")
