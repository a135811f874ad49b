"""What deletes cost readers, as the command line shows it."""

from __future__ import annotations

from icewright.cli import figures as text
from icewright.domain.delete_costs import DeleteCosts


def delete_costs_pairs(before: DeleteCosts, after: DeleteCosts) -> list[tuple[str, str]]:
    """What is listed, and what a scan of the whole table opens, before and after."""
    opened = f"{before.opened:,} -> {after.opened:,} by a scan of the whole table"
    return [
        ("delete files", f"{before.listed:,} -> {after.listed:,}"),
        ("opened", f"{opened} ({text.size(before.opened_bytes)} -> {text.size(after.opened_bytes)})"),
    ]
