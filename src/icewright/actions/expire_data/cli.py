"""What is shown of plans to expire data."""

from __future__ import annotations

from collections.abc import Sequence

from icewright.core.reasons import Reason
from icewright.model.actions.expire_data import ExpireDataPrediction
from icewright.model.actions.undo import UndoExpireDataPrediction
from icewright.terminal import figures as text


def data_pairs(said: ExpireDataPrediction | None, notes: Sequence[Reason]) -> list[tuple[str, str]]:
    """What would expire, if anything, and what is said of that which stays; nothing where no data was asked about."""
    of_data = any(note.code == "expires-before" for note in notes)
    rows = [("note", note.text) for note in notes if of_data]
    if said is None:
        return rows
    ends = said.oldest if said.partitions == 1 else f"{said.oldest} to {said.newest}"
    return [
        ("partitions", f"{said.partitions:,} of {said.partitions_before:,}: {ends}"),
        ("files", f"{said.files:,} of {said.files_before:,} ({text.size(said.size_bytes)})"),
        ("rows", f"{said.records:,} of {said.records_before:,}"),
        ("left", f"{text.count(said.left_for_later, 'partition')} for later" if said.left_for_later else ""),
        ("undo", said.undo),
        *rows,
    ]


def data_undo_pairs(said: UndoExpireDataPrediction, notes: Sequence[Reason]) -> list[tuple[str, str]]:
    """What would be inserted again, and how it differs from what expired."""
    deleted = f", less what {text.count(said.delete_files, 'delete file')} removed of them" if said.delete_files else ""
    return [
        ("partitions", text.number(said.partitions)),
        ("files", f"{said.files:,} ({text.size(said.size_bytes)}) are read"),
        ("rows", f"{said.records:,}{deleted}"),
        ("from", f"the tag {said.tag}"),
        *(("note", note.text) for note in notes),
    ]
