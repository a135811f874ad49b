"""What deletes cost readers, as the command line shows it."""

from __future__ import annotations

from collections.abc import Mapping

from icewright.cli import figures as text
from icewright.domain.delete_costs import DeleteCosts


def delete_costs_pairs(before: DeleteCosts, after: DeleteCosts) -> list[tuple[str, str]]:
    """What is listed, and what a scan of the whole table opens, before and after."""
    opened = f"{before.opened:,} -> {after.opened:,} by a scan of the whole table"
    return [
        ("delete files", f"{before.listed:,} -> {after.listed:,}"),
        ("opened", f"{opened} ({text.size(before.opened_bytes)} -> {text.size(after.opened_bytes)})"),
    ]


def delete_costs_cells(
    before: DeleteCosts, after: DeleteCosts, found: Mapping[str, int | float | str]
) -> list[tuple[str, str, str]]:
    """What a plan predicted and what the verifier found: what is listed, and how much less is opened."""
    listed = found.get("listed_after")
    rows = [("delete files", f"{after.listed:,}", "" if listed is None else f"{listed:,}")]
    for name, key, fewer in (
        ("opened less by a scan", "opened", before.opened - after.opened),
        ("bytes opened less", "opened_bytes", before.opened_bytes - after.opened_bytes),
    ):
        was, now = found.get(f"{key}_before"), found.get(f"{key}_after")
        if fewer and isinstance(was, int) and isinstance(now, int):
            said = text.size if key == "opened_bytes" else text.number
            rows.append((name, said(fewer), said(was - now)))
    return [(name, predicted, measured) for name, predicted, measured in rows if measured]
