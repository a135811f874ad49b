"""Iceberg's Java API as the jobs use it, through py4j.

Two habits of py4j shape this module: small longs arrive in the JVM as Integer, and the end of a Java iterator is an
exception of ten milliseconds. So files travel as JSON through Iceberg's own ``ScanTaskParser`` (one call per file), and
nothing here iterates a Java collection with ``for``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import IllegalArgumentException, PySparkException, UnsupportedOperationException
from pyspark.sql import SparkSession

from icewright.core.errors import NotFound, Unavailable, Unsupported
from icewright.model.actions.actions import FileGroup, InputFile
from icewright.model.actions.expire_data import ExpiringFile
from icewright.model.actions.rewrite_delete_files import DeleteGroup
from icewright.model.iceberg.files import FileFormat, Partition
from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.names import TableName, sql_name
from icewright.model.iceberg.tables import ATTEMPT_KEY, TASK_ID_KEY, Operation, SortField, SortOrder
from icewright_spark.executors.merge.output import OutputFile
from icewright_spark.parquet.lineage import LINEAGE_FIELDS
from icewright_spark.parquet.metrics import metrics_in_json
from icewright_spark.parquet.schema import leaves
from icewright_spark.session.java_lists import JavaLists
from icewright_spark.session.session import java_gateway

_SCAN_TASKS: Final = "org/apache/iceberg/ScanTaskParser"
_SCAN_TASK: Final = "org/apache/iceberg/FileScanTask"
_REWRITE: Final = "org/apache/iceberg/RewriteFiles"
_APPENDS_MAX: Final = 1000
"""So many snapshots are looked at; a table that has had more commits since is read."""

REFUSALS = (IllegalArgumentException, UnsupportedOperationException)
"""Java's, as PySpark names them. By these Iceberg's parsers say that a document is not what they read, which no other
try will change."""


class SparkTable:
    """An Iceberg table as Spark's catalog loads it, fresh."""

    def __init__(self, spark: SparkSession, name: TableName) -> None:
        """Raises :class:`NotFound`, and :class:`Unavailable` when the catalog does not answer."""
        self.jvm: Any = java_gateway(spark)
        session = spark._jsparkSession  # noqa: SLF001 - what Spark3Util takes
        try:
            self.java: Any = self.jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, sql_name(name))
        except (Py4JJavaError, PySparkException) as error:
            raise _load_error(name, error) from error
        self._parser = self.jvm.org.apache.iceberg.ScanTaskParser
        self.lists = JavaLists(self.jvm, self.java)
        self._headers: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}

    @property
    def uuid(self) -> str:
        """The table's uuid."""
        return str(self.java.uuid())

    @property
    def metadata_location(self) -> str:
        """The metadata file that was loaded."""
        return str(self.java.operations().current().metadataFileLocation())

    @property
    def format_version(self) -> int:
        """The format version of the table."""
        return int(self.java.operations().current().formatVersion())

    @property
    def schema_id(self) -> int:
        """The id of the current schema."""
        return int(self.java.schema().schemaId())

    @property
    def spec_id(self) -> int:
        """The id of the current partition spec."""
        return int(self.java.spec().specId())

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        text = self.jvm.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(self.java.properties())
        return {str(key): str(value) for key, value in json.loads(text).items()}

    def schema_fields(self) -> tuple[dict[str, Any], ...]:
        """The fields of the current schema in the spec's JSON."""
        return tuple(json.loads(self.jvm.org.apache.iceberg.SchemaParser.toJson(self.java.schema()))["fields"])

    def metrics_modes(self) -> dict[int, str]:
        """Iceberg's metrics mode (``none``, ``counts``, ``full``, ``truncate(n)``) of every primitive column, by id.

        Those of row lineage are among them.
        """
        config = self.jvm.org.apache.iceberg.MetricsConfig.forTable(self.java)
        schema = self.java.schema()
        names = {leaf.field_id: schema.findColumnName(leaf.field_id) for leaf in leaves(self.schema_fields())}
        names |= {field["id"]: field["name"] for field in LINEAGE_FIELDS}
        return {field_id: str(config.columnMode(name).toString()).lower() for field_id, name in names.items()}

    def identity_values(self, partition: Partition) -> Mapping[int, Any]:
        """The values of a partition in JSON that are those of columns, by the columns' ids."""
        _, spec = self._header(partition.spec_id)
        pairs = zip(spec["fields"], json.loads(partition.values), strict=False)  # nothing but void fields has no values
        return {int(field["source-id"]): value for field, value in pairs if field["transform"] == "identity"}

    def partition_fields(self, spec_id: int) -> tuple[PartitionField, ...]:
        """The fields of a partition spec, in their order."""
        _, spec = self._header(spec_id)
        schema = self.java.schema()
        return tuple(
            PartitionField(
                name=schema.findColumnName(field["source-id"]),
                type=str(schema.findType(field["source-id"])),
                transform=field["transform"],
            )
            for field in spec["fields"]
        )

    def spec_terms(self, spec_id: int) -> tuple[SortField, ...]:
        """The fields of a partition spec with their transforms, as of a sort order."""
        _, spec = self._header(spec_id)
        fields = spec["fields"]
        return tuple(SortField(int(field["source-id"]), field["transform"], "asc", "nulls-first") for field in fields)

    def expression(self, document: Mapping[str, Any]) -> Any:
        """A Java Expression from Iceberg's JSON for it; values are read as the types of the current schema."""
        return self.jvm.org.apache.iceberg.expressions.ExpressionParser.fromJson(
            json.dumps(document), self.java.schema()
        )

    def is_in_partition(self, data_file: Any, partition: Partition) -> bool:
        """Whether a Java DataFile is of the partition."""
        if data_file.specId() != partition.spec_id:
            return False
        kind = self.java.specs().get(partition.spec_id).partitionType()
        wrapper = self.jvm.org.apache.iceberg.util.StructLikeWrapper.forType(kind)
        found, wanted = wrapper.copyFor(data_file.partition()), wrapper.copyFor(self.partition_data(partition))
        return bool(found.equals(wanted))

    @property
    def sort_order(self) -> SortOrder:
        """The order that the table asks its writers for."""
        said = json.loads(self.jvm.org.apache.iceberg.SortOrderParser.toJson(self.java.sortOrder()))
        return SortOrder(
            int(said["order-id"]),
            tuple(
                SortField(int(field["source-id"]), field["transform"], field["direction"], field["null-order"])
                for field in said["fields"]
            ),
        )

    def unsorted(self, data_file: Any) -> Any:
        """A Java DataFile as it is, but said to be in no order: nobody has proved the one that a writer claims."""
        return self._ordered(data_file, self.jvm.org.apache.iceberg.SortOrder.unsorted())

    def ordered_by(self, layout: Layout, data_files: Sequence[Any]) -> list[Any]:
        """Java's DataFiles as they are, but said to be in the table's sort order if ``layout`` is that.

        That the rows are in the order of the layout must have been proved.
        """
        order = self.sort_order
        is_it = order.order_id == layout.sort_order_id and order.fields == layout.fields and layout.curve is Curve.SORT
        if not is_it:
            return list(data_files)
        java = self.java.sortOrder()
        return [self._ordered(data_file, java) for data_file in data_files]

    def _ordered(self, data_file: Any, order: Any) -> Any:
        builder = self.jvm.org.apache.iceberg.DataFiles.builder(self.java.specs().get(data_file.specId()))
        return builder.copy(data_file).withSortOrder(order).build()

    def deletes_nothing(self) -> Any:
        """A Java ``Consumer`` that does nothing with the paths it is given; safe for several threads."""
        lang = self.jvm.java.lang
        kind = lang.invoke.MethodType.methodType(lang.Void.TYPE, lang.Class.forName("java.lang.Object"))
        return self.lists.instance("java.util.function.Consumer", lang.invoke.MethodHandles.empty(kind))

    def is_still_current(self) -> Any:
        """A Java ``SnapshotAncestryValidator``: the present snapshot is still the current one. There must be one."""
        lists = self.lists
        test = lists.chained(
            lists.handle("java.lang.Iterable", "iterator", "()Ljava/util/Iterator;"),
            lists.handle("java.util.Iterator", "next", "()Ljava/lang/Object;"),
            lists.bound("java.lang.Object", "equals", "(Ljava/lang/Object;)Z", self.java.currentSnapshot()),
        )
        return lists.instance("org.apache.iceberg.SnapshotAncestryValidator", test)

    def unpartitioned_specs(self) -> frozenset[int]:
        """The ids of the partition specs without fields, whose equality deletes apply everywhere."""
        specs = self.java.specs()
        return frozenset(int(spec_id) for spec_id in iterate(specs.keySet()) if specs[spec_id].isUnpartitioned())

    def has_snapshot(self, snapshot_id: int) -> bool:
        """Whether the snapshot is still there."""
        return self.java.snapshot(snapshot_id) is not None

    def only_appended_to(self, snapshot_id: int) -> bool:
        """Whether the current snapshot is that one, or comes after it by appends alone; False when unsure."""
        snapshot = self.java.currentSnapshot()
        for _ in range(_APPENDS_MAX):
            if snapshot is None or snapshot.snapshotId() == snapshot_id:
                break
            parent_id = snapshot.parentId()
            if snapshot.operation() != Operation.APPEND or parent_id is None:
                return False
            snapshot = self.java.snapshot(parent_id)
        return snapshot is not None and snapshot.snapshotId() == snapshot_id

    def gives_row_ids(self, snapshot_id: int | None = None) -> bool:
        """Whether the rows of a snapshot, or of the current one, have ids (format version 3, and not since before)."""
        snapshot = self.java.currentSnapshot() if snapshot_id is None else self.java.snapshot(snapshot_id)
        return snapshot is not None and snapshot.firstRowId() is not None

    def snapshot_of_task(self, task_id: str, attempt: int | None = None) -> int | None:
        """The id of the newest snapshot of that task (of that ``attempt``, where one is given), None without one."""
        snapshots = self.java.snapshots()  # a list, oldest first; ours is mostly among the last
        for position in range(snapshots.size() - 1, -1, -1):
            snapshot = snapshots.get(position)
            summary = snapshot.summary()  # None in old tables of format version 1
            if summary is None or summary.get(TASK_ID_KEY) != task_id:
                continue
            if attempt is None or summary.get(ATTEMPT_KEY) == str(attempt):
                return int(snapshot.snapshotId())
        return None

    def refresh(self) -> None:
        """Read the catalog's pointer anew."""
        self.java.refresh()

    def data_file(
        self,
        partition: Partition,
        *,
        path: str,
        size_bytes: int,
        record_count: int,
        file_format: FileFormat = FileFormat.PARQUET,
        described: Mapping[str, Any] = MappingProxyType({}),
    ) -> Any:
        """A Java DataFile of that partition; ``described`` are further fields of Iceberg's content file JSON.

        Raises :class:`Unsupported` when Iceberg does not take the values for a partition of the spec.
        """
        file = {
            "file-path": path,
            "file-format": file_format.value,
            "file-size-in-bytes": size_bytes,
            "record-count": record_count,
            **described,
        }
        try:
            return self._parser.fromJson(self._scan_task(partition, file), True).file()
        except REFUSALS as error:
            raise Unsupported(
                f"Iceberg does not take {partition.values} for a partition of spec {partition.spec_id}: "
                f"{first_line(error)}"
            ) from error

    def remove_files(self, operation: Any, groups: Sequence[FileGroup]) -> None:
        """Have a Java ``RewriteFiles`` remove all data files of these groups. Raises as :meth:`listed`."""
        files, lists = self.listed((group.partition, file) for group in groups for file in group.files), self.lists
        lists.do(files, lists.bound(_REWRITE, "deleteFile", f"(Lorg/apache/iceberg/DataFile;)L{_REWRITE};", operation))

    def listed(self, files: Iterable[tuple[Partition, InputFile | ExpiringFile]]) -> Any:
        """Java's DataFiles of planned files, each with its partition, as a list of Java's.

        Raises :class:`Unsupported` when Iceberg does not take the values for a partition of the spec.
        """
        documents = [
            self._scan_task(
                partition,
                {
                    "file-path": file.path,
                    "file-format": file.file_format.value,
                    "file-size-in-bytes": file.size_bytes,
                    "record-count": file.record_count,
                },
            )
            for partition, file in files
        ]
        return self._parsed(documents)

    def _parsed(self, documents: Sequence[str]) -> Any:
        """Java's DataFiles of scan tasks in Iceberg's JSON, as a list of Java's. Raises :class:`Unsupported`."""
        lists = self.lists
        parse = lists.static(_SCAN_TASKS, "fromJson", f"(Ljava/lang/String;Z)L{_SCAN_TASK};", True)
        file_of = lists.method(_SCAN_TASK, "file", "()Lorg/apache/iceberg/ContentFile;")
        try:
            return lists.each(lists.each(lists.of(documents), parse), file_of)
        except REFUSALS as error:
            raise Unsupported(f"Iceberg does not take the partition of a file: {first_line(error)}") from error

    def remove_delete_files(self, operation: Any, listed: Any, places: Sequence[int]) -> None:
        """Have a Java ``RewriteFiles`` remove the delete files at these places of a Java list."""
        lists = self.lists
        delete = lists.bound(_REWRITE, "deleteFile", f"(Lorg/apache/iceberg/DeleteFile;)L{_REWRITE};", operation)
        lists.do(lists.picked(listed, places), delete)

    def _scan_task(self, partition: Partition, file: Mapping[str, Any]) -> str:
        """A scan task over a file in Iceberg's JSON; ``file`` is the content file's, without its partition."""
        schema, spec = self._header(partition.spec_id)
        # A spec of nothing but void fields has the one empty partition, which Iceberg wants as one null per field.
        values = json.loads(partition.values) or [None] * len(spec["fields"])
        document = {
            "task-type": "file-scan-task",
            "schema": schema,
            "spec": spec,
            "data-file": {"spec-id": partition.spec_id, "content": "data", "partition": values, **file},
            "start": 0,
            "length": file["file-size-in-bytes"],
            "delete-files": [],
            "residual-filter": True,
        }
        return json.dumps(document)

    def output_files(self, entries: Sequence[tuple[Partition, OutputFile]]) -> list[Any]:
        """Java's DataFiles for files that a job wrote, with their metrics. Raises :class:`Unsupported`."""
        found = self._parsed([self._scan_task(partition, _described(entry)) for partition, entry in entries])
        return [found.get(place) for place in range(len(entries))]

    def new_data_locations(self, group: FileGroup | DeleteGroup, file_names: Sequence[str]) -> list[str]:
        """Where the table's own location provider puts new files of the group's partition."""
        provider = self.java.locationProvider()
        spec = self.java.specs().get(group.partition.spec_id)
        if spec.isUnpartitioned():
            return [str(provider.newDataLocation(name)) for name in file_names]
        partition = self.partition_data(group.partition)
        return [str(provider.newDataLocation(spec, partition, name)) for name in file_names]

    def partition_data(self, partition: Partition) -> Any:
        """Java's tuple of the partition's values. Raises :class:`Unsupported` when Iceberg does not take them."""
        return self.data_file(partition, path="", size_bytes=0, record_count=0).partition()

    def _header(self, spec_id: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The schema and the spec that a file of a spec is parsed with; asked for once, since each file needs them.

        Of the schema only the columns that the spec partitions by, which is all that parsing looks at; the whole of
        it where one of them is nested, or of an older schema.
        """
        if spec_id not in self._headers:
            spec = json.loads(self.jvm.org.apache.iceberg.PartitionSpecParser.toJson(self.java.specs().get(spec_id)))
            schema = json.loads(self.jvm.org.apache.iceberg.SchemaParser.toJson(self.java.schema()))
            sources = {field["source-id"] for field in spec["fields"]}
            fields = [field for field in schema["fields"] if field["id"] in sources]
            if len(fields) == len(sources):
                schema["fields"] = fields
                schema.pop("identifier-field-ids", None)
            self._headers[spec_id] = (schema, spec)
        return self._headers[spec_id]


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A field of a partition spec: its transform, and its column, with None for the name where that was dropped."""

    name: str | None
    type: str
    transform: str


def iterate(iterable: Any) -> Iterator[Any]:
    """The elements of a Java Iterable, without the exception that ends py4j's own iteration."""
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()


def java_class(error: BaseException) -> str:
    """The Java class of an exception that came through py4j, or an empty string."""
    exception = getattr(error, "java_exception", None)
    return "" if exception is None else str(exception.getClass().getName())


def first_line(error: BaseException) -> str:
    """What an exception says, Java's or ours, without its trace; some of Spark's begin with an empty line."""
    exception = getattr(error, "java_exception", None)
    text = java_text(lambda: error if exception is None else exception.toString())
    if text is None:
        return f"{type(error).__name__}, and Spark's JVM has ended"
    return next((line for line in text.splitlines() if line.strip()), type(error).__name__)


def java_text(ask: Callable[[], Any]) -> str | None:
    """What an exception of Java's says when it is asked; None where the JVM that threw it is gone by now."""
    try:
        return str(ask())
    except (Py4JError, OSError):  # py4j passes on what the socket says
        return None


def _load_error(name: TableName, error: Exception) -> Exception:
    text = f"{java_class(error)} {error}"
    if "NoSuchTableException" in text or "TABLE_OR_VIEW_NOT_FOUND" in text or "NoSuchNamespace" in text:
        return NotFound(f"Spark's catalog has no table {name}")
    return Unavailable(f"Spark could not load {name}: {first_line(error)}")


def _described(entry: OutputFile) -> dict[str, Any]:
    """A file that a job wrote in Iceberg's JSON of a content file, without its partition."""
    return {
        "file-path": entry.path,
        "file-format": FileFormat.PARQUET.value,
        "file-size-in-bytes": entry.size_bytes,
        "record-count": entry.record_count,
        **metrics_in_json(entry.metrics),
        "split-offsets": list(entry.split_offsets),
    }
