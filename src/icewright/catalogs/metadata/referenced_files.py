"""What a metadata file names: other metadata files, statistics, manifests; and whatever it has that nobody here knows.

The fields are a closed list (Iceberg table spec, v1 to v3, "Table Metadata"). A field of a later version, or of a
vendor, may name files. It is a gap, whatever is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from icewright.core.completeness import Gap
from icewright.model.iceberg.reachable_files import FileClass, NamedFile, Roots
from icewright.model.iceberg.tables import Json, TableMetadata
from icewright.model.plans.plans import Reason

_VERSION_HINT: Final = "version-hint.text"
_OF_TABLE: Final = frozenset(
    {
        "format-version",
        "table-uuid",
        "location",
        "last-sequence-number",
        "last-updated-ms",
        "last-column-id",
        "schema",
        "schemas",
        "current-schema-id",
        "partition-spec",
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
        "properties",
        "current-snapshot-id",
        "snapshots",
        "snapshot-log",
        "metadata-log",
        "sort-orders",
        "default-sort-order-id",
        "refs",
        "statistics",
        "partition-statistics",
        "next-row-id",
        "encryption-keys",
        "row-lineage",  # a boolean that Iceberg 1.8 wrote, before the specification of v3 was final
    }
)
_OF_SNAPSHOT: Final = frozenset(
    {
        "snapshot-id",
        "parent-snapshot-id",
        "sequence-number",
        "timestamp-ms",
        "manifest-list",
        "manifests",
        "summary",
        "schema-id",
        "first-row-id",
        "added-rows",
        "key-id",
    }
)
_OF_STATISTICS: Final = frozenset(
    {
        "snapshot-id",
        "statistics-path",
        "file-size-in-bytes",
        "file-footer-size-in-bytes",
        "key-metadata",
        "blob-metadata",
    }
)
_OF_BLOB: Final = frozenset({"type", "snapshot-id", "sequence-number", "fields", "properties"})
_OF_REF: Final = frozenset({"snapshot-id", "type", "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"})
_OF_KEY: Final = frozenset({"key-id", "encrypted-key-metadata", "encrypted-by-id", "properties"})
_OF_METADATA_LOG: Final = frozenset({"timestamp-ms", "metadata-file"})
_LISTS: Final = (
    ("snapshots", _OF_SNAPSHOT),
    ("statistics", _OF_STATISTICS),
    ("partition-statistics", _OF_STATISTICS),
    ("metadata-log", _OF_METADATA_LOG),
    ("encryption-keys", _OF_KEY),
)


def parse_roots(raw: Any, metadata: TableMetadata) -> Roots:
    """What the JSON of a metadata file names beside what ``metadata`` has of it.

    Anything missing or of the wrong type comes out as the KeyError, TypeError or ValueError that it causes.
    """
    snapshots = _objects(raw, "snapshots")
    return Roots(
        metadata,
        files=(*_metadata_files(raw, metadata), *_statistics(raw)),
        embedded={one["snapshot-id"]: _texts(one["manifests"]) for one in snapshots if _is_embedded(one)},
        gaps=(*_unknown_fields(raw), *_contradictions(snapshots)),
    )


def _metadata_files(raw: Json, metadata: TableMetadata) -> Iterator[NamedFile]:
    yield NamedFile(metadata.metadata_location, FileClass.METADATA)
    for entry in _objects(raw, "metadata-log"):
        yield NamedFile(_text(entry["metadata-file"]), FileClass.METADATA)
    yield NamedFile(f"{metadata.location.rstrip('/')}/metadata/{_VERSION_HINT}", FileClass.VERSION_HINT)


def _statistics(raw: Json) -> Iterator[NamedFile]:
    for key, file_class in (
        ("statistics", FileClass.STATISTICS),
        ("partition-statistics", FileClass.PARTITION_STATISTICS),
    ):
        for entry in _objects(raw, key):
            size_bytes = _number(entry["file-size-in-bytes"])
            yield NamedFile(_text(entry["statistics-path"]), file_class, size_bytes, _number(entry["snapshot-id"]))


def _is_embedded(snapshot: Json) -> bool:
    return not snapshot.get("manifest-list") and snapshot.get("manifests") is not None


def _unknown_fields(raw: Json) -> Iterator[Gap]:
    yield from _unknown(raw, _OF_TABLE, "")
    for key, known in _LISTS:
        for entry in _objects(raw, key):
            yield from _unknown(entry, known, f"{key}.")
    for entry in _objects(raw, "statistics"):
        for blob in _objects(entry, "blob-metadata"):
            yield from _unknown(blob, _OF_BLOB, "statistics.blob-metadata.")
    for ref in (raw.get("refs") or {}).values():
        yield from _unknown(ref, _OF_REF, "refs.")


def _unknown(found: Json, known: frozenset[str], where: str) -> Iterator[Gap]:
    for field in sorted(found.keys() - known):
        said = "the metadata has a field that is not in the specification up to version 3"
        yield Gap(f"{where}{field}", Reason("unknown-field", said))


def _contradictions(snapshots: Iterable[Json]) -> Iterator[Gap]:
    for one in snapshots:
        if one.get("manifest-list") and one.get("manifests"):
            said = "it has a manifest list and also manifests"
            yield Gap(f"snapshot {one['snapshot-id']}", Reason("unknown-field", said))


def _objects(raw: Any, key: str) -> Sequence[Json]:
    found = raw.get(key) or ()
    if not isinstance(found, Sequence) or not all(isinstance(one, Mapping) for one in found):
        raise TypeError(f"{key} is no list of objects")
    return found


def _texts(found: Any) -> tuple[str, ...]:
    if not isinstance(found, list):
        raise TypeError(f"expected a list, found {found!r:.100}")
    return tuple(_text(one) for one in found)


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise TypeError(f"expected a string, found {found!r:.100}")
    return found


def _number(found: Any) -> int:
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(f"expected an integer, found {found!r:.100}")
    return found
