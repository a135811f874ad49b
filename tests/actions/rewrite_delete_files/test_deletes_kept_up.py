"""Work on delete files in the middle of a table's life, against the same life without any."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import event, given, settings
from hypothesis import strategies as st

from icewright.model.iceberg.files import DataFile, FileFormat
from tests.actions.rewrite_delete_files import test_dangling_deletes as dangling
from tests.actions.rewrite_delete_files import test_position_deletes as position
from tests.builders.little_tables import READERS, Deleting, LittleTable, Rows, append, as_iceberg, delete, visible
from tests.builders.observations import data_file, position_deletes
from tests.conftest import CAMPAIGN

STEPS = ("append", "append", "delete", "again", "again", "remove", "fold", "dangling", "position", "position")


def delete_again(draw: st.DrawFn, table: LittleTable) -> None:
    """Rows of a live file, by a delete file of its own or by one of its partition."""
    file = draw(st.sampled_from(table.rows)).file
    one = position_deletes(file.partition, 50_000 + table.number, sequence_number=table.number)
    if draw(st.booleans()):
        one = replace(one, path_lower=file.path, path_upper=file.path)
    table.deletes.append(Deleting(one, positions=((file.path, draw(st.integers(0, 2))),)))


def fold_in(draw: st.DrawFn, table: LittleTable, paths: list[DataFile]) -> None:
    """As a good writer does: in its partition with the old number or a new one, elsewhere with a new one."""
    old = draw(st.sampled_from(table.rows))
    gone = {place for deleting in table.deletes for place in as_iceberg(deleting, old)}
    keys = tuple(key for place, key in enumerate(old.keys) if place not in gone)
    table.rows.remove(old)
    if keys:
        number = draw(st.sampled_from([old.file.data_sequence_number, table.number]))
        new = data_file(old.file.partition, len(paths), sequence_number=number)
        paths.append(new)
        table.rows.append(Rows(new, keys))


def write(draw: st.DrawFn, table: LittleTable, paths: list[DataFile], step: str) -> None:
    """What a writer does in a step, if it is one of theirs."""
    if step == "append" or not paths:
        append(draw, table, paths)
    elif step == "delete":
        delete(draw, table, paths)
    elif not table.rows:
        return
    elif step == "again":
        delete_again(draw, table)
    elif step == "remove":
        table.rows.remove(draw(st.sampled_from(table.rows)))
    elif step == "fold":
        fold_in(draw, table, paths)


@dataclass(frozen=True)
class Step:
    """A step in a table's life: what it is afterwards, and which delete files came."""

    what: str
    after: LittleTable
    came: tuple[Deleting, ...]


@st.composite
def lives(draw: st.DrawFn, *, vectors: bool) -> list[Step]:
    """The life of a table whose deletes nobody looks after."""
    table, paths, steps = LittleTable(), list[DataFile](), list[Step]()
    for _ in range(draw(st.integers(3, 18))):
        table.number += 1
        what, before = draw(st.sampled_from(STEPS)), len(table.deletes)
        write(draw, table, paths, what)
        if not vectors and any(each.delete.file_format is FileFormat.PUFFIN for each in table.deletes[before:]):
            del table.deletes[before:]
        after = replace(table, rows=list(table.rows), deletes=list(table.deletes))
        steps.append(Step(what, after, tuple(table.deletes[before:])))
    return steps


@settings(max_examples=300 if CAMPAIGN else 100, deadline=None)
@given(lives(vectors=False) | lives(vectors=True))
def test_w5_w4_a_table_that_is_kept_up_has_the_rows_of_one_that_is_not(life: list[Step]) -> None:
    """Appends, deletes of all kinds in several specs, paths that are used again, rewrites, and both actions."""
    has_vectors = any(each.delete.file_format is FileFormat.PUFFIN for each in life[-1].after.deletes)
    kept_up = LittleTable()
    for step in life:
        kept_up = replace(step.after, deletes=[*kept_up.deletes, *step.came])
        if step.what == "dangling":
            gone = dangling.planned(kept_up)
            kept_up = kept_up.without(gone)
            event(f"dangling: {bool(gone)}")
        elif step.what == "position" and not has_vectors:
            kept_up = merged(kept_up)
        for reader in READERS:
            assert visible(kept_up, reader) == visible(step.after, reader)


def merged(lake: LittleTable) -> LittleTable:
    """The table with its position delete files written anew, under names that nothing else has."""
    action = position.decide(lake).action
    event(f"position deletes: {action is not None}")
    if action is None:
        return lake
    done = position.carried_out(lake, action)
    left = len(lake.deletes) - len(action.deletes)
    renamed = [
        replace(each, delete=replace(each.delete, path=f"{each.delete.path}-{lake.number}"))
        for each in done.deletes[left:]
    ]
    return replace(done, deletes=[*done.deletes[:left], *renamed])
