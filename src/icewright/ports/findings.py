"""What optimizers found out of tables and storages, and what they are asked: each by whichever server they reach.

An optimizer's report comes in at one server, and the next plan is made by another. So none of this may be kept in a
process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from icewright.core.times import Instant
from icewright.model.iceberg.names import TableId
from icewright.model.work.storage import AccessRecord, ProbeRequest

EXCLUSION_KEPT_MS: Final = 24 * 3_600_000
"""How long it is remembered what a table's files are not; by then they may have been merged away."""
PROBES_KEPT_MS: Final = 24 * 3_600_000
"""How long a question is kept that no look at a table repeats: each one does, several times a day at least."""


@dataclass(frozen=True, slots=True)
class ExecutorExclusion:
    """What a table's files were found to be, and when."""

    found_at: Instant
    detail: str


@dataclass(frozen=True, slots=True)
class Question:
    """Something that an optimizer was asked, or None yet, and when."""

    request: ProbeRequest
    optimizer_id: str | None = None
    asked_at: Instant | None = None


class Findings(Protocol):
    """Every method is one transaction. Raises :class:`~icewright.core.errors.Unavailable`."""

    def note_exclusion(self, table_id: TableId, code: str, exclusion: ExecutorExclusion) -> None:
        """Remember what an executor found the files of a table to be, in place of what was found before."""

    def exclusions(self, table_id: TableId) -> Mapping[str, ExecutorExclusion]:
        """What was found of a table's files, by code."""

    def want_probe(self, request: ProbeRequest, now: Instant) -> None:
        """Put a question to whichever optimizer asks for one; one about the same storage stays as it is, but anew."""

    def want_no_probe(self, catalog: str, root: str) -> None:
        """Forget the question about a storage; harmless where there is none."""

    def take_probes(
        self, optimizer_id: str, catalogs: frozenset[str], *, limit: int, now: Instant, again_ms: int
    ) -> tuple[ProbeRequest, ...]:
        """Questions for an optimizer that reaches these catalogs, which are its own from now on.

        No other optimizer is told the same, unless this one has not answered for ``again_ms``.
        """

    def probes_to_take(self, catalogs: frozenset[str], *, now: Instant, again_ms: int) -> int:
        """How many questions :meth:`take_probes` has for an optimizer that reaches these catalogs."""

    def save_access(self, record: AccessRecord) -> None:
        """Keep what is known of the workers' access to a storage, in place of what was."""

    def access(self, catalog: str, root: str) -> AccessRecord | None:
        """What is known of the workers' access to a storage."""

    def probe(self, catalog: str, root: str) -> Question | None:
        """The question about a storage."""
