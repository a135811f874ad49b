"""What a person asks to be planned, beyond what is planned by itself; it is only carried out when it is applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from icewright.domain.plans import Migration


@dataclass(frozen=True, slots=True)
class AskedRewriteDataFiles:
    """Migrate the files of a table, all of those that there are, and do nothing else."""

    kind: ClassVar[Literal["rewrite_data_files"]] = "rewrite_data_files"
    migrate: Migration


Asked: TypeAlias = AskedRewriteDataFiles
"""Anything of which a plan can be asked for, by the kind of its action."""
