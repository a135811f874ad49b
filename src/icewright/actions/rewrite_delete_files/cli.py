"""What deletes cost readers, and which files are moved, as the command line shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from icewright.model.actions.remove_files import RemoveExpiredFilesPrediction, RemoveOrphanFilesPrediction
from icewright.model.actions.rewrite_delete_files import (
    RemoveDanglingDeletesPrediction,
    RewritePositionDeletesPrediction,
)
from icewright.model.actions.undo import RestoreFilesPrediction
from icewright.model.iceberg.inventory import DeleteCosts
from icewright.plans.evidence.measures import Measured
from icewright.plans.views import PlanView, TaskView
from icewright.terminal import figures as text


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


_OnDeletes: TypeAlias = RemoveDanglingDeletesPrediction | RewritePositionDeletesPrediction


def deletes_pairs(said: _OnDeletes, _view: PlanView) -> list[tuple[str, str]]:
    """What work on delete files would bring."""
    return delete_costs_pairs(said.before, said.after)


def deletes_work(said: _OnDeletes) -> str:
    """What is to be done, in a few words."""
    return f"{said.before.listed:,} delete files become {said.after.listed:,}"


def deletes_cells(task: TaskView, said: _OnDeletes, _action: object, _measured: Measured) -> list[tuple[str, str, str]]:
    """What was predicted and what the verifier found."""
    return delete_costs_cells(said.before, said.after, {} if task.outcome is None else task.outcome.reason.figures)


def restore_pairs(said: RestoreFilesPrediction, _view: PlanView) -> list[tuple[str, str]]:
    """What comes back from the quarantine."""
    purged = f", {said.purged_files:,} were purged" if said.purged_files else ""
    return [("restored", f"{text.count(said.files, 'file')} ({text.size(said.size_bytes)}){purged}")]


def expired_files_pairs(said: RemoveExpiredFilesPrediction, _view: PlanView) -> list[tuple[str, str]]:
    """What goes into quarantine of what expired snapshots needed."""
    return [
        _go(said),
        ("needed", f"{said.needed_files:,} of what expired snapshots needed"),
        ("missing", f"{said.gone_files:,}, or replaced" if said.gone_files else ""),
    ]


def orphans_pairs(said: RemoveOrphanFilesPrediction, view: PlanView) -> list[tuple[str, str]]:
    """What goes into quarantine of what a listing found."""
    listed = f"{text.count(said.listed_files, 'file')} ({text.size(said.listed_bytes)})"
    return [
        _go(said),
        ("listed", listed + ("" if said.listing_is_complete else ", not all of it: see the notes")),
        ("needed", f"{text.count(said.reachable_files, 'file')} ({text.size(said.reachable_bytes)})"),
        *(("note", note.text) for note in view.rules),
    ]


def removal_work(said: RemoveOrphanFilesPrediction | RemoveExpiredFilesPrediction) -> str:
    """What is to be done, in a few words."""
    return f"{text.count(said.files, 'file')} ({text.size(said.size_bytes)}) move into quarantine"


def _go(said: RemoveOrphanFilesPrediction | RemoveExpiredFilesPrediction) -> tuple[str, str]:
    later = f", {said.left_for_later:,} more later" if said.left_for_later else ""
    return "go", f"{text.count(said.files, 'file')} ({text.size(said.size_bytes)}) into quarantine{later}"
