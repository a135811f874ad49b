"""When two locations name the same object: one function decides it, by a table that is declared and never guessed.

Writers spell one object in several ways: ``s3://``, ``s3a://`` and ``s3n://``, with and without a scheme, with the name
of a cluster or of one of its name nodes. Compared as strings, live files would look like files that nobody knows.
Everything behind the authority is opaque: ``a//b`` and ``a/b``, ``%20`` and a space, composed and decomposed letters
are different objects to an object store, and nothing here decodes, folds or tidies them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NewType

from icewright.core.errors import InvalidConfiguration, InvalidLocation
from icewright.model.iceberg.object_stores import S3_SCHEMES

CanonicalPath = NewType("CanonicalPath", str)
"""``scheme://authority/key``: equal if and only if the same object is named, as far as the aliases tell."""

_LOCAL: Final = "file"
_S3: Final = "s3"
_FLAT: Final = frozenset({_S3, "gs"})
"""Stores whose clients take every key as it is; Hadoop's clients tidy up, also for ``s3a:``."""
# Not urlsplit, which takes line breaks out and cuts at ``?`` and ``#``.
_WITH_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?((?:/.*)?)", re.DOTALL)
_UNTIDY: Final = re.compile(r"/(?:\.{0,2}/|\.{1,2}\Z)")
_SHOWN_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Aliases:
    """Other names for the same storage.

    S3's three schemes are one, and a path without a scheme is a local file. ``authorities`` are further ones, as
    an administrator declares them: ``hdfs://node-1:8020`` for ``hdfs://cluster``; ``hdfs://`` is the cluster of
    locations that name none. What they stand for must not be an alias itself.
    """

    authorities: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def canonical(self, location: str) -> CanonicalPath:
        """The one name of an object. Raises :class:`InvalidLocation` for what is no location of any.

        Idempotent; two locations with different keys never become one.
        """
        storage, key = _split(location)
        return CanonicalPath(self.authorities.get(storage, storage) + key)

    def folder(self, location: str) -> str:
        """The canonical path of a folder, with one slash at its end, however many it was spelled with.

        Raises :class:`InvalidLocation` as :meth:`canonical` does.
        """
        storage, key = _split(location)
        return f"{self.authorities.get(storage, storage)}{key.rstrip('/')}/"


def declared(authorities: Mapping[str, str]) -> Aliases:
    """Aliases of storages, each as ``scheme://authority``. Raises :class:`InvalidConfiguration`."""
    found: dict[str, str] = {}
    for other, storage in authorities.items():
        names = [_storage(text) for text in (other, storage)]
        if names[0] in found or names[0] == names[1]:
            raise InvalidConfiguration(f"{other} is an alias twice, or of itself")
        found[names[0]] = names[1]
    for other, storage in found.items():
        if storage in found:
            raise InvalidConfiguration(f"{storage}, the alias {other} means, is an alias itself")
    return Aliases(MappingProxyType(found))


def storage_and_key(path: str) -> tuple[str, str]:
    """``scheme://authority`` of a canonical path or folder, and its key, which begins with a slash."""
    storage, key = _split(path)
    return storage, key


def tidied(folder: str) -> str:
    """The canonical folder that a file system takes another one for: without empty, ``.`` and ``..`` parts."""
    storage, key = _split(folder)
    parts: list[str] = []
    for part in key.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join((storage, *parts, ""))


_CHECKSUM: Final = re.compile(r"(.*/)\.([^/]+)\.crc", re.DOTALL)


def checksummed(path: CanonicalPath) -> CanonicalPath | None:
    """The file that a path is the checksum of, by its name; None for all other files.

    Hadoop's ``ChecksumFileSystem``, which ``file://`` is in Java, writes ``.NAME.crc`` for each file ``NAME``.
    """
    found = _CHECKSUM.fullmatch(path)
    return None if found is None else CanonicalPath(found[1] + found[2])


def is_ambiguous(location: str) -> bool:
    """Whether a file system may know the object by another key as well: ``/a//b``, ``/a/./b`` and ``/a/../b``.

    Raises :class:`InvalidLocation` as :meth:`Aliases.canonical` does.
    """
    _, key = _split(location)
    return _UNTIDY.search(key) is not None and location.partition(":")[0].lower() not in _FLAT


def topmost(places: Iterable[str]) -> tuple[str, ...]:
    """The places that lie below no other one of them, in order."""
    found: list[str] = []
    for place in sorted(set(places)):
        if not found or not place.startswith(found[-1]):
            found.append(place)
    return tuple(found)


def coarsened(places: tuple[str, ...], most: int) -> tuple[str, ...]:
    """At most so many places that have all of these below them, unless storages alone are more."""
    while len(places) > most:
        depth = max(place.count("/") for place in places)
        if depth <= _STORAGE_SLASHES:
            break
        places = topmost(place if place.count("/") < depth else parent(place) for place in places)
    return places


_STORAGE_SLASHES: Final = 3
"""Of ``scheme://authority/``, which has no parent."""


def parent(place: str) -> str:
    """The place around a place; a storage is its own."""
    return place if place.count("/") <= _STORAGE_SLASHES else place[:-1].rpartition("/")[0] + "/"


def _storage(text: str) -> str:
    try:
        storage, key = _split(text)
    except InvalidLocation as error:
        raise InvalidConfiguration(f"{text!r} is no storage", hint="write scheme://authority") from error
    if key or "://" not in text:
        raise InvalidConfiguration(f"{text!r} is no storage", hint="write scheme://authority, without a path")
    return storage


def _split(location: str) -> tuple[str, str]:
    """``scheme://authority`` and the key, which begins with a slash or is empty."""
    if location.startswith("/"):
        return f"{_LOCAL}://", location
    match = _WITH_SCHEME.fullmatch(location)
    if match is None:
        raise InvalidLocation(f"{location[:_SHOWN_MAX]!r} is neither a URI nor an absolute path")
    scheme = match[1].lower()
    return f"{_S3 if scheme in S3_SCHEMES else scheme}://{match[2] or ''}", match[3]
