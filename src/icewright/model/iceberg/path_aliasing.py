"""When two paths may be one object to some client, though they are not the same path.

One client encodes what another one writes as it is, folds letters, tidies ``a//b`` up, or knows a storage by another
name. Nobody can tell from two paths alone. So whatever is about to take a file for garbage compares in this coarser
way as well: what is merely *like* a file that a table needs stays, or comes back. Never the other way round: nothing is
taken to be found for being like something.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import unquote

from icewright.model.iceberg.locations import CanonicalPath

# What nothing below would change but for its case; most names that writers choose are such.
_PLAIN: Final = re.compile(r"(?:/[A-Za-z0-9_=-][A-Za-z0-9_=.-]*)+")
_DECODINGS_MAX: Final = 5
"""Rounds of ``%2525``; whoever nests deeper does not do it by accident."""


def comparison_key(path: CanonicalPath) -> str:
    """What all spellings of a path have in common that some client may use: equal for paths that may be one object.

    The key alone, whatever the storage is called; decoded, composed, in small letters, without empty parts, ``.`` and
    ``..``. Coarser than the path itself: equal paths are alike.
    """
    _, _, rest = path.partition("://")
    key = rest[rest.find("/") :] if "/" in rest else ""
    if _PLAIN.fullmatch(key):
        return key.lower()
    return _tidied(_composed(_decoded(key)))


def _decoded(key: str) -> str:
    for _ in range(_DECODINGS_MAX):
        decoded = unquote(key)
        if decoded == key:
            break
        key = decoded
    return key.replace("+", " ").replace("\\", "/")


def _composed(key: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", key).casefold())


def _tidied(key: str) -> str:
    parts: list[str] = []
    for part in key.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "".join(f"/{part}" for part in parts)
