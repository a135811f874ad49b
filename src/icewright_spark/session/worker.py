"""What functions of ours do first in one of Spark's Python workers, so that a task costs little more than its work."""

from __future__ import annotations

import gc
import sys
from importlib.machinery import ModuleSpec
from itertools import count
from types import ModuleType
from typing import Final
from zipimport import zipimporter

from icewright_spark.session.without_pandas import leave_pandas_out

_times: Final = count()
"""How often this process has settled in."""


def settle_in() -> None:
    """Leave pandas out, have archives read once, and what is loaded looked at by no collection of garbage.

    Quick when it has been done in this process before.

    Before each task Spark has Python forget what it knows of the places where modules are. Of an archive that is the
    list of its contents, and Spark's jars are among them: reading these lists again cost each task 0.17 CPU seconds.
    No archive changes while a worker lives. After each task Spark has Python collect garbage among all that it holds,
    0.011 CPU seconds over the modules of a merge: these are frozen when the second task begins, right after such a
    collection, when all that there is is in use.
    """
    leave_pandas_out()
    if next(_times) == 1:
        gc.freeze()
    for path, finder in sys.path_importer_cache.items():
        if isinstance(finder, zipimporter):
            sys.path_importer_cache[path] = _Kept(finder)


class _Kept:
    """A finder of modules in an archive that is not asked to forget."""

    def __init__(self, finder: zipimporter) -> None:
        self._finder = finder

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """As the archive's own finder has it."""
        return self._finder.find_spec(fullname, target)
