"""Which column types each executor keeps: said once, for the planner that chooses and for the merge that is chosen.

A type is what the spec's JSON has ("Schemas" in Appendix C): a string for primitives, an object for structs, lists and
maps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from icewright.model.iceberg.tables import Json

_EVERYWHERE = r"boolean|int|long|float|double|date|timestamp|timestamptz|string|uuid|binary"
_SIZED = r"decimal\(\s*(?:[1-9]|[12]\d|3[0-8])\s*,\s*\d+\s*\)|fixed\[\s*\d+\s*\]"
_MERGED = re.compile(rf"{_EVERYWHERE}|time|timestamp_ns|timestamptz_ns|{_SIZED}", re.ASCII)
_STAGED = re.compile(rf"{_EVERYWHERE}|variant|{_SIZED}", re.ASCII)


Keeps = Callable[[Any], bool]


def merge_keeps(kind: Any) -> bool:
    """Whether a merge keeps a type, its children apart; Parquet has no struct without fields."""
    return _MERGED.fullmatch(kind) is not None if isinstance(kind, str) else bool(children(kind))


def spark_keeps(kind: Any) -> bool:
    """Whether Spark reads and writes a type, its children apart.

    As Iceberg's ``TypeToSparkType`` has it; geometry, geography and unknown are left out, which no proof covers yet.
    """
    return _STAGED.fullmatch(kind) is not None if isinstance(kind, str) else bool(children(kind))


def is_orderable(kind: Any) -> bool:
    """Whether rows can be ordered by a column of this type: any primitive type of version 2, and the nanoseconds of 3.

    Not nested types and variants; not geometry, geography and unknown, which have no order in the spec.
    """
    return isinstance(kind, str) and merge_keeps(kind)


def has_variant(fields: Iterable[Json]) -> bool:
    """Whether any column, at any depth, is a variant."""
    return any(field["type"] == "variant" for _, field in all_fields(fields))


def first_not_kept(fields: Iterable[Json], keeps: Keeps) -> tuple[str, str] | None:
    """The first column at any depth whose type is not kept, None when all are: its dotted path, and its type."""
    for path, field in all_fields(fields):
        kind = field["type"]
        if not keeps(kind):
            return path, kind if isinstance(kind, str) else "struct without fields"
    return None


def all_fields(fields: Iterable[Json], prefix: str = "") -> Iterator[tuple[str, Json]]:
    """All fields at any depth with their dotted paths; elements, keys and values of lists and maps among them."""
    for field in fields:
        path = prefix + str(field["name"])
        yield path, field
        yield from all_fields(children(field["type"]), path + ".")


def children(kind: Any) -> list[Json]:
    """The fields right below a type; none below a primitive, nor below a nested type that is not of the spec."""
    if isinstance(kind, str):
        return []
    if kind["type"] == "struct":
        return list(kind["fields"])
    parts = {"list": ("element",), "map": ("key", "value")}.get(kind["type"], ())
    return [{"id": kind[f"{part}-id"], "name": part, "type": kind[part]} for part in parts]
