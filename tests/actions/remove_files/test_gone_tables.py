"""Files of a table that is gone: purged by a person's word alone, and by nobody's where anybody may need them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from icewright.actions.remove_files.deleter import Batch, Deleter
from icewright.actions.remove_files.orphans.gone_tables import GoneTables
from icewright.actions.remove_files.service import GONE_BATCHES, OfGone, Remover, StorageClients
from icewright.core.completeness import Gap, Gaps, Known
from icewright.core.errors import NotAllowed
from icewright.core.reasons import Reason
from icewright.model.actions.deletion import WINDOW_FLOOR_MS
from icewright.model.iceberg.locations import Aliases
from icewright.model.iceberg.names import TableId, TableName
from icewright.ownership.model import GoneUuid
from icewright.work.store.task_store import SqlTaskStore
from tests.builders.deletions import DAY_MS, HELD, NAME, TABLE, World, tended
from tests.lakes.stores import new_store
from tests.narrowing import not_none

OTHER = TableName("pond", ("db",), "again")
NOBODY = frozenset[TableName]()


@dataclass
class Gone(World):
    """A table that somebody drops, and what the registry says of others."""

    others: frozenset[TableName] = NOBODY
    unknown: tuple[Gap, ...] = ()
    withdrawn: tuple[GoneUuid, ...] = ()
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.called = NAME

    def users(self, uuid: str, folders: Collection[str]) -> Known[frozenset[TableName]]:
        self.asked.append((uuid, tuple(folders)))
        gaps = Gaps()
        for gap in self.unknown:
            gaps.add(gap)
        return gaps.judge(self.others)

    def purge(self) -> Batch:
        tables = GoneTables(self.needs, self.users, lambda _uuid: self.withdrawn)
        doors = self.store, self.objects, self.quarantine
        of_gone = Deleter(*doors, tables.needs, tables.place, self.other_tables, aliases=Aliases())
        hands = StorageClients(self.deleter(), self.needs, None, OfGone(of_gone, tables))  # type: ignore[arg-type] # not asked
        tasks = SqlTaskStore(new_store(), self.clock)
        remover = Remover(
            {"lake": hands},
            self.store,
            tasks,
            lambda _ms: None,
            lambda _id: self.called,
            lambda _task, _seen: None,
            lambda _run, _reason: None,
        )
        return remover.purge_gone("run-1", wait_s=1)


@pytest.fixture
def world() -> Gone:
    """Three files went, and the table was dropped; the window is over."""
    made = Gone()
    made.deleter().begin(made.plan(made.garbage(3)), "run-1")
    made.run_to_its_end()
    made.clock.advance(WINDOW_FLOOR_MS)
    made.is_there = False
    return made


def held(world: Gone) -> int:
    return sum(path.startswith(f"{HELD}/") for path in world.storage.objects)


def test_i1_a_person_has_them_purged_where_nobody_is_left_who_may_need_them(world: Gone) -> None:
    tended(world)
    assert (set(world.states().values()), held(world)) == ({"quarantined"}, 3)
    assert world.purge().waits is None
    assert (set(world.states().values()), held(world)) == ({"purged"}, 0)
    assert world.asked == [(TABLE.uuid, ("s3://b/wh/t/data/",))]


def test_s1_nothing_goes_before_its_window_is_over(world: Gone) -> None:
    world.clock.advance(-DAY_MS)
    world.purge()
    assert (set(world.states().values()), held(world)) == ({"quarantined"}, 3)


def test_i1_a_table_that_is_there_is_asked_what_it_needs(world: Gone) -> None:
    world.is_there = True
    with pytest.raises(NotAllowed, match="is there") as refused:
        world.purge()
    assert refused.value.hint == "icewright quarantine purge run-1"
    assert held(world) == 3


def test_nothing_goes_while_a_table_of_before_is_there_after_all(world: Gone) -> None:
    """It was declared gone from the place of this one, and that was withdrawn."""
    world.withdrawn = (GoneUuid("before", 0, "Ada", ()),)
    assert (not_none(world.purge().waits).code, held(world)) == ("partial-knowledge", 3)
    world.withdrawn = ()
    assert world.purge().waits is None


def test_l4_another_table_under_its_name_does_not_keep_what_lies_elsewhere(world: Gone) -> None:
    world.is_there, world.table_id = True, TableId("lake", "uuid-2")
    assert world.purge().waits is None
    assert held(world) == 0


def test_l4_l6_nothing_goes_while_the_table_is_known_by_another_name_or_another_one_is_there(world: Gone) -> None:
    world.others = frozenset({OTHER})
    waits = not_none(world.purge().waits)
    assert (waits.code, "pond.db.again" in waits.text) == ("partial-knowledge", True)
    assert (set(world.states().values()), held(world)) == ({"quarantined"}, 3)


def test_o13_i8_nothing_goes_while_not_all_tables_are_known(world: Gone) -> None:
    world.unknown = (Gap("pond", Reason("unavailable", "it does not answer")),)
    waits = not_none(world.purge().waits)
    assert (waits.code, "pond: it does not answer" in waits.text) == ("partial-knowledge", True)
    assert held(world) == 3


def test_nothing_is_ever_put_back_and_much_goes_request_by_request() -> None:
    world = Gone()
    paths = world.garbage(GONE_BATCHES * 100 + 50)
    world.carry_out(world.plan(paths))
    world.clock.advance(WINDOW_FLOOR_MS)
    world.is_there = False
    assert not world.purge().is_done
    assert held(world) == 50
    world.purge()
    assert held(world) == 0
    assert not any(path in world.storage.objects for path in paths)
