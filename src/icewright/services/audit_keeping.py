"""How long the audit is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icewright.domain.tables import Instant
from icewright.ports.audit import AuditLog

_ENTRIES_MAX: Final = 5_000
"""Entries that are forgotten at once; one entry is written for each time."""


@dataclass(frozen=True, slots=True)
class KeptAudit:
    """An audit, of which entries go that are older than ``keep_ms``."""

    log: AuditLog
    keep_ms: int

    def prune(self, now: Instant) -> bool:
        """Forget what is old; whether there may be more of it."""
        return self.log.prune(now - self.keep_ms, _ENTRIES_MAX) == _ENTRIES_MAX
