"""Tables loaded for people who wait: a catalog that hangs answers nobody, and keeps nobody waiting."""

from __future__ import annotations

import threading

import pytest

from icewright.catalogs import parallel_catalogs
from icewright.catalogs.parallel_catalogs import BoundedLoads
from icewright.core.errors import NotFound, Unavailable
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock

EVENTS, ORDERS = TableName("lake", ("db",), "events"), TableName("lake", ("db",), "orders")


class Hanging(MemoryCatalog):
    """A catalog that answers when it is let go."""

    def __init__(self) -> None:
        super().__init__("lake", ManualClock())
        self.let_go, self.asked = threading.Event(), list[TableName]()

    def load(self, name: TableName) -> TableMetadata:
        self.asked.append(name)
        self.let_go.wait(60)
        return super().load(name)


@pytest.fixture
def hanging() -> Hanging:
    catalog = Hanging()
    for name in (EVENTS, ORDERS):
        catalog.create(name)
    return catalog


def test_while_one_load_is_late_no_other_is_begun_and_its_answer_is_for_who_asks_next(hanging: Hanging) -> None:
    loads = BoundedLoads(limit_s=0.01)
    for _ in range(3):
        with pytest.raises(Unavailable, match=r"catalog lake does not answer: no metadata of lake\.db\.events"):
            loads.load(hanging, EVENTS)
    assert hanging.asked == [EVENTS]
    with pytest.raises(Unavailable):
        loads.load(hanging, ORDERS)
    assert hanging.asked == [EVENTS, ORDERS]
    hanging.let_go.set()
    (load,) = [one for name, one in loads._late.items() if name == EVENTS]
    assert load.answer.result(60).name == EVENTS
    assert loads.load(hanging, EVENTS) is load.answer.result()
    assert hanging.asked == [EVENTS, ORDERS]
    patient = BoundedLoads()
    assert patient.load(hanging, EVENTS).name == EVENTS
    assert patient.load(hanging, EVENTS) is not load.answer.result()


def test_an_answer_that_came_long_ago_is_asked_for_anew(hanging: Hanging, monkeypatch: pytest.MonkeyPatch) -> None:
    loads = BoundedLoads(limit_s=0.01)
    with pytest.raises(Unavailable):
        loads.load(hanging, EVENTS)
    hanging.let_go.set()
    loads._late[EVENTS].answer.result(60)
    monkeypatch.setattr(parallel_catalogs, "LATE_S_MAX", -1.0)
    monkeypatch.setattr(loads, "_limit_s", 60.0)
    loads.load(hanging, EVENTS)
    assert hanging.asked == [EVENTS, EVENTS]


def test_of_a_catalog_that_hangs_not_all_tables_are_asked(hanging: Hanging, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_catalogs, "RUNNING_MAX", 2)
    loads = BoundedLoads(limit_s=0.01)
    names = [TableName("lake", ("db",), f"t{number}") for number in range(4)]
    for name in names:
        with pytest.raises(Unavailable):
            loads.load(hanging, name)
    assert hanging.asked == names[:2]
    hanging.let_go.set()
    for name in names[:2]:
        assert isinstance(loads._late[name].answer.exception(60), NotFound)
        with pytest.raises(NotFound):  # what the catalog says at last is passed on
            loads.load(hanging, name)
    assert not +loads._running


def test_where_no_thread_can_be_had_no_place_is_taken(hanging: Hanging, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_catalogs, "RUNNING_MAX", 1)
    loads = BoundedLoads()

    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(Unavailable, match="can't start new thread"):
            loads.load(hanging, EVENTS)
    hanging.let_go.set()
    assert loads.load(hanging, EVENTS).name == EVENTS
