"""What the deletes of a table cost its readers: every action on delete files says it for before and after."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeleteCosts:
    """What deletes cost a scan of all of a table.

    ``listed`` are the live delete files (and deletion vectors), whose entries every planning of a scan reads.
    ``opened`` counts each of them once for each data file that it applies to, as a reader without a cache opens them;
    ``opened_bytes`` are the bytes of these, of a deletion vector those of its own blob.
    """

    listed: int = 0
    opened: int = 0
    opened_bytes: int = 0
