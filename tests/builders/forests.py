"""Forests of tables that lie beside, above, below and in each other, and what is true of them by looking at each pair.

Places are compared as tuples of parts, and names of storages by a table of their own: nothing here is shared with what
is tested but the words that it is asked in.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from icewright.core.completeness import Complete
from icewright.model.iceberg.locations import CanonicalPath, declared
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.ownership import claims, ownership
from icewright.ownership.location_rules import PlaceRules
from icewright.ownership.model import Place
from tests.inventory.test_footprint import snapshot, table

ALIASES = declared({"s3://old": "s3://new", "hdfs://node:8020": "hdfs://cluster"})
RULES = PlaceRules(
    {"lake": ALIASES, "pond": ALIASES},
    {"lake": ("s3://new/", "s3://b/", "hdfs://cluster/"), "pond": ("s3://new/", "s3://b/", "hdfs://cluster/")},
    storages=frozenset({"hdfs://cluster"}),
)
_SPELLINGS = {
    "b": ("s3://b", "s3a://b", "s3n://b", "S3://b"),
    "new": ("s3://new", "s3a://new", "s3://old", "s3n://old"),
    "cluster": ("hdfs://cluster", "hdfs://node:8020"),
}
_STORAGES = {spelled.lower(): storage for storage, names in _SPELLINGS.items() for spelled in names}
_PARTS = ("t", "t_2", "t%20", "T", "data", "x")
UNFOUNDED = "nothing is wrong"
"""What is said of a table that should own its place, and does not."""
_KEYS = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")


@dataclass(frozen=True, slots=True)
class Tree:
    """A table, with every file that it needs and the folders that its manifests are known to name."""

    metadata: TableMetadata
    files: tuple[str, ...]
    places: tuple[str, ...]

    @property
    def name(self) -> TableName:
        return self.metadata.name


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A folder, of which each spelling is as good as another."""

    storage: str
    parts: tuple[str, ...]

    def spelled(self, chance: random.Random) -> str:
        end = chance.choice(("", "", "/", "//"))
        return "/".join((chance.choice(_SPELLINGS[self.storage]), *self.parts)) + end

    def file(self, chance: random.Random, *names: str) -> str:
        return "/".join((chance.choice(_SPELLINGS[self.storage]), *self.parts, *names))


def forest(seed: int, count: int) -> list[Tree]:
    """So many tables in two catalogs, crowded enough that many meet."""
    chance = random.Random(seed)  # noqa: S311 - a world, not a secret
    depth = chance.randint(2, 6)
    trees: list[Tree] = []
    for number in range(count):
        trees.append(_tree(chance, number, depth, trees))
    return trees


def _folder(chance: random.Random, depth: int) -> _Drawn:
    parts = tuple(chance.choice(_PARTS) for _ in range(chance.randint(1, depth)))
    return _Drawn(chance.choice(tuple(_SPELLINGS)), parts)


def _tree(chance: random.Random, number: int, depth: int, others: list[Tree]) -> Tree:
    apart = chance.random() < 0.5
    base = _Drawn("b", ("wh", f"db{number}", chance.choice(_PARTS))) if apart else _folder(chance, depth)
    properties: dict[str, str] = {}
    drawn = [base]
    for key in _KEYS:
        if chance.random() < 0.1:
            drawn.append(_folder(chance, depth))
            properties[key] = drawn[-1].spelled(chance)
    if chance.random() < 0.1:
        properties["gc.enabled"] = chance.choice(("false", "FALSE", "no", "true", "True"))
    uuid = f"u{number}"
    if others and chance.random() < 0.05:
        uuid = chance.choice(others).metadata.table_id.uuid.upper()
    catalog = chance.choice(("lake", "pond"))
    files = [folder.file(chance, "data", f"f{number}.parquet") for folder in drawn]
    before = _folder(chance, depth) if chance.random() < 0.1 else base
    listed = replace(snapshot(1, None, 1), manifest_list=before.file(chance, "metadata", f"snap-{number}.avro"))
    places: list[str] = []
    if others and chance.random() < 0.1:
        imported = chance.choice(chance.choice(others).files)
        files.append(imported)
        places.append(imported.rpartition("/")[0])
    metadata = replace(
        table((listed,), (), 1, **properties),
        table_id=TableId(catalog, uuid),
        name=TableName(catalog, ("db",), f"t{number:03}"),
        location=base.spelled(chance),
        metadata_location=base.file(chance, "metadata", f"{number}.metadata.json"),
    )
    return Tree(metadata, (*files, listed.manifest_list, metadata.metadata_location), tuple(places))


