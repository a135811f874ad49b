"""The data files that one attempt wrote, taken back where it ended before anything of its commit was sent.

On a disk that is nearly full they would stand in the way of the table's owner, and nothing knows them but the attempt
itself. This is all that icewright deletes without the Deleter, and only here and in the worker that could not write a
file to its end (:meth:`.Storage.create`): by exact names, each told by the result of what
wrote it, in the process that had it written. Where a commit has been sent, however it is answered, all of them stay:
whether a table has them is known to nobody then. They stay as well where a proof failed, as the evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import structlog

from icewright.model.actions.actions import RewriteDataFiles
from icewright_spark.iceberg.java_api import SparkTable, first_line
from icewright_spark.parquet.errors import ProofFailed

_log = structlog.get_logger("icewright.optimizer")


class OwnOutputs:
    """The journal of one attempt: what it wrote, as long as no commit has been sent."""

    def __init__(self, table: SparkTable, action: RewriteDataFiles) -> None:
        self._table = table
        self._inputs = {file.path for group in action.groups for file in group.files}
        self._written: list[str] = []
        self._sent = False

    def wrote(self, paths: Iterable[str]) -> None:
        """Note files that are written, under names that no other attempt has. Inputs are none of them."""
        self._written += [path for path in paths if path not in self._inputs]

    def sending(self) -> None:
        """The commit is sent now: from here on nothing is taken back, whatever is answered."""
        self._sent = True
        self._written.clear()

    @contextmanager
    def taken_back(self) -> Iterator[None]:
        """What the block has written goes when it ends without a commit having been sent, but for evidence."""
        try:
            yield
        except ProofFailed:
            raise
        except Exception:
            self._take_back()
            raise
        self._take_back()

    def _take_back(self) -> None:
        if self._sent or not self._written:
            return
        left: list[str] = []
        for path in self._written:
            try:
                self._table.java.io().deleteFile(path)
            except Exception as error:  # noqa: BLE001 - of several kinds; what stays is an orphan as any other
                left.append(f"{path}: {first_line(error)}")
        taken = len(self._written) - len(left)
        _log.info("outputs of an attempt without a commit are taken back", files=taken, left=left[:1])
        self._written.clear()
