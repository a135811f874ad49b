"""Why a whole table is left alone: what icewright cannot do, or must not.

Every check errs on the side of leaving the table alone and says why. Not obstacles, on purpose: ``gc.enabled=false``
and files imported from outside the table's location, since a rewrite deletes no file; branches and staged snapshots,
since a rewrite of main does not touch them; a mode other than ``auto``, since plans are made in every mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from icewright.domain.errors import InvalidConfiguration, Unsupported
from icewright.domain.plans import Reason
from icewright.domain.policy import Policy
from icewright.domain.tables import Json, Operation, Snapshot, TableMetadata
from icewright.domain.writer_settings import bloom_filter_property, encryption_property, writer_settings
from icewright.planning import wording
from icewright.planning.settings import IGNORE_OTHER_OPTIMIZERS_KEY

FOREIGN_REPLACE_WINDOW_MS = 7 * 86_400_000
"""How far before the table's latest commit a foreign rewrite counts: optimizers run weekly at the rarest."""

FORMAT_VERSIONS = (1, 2)
_PROBLEMS_SAID_MAX = 5
_NAME_MAPPING = "schema.name-mapping.default"
_PATH_PROPERTIES = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
_AMORO_KEY = "self-optimizing.enabled"
_HADOOP_METADATA = re.compile(r"/v\d+(\.gz|\.zst)?\.metadata\.json(\.gz|\.zst)?\Z", re.ASCII)
_RENAMING_SCHEMES = frozenset({"file", "hdfs", "viewfs"})
_MERGEABLE_TYPE = re.compile(
    r"boolean|int|long|float|double|date|time|timestamp|timestamptz|string|uuid|binary"
    r"|decimal\(\s*(?:[1-9]|[12]\d|3[0-8])\s*,\s*\d+\s*\)|fixed\[\s*\d+\s*\]",
    re.ASCII,
)


def table_obstacle(metadata: TableMetadata, policy: Policy) -> Reason | None:
    """Why nothing can be done to this table whatever its files are, or None."""
    checks = (
        _identity_obstacle(metadata),
        _hadoop_obstacle(metadata),
        _policy_obstacle(policy),
        _snapshot_obstacle(metadata),
        _format_obstacle(metadata),
        _schema_obstacle(metadata),
        _property_obstacle(metadata),
        _location_obstacle(metadata),
        None if policy.ignore_other_optimizers else _other_optimizer_obstacle(metadata),
    )
    return next((reason for reason in checks if reason is not None), None)


def _nothing(code: str, because: str, **figures: int | str) -> Reason:
    return Reason(code, f"nothing, because {because}", figures)


def _identity_obstacle(metadata: TableMetadata) -> Reason | None:
    if metadata.has_uuid:
        return None
    text = "the table has no uuid, so it could not be told from another one of its name; it is only observed"
    return _nothing("no-uuid", f"{text}. Any commit by a current writer gives it one")


def _hadoop_obstacle(metadata: TableMetadata) -> Reason | None:
    """A table without a catalog commits by renaming a file, which takes away others' commits on an object store."""
    scheme, separator, _ = metadata.metadata_location.partition(":")
    if not _HADOOP_METADATA.search(metadata.metadata_location) or not separator or scheme in _RENAMING_SCHEMES:
        return None
    return _nothing(
        "hadoop-table",
        f"its metadata is kept as a Hadoop table's ({wording.quoted(metadata.metadata_location)}), and on an object "
        "store two such commits at once can both succeed, so that one is lost",
    )


def _policy_obstacle(policy: Policy) -> Reason | None:
    if not policy.problems:
        return None
    first = policy.problems[:_PROBLEMS_SAID_MAX]
    said = "; ".join(f"{wording.name(problem.key)} ({problem.origin}): {problem.problem}" for problem in first)
    more = len(policy.problems) - len(first)
    said += f"; and {more:,} more" if more else ""
    return _nothing("policy-problem", f"a setting cannot be used: {said}", problems=len(policy.problems))


def _snapshot_obstacle(metadata: TableMetadata) -> Reason | None:
    if metadata.current_snapshot_id is None:
        return _nothing("no-snapshots", "nothing has been committed to the table yet")
    if metadata.current_snapshot is None:
        return _nothing(
            "snapshot-missing",
            f"the metadata names {metadata.current_snapshot_id} as the current snapshot and does not have it",
        )
    return None


def _format_obstacle(metadata: TableMetadata) -> Reason | None:
    if metadata.format_version in FORMAT_VERSIONS:
        return None
    text = f"tables of format version {metadata.format_version} cannot be rewritten yet, only 1 and 2"
    return _nothing("format-version", text, format_version=metadata.format_version)


