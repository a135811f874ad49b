"""In which folders the files of a manifest lie: what tells of files that were imported from somewhere else.

A manifest never changes, and where a table says that its files are may. So the folders are kept as they are, and what
of them is outside is judged each time anew.
"""

from __future__ import annotations

from typing import Final

from icewright.core.errors import InvalidLocation
from icewright.model.iceberg.locations import Aliases
from icewright.ownership.claims import coarsened, topmost

PLACES_MAX: Final = 16
"""Folders kept of a manifest; of more, those around them are."""
_REMEMBERED_MAX: Final = 1_000
_ODD_MAX: Final = 3
_PLAIN: Final = Aliases()


class FilePlaces:
    """Gathers the folders of files. Most lie below one, the table's location, which costs next to nothing."""

    def __init__(self, location: str | None) -> None:
        self._inside = () if location is None else (location.rstrip("/") + "/",)
        self._is_inside = False
        self._seen: set[str] = set()
        self._found: tuple[str, ...] = ()
        self._odd: set[str] = set()

    def add(self, path: str) -> None:
        """One more file, as its manifest spells it."""
        if path.startswith(self._inside) and "/.." not in path:
            self._is_inside = True
            return
        folder = path.rpartition("/")[0]
        if folder in self._seen:
            return
        if len(self._seen) >= _REMEMBERED_MAX:
            self._seen.clear()
        self._seen.add(folder)
        try:
            place = _PLAIN.folder(folder)
        except InvalidLocation:
            if len(self._odd) < _ODD_MAX:
                self._odd.add(folder)
            return
        if not place.startswith(self._found):
            self._found = coarsened(topmost((*self._found, place)), PLACES_MAX)

    def places(self) -> tuple[str, ...]:
        """Folders that have all files below them, and folders that are none, as spelled."""
        return (*(self._inside if self._is_inside else ()), *self._found, *sorted(self._odd))
