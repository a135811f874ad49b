"""Whose place is whose, as values: what each table lays claim to, and what it alone owns.

A place is a canonical folder with one slash at its end (:meth:`icewright.domain.locations.Aliases.folder`), so that
``s3://b/t/`` is not above ``s3://b/t_2/``, and what lies below it begins with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from icewright.domain.locations import CanonicalPath, is_ambiguous
from icewright.domain.names import TableName
from icewright.domain.reasons import Reason
from icewright.domain.tables import Instant


@dataclass(frozen=True, slots=True)
class Claim:
    """The places of one table under one name, as one metadata file has them.

    ``roots`` are where it keeps its files by its own word, none below another; ``location`` is the one that
    ``location`` in the metadata names, None where that names no place. ``reaches`` are further places with files that
    it needs: those that it had before it was moved, those that were imported. ``unplaced`` are locations as spelled
    that name no place; ``ambiguous`` those that a file system may know by another path as well, both of which are in
    ``roots``. ``uuid`` is None where the table has none.
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


@dataclass(frozen=True, slots=True)
class SeenClaim:
    """A claim, the metadata file that it was read from, and when the catalog's pointer was last seen at that.

    ``places`` are folders outside the roots, as spelled, that manifests had files in: with None as long as live ones
    do, and then with the sequence number of the snapshot that had none any more, as long as older ones may need them.
    """

    claim: Claim
    metadata_location: str
    seen_at: Instant
    places: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Missing:
    """A table, or a whole catalog, whose places are not known. ``what`` is its name, for people."""

    catalog: str
    what: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Place:
    """What a table alone owns: ``roots``, none where ``findings`` say why. ``not_ours`` has files of it all the same.

    Whoever deletes takes this as ``Complete`` alone, and asks :meth:`owns` of each path.
    """

    name: TableName
    uuid: str | None
    roots: tuple[str, ...]
    findings: tuple[Reason, ...]
    not_ours: tuple[str, ...] = ()

    def refused(self, findings: tuple[Reason, ...]) -> Place:
        """The same place with further findings: with any, it owns nothing."""
        return replace(self, roots=(), findings=(*self.findings, *findings)) if findings else self

    def owns(self, path: CanonicalPath) -> bool:
        """Whether a file lies below one of the roots, and nowhere else by another reading of its path."""
        return path.startswith(self.roots) and not path.endswith("/") and not is_ambiguous(path)
