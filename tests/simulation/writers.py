"""The writers of the simulation, and what they think is in their tables.

Rows are numbers, and kept by file beside the catalog, which has files without bytes: so what readers see can be
compared with what the writers did, whatever icewright did in between.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from icewright.adapters.memory.lake import MemoryFile
from icewright.domain.files import FileContent
from icewright.domain.jobs import TaskSpec
from icewright.domain.names import TableId, TableName
from tests.services.lakehouse import BONN, KYOTO, MIB, MINUTE_MS, Lakehouse

MODE_KEY, OBSERVED = "icewright.mode", "observe"


class Broken(AssertionError):
    """An invariant does not hold."""


@dataclass
class Rows:
    """What the writers think is in a table: each row is a number. Deletes are by data file, as position deletes are."""

    expected: Counter[int] = field(default_factory=Counter)
    of_file: dict[str, list[int]] = field(default_factory=dict)
    deleted: dict[str, set[int]] = field(default_factory=dict)


class Writers:
    """Programs that know nothing of icewright. The table ``observed`` stays in mode ``observe`` for ever."""

    def __init__(self, house: Lakehouse, chance: random.Random, observed: TableName) -> None:
        self._house, self._chance, self._observed = house, chance, observed
        self._rows: dict[TableId, Rows] = {}
        self._next_row = 0
        self._checked: dict[TableName, str] = {}

    def create(self, name: TableName, mode: str) -> None:
        """A new empty table."""
        properties = {MODE_KEY: mode, "icewright.ignore-other-optimizers": "true"}
        self._rows[self._house.create(name, properties)] = Rows()

    def write(self, name: TableName) -> str:
        """Somebody changes a table; what they did to it."""
        table_id = self._house.metadata_of(name).table_id
        rows = self._rows[table_id]
        live = [file for file in self._house.catalog.live_files(name) if file.content is FileContent.DATA]
        kind = self._chance.choices(
            ["append", "overwrite", "delete", "rewrite", "manifests", "recreate", "expire", "mode"],
            [30, 4, 1, 1, 1, 0.3, 1, 2],
        )[0]
        if kind == "append" or not live:
            files = [self._file(rows, self._chance.randint(1, 5)) for _ in range(self._chance.randint(1, 6))]
            self._house.catalog.append(name, files)
        elif kind == "overwrite":
            file = self._chance.choice(live)
            kept = self._visible(rows, file)[1:]
            self._commit_removal(name, rows, [file], kept)
        elif kind == "delete":
            self._delete_row(name, rows, self._chance.choice(live))
        elif kind == "rewrite":
            self._rewrite_by_others(name, rows, [file for file in live if file.partition == live[0].partition])
        elif kind == "manifests":
            self._house.catalog.rewrite_manifests(name)
        elif kind == "recreate":
            self._house.catalog.drop(name)
            self.create(name, OBSERVED if name == self._observed else "auto")
        elif kind == "mode":
            if name != self._observed:
                self._house.catalog.set_properties(name, {MODE_KEY: self._chance.choice(["auto", "auto", OBSERVED])})
        else:
            self._expire(name)
        return kind

    def _file(self, rows: Rows, count: int) -> MemoryFile:
        numbers = list(range(self._next_row, self._next_row + count))
        self._next_row += count
        (file,) = self._house.files(
            1, self._chance.choice([BONN, KYOTO]), self._chance.choice([1, 1, 2, 60]) * MIB, count
        )
        rows.of_file[file.path] = numbers
        rows.expected.update(numbers)
        return file

    def _visible(self, rows: Rows, file: MemoryFile) -> list[int]:
        return [row for row in rows.of_file[file.path] if row not in rows.deleted.get(file.path, ())]

    def _commit_removal(self, name: TableName, rows: Rows, files: list[MemoryFile], kept: list[int]) -> None:
        add = []
        if kept:
            (new,) = self._house.files(1, files[0].partition, MIB, len(kept))
            rows.of_file[new.path] = kept
            add = [new]
        started_at = self._house.clock.now() - self._chance.choice([0, 5 * MINUTE_MS])
        gone = [row for file in files for row in self._visible(rows, file)]
        self._house.catalog.overwrite(name, add=add, remove=[f.path for f in files], first_written_at=started_at)
        rows.expected.subtract(gone)
        rows.expected.update(kept)

    def _delete_row(self, name: TableName, rows: Rows, file: MemoryFile) -> None:
        visible = self._visible(rows, file)
        if not visible:
            return
        path = f"delete-{self._house.ids.new('d')}"
        deletes = MemoryFile(path, file.partition, 100, 1, content=FileContent.POSITION_DELETES)
        self._house.catalog.overwrite(name, add=[deletes], remove=[])
        rows.deleted.setdefault(file.path, set()).add(visible[0])
        rows.expected.subtract([visible[0]])

    def _rewrite_by_others(self, name: TableName, rows: Rows, files: list[MemoryFile]) -> None:
        """Another program compacts a partition and applies its deletes."""
        partition = files[0].partition
        deletes = [
            f.path
            for f in self._house.catalog.live_files(name)
            if f.content is not FileContent.DATA and f.partition == partition
        ]
        kept = [row for file in files for row in self._visible(rows, file)]
        (new,) = self._house.files(1, partition, 60 * MIB, len(kept))
        rows.of_file[new.path] = kept
        self._house.catalog.overwrite(name, add=[new], remove=[*(file.path for file in files), *deletes])

    def _expire(self, name: TableName) -> None:
        metadata = self._house.metadata_of(name)
        old = [s.snapshot_id for s in metadata.snapshots if s.snapshot_id != metadata.current_snapshot_id]
        self._house.catalog.expire(name, old[: self._chance.randint(0, len(old))])

    def rewritten(self, spec: TaskSpec) -> None:
        """An attempt has committed: its outputs have the rows of its inputs, none of which had deletes."""
        rows = self._rows[spec.table_id]
        for group in spec.action.groups:
            path = f"{group.group_id:05d}-{spec.task_id}-{spec.attempt}.parquet"
            rows.of_file[path] = [row for file in group.files for row in rows.of_file[file.path]]

    def check(self, name: TableName) -> None:
        """Compare what readers of a table see with what its writers did. Raises :class:`Broken`."""
        metadata = self._house.metadata_of(name)
        if self._checked.get(name) == metadata.metadata_location:
            return
        self._checked[name] = metadata.metadata_location
        rows = self._rows[metadata.table_id]
        seen: Counter[int] = Counter()
        for file in self._house.catalog.live_files(name):
            if file.content is FileContent.DATA:
                seen.update(self._visible(rows, file))
        if seen != +rows.expected:
            raise Broken(f"{name}: rows {+rows.expected - seen} are missing, {seen - +rows.expected} too many")
