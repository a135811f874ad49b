"""The writers of the simulation, and what they think is in their tables.

Rows are numbers, and kept by file beside the catalog, which has files without bytes: so what readers see can be
compared with what the writers did, whatever icewright did in between.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from icewright.model.actions.actions import RewriteDataFiles
from icewright.model.iceberg.files import FileContent, FileFormat, Partition
from icewright.model.iceberg.layouts import Level
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import MAIN_BRANCH, TableMetadata
from icewright.model.work.jobs import TaskSpec
from tests.builders.lakehouse import BONN, KYOTO, MIB, MINUTE_MS, Lakehouse
from tests.builders.worker import output_rows
from tests.doubles.lake import MemoryFile

MODE_KEY, OBSERVED = "icewright.mode", "observe"
LAID_OUT = {
    "icewright.layout": "sort(id)",
    "icewright.level-1.size-bytes": str(12 * MIB),
    "icewright.level-2.runs": "2",
    "write.target-file-size-bytes": str(8 * MIB),
}
"""Properties of a table that is to be put in order soon."""
VECTORS_SINCE = 3
"""The format version in which position deletes are deletion vectors."""


class Broken(AssertionError):
    """An invariant does not hold."""


@dataclass
class Rows:
    """What the writers think is in a table: each row is a number, and in the table once."""

    folder: str = ""
    """Where its files are."""
    expected: set[int] = field(default_factory=set)
    of_file: dict[str, list[int]] = field(default_factory=dict)
    deletes: dict[str, tuple[str, frozenset[int]]] = field(default_factory=dict)
    """Of each position delete file or deletion vector the data file and the rows that it removes."""
    at: dict[int, frozenset[int]] = field(default_factory=dict)
    """What was expected at each snapshot, for those who go back to it."""


class Writers:
    """Programs that know nothing of icewright. The table numbered ``observed`` stays in mode ``observe``."""

    def __init__(self, house: Lakehouse, chance: random.Random, names: list[TableName], observed: int) -> None:
        self._house, self._chance, self._names, self._observed = house, chance, names, observed
        self._rows: dict[TableId, Rows] = {}
        self._next_row = 0
        self._renamed = 0
        self._checked: dict[TableName, str] = {}
        self._statements: list[tuple[TableId, MemoryFile]] = []
        """Long DELETEs under way: what they have found, and not yet committed."""
        self.also: Callable[[], dict[str, str]] = dict
        """Further properties of a table that is made."""
        self.resurrects = False
        """Whether merges forget the deletes that they were told to apply."""
        self.folded = 0
        """Delete files that merges have applied."""
        self.levels: Counter[Level] = Counter()
        """Groups that were rewritten, by level."""
        self.expired: set[tuple[TableId, int]] = set()
        """Snapshots that other programs have let expire."""
        self.outrun = 0
        """Statements that failed because somebody rewrote what they wanted to change."""

    @property
    def observed(self) -> TableName:
        """The table that is only to be looked at."""
        return self._names[self._observed]

    def create(self, name: TableName, mode: str) -> None:
        """A new empty table."""
        properties = {MODE_KEY: mode, "icewright.ignore-other-optimizers": "true"}
        properties |= LAID_OUT if self._chance.random() < 0.4 else {}
        version = self._chance.choice([2, 2, 3])
        table_id = self._house.create(name, properties | self.also(), format_version=version)
        self._rows[table_id] = Rows(f"{self._house.metadata_of(name).location}/data/")

    def write(self, name: TableName) -> str:
        """Somebody changes a table; what they did to it."""
        kinds = {
            "append": 30,
            "overwrite": 4,
            "delete": 1,
            "begin": 1,
            "end": 2,
            "rewrite": 1,
            "manifests": 1,
            "recreate": 0.3,
            "rename": 0.3,
            "rollback": 0.5,
            "expire": 1,
            "mode": 2,
        }
        (kind,) = self._chance.choices(list(kinds), list(kinds.values()))
        live = [file for file in self._house.catalog.live_files(name) if file.content is FileContent.DATA]
        self._do(kind if live or kind in ("recreate", "rename", "mode", "end") else "append", name, live)
        self._remember(self._names)
        return kind

    def _do(self, kind: str, name: TableName, live: list[MemoryFile]) -> None:
        rows, catalog = self.rows_of(name), self._house.catalog
        kinds: dict[str, Callable[[], object]] = {
            "append": lambda: catalog.append(name, self._files(rows)),
            "overwrite": lambda: self._overwrite(name, rows, self._chance.choice(live)),
            "delete": lambda: self._delete_row(name, rows, self._chance.choice(live)),
            "begin": lambda: self._statements.append((catalog.load(name).table_id, self._chance.choice(live))),
            "end": self._end_statement,
            "rewrite": lambda: self._rewrite_by_others(
                name, rows, [file for file in live if file.partition == live[0].partition]
            ),
            "manifests": lambda: catalog.rewrite_manifests(name),
            "recreate": lambda: self._recreate(name),
            "rename": lambda: self._rename(name),
            "rollback": lambda: self._roll_back(name, rows),
            "expire": lambda: self._expire(name),
            "mode": lambda: self._change_mode(name),
        }
        available, catalog.available = catalog.available, True  # writers have their own ways
        try:
            kinds[kind]()
        finally:
            catalog.available = available

    def _files(self, rows: Rows) -> list[MemoryFile]:
        return [self._file(rows, self._chance.randint(1, 5)) for _ in range(self._chance.randint(1, 6))]

    def _recreate(self, name: TableName) -> None:
        self._house.catalog.drop(name)
        self.create(name, OBSERVED if name == self.observed else "auto")

    def _change_mode(self, name: TableName) -> None:
        if name != self.observed:
            self._house.catalog.set_properties(name, {MODE_KEY: self._chance.choice(["auto", "auto", OBSERVED])})

    def rows_of(self, name: TableName) -> Rows:
        """What is in a table."""
        return self._rows[self._house.metadata_of(name).table_id]

    def _remember(self, names: list[TableName]) -> None:
        for name in names:
            metadata = self._house.metadata_of(name)
            rows = self._rows[metadata.table_id]
            if metadata.current_snapshot_id is not None and metadata.current_snapshot_id not in rows.at:
                rows.at[metadata.current_snapshot_id] = frozenset(rows.expected)

    def _file(self, rows: Rows, count: int) -> MemoryFile:
        file = self.written(rows, count)
        rows.expected.update(rows.of_file[file.path])
        return file

    def written(self, rows: Rows, count: int) -> MemoryFile:
        """A file of new rows that nobody has committed."""
        numbers = list(range(self._next_row, self._next_row + count))
        self._next_row += count
        partition, size_bytes = self._chance.choice([BONN, KYOTO]), self._chance.choice([1, 1, 2, 60]) * MIB
        file = self._new(rows, partition, size_bytes, count)
        rows.of_file[file.path] = numbers
        return file

    def commit_late(self, name: TableName, file: MemoryFile) -> None:
        """A file that was written a while ago is committed."""
        rows = self.rows_of(name)
        available, self._house.catalog.available = self._house.catalog.available, True
        self._house.catalog.append(name, [file])
        self._house.catalog.available = available
        rows.expected.update(rows.of_file[file.path])
        self._remember([name])

    def hand_over(self, name: TableName, other: TableName, file: MemoryFile) -> None:
        """The rows of a file that nobody has committed are to be another table's."""
        self.rows_of(other).of_file[file.path] = self.rows_of(name).of_file.pop(file.path)

    def remove_file(self, name: TableName, file: MemoryFile) -> None:
        """All rows of a file are deleted, whose snapshot stays."""
        rows = self.rows_of(name)
        available, self._house.catalog.available = self._house.catalog.available, True
        self._house.catalog.overwrite(name, add=[], remove=[file.path])
        self._house.catalog.available = available
        rows.expected.difference_update(rows.of_file[file.path])
        self._remember([name])

    def set_back(self, metadata: TableMetadata) -> None:
        """The server has set ``main`` to another snapshot, because a person wanted that."""
        rows = self._rows[metadata.table_id]
        rows.expected = set(rows.at[metadata.current_snapshot_id or 0])

    def _new(self, rows: Rows, partition: Partition, size_bytes: int, count: int) -> MemoryFile:
        (file,) = self._house.files(1, partition, size_bytes, count)
        file = replace(file, path=rows.folder + file.path)
        self._house.put(file)
        return file

    def _visible(self, rows: Rows, file: str, deletes: Iterable[str]) -> list[int]:
        """The rows of a data file that some delete files leave."""
        applied = [rows.deletes[delete] for delete in deletes]
        gone = frozenset[int]().union(*(removed for path, removed in applied if path == file))
        return [row for row in rows.of_file[file] if row not in gone]

    def _deletes(self, name: TableName) -> list[str]:
        return [f.path for f in self._house.catalog.live_files(name) if f.content is not FileContent.DATA]

    def _deletes_of(self, name: TableName, file: MemoryFile) -> list[str]:
        rows = self.rows_of(name)
        return [delete for delete in self._deletes(name) if rows.deletes[delete][0] == file.path]

    def _overwrite(self, name: TableName, rows: Rows, file: MemoryFile) -> None:
        """Somebody removes a row by writing its file anew."""
        visible = self._visible(rows, file.path, self._deletes(name))
        kept, add = visible[1:], []
        if kept:
            new = self._new(rows, file.partition, MIB, len(kept))
            rows.of_file[new.path] = kept
            add = [new]
        started_at = self._house.writers_clock.now() - self._chance.choice([0, 5 * MINUTE_MS])
        vectors = [] if self._house.metadata_of(name).format_version < VECTORS_SINCE else self._deletes_of(name, file)
        self._house.catalog.overwrite(name, add=add, remove=[file.path, *vectors], first_written_at=started_at)
        rows.expected.difference_update(visible[:1])

    def _delete_row(self, name: TableName, rows: Rows, file: MemoryFile) -> None:
        visible = self._visible(rows, file.path, self._deletes(name))
        if not visible:
            return
        path = f"{rows.folder}delete-{self._house.ids.new('d')}"
        kind, file_format, gone, old = FileContent.POSITION_DELETES, FileFormat.PARQUET, {visible[0]}, list[str]()
        if self._house.metadata_of(name).format_version >= VECTORS_SINCE:  # one per data file
            file_format = FileFormat.PUFFIN
            old = self._deletes_of(name, file)
            gone |= {row for delete in old for row in rows.deletes[delete][1]}
        deletes = MemoryFile(
            path, file.partition, 100, len(gone), file_format, content=kind, referenced_data_file=file.path
        )
        self._house.put(deletes)
        rows.deletes[path] = (file.path, frozenset(gone))
        self._house.catalog.overwrite(name, add=[deletes], remove=old)
        rows.expected.remove(visible[0])

    def _end_statement(self) -> None:
        """A long DELETE commits, unless what it found is gone: Iceberg has the writer validate that."""
        if not self._statements:
            return
        table_id, file = self._statements.pop(0)
        name = next((name for name in self._names if self._house.metadata_of(name).table_id == table_id), None)
        if name is None or file.path not in {live.path for live in self._house.catalog.live_files(name)}:
            self.outrun += 1
            return
        self._delete_row(name, self._rows[table_id], file)

    def _rewrite_by_others(self, name: TableName, rows: Rows, files: list[MemoryFile]) -> None:
        """Another program compacts a partition and applies its deletes."""
        partition = files[0].partition
        deletes = [
            f.path
            for f in self._house.catalog.live_files(name)
            if f.content is not FileContent.DATA and f.partition == partition
        ]
        kept = [row for file in files for row in self._visible(rows, file.path, deletes)]
        new = self._new(rows, partition, 60 * MIB, len(kept))
        rows.of_file[new.path] = kept
        self._house.catalog.overwrite(name, add=[new], remove=[*(file.path for file in files), *deletes])

    def _rename(self, name: TableName) -> None:
        self._renamed += 1
        new = TableName(name.catalog, name.namespace, f"{name.name.split('_')[0]}_{self._renamed}")
        self._house.catalog.rename(name, new)
        self._names[self._names.index(name)] = new

    def _roll_back(self, name: TableName, rows: Rows) -> None:
        """The owner takes the latest commits back, icewright's among them."""
        known = [s.snapshot_id for s in self._house.metadata_of(name).ancestors() if s.snapshot_id in rows.at]
        snapshot_id = self._chance.choice(known[:4])
        self._house.catalog.set_ref(name, MAIN_BRANCH, snapshot_id)
        rows.expected = set(rows.at[snapshot_id])

    def _expire(self, name: TableName) -> None:
        metadata = self._house.metadata_of(name)
        at = {ref.snapshot_id for ref in metadata.refs}
        old = [s.snapshot_id for s in metadata.snapshots if s.snapshot_id not in at]
        gone = old[: self._chance.randint(0, len(old))]
        self._house.catalog.expire(name, gone)
        self.expired.update((metadata.table_id, snapshot_id) for snapshot_id in gone)

    def rewritten(self, spec: TaskSpec, part: RewriteDataFiles) -> None:
        """An attempt has committed: its outputs have the rows of its inputs but those that their deletes remove."""
        rows = self._rows[spec.table_id]
        for group in part.groups:
            deletes = [] if self.resurrects else [delete.path for delete in group.delete_files]
            self.folded += len(deletes)
            left = [row for file in group.files for row in self._visible(rows, file.path, deletes)]
            for path, its in output_rows(spec, group, len(left)).items():
                rows.of_file[path] = left[its.start : its.stop]
            self.levels[part.level] += 1
        self._remember(self._names)

    def check(self, name: TableName) -> None:
        """Compare what readers of a table see with what its writers did. Raises :class:`Broken`."""
        metadata = self._house.metadata_of(name)
        if self._checked.get(name) == metadata.metadata_location:
            return
        self._checked[name] = metadata.metadata_location
        rows = self._rows[metadata.table_id]
        deletes = self._deletes(name)
        seen: Counter[int] = Counter()
        live = [file.path for file in self._house.catalog.live_files(name) if file.content is FileContent.DATA]
        for path in live:
            seen.update(self._visible(rows, path, deletes))
        twice = [row for row, times in seen.items() if times > 1]
        missing, too_many = rows.expected - seen.keys(), seen.keys() - rows.expected
        if metadata.format_version >= VECTORS_SINCE:
            of = Counter(rows.deletes[delete][0] for delete in deletes)
            astray = [path for path, count in of.items() if count > 1 or path not in live]
            if astray:
                raise Broken(f"{name}: deletion vectors without their data file, or two of one: {astray}")
        if twice or missing or too_many:
            raise Broken(f"{name}: rows {missing} are missing, {too_many} came again, {twice} are there twice")
