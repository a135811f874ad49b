"""What is taken over rows on their way in, and again on their way out: a digest of them in order, or of a multiset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from icewright_spark.executors.merge.digest import Digest
from icewright_spark.parquet.rows_hash import RowsHash, rows_hash


class Proof(Protocol):
    """What was taken over rows; equal for the same rows."""

    @property
    def rows(self) -> int:
        """How many there were."""

    @property
    def text(self) -> str:
        """For the receipt."""


class Proving(Protocol):
    """Takes record batches."""

    def update(self, batch: Any) -> None:
        """Adds one."""

    def result(self) -> Proof:
        """What was taken so far."""


class RowsMultiset:
    """Takes record batches, in any order."""

    def __init__(self) -> None:
        self._rows = RowsHash()

    def update(self, batch: Any) -> None:
        """See :class:`Proving`."""
        self._rows += rows_hash([batch])

    def result(self) -> RowsHash:
        """See :class:`Proving`."""
        return self._rows


def difference(names: Sequence[str], expected: Proof, found: Proof) -> str:
    """What is said of two that are not equal."""
    if not isinstance(expected, Digest) or not isinstance(found, Digest):
        return f"{expected.text} -> {found.text}"
    columns = zip(names, expected.columns, found.columns, strict=True)
    differing = [f"{name}: {old} -> {new}" for name, old, new in columns if old != new]
    return f"columns {'; '.join(differing) or 'equal'}"
