"""Which executor carries a group out, and what keeps the other from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from icewright.actions.rewrite_data_files.executors import MERGED, STITCHED, Choice, choose_executor, table_executors
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.files import FileFormat
from icewright.model.iceberg.tables import Schema, TableMetadata
from icewright.model.plans.observation import WorkerAccess
from icewright.model.plans.plans import Reason
from tests.builders.observations import (
    MIB,
    data_file,
    data_files,
    deletion_vector,
    equality_deletes,
    month,
    policy,
    position_deletes,
    table,
)
from tests.cases import each_case
from tests.narrowing import of_type
from tests.plans.test_eligibility import column, list_of, map_of, struct

FILES = data_files(month(1), 3)


def chosen(
    metadata: TableMetadata | None = None, access: WorkerAccess = WorkerAccess.PROVED, **kinds: Any
) -> Choice | Reason:
    executors = table_executors(metadata or table(), access)
    return choose_executor(executors, kinds.get("files", FILES), kinds.get("deletes", ()), policy())


def why(metadata: TableMetadata | None = None, access: WorkerAccess = WorkerAccess.PROVED, **kinds: Any) -> str | None:
    """The code of why a group is staged, None for a merge."""
    choice = chosen(metadata, access, **kinds)
    assert isinstance(choice, Choice), choice
    assert (choice.executor is Executor.STAGED) == (choice.reason is not None)
    return None if choice.reason is None else choice.reason.code


def test_plain_files_are_merged() -> None:
    assert chosen() == MERGED


def test_position_deletes_and_vectors_are_merged() -> None:
    assert why(deletes=[position_deletes(month(1), 0), deletion_vector(FILES[0], 3)]) is None


def test_equality_deletes_are_staged() -> None:
    assert why(deletes=[position_deletes(month(1), 0), equality_deletes(month(1), 0)]) == "equality-deletes"


@pytest.mark.parametrize("kind", ["variant", list_of("variant")])
def test_variants_that_are_to_be_shredded_are_left_alone(kind: Any) -> None:
    asking = {"write.parquet.shred-variants": "TRUE"}
    variants = table(fields=(column(kind),), properties=asking)
    assert why(table(properties=asking)) is None
    assert why(replace(variants, properties={})) == "unsupported-type"
    assert "shredded variants" in of_type(Reason, chosen(variants)).text


@pytest.mark.parametrize("file_format", [FileFormat.AVRO, FileFormat.ORC])
def test_other_formats_are_staged(file_format: FileFormat) -> None:
    assert why(files=[*FILES, data_file(month(1), 9, file_format=file_format)]) == "not-parquet"
    deletes = [replace(position_deletes(month(1), 0), file_format=file_format)]
    assert why(deletes=deletes) == "not-parquet"


def test_a_file_that_is_too_large_for_a_worker_is_staged() -> None:
    assert why(files=[data_file(month(1), 9, 192 * MIB)]) is None
    assert why(files=[data_file(month(1), 9, 192 * MIB + 1)]) == "file-too-large"


def test_workers_that_cannot_reach_the_files_stage() -> None:
    assert why(access=WorkerAccess.REFUSED) == "worker-access"


PROPERTIES = [
    (None, {"write.parquet.bloom-filter-enabled.column.c": "false"}),
    ("bloom-filters", {"write.parquet.bloom-filter-enabled.column.c": "TRUE"}),
    ("name-mapping", {"schema.name-mapping.default": "[]"}),
    ("writer-property", {"write.format.default": "orc"}),
    ("writer-property", {"write.parquet.compression-codec": "lz4"}),
    (None, {"write.format.default": "PARQUET"}),
]


@each_case(("expected", "properties"), PROPERTIES)
def test_properties(expected: str | None, properties: dict[str, str]) -> None:
    assert why(table(properties=properties)) == expected


def test_what_neither_can_do_has_both_reasons() -> None:
    choice = chosen(table(fields=(column("time"),)), deletes=[equality_deletes(month(1), 0)])
    assert choice == Reason(
        "equality-deletes",
        "equality deletes apply to it, which a merge cannot do, and Spark cannot keep the type time of column c",
    )


PLAIN = ["boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "string", "uuid"]


@each_case("kind", [*PLAIN, "binary", "decimal(9,2)", "decimal(38, 10)", "fixed[16]"])
def test_types_that_merging_keeps(kind: str) -> None:
    for nested in (kind, struct("a", kind=kind), list_of(kind), map_of("string", list_of(kind))):
        assert why(table(fields=(column(nested),))) is None


@pytest.mark.parametrize("kind", ["timestamp_ns", "timestamptz_ns"])
def test_nanoseconds_are_merged(kind: str) -> None:
    assert why(table(fields=(column(kind),))) is None


def test_variant_is_staged_at_any_depth() -> None:
    for nested in (
        "variant",
        struct("a", kind="variant"),
        list_of("variant"),
        map_of("int", struct("a", kind="variant")),
    ):
        assert why(table(fields=(column(nested),))) == "unsupported-type"


def test_initial_defaults() -> None:
    assert why(table(fields=(column("int", **{"initial-default": 0}),))) == "column-default"
    assert why(table(fields=(column("int", **{"initial-default": None}),))) is None


EVOLUTIONS = [
    (None, column("int"), column("long")),
    (None, column(struct("a")), column(struct("a"), doc="said later")),
    (None, column(struct("a")), {**column(struct("a", "b")), "id": 8}),
    ("nested-evolution", column(struct("a")), column(struct("a", "b"))),
    ("nested-evolution", column(struct("a", "b")), column(struct("a"))),
    ("nested-evolution", column(struct("a")), column(struct("z"))),
    ("nested-evolution", column(list_of("int")), column(list_of("long"))),
    ("nested-evolution", column(list_of(struct("a"))), column(list_of(struct("a", "b")))),
    ("nested-evolution", column(map_of("int", struct("a"))), column(map_of("int", struct("a", "b")))),
]


@each_case(("expected", "before", "after"), EVOLUTIONS)
def test_nested_evolution(expected: str | None, before: dict[str, Any], after: dict[str, Any]) -> None:
    schemas = (Schema(0, (before,)), Schema(1, (after,)))
    assert why(table(schemas=schemas, current_schema_id=1)) == expected


def test_nested_evolution_is_found_at_any_depth() -> None:
    """A text of each level within the text of the one above would double with each of them."""
    before, after = struct("a"), struct("b")
    for _ in range(100):
        before, after = struct("a", kind=before), struct("a", kind=after)
    for now, expected in ((before, None), (after, "nested-evolution")):
        schemas = (Schema(0, (column(before),)), Schema(1, (column(now),)))
        assert why(table(schemas=schemas, current_schema_id=1)) == expected


LARGE = data_files(month(1), 3, 4 * MIB, row_groups=1)


def test_large_row_groups_are_stitched() -> None:
    assert chosen(files=LARGE) == STITCHED
    assert chosen(files=[*LARGE, data_file(month(1), 9, 8 * MIB, row_groups=2)]) == STITCHED
    assert chosen(files=[*LARGE, data_file(month(1), 9, 8 * MIB, row_groups=3)]) == MERGED
    assert chosen(files=[*LARGE, data_file(month(1), 9, 4 * MIB - 1, row_groups=1)]) == MERGED
    assert chosen(files=[*LARGE, data_file(month(1), 9, 64 * MIB)]) == MERGED


def test_what_cannot_be_copied_as_it_is_is_not_stitched() -> None:
    assert chosen(table(format_version=3), files=LARGE) == MERGED
    assert chosen(files=LARGE, deletes=[position_deletes(month(1), 0)]) == MERGED
    assert chosen(table(properties={"write.format.default": "orc"}), files=LARGE) != STITCHED
    assert chosen(table(fields=(column("variant"),)), files=LARGE) != STITCHED
    assert chosen(access=WorkerAccess.REFUSED, files=LARGE) != STITCHED
    orc = data_file(month(1), 9, 8 * MIB, row_groups=1, file_format=FileFormat.ORC)
    assert chosen(files=[*LARGE, orc]) != STITCHED
    known = table_executors(table(), WorkerAccess.PROVED, not_stitched="files of two writers")
    assert choose_executor(known, LARGE, (), policy()) == MERGED


def test_what_a_merge_would_drop_is_stitched() -> None:
    """Bloom filters are copied with their row groups, and files without field ids stay as they are."""
    for properties in ({"write.parquet.bloom-filter-enabled.column.c": "true"}, {"schema.name-mapping.default": "[]"}):
        assert chosen(table(properties=properties), files=LARGE) == STITCHED
