"""The lists of ``icewright table ...`` as columns and cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from icewright.core.wording import example, grouped
from icewright.model.work.figures import TableHealth
from icewright.observation.figures import PartitionView
from icewright.tables.views import FileView, ManifestView, RefView, SnapshotView
from icewright.terminal import figures as text
from icewright.terminal.tables import headings

PARTITIONS = headings(
    "partition",
    "#files",
    "#bytes",
    "#rows",
    "#small",
    "#deletes",
    "#deleted rows",
    "#done",
    "#spec",
    "formats",
    "last write",
    "last optimized",
    drop=("spec", "formats", "last optimized", "deleted rows", "rows", "last write", "deletes", "small"),
)
SNAPSHOTS = headings(
    "#snapshot", "committed", "operation", "#files", "#rows", "refs", "task", drop=("rows", "task"), below=("refs",)
)
REFS = headings("name", "type", "#snapshot", "committed", "#kept at least", drop=("kept at least", "committed"))
MANIFESTS = headings(
    "manifest",
    "content",
    "#length",
    "#partitions",
    "#files",
    "#bytes",
    "#rows",
    "#deletes",
    "#added by snapshot",
    drop=("added by snapshot", "rows", "length", "deletes", "partitions", "content"),
)
FILES = headings(
    "file",
    "partition",
    "format",
    "#bytes",
    "#rows",
    "small",
    "#sequence number",
    "#added by snapshot",
    drop=("sequence number", "added by snapshot", "format", "rows"),
    below=("partition",),
)


def partition_cells(view: PartitionView) -> tuple[str, ...]:
    """One partition."""
    return (
        view.path or "(unpartitioned)",
        text.number(view.data_files),
        text.size(view.size_bytes),
        text.number(view.records),
        text.number(view.small_files),
        text.number(view.delete_files) + (f" ({view.equality_delete_files} eq)" if view.equality_delete_files else ""),
        text.number(view.deleted_records),
        text.ratio(view.optimization_ratio),
        str(view.spec_id),
        ", ".join(sorted(view.formats)),
        text.instant(view.written_at),
        text.instant(view.optimized_at),
    )


def partition_groups(views: Sequence[PartitionView]) -> list[tuple[str, ...]]:
    """Partitions, those with equal files as one row: of each of them, bytes and rows on average, and the last dates."""
    return [_group_cells(alike) for alike in grouped(views, _files)]


def _files(view: PartitionView) -> tuple[str, ...]:
    _path, files, _bytes, _rows, *deletes_and_formats, _written, _optimized = partition_cells(view)
    return files, *deletes_and_formats


def _group_cells(alike: Sequence[PartitionView]) -> tuple[str, ...]:
    first, number = alike[0], len(alike)
    written = [view.written_at for view in alike if view.written_at is not None]
    optimized = [view.optimized_at for view in alike if view.optimized_at is not None]
    one = replace(
        first,
        size_bytes=sum(view.size_bytes for view in alike) // number,
        records=sum(view.records for view in alike) // number,
        written_at=max(written, default=None),
        optimized_at=max(optimized, default=None),
    )
    return (example(number, first.path), *partition_cells(one)[1:])


def health_cells(health: TableHealth) -> list[tuple[str, ...]]:
    """Each part of the health: its score and weight, why, and what would raise it."""
    return [
        (
            part.part.value,
            str(part.score),
            str(part.weight),
            part.reason.text,
            "" if part.action is None else part.action.text,
        )
        for part in health.parts
    ]


def snapshot_cells(view: SnapshotView) -> tuple[str, ...]:
    """One snapshot, with what it added and removed."""

    def change(key: str) -> str:
        added, removed = view.summary.get(f"added-{key}"), view.summary.get(f"deleted-{key}")
        return " ".join(f"{sign}{count}" for sign, count in (("+", added), ("-", removed)) if count)

    operation = view.operation or "-"
    return (
        str(view.snapshot_id),
        text.instant(view.committed_at),
        operation if view.is_ancestor else f"{operation} (not in the current line)",
        change("data-files"),
        change("records"),
        ", ".join(view.refs),
        view.task_id or "",
    )


def ref_cells(view: RefView) -> tuple[str, ...]:
    """One branch or tag."""
    kept = view.min_snapshots_to_keep
    return (view.name, view.type, str(view.snapshot_id), text.instant(view.committed_at), str(kept or "-"))


def manifest_cells(view: ManifestView) -> tuple[str, ...]:
    """One manifest."""
    return (
        view.path,
        view.content,
        text.size(view.length_bytes),
        text.number(view.partitions),
        text.number(view.data_files),
        text.size(view.size_bytes),
        text.number(view.records),
        text.number(view.delete_files),
        str(view.added_snapshot_id),
    )


def file_cells(view: FileView) -> tuple[str, ...]:
    """One data file."""
    return (
        view.path,
        view.partition or "(unpartitioned)",
        view.format,
        text.size(view.size_bytes),
        text.number(view.records),
        "small" if view.is_small else "",
        str(view.data_sequence_number),
        str(view.snapshot_id),
    )
