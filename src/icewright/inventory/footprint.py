"""How many bytes a table keeps, by class of file and by what keeps them: sums over its reachable files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from icewright.inventory.reference_bits import CURRENT, OWN, ReferenceBits
from icewright.model.actions.expire_snapshots import ExpiryRule
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.reachable_files import FileClass, ReachableFile
from icewright.model.iceberg.tables import Ref

_ORDER = {file_class: position for position, file_class in enumerate(FileClass)}


@dataclass(frozen=True, slots=True)
class Amount:
    """So many files of so many bytes; ``unsized`` are files whose size is not known and not in the bytes."""

    files: int = 0
    size_bytes: int = 0
    unsized: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.files + other.files, self.size_bytes + other.size_bytes, self.unsized + other.unsized)


@dataclass(frozen=True, slots=True)
class ClassShare:
    """The files of one class; each is in exactly one of the three.

    ``live``: the current snapshot needs it. ``by_refs``: that of another branch or tag does. ``by_history``: older
    snapshots alone do. The table's own files count as live.
    """

    file_class: FileClass
    live: Amount
    by_refs: Amount
    by_history: Amount


@dataclass(frozen=True, slots=True)
class RefShare:
    """What the snapshot of a ref needs, and what that of no other ref does."""

    ref: Ref
    reachable: Amount
    only_here: Amount


@dataclass(frozen=True, slots=True)
class ExpiryShare:
    """What an expiry would free: files that no snapshot needs afterwards."""

    rule: ExpiryRule
    snapshots: int
    freed: Amount


@dataclass(frozen=True, slots=True)
class Footprint:
    """All of it."""

    classes: tuple[ClassShare, ...]
    refs: tuple[RefShare, ...]
    expiries: tuple[ExpiryShare, ...]


def distinct(found: Iterable[ReachableFile]) -> Iterator[ReachableFile]:
    """Each path once, needed by whatever needs one of its mentions; of sizes that differ the largest.

    Holds all of ``found``: to be given parts that have no path in common.
    """
    by_path: dict[CanonicalPath, ReachableFile] = {}
    for file in found:
        before = by_path.get(file.path)
        if before is None:
            by_path[file.path] = file
        elif before != file:
            sizes = [size for size in (before.size_bytes, file.size_bytes) if size is not None]
            by_path[file.path] = ReachableFile(
                file.path,
                min(before.file_class, file.file_class, key=_ORDER.__getitem__),
                max(sizes, default=None),
                before.kept_by | file.kept_by,
                min((at for at in (before.added_at, file.added_at) if at is not None), default=None),
            )
    yield from by_path.values()


def footprint(files: Iterable[ReachableFile], references: ReferenceBits) -> Footprint:
    """The sums over distinct files, in one pass. Version hints are left out: most tables have none."""
    sums: dict[tuple[FileClass, int], list[int]] = {}
    for file in files:
        if file.file_class is FileClass.VERSION_HINT:
            continue
        found = sums.setdefault((file.file_class, file.kept_by), [0, 0, 0])
        found[0] += 1
        found[1] += file.size_bytes or 0
        found[2] += file.size_bytes is None
    amounts = {key: Amount(*found) for key, found in sums.items()}

    def total(wanted: Iterable[tuple[FileClass, int]]) -> Amount:
        return sum((amounts[key] for key in wanted), Amount())

    others = references.refs_mask
    return Footprint(
        classes=tuple(
            ClassShare(
                file_class,
                live=total(key for key in amounts if key[0] is file_class and key[1] & CURRENT),
                by_refs=total(
                    key for key in amounts if key[0] is file_class and not key[1] & CURRENT and key[1] & others
                ),
                by_history=total(key for key in amounts if key[0] is file_class and not key[1] & (CURRENT | others)),
            )
            for file_class in FileClass
            if any(key[0] is file_class for key in amounts)
        ),
        refs=tuple(
            RefShare(
                ref,
                reachable=total(key for key in amounts if key[1] & bit and not key[1] & OWN),
                only_here=total(key for key in amounts if key[1] & others == bit),
            )
            for bit, ref in references.refs.items()
        ),
        expiries=tuple(
            ExpiryShare(expiry.rule, expiry.snapshots, total(key for key in amounts if not key[1] & expiry.bit))
            for expiry in references.expiries
        ),
    )
