"""A table of a few rows with its deletes applied by the spec's rules, as readers do it: nothing is indexed or skipped.

Rows have one key each. What a delete file holds is written beside it, and what manifests say of it follows from that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, FileFormat, Partition
from tests.builders.observations import (
    WHOLE,
    data_file,
    deletion_vector,
    equality_deletes,
    month,
    position_deletes,
)

GLOBAL_SPECS = {1}
"""Specs without fields in the table of :mod:`tests.builders.observations`."""

PARTITIONS = (month(1), month(2), month(1, spec_id=2), WHOLE)

Reader = Callable[["Deleting", "Rows"], set[int]]
"""Which positions of a data file a delete file removes, as some reader sees it."""


@dataclass(frozen=True)
class Rows:
    """A data file and the keys of its rows."""

    file: DataFile
    keys: tuple[int, ...]


@dataclass(frozen=True)
class Deleting:
    """A delete file, and what is in it: paths with positions, or keys."""

    delete: DeleteFile
    positions: tuple[tuple[str, int], ...] = ()
    keys: frozenset[int] = frozenset()


@dataclass
class LittleTable:
    """Live data files and delete files; every commit has the next sequence number."""

    rows: list[Rows] = field(default_factory=list)
    deletes: list[Deleting] = field(default_factory=list)
    number: int = 0

    @property
    def data_files(self) -> list[DataFile]:
        return [each.file for each in self.rows]

    @property
    def delete_files(self) -> list[DeleteFile]:
        return [each.delete for each in self.deletes]

    def without(self, deletes: Iterable[DeleteFile]) -> LittleTable:
        gone = {(one.path, one.content_offset) for one in deletes}
        left = [each for each in self.deletes if (each.delete.path, each.delete.content_offset) not in gone]
        return replace(self, deletes=left)


def by_the_spec(deleting: Deleting, rows: Rows) -> set[int]:
    """Scan planning sentence by sentence, but that a vector hides no position deletes."""
    one, file = deleting.delete, rows.file
    if one.content is FileContent.EQUALITY_DELETES:
        reached = one.partition == file.partition or one.partition.spec_id in GLOBAL_SPECS
        if not reached or file.data_sequence_number >= one.data_sequence_number:
            return set()
        return {place for place, key in enumerate(rows.keys) if key in deleting.keys}
    named = one.referenced_data_file in (None, file.path)
    if one.partition != file.partition or not named or file.data_sequence_number > one.data_sequence_number:
        return set()
    return {position for path, position in deleting.positions if path == file.path}


def as_iceberg(deleting: Deleting, rows: Rows) -> set[int]:
    """As Iceberg's readers do it: position deletes of one data file are found by its path, in whatever partition."""
    one, file = deleting.delete, rows.file
    path = one.referenced_data_file or (one.path_lower if one.path_lower == one.path_upper else None)
    if one.content is FileContent.EQUALITY_DELETES or path is None:
        return by_the_spec(deleting, rows)
    if path != file.path or file.data_sequence_number > one.data_sequence_number:
        return set()
    return {position for name, position in deleting.positions if name == file.path}


READERS: Sequence[Reader] = (by_the_spec, as_iceberg)


def visible(table: LittleTable, reader: Reader) -> Counter[tuple[str, int, int]]:
    """Every row that a reader sees: its file, its position, its key."""
    found: Counter[tuple[str, int, int]] = Counter()
    for rows in table.rows:
        gone = {place for deleting in table.deletes for place in reader(deleting, rows)}
        found.update((rows.file.path, place, key) for place, key in enumerate(rows.keys) if place not in gone)
    return found


@st.composite
def little_tables(draw: st.DrawFn) -> LittleTable:
    """Data files and deletes of all kinds, many of whose data files are gone."""
    table = LittleTable()
    paths: list[DataFile] = []
    for _ in range(draw(st.integers(1, 12))):
        table.number += 1
        what = draw(st.sampled_from(["append", "append", "delete", "delete", "delete", "remove", "rewrite"]))
        if what == "append" or not paths:
            append(draw, table, paths)
        elif what == "delete":
            delete(draw, table, paths)
        elif what == "remove" and table.rows:
            table.rows.remove(draw(st.sampled_from(table.rows)))
        elif what == "rewrite" and table.rows:
            rewrite(draw, table, paths)
    return table


def append(draw: st.DrawFn, table: LittleTable, paths: list[DataFile]) -> None:
    """A new file, now and then under a path that was used before (hazard E3)."""
    partition = draw(st.sampled_from(PARTITIONS))
    again = draw(st.integers(0, 5)) == 0 and paths
    number = len(paths)
    new = data_file(partition, number, sequence_number=table.number)
    live = {each.file.path for each in table.rows}
    if again:
        new = replace(new, path=draw(st.sampled_from(paths)).path)
    if new.path in live:
        return
    paths.append(new)
    table.rows.append(Rows(new, tuple(draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)))))


def delete(draw: st.DrawFn, table: LittleTable, paths: Sequence[DataFile]) -> None:
    of, number = draw(st.sampled_from(paths)), len(table.deletes) + 100 * table.number
    kind = draw(st.sampled_from(["partition", "named", "bounds", "vector", "equality"]))
    if kind == "equality":
        partition = draw(st.sampled_from(PARTITIONS))
        one = equality_deletes(partition, number, sequence_number=table.number)
        table.deletes.append(Deleting(one, keys=frozenset(draw(st.sets(st.integers(0, 3), min_size=1)))))
        return
    partition = of.partition if draw(st.integers(0, 9)) else draw(st.sampled_from(PARTITIONS))
    one = position_deletes(partition, number, sequence_number=table.number)
    its = [(of.path, draw(st.integers(0, 2)))]
    if kind == "named":
        one = replace(one, referenced_data_file=of.path)
    elif kind == "bounds":
        one = replace(one, path_lower=of.path, path_upper=of.path)
    elif kind == "vector":
        if any(d.delete.file_format is FileFormat.PUFFIN and d.delete.path.startswith(of.path) for d in table.deletes):
            return
        one = replace(deletion_vector(of, 1, sequence_number=table.number), partition=partition)
    else:
        its += [(draw(st.sampled_from(paths)).path, draw(st.integers(0, 2)))]
    table.deletes.append(Deleting(one, positions=tuple(its)))


def rewrite(draw: st.DrawFn, table: LittleTable, paths: list[DataFile]) -> None:
    """A file becomes another, whose sequence number is kept or new; deletes are folded in."""
    old = draw(st.sampled_from(table.rows))
    gone = {place for deleting in table.deletes for place in as_iceberg(deleting, old)}
    keys = tuple(key for place, key in enumerate(old.keys) if place not in gone)
    table.rows.remove(old)
    if not keys:
        return
    number = old.file.data_sequence_number if draw(st.booleans()) else table.number
    partition: Partition = draw(st.sampled_from([old.file.partition, *PARTITIONS]))
    new = data_file(partition, len(paths), sequence_number=number)
    paths.append(new)
    table.rows.append(Rows(new, keys))
