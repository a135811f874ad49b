"""What functions of ours do first in one of Spark's Python workers, so that a task costs little more than its work."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from zipimport import zipimporter

from icewright_spark.merge.without_pandas import leave_pandas_out


def settle_in() -> None:
    """Leave pandas out, and have archives read once: quick when it has been done in this process before.

    Before each task Spark has Python forget what it knows of the places where modules are. Of an archive that is the
    list of its contents, and Spark's jars are among them: reading these lists again cost each task 0.17 CPU seconds.
    No archive changes while a worker lives.
    """
    leave_pandas_out()
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
