"""What is shown of plans to compute statistics."""

from __future__ import annotations

from collections.abc import Sequence

from icewright.model.actions.compute_statistics import ComputeStatisticsPrediction
from icewright.model.plans.plans import Reason
from icewright.terminal import figures as text


def statistics_pairs(said: ComputeStatisticsPrediction, notes: Sequence[Reason]) -> list[tuple[str, str]]:
    """Which statistics there would be, what is read for them, and who gains."""
    return [
        ("columns", ", ".join(said.columns)),
        ("partitions", "a row of figures for each" if said.of_partitions else ""),
        ("reads", _read(said)),
        ("gain", said.gain),
        *(("note", note.text) for note in notes),
    ]


def statistics_work(said: ComputeStatisticsPrediction) -> str:
    """What is to be done, in a few words."""
    return f"statistics of {text.count(len(said.columns), 'column')}" + (
        " and of partitions" if said.of_partitions else ""
    )


def _read(said: ComputeStatisticsPrediction) -> str:
    """What of the table is read for them."""
    if not said.columns:
        return "manifests alone"
    bytes_read = f"about {text.size(said.read_bytes)} of {text.size(said.data_bytes)}, by the types of the columns"
    return f"{said.read_records:,} rows in {text.count(said.read_files, 'file')}: {bytes_read}"
