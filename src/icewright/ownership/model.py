"""Whose place is whose, as values: what each table lays claim to, and what it alone owns.

A place is a canonical folder with one slash at its end (:meth:`.Aliases.folder`), so that
``s3://b/t/`` is not above ``s3://b/t_2/``, and what lies below it begins with it.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.iceberg.locations import CanonicalPath, is_ambiguous
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Snapshot


@dataclass(frozen=True, slots=True)
class Claim:
    """The places of one table under one name, as one metadata file has them.

    ``roots`` are where it keeps its files by its own word, none below another; ``location`` is the one that
    ``location`` in the metadata names, None where that names no place. ``reaches`` are further places with files that
    it needs: those that it had before it was moved, those that were imported. ``unplaced`` are locations as spelled
    that name no place; ``ambiguous`` those that a file system may know by another path as well, both of which are in
    ``roots``. ``linked`` are places outside the roots that lead back into them by a link, so that files there have two
    names. ``uuid`` is None where the table has none. What ``is_gone`` is not shown by its catalog any more.
    """

    name: TableName
    uuid: str | None
    roots: tuple[str, ...]
    location: str | None = None
    reaches: tuple[str, ...] = ()
    unplaced: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    gc_enabled: bool = True
    is_clone: bool = False
    is_gone: bool = False
    linked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GoneUuid:
    """A table that lay in another one's place, and that an administrator declared gone for good.

    No catalog has it, configured or not, by the word of ``declared_by``. ``declared_at`` is 0 once that is withdrawn.
    It is about metadata files below ``roots`` alone, the place as it was: who owns the other table says where that is.
    """

    uuid: str
    declared_at: Instant
    declared_by: str
    roots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeenClaim:
    """A claim, the metadata file that it was read from, and when the catalog's pointer was last seen at that.

    ``places`` are folders outside the roots, as spelled, in which manifests of any snapshot have files.
    ``snapshots`` are those whose manifests were all read for that (:func:`packed_keys`), since ``read_since``; the
    claim ``is_complete`` where these are all that the metadata has. Until then its table may need any file, unless an
    administrator, ``lost_by``, declared it lost while the catalog's pointer was ``lost_at`` (empty where the catalog
    cannot tell), and it still is. Of a table that was never read the claim is empty, and so is its location. ``gone``
    are tables that lay in its place before, as far as somebody declared them gone.
    """

    claim: Claim
    metadata_location: str
    seen_at: Instant
    places: tuple[str, ...] = ()
    snapshots: str = ""
    is_complete: bool = False
    read_since: Instant = 0
    lost_at: str | None = None
    lost_by: str = ""
    gone_at: Instant | None = None
    """Since when its catalog has not shown it: dropped, or out of our sight and in use as ever."""
    gone: tuple[GoneUuid, ...] = ()


def as_declared(seen: SeenClaim, before: SeenClaim | None) -> SeenClaim:
    """A claim with what people have declared of the table, as it stands in ``before``: a look may go by older words.

    A loss counts at its pointer alone; what was declared gone from the table's place goes with its uuid.
    """
    if before is None:
        return replace(seen, lost_at=None, lost_by="")
    is_lost = before.lost_at == seen.metadata_location and bool(seen.claim.unplaced)
    lost_at, lost_by = (before.lost_at, before.lost_by) if is_lost else (None, "")
    gone = before.gone if before.claim.uuid == seen.claim.uuid else seen.gone
    return replace(seen, lost_at=lost_at, lost_by=lost_by, gone=gone)


def key_of(snapshot: Snapshot) -> int:
    """What a snapshot and its manifests are known by, from 0 to 2^64: its id and where its manifest list is.

    A table that is moved with its metadata rewritten keeps the ids of its snapshots, and has their files elsewhere.
    """
    named = f"{snapshot.snapshot_id} {snapshot.manifest_list}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(named, digest_size=_KEY_BYTES).digest(), "little")


_KEY_BYTES: Final = 8


def packed_keys(keys: Iterable[int]) -> str:
    """Keys of snapshots in 11 bytes each: a server holds those of all snapshots of all tables."""
    numbers = sorted(set(keys))
    return b64encode(struct.pack(f"<{len(numbers)}Q", *numbers)).decode()


def unpacked_keys(packed: str) -> frozenset[int]:
    """What :func:`packed_keys` packed."""
    content = b64decode(packed)
    return frozenset(struct.unpack(f"<{len(content) // _KEY_BYTES}Q", content))


@dataclass(frozen=True, slots=True)
class Missing:
    """A table, or a whole catalog, whose places are not known. ``what`` is its name, for people."""

    catalog: str
    what: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Place:
    """What a table alone owns: ``roots``, none where ``findings`` say why. ``not_ours`` has files of it all the same.

    ``gone`` are tables that lay there before and were declared gone for good, if no catalog that is known has them.
    Whoever deletes takes this as ``Complete`` alone, and asks :meth:`owns` of each path.
    """

    name: TableName
    uuid: str | None
    roots: tuple[str, ...]
    findings: tuple[Reason, ...]
    not_ours: tuple[str, ...] = ()
    gone: tuple[GoneUuid, ...] = ()

    def refused(self, findings: tuple[Reason, ...]) -> Place:
        """The same place with further findings: with any, it owns nothing."""
        return replace(self, roots=(), findings=(*self.findings, *findings)) if findings else self

    def owns(self, path: CanonicalPath) -> bool:
        """Whether a file lies below one of the roots, and nowhere else by another reading of its path."""
        return path.startswith(self.roots) and not path.endswith("/") and not is_ambiguous(path)
