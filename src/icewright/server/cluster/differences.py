"""Which servers of a store have another configuration than the one that leads, and catalogs that this one lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from icewright.core.reasons import Reason
from icewright.core.servers import SaidConfiguration
from icewright.ownership.model import Missing
from icewright.server.cluster.coordinator import Session

ANYWHERE: Final = ""
"""In place of a catalog's name: its tables may lie anywhere."""


def differences(sessions: Iterable[Session], leader: str | None) -> Mapping[str, tuple[str, ...]]:
    """In which sections of its configuration each server differs from the ``leader``; none that says nothing of it."""
    said = {one.server_id: one.said for one in sessions}
    leads = None if leader is None else said.get(leader)
    if leads is None:
        return {}
    found = {name: one.differs_in(leads) for name, one in said.items() if one is not None}
    return {name: sections for name, sections in found.items() if sections}


def catalogs_elsewhere(sessions: Iterable[Session], own: SaidConfiguration) -> Sequence[Missing]:
    """Which catalogs these servers have and this one lacks, or has at another place.

    A server of another release may say so in a way that this one does not understand: it may have any catalog.
    """
    found: dict[str, Reason] = {}
    for one in sessions:
        said = one.said
        if said is None and one.configuration is not None:
            text = f"this server does not understand what server {one.server_id} says of its catalogs: another release"
            found[f"of server {one.server_id}"] = Reason("catalog-elsewhere", text)
        for name, place in () if said is None else said.catalogs.items():
            if own.catalogs.get(name) != place:
                lacks = "has it at another place" if name in own.catalogs else "lacks it"
                text = f"this server {lacks}, and server {one.server_id} has it or had it in the last 24 h"
                found[name] = Reason("catalog-elsewhere", text)
    return [Missing(ANYWHERE, f"catalog {name}", reason) for name, reason in sorted(found.items())]