def judged(trees: list[Tree]) -> dict[TableName, Complete[Place]]:
    """What is tested, of the whole forest."""
    made = [claims.claim(tree.metadata, RULES.aliases_of(tree.name.catalog), tree.places) for tree in trees]
    found = ownership.ownership(made, (), RULES)
    places = {tree.name: found.place(tree.name) for tree in trees}
    return {name: place for name, place in places.items() if isinstance(place, Complete)}


def violations(trees: list[Tree]) -> Iterator[str]:
    """What must not be, of what was judged: one line for each."""
    places = {name: place.value for name, place in judged(trees).items()}
    if len(places) != len(trees):
        yield "all is known, and not said to be"
    for tree in trees:
        for location in tree.files:
            owners = [str(name) for name, place in places.items() if place.owns(_canonical(location))]
            if len(owners) > 1:
                yield f"{location} is owned by {owners}"
            if owners and owners != [str(tree.name)]:
                yield f"{location} of {tree.name} is owned by {owners}"
    for tree, blame in _blamed(trees):
        wrong = f"{blame} is wrong" if blame else UNFOUNDED
        if bool(blame) != bool(places[tree.name].findings):
            yield f"{tree.name}: {wrong}, and {places[tree.name].findings} was found"
        if bool(blame) == bool(places[tree.name].roots):
            yield f"{tree.name}: {wrong}, and it owns {places[tree.name].roots}"


def _canonical(location: str) -> CanonicalPath:
    """As a listing would have it."""
    storage, parts = _split(location)
    return CanonicalPath("/".join(("hdfs://cluster" if storage == "cluster" else f"s3://{storage}", *parts)))


def _blamed(trees: list[Tree]) -> Iterator[tuple[Tree, str]]:
    """Each table with one thing that is wrong with it, by looking at every other one."""
    roots = [[_split(place) for place in _named(tree)] for tree in trees]
    reached = [[_split(file.rpartition("/")[0]) for file in tree.files] for tree in trees]
    for one, tree in enumerate(trees):
        others = [other for other in range(len(trees)) if other != one]
        own = roots[one]
        if tree.metadata.properties.get("gc.enabled", "true").lower() != "true":
            yield tree, "gc.enabled"
        elif any(len(parts) < 2 for _, parts in own):
            yield tree, "a bucket"
        elif any(_same_uuid(tree, trees[other]) for other in others):
            yield tree, "its uuid"
        elif any(_meet(a, b) for other in others for a in own for b in (*roots[other], *reached[other])):
            yield tree, "its place"
        else:
            yield tree, ""


def _named(tree: Tree) -> tuple[str, ...]:
    properties = tree.metadata.properties
    return (tree.metadata.location, *(properties[key] for key in _KEYS if key in properties))


def _same_uuid(one: Tree, other: Tree) -> bool:
    return one.metadata.table_id.uuid.lower() == other.metadata.table_id.uuid.lower()


def _split(location: str) -> tuple[str, tuple[str, ...]]:
    head, _, key = location.rstrip("/").partition("://")
    authority, *parts = key.split("/")
    return _STORAGES[f"{head}://{authority}".lower()], tuple(parts)


def _meet(one: tuple[str, tuple[str, ...]], other: tuple[str, tuple[str, ...]]) -> bool:
    shorter = min(len(one[1]), len(other[1]))
    return one[0] == other[0] and one[1][:shorter] == other[1][:shorter]
