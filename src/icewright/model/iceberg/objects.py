"""What a storage has, as the storage itself says it: not what any table says.

Keys are opaque. A path is what the listing gave behind the storage's name, byte for byte: whoever renders it anew, to
make it look tidy or to decode it, names another object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from icewright.core.errors import InvalidLocation
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.iceberg.locations import CanonicalPath, is_ambiguous


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object, or a file, as one listing or one question found it.

    ``modified_at`` is what the store says, however odd; None where it says nothing. ``etag`` differs whenever the
    object is another one, also of the same size and time; None where the store has none. ``version_id`` is that of
    a bucket with versions, where it was asked for.
    """

    path: CanonicalPath
    size_bytes: int
    modified_at: Instant | None = None
    etag: str | None = None
    version_id: str | None = None


@dataclass(frozen=True, slots=True)
class OddEntry:
    """Something below a root that is neither a file nor a directory, such as a symbolic link. It was not followed."""

    path: CanonicalPath
    reason: Reason


Listed: TypeAlias = ListedObject | OddEntry


def prefix_of(root: CanonicalPath) -> str:
    """What all paths below a root begin with: the root with exactly one slash, so that ``t_2`` is not below ``t``.

    Raises :class:`InvalidLocation` for a root that ends with several slashes, or is written in one of several ways.
    """
    prefix = root if root.endswith("/") else root + "/"
    _, _, key = prefix.partition("://")
    if key.endswith("//") or not key.strip("/") or is_ambiguous(prefix[:-1]):
        raise InvalidLocation(f"{root[:200]!r} is no root", hint="write it with one slash between names")
    return prefix
