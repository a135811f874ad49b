"""What the manifests of one snapshot say of the files in a few partitions, through Iceberg's own readers.

A call into the JVM costs a tenth of a millisecond, and a table may have a hundred thousand delete files. So partitions
are picked within the JVM, a column of many Java objects is asked for at once, and only files that can matter are
looked at one by one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icewright.core.errors import Conflict, NotStitchable, Unsupported
from icewright.model.actions.actions import RewriteDataFiles
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat, Partition
from icewright.model.iceberg.tables import ROW_LINEAGE_SINCE
from icewright_spark.iceberg.applied_deletes import DataEntry, check_applied, lost
from icewright_spark.iceberg.java_api import REFUSALS, SparkTable, first_line, iterate

_API: Final = "org.apache.iceberg."
_FILE_PATH_ID: Final = 2_147_483_546
_OF_DATA: Final = {"location": "String", "dataSequenceNumber": "Long", "firstRowId": "Long"}
_TO_JSON: Final = (
    f"{_API}ContentFileParser",
    "(Lorg/apache/iceberg/ContentFile;Lorg/apache/iceberg/PartitionSpec;)Ljava/lang/String;",
)
_OF_DELETES: Final = {"referencedDataFile": "String", "dataSequenceNumber": "Long"}


@dataclass(frozen=True, slots=True)
class FoundDelete:
    """A delete file of a snapshot, with the place of Java's object for it in a list of Java's."""

    delete: DeleteFile
    listed: Any
    place: int


def remove_deletes(table: SparkTable, operation: Any, found: Iterable[FoundDelete]) -> None:
    """Have a Java ``RewriteFiles`` remove these delete files."""
    places: dict[int, tuple[Any, list[int]]] = {}
    for each in found:
        places.setdefault(id(each.listed), (each.listed, []))[1].append(each.place)
    for listed, its in places.values():
        table.remove_delete_files(operation, listed, its)


def check_planned_files(table: SparkTable, action: RewriteDataFiles) -> list[FoundDelete]:
    """Compare data files and delete files of a plan with the snapshot that it is of, and with nothing of the planner.

    Gives the deletion vectors of planned files, which must go together with them.
    Raises :class:`Conflict` and :class:`Unsupported` as :func:`check_applied` does.
    """
    groups = action.groups
    files = PartitionFiles(table, action.base_snapshot_id, {group.partition for group in groups})
    none_planned = not any(group.delete_files for group in groups)
    if none_planned and table.format_version < ROW_LINEAGE_SINCE and not files.delete_manifests():
        return []
    paths = frozenset(file.path for group in groups for file in group.files)
    entries = files.data_files(paths)
    since = min((entry.data_sequence_number for entry in entries.values()), default=0)
    found = files.delete_files(paths, since)
    vectors = check_applied(groups, entries, [each.delete for each in found], files.unpartitioned_specs)
    return [each for each in found if each.delete.key in vectors]


def lost_groups(table: SparkTable, action: RewriteDataFiles) -> dict[int, str]:
    """The groups of an action that somebody else's commit has changed since its base snapshot, by id, and how.

    Of the table as it is loaded; no manifest is read while others have only appended. This is no guard: Iceberg
    validates what is committed. Raises :class:`Conflict` for a file that is listed twice.
    """
    if table.only_appended_to(action.base_snapshot_id):
        return {}
    current = table.java.currentSnapshot()
    if current is None:
        return dict.fromkeys((group.group_id for group in action.groups), "the table has no snapshot any more")
    files = PartitionFiles(table, current.snapshotId(), {group.partition for group in action.groups})
    planned = {file.path: file for group in action.groups for file in group.files}
    entries = files.data_files(planned.keys())
    since = min((file.data_sequence_number for file in planned.values()), default=0)
    found = files.delete_files(planned.keys(), since)
    return lost(action.groups, entries, [each.delete for each in found], files.unpartitioned_specs)


class PartitionFiles:
    """The live files of some partitions in one snapshot."""

    def __init__(self, table: SparkTable, snapshot_id: int, partitions: Collection[Partition]) -> None:
        """Raises :class:`Unsupported` for a partition that Iceberg does not take."""
        self._table, self._jvm = table, table.jvm
        self._snapshot = table.java.snapshot(snapshot_id)
        specs = table.java.specs()
        self.unpartitioned_specs = table.unpartitioned_specs()
        util = self._jvm.org.apache.iceberg.util
        self._by_java = util.PartitionMap.create(specs)
        self._data, self._deletes = util.PartitionSet.create(specs), util.PartitionSet.create(specs)
        everywhere = {Partition(spec_id, "[]") for spec_id in self.unpartitioned_specs}
        for partition in {*partitions, *everywhere}:
            java = util.Pair.of(partition.spec_id, table.partition_data(partition))
            self._by_java[java] = partition.values
            self._deletes.add(java)
            if partition in partitions:
                self._data.add(java)
        self._data_specs = frozenset(partition.spec_id for partition in partitions)

    def delete_manifests(self) -> list[Any]:
        """The delete manifests that may hold something for the partitions."""
        specs = self._data_specs | self.unpartitioned_specs
        manifests = self._snapshot.deleteManifests(self._table.java.io())
        return [manifest for manifest in iterate(manifests) if manifest.partitionSpecId() in specs]

    def delete_files(self, paths: Collection[str], since: int) -> list[FoundDelete]:
        """Delete files that may apply to data files of these paths, none of which is older than ``since``."""
        found = []
        for manifest in self.delete_manifests():
            if manifest.sequenceNumber() < since:
                continue
            files = self._delete_entries(manifest)
            sequence_numbers = {}
            for place, row in enumerate(self._columns(files, "DeleteFile", _OF_DELETES)):
                sequence_number, path = row["dataSequenceNumber"], row["referencedDataFile"]
                if sequence_number >= since and (path is None or path in paths):
                    sequence_numbers[place] = sequence_number
            described = self._in_json(files, [*sequence_numbers], manifest.partitionSpecId())
            found += [
                FoundDelete(_delete_file(said, partition, sequence_number), files, place)
                for (partition, said), (place, sequence_number) in zip(described, sequence_numbers.items(), strict=True)
            ]
        return found

    def data_files(self, paths: Collection[str]) -> dict[str, DataEntry]:
        """What the snapshot says of data files of these paths; those that are not in the partitions are left out.

        Raises :class:`Conflict` for a file that is listed twice.
        """
        without_statistics = self._jvm.java.util.List.of("file_path", "partition")
        found: dict[str, DataEntry] = {}
        for manifest in self._own_data_manifests():
            files = self._listed(self._reader(manifest).select(without_statistics).filterPartitions(self._data))
            for entry in self._entries(files):
                if entry.path in found:
                    raise Conflict(f"{entry.path} is listed twice in one snapshot")
                if entry.path in paths:
                    found[entry.path] = entry
        return found

    def data_manifests(self) -> list[Any]:
        """All data manifests of the snapshot."""
        return list(iterate(self._snapshot.dataManifests(self._table.java.io())))

    def listed(self, manifest: Any) -> list[DataEntry]:
        """All live data files of a manifest, whatever their partition."""
        return self._entries(self._listed(self._reader(manifest)))

    def placed(self, manifest: Any, below: Mapping[int, int]) -> list[tuple[Partition, DataEntry]]:
        """The live data files of the partitions in a manifest, with sequence numbers up to that of its spec.

        Raises :class:`Unsupported` for one that Iceberg has no JSON of.
        """
        spec_id = manifest.partitionSpecId()
        if spec_id not in self._data_specs:
            return []
        files = self._listed(self._reader(manifest).filterPartitions(self._data))
        entries = enumerate(self._entries(files))
        near = {place: entry for place, entry in entries if entry.data_sequence_number <= below[spec_id]}
        try:
            described = self._in_json(files, [*near], spec_id)
        except REFUSALS as error:
            raise Unsupported(f"Iceberg has no JSON of files in {manifest.path()}: {first_line(error)}") from error
        return [(partition, entry) for (partition, _), entry in zip(described, near.values(), strict=True)]

    def _own_data_manifests(self) -> Iterator[Any]:
        """The data manifests that may hold something of the partitions."""
        return (manifest for manifest in self.data_manifests() if manifest.partitionSpecId() in self._data_specs)

    def _reader(self, manifest: Any) -> Any:
        return self._jvm.org.apache.iceberg.ManifestFiles.read(
            manifest, self._table.java.io(), self._table.java.specs()
        )

    def _entries(self, files: Any) -> list[DataEntry]:
        """What a Java list of data files says of each, in its order."""
        rows = self._columns(files, "DataFile", _OF_DATA)
        return [DataEntry(row["location"], row["dataSequenceNumber"], row["firstRowId"]) for row in rows]

    def described(self, paths: Collection[str]) -> dict[str, dict[str, Any]]:
        """Data files of these paths in Iceberg's JSON of a content file, metrics included; others are left out.

        Raises :class:`NotStitchable` for one that Iceberg has no JSON of, as under a spec with ``void`` alone.
        """
        parser, specs = self._jvm.org.apache.iceberg.ContentFileParser, self._table.java.specs()
        found: dict[str, dict[str, Any]] = {}
        for manifest in self._own_data_manifests():
            spec = specs.get(manifest.partitionSpecId())
            files = self._listed(self._reader(manifest).filterPartitions(self._data))
            for number, row in enumerate(self._columns(files, "DataFile", {"location": "String"})):
                if row["location"] not in paths:
                    continue
                try:
                    text = parser.toJson(files.get(number), spec)
                except REFUSALS as error:
                    raise NotStitchable(f"Iceberg has no JSON of {row['location']}: {first_line(error)}") from error
                found[row["location"]] = json.loads(text)
        return found

    def _delete_entries(self, manifest: Any) -> Any:
        io, specs = self._table.java.io(), self._table.java.specs()
        reader = self._jvm.org.apache.iceberg.ManifestFiles.readDeleteManifest(manifest, io, specs)
        return self._listed(reader.filterPartitions(self._deletes))

    def _listed(self, reader: Any) -> Any:
        """All that a manifest reader gives, as a Java list; the reader is closed."""
        try:
            return self._jvm.org.apache.iceberg.relocated.com.google.common.collect.Lists.newArrayList(reader)
        finally:
            reader.close()

    def _columns(self, files: Any, kind: str, getters: Mapping[str, str]) -> list[dict[str, Any]]:
        """What these methods of each Java object say, by method; ``getters`` has the methods with Java's types."""
        lists = self._table.lists
        columns: dict[str, list[Any]] = {}
        for getter, kind_of_value in getters.items():
            method = lists.method(f"{_API}{kind}", getter, f"()Ljava/lang/{kind_of_value};")
            columns[getter] = lists.values(lists.each(files, method))
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def _in_json(self, files: Any, places: Sequence[int], spec_id: int) -> list[tuple[Partition, dict[str, Any]]]:
        """The files at these places of a Java list, all of one spec: their partitions, and Iceberg's JSON of them."""
        if not places:
            return []
        lists = self._table.lists
        said = lists.static(_TO_JSON[0], "toJson", _TO_JSON[1], self._table.java.specs().get(spec_id))
        texts = lists.values(lists.each(lists.picked(files, places), said))
        partitions: dict[str, Partition] = {}
        found = []
        for place, text in zip(places, texts, strict=True):
            described = json.loads(text)
            values = json.dumps(described["partition"])
            if values not in partitions:
                partitions[values] = self._partition(files.get(place))
            found.append((partitions[values], described))
        return found

    def _partition(self, java: Any) -> Partition:
        """The partition of a file of Java's, as it was asked for."""
        values = self._by_java[self._jvm.org.apache.iceberg.util.Pair.of(java.specId(), java.partition())]
        return Partition(java.specId(), str(values))


def _delete_file(said: Mapping[str, Any], partition: Partition, sequence_number: int) -> DeleteFile:
    """A delete file from Iceberg's JSON of it."""
    return DeleteFile(
        path=said["file-path"],
        content=FileContent(said["content"]),
        file_format=FileFormat(said["file-format"]),
        partition=partition,
        size_bytes=said["file-size-in-bytes"],
        record_count=said["record-count"],
        snapshot_id=0,
        data_sequence_number=sequence_number,
        referenced_data_file=said.get("referenced-data-file"),
        content_offset=said.get("content-offset"),
        content_size_bytes=said.get("content-size-in-bytes"),
        path_lower=_path_bound(said.get("lower-bounds")),
        path_upper=_path_bound(said.get("upper-bounds")),
        equality_ids=tuple(said.get("equality-ids", ())),
    )


def _path_bound(bounds: Mapping[str, list[Any]] | None) -> str | None:
    by_id = {} if bounds is None else dict(zip(bounds["keys"], bounds["values"], strict=True))
    try:
        return bytes.fromhex(by_id[_FILE_PATH_ID]).decode()
    except (KeyError, UnicodeDecodeError):  # a bound that was cut within a character is as good as none
        return None
