"""Lookups: how many of the planned files one value of a layout's column may be in, before and after.

Before, by the bounds of the files; afterwards, as many as a file of the layout would be in
(:mod:`.slices`). Bounds tell neither how often a value is looked for nor how many there are between
them: lookups are taken to be of any value at which a file begins or ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from icewright.actions.rewrite_data_files.layouts.depth import Opened, opened_by_bounds
from icewright.actions.rewrite_data_files.layouts.slices import opened
from icewright.core import wording
from icewright.model.actions.actions import RewriteDataFiles
from icewright.model.iceberg.files import DataFile, Partition, Span
from icewright.model.iceberg.layouts import Curve, Layout, Level
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Lookup
from icewright.plans.layouts import dotted, paths_of

FEW_VALUES: Final = 10_000
"""From more values of a column on, files are taken to end between two of them."""


def lookups(
    metadata: TableMetadata, action: RewriteDataFiles, files: Mapping[Partition, Sequence[DataFile]]
) -> tuple[Lookup, ...]:
    """For each column of the layout, what putting the planned ``files`` of each partition in order does.

    Of the partition where most files may have the same values; none where nothing is put in order, nor under cuts:
    how many rows are on each side of one, and so how many files, is known of a sample alone.
    """
    layout = action.layout
    if layout is None or layout.curve is Curve.CUTS or action.level is Level.LEVEL_0 or not files:
        return ()
    before = {partition: by_column(found, layout) for partition, found in files.items()}
    chosen = max(before, key=lambda partition: (sum(column.worst for column in before[partition]), partition))
    groups = [group for group in action.groups if group.partition == chosen]
    spans = [[_span(file, place) for file in files[chosen]] for place, _ in enumerate(layout.fields)]
    values = [few_values(of_column) for of_column in spans]
    after = [opened(layout.curve, values, group.output_files) for group in groups]
    unknown = [sum(span is None for span in of_column) for of_column in spans]
    found = []
    for place, path in enumerate(paths_of(metadata, layout)):
        its = [one[place] for one in after]
        if unknown[place] == len(files[chosen]):  # what its writer keeps no bounds of has none afterwards either
            its = [Opened(float(group.output_files), group.output_files) for group in groups]
        found.append(
            Lookup(
                column=wording.cut(dotted(path)),
                partition=groups[0].partition_path,
                files_before=before[chosen][place].worst,
                files_after=sum(one.worst for one in its),
                mean_before=round(before[chosen][place].mean, 1),
                mean_after=round(sum(one.mean for one in its), 1),
                unknown_files=unknown[place],
                values_at_most=values[place],
            )
        )
    return tuple(found)


def said(lookup: Lookup) -> str:
    """``one value of ts in month=3 is in 40.5 of these files now (97 at most), in 1.0 afterwards (2 at most)``."""
    text = f"one value of {lookup.column} in {wording.place(lookup.partition)} is in {lookup.mean_before:,.1f} of "
    text += f"these files now ({lookup.files_before:,} at most), in {lookup.mean_after:,.1f} afterwards "
    text += f"({lookup.files_after:,} at most)"
    if lookup.unknown_files:
        text += f"; {wording.count(lookup.unknown_files, 'of them has no bounds', 'of them have no bounds')} of it"
    if lookup.values_at_most is not None:
        text += f"; it has at most {wording.count(lookup.values_at_most, 'value')}"
    return text


def by_column(files: Sequence[DataFile], layout: Layout) -> tuple[Opened, ...]:
    """For each column of a layout, how many of some files one value of it may be in, by their bounds."""
    return tuple(opened_by_bounds(_span(file, place) for file in files) for place, _ in enumerate(layout.fields))


def few_values(spans: Iterable[Span | None]) -> int | None:
    """How many values a column has at most by the bounds of files; None for very many, and where nothing tells."""
    ends: set[tuple[int, Any]] = set()
    for span in spans:
        if span is None:
            return None
        ends |= set(span)
    if len(ends) <= 1:
        return len(ends) or None
    values = [value for _, value in ends if value is not None]
    if not all(isinstance(value, int) for value in values):  # a date is its day's number; booleans are integers, too
        return None
    nulls = len({rank for rank, value in ends if value is None})
    number = nulls + (max(values) - min(values) + 1 if values else 0)
    return number if number <= FEW_VALUES else None


def _span(file: DataFile, place: int) -> Span | None:
    return file.spans[place] if place < len(file.spans) else None