def _schema_obstacle(metadata: TableMetadata) -> Reason | None:
    current = next((s for s in metadata.schemas if s.schema_id == metadata.current_schema_id), None)
    if current is None:
        return _nothing("schema-missing", f"the metadata does not have its current schema {metadata.current_schema_id}")
    for path, field in all_fields(current.fields):
        kind = field["type"]
        if not _is_mergeable(kind):
            said = wording.name(kind) if isinstance(kind, str) else "struct without fields"
            text = f"merging cannot yet keep the type {said} of column {wording.name(path)}"
            return _nothing("unsupported-type", text)
        if field.get("initial-default") is not None:
            return _nothing(
                "column-default", f"merging cannot yet keep the initial default of column {wording.name(path)}"
            )
    shapes = {field["id"]: _shape(field["type"]) for field in current.fields}
    for schema in metadata.schemas:
        for field in schema.fields:
            if shapes.get(field["id"], "dropped") not in ("dropped", "plain", _shape(field["type"])):
                return _nothing(
                    "nested-evolution",
                    f"the nested column {wording.name(field['name'])} was of another shape in schema "
                    f"{schema.schema_id}, and merging cannot yet bring such files together",
                )
    return None


def _property_obstacle(metadata: TableMetadata) -> Reason | None:
    if _NAME_MAPPING in metadata.properties:
        return _nothing(
            "name-mapping",
            f"{_NAME_MAPPING} is set: some of its files may have no field ids, and merging goes by these alone yet",
        )
    bloom_filter = bloom_filter_property(metadata.properties)
    if bloom_filter is not None:
        text = f"merging cannot yet write the bloom filters that {wording.name(bloom_filter)} asks for"
        return _nothing("bloom-filters", text)
    encryption = encryption_property(metadata.properties)
    if encryption is not None:
        text = f"the table is encrypted ({wording.name(encryption)}), which merging cannot do yet"
        return _nothing("encryption", text)
    try:
        writer_settings(metadata.properties)
    except (Unsupported, InvalidConfiguration) as error:
        return _nothing("writer-property", f"merging cannot write as a property asks for: {wording.cut(error.message)}")
    return None


def _location_obstacle(metadata: TableMetadata) -> Reason | None:
    locations = {"location": metadata.location}
    locations.update({key: metadata.properties[key] for key in _PATH_PROPERTIES if key in metadata.properties})
    for key, location in locations.items():
        if not location.startswith(("/", "file:/")):
            text = f"its {key} {wording.quoted(location)} is not on a local file system; object stores come later"
            return _nothing("location", text)
    return None


def _other_optimizer_obstacle(metadata: TableMetadata) -> Reason | None:
    way_out = f"set {IGNORE_OTHER_OPTIMIZERS_KEY}=true on the table if icewright shall work on it nevertheless"
    if metadata.properties.get(_AMORO_KEY, "").strip().lower() == "true":
        return _nothing("other-optimizer", f"Amoro maintains it ({_AMORO_KEY}=true); {way_out}")
    lineage = metadata.ancestors()
    for snapshot in lineage:
        recent = lineage[0].committed_at - snapshot.committed_at <= FOREIGN_REPLACE_WINDOW_MS
        if recent and is_foreign_rewrite(snapshot):
            engine = wording.name(snapshot.summary.get("engine-name", "another-program"))
            return _nothing(
                "other-optimizer",
                f"{engine} rewrote its files at {wording.instant(snapshot.committed_at)} "
                f"(snapshot {snapshot.snapshot_id}), and two optimizers get in each other's way; {way_out}",
                snapshot_id=snapshot.snapshot_id,
            )
    return None


def is_foreign_rewrite(snapshot: Snapshot) -> bool:
    """Whether somebody else rewrote data or delete files here; a rewrite of manifests alone says so and is none."""
    if snapshot.operation is not Operation.REPLACE or snapshot.task_id is not None:
        return False
    files_changed = any(
        snapshot.summary.get(key, "0") != "0"
        for key in ("deleted-data-files", "added-data-files", "removed-delete-files")
    )
    return files_changed or "manifests-replaced" not in snapshot.summary


def all_fields(fields: tuple[Json, ...] | list[Json], prefix: str = "") -> Iterator[tuple[str, Json]]:
    """All fields at any depth with their dotted paths; elements, keys and values of lists and maps among them."""
    for field in fields:
        path = prefix + str(field["name"])
        yield path, field
        yield from all_fields(_children(field["type"]), path + ".")


def _is_mergeable(kind: Any) -> bool:
    """Whether a merge keeps this type, its children apart; Parquet has no struct without fields."""
    return _MERGEABLE_TYPE.fullmatch(kind) is not None if isinstance(kind, str) else bool(_children(kind))


def _children(kind: Any) -> list[Json]:
    """The fields right below a type of the spec's JSON ("Schemas" in Appendix C)."""
    if isinstance(kind, str):
        return []
    if kind["type"] == "struct":
        return list(kind["fields"])
    parts = ("element",) if kind["type"] == "list" else ("key", "value")
    return [{"id": kind[f"{part}-id"], "name": part, "type": kind[part]} for part in parts]


def _shape(kind: Any) -> str:
    """What must not have changed for files to be brought together: ids, names and types inside a nested type.

    ``plain`` for primitive types, whose promotions merging can do.
    """
    if isinstance(kind, str):
        return "plain"
    return repr(
        [(f["id"], f["name"], f["type"] if isinstance(f["type"], str) else _shape(f["type"])) for f in _children(kind)]
    )
