"""In how many of the files of a commit one value of a layout's column may be, as measured."""

from __future__ import annotations

from collections.abc import Mapping

from icewright.actions.rewrite_data_files.layouts.lookups import by_column
from icewright.catalogs.port import Catalog
from icewright.model.actions.actions import RewriteDataFiles
from icewright.model.iceberg.tables import Snapshot, TableMetadata
from icewright.model.plans.plans import RewritePrediction


def measured_lookups(
    catalog: Catalog, metadata: TableMetadata, snapshot: Snapshot, part: RewriteDataFiles, prediction: RewritePrediction
) -> Mapping[str, int | float]:
    """``lookup_1_files`` and ``lookup_1_mean`` for the first lookup that was predicted, and so on.

    By the bounds of the files that the snapshot added to the partition which the prediction is of, as its manifests
    say; nothing where none was predicted, or ``part``, what was committed, is not of that partition.
    """
    predicted = () if prediction.estimate is None else prediction.estimate.lookups
    partitions = {g.partition for g in part.groups if predicted and g.partition_path == predicted[0].partition}
    if part.layout is None or not partitions:
        return {}
    keys = [key for key in catalog.manifests(metadata, snapshot) if key.added_snapshot_id == snapshot.snapshot_id]
    files = catalog.data_files(metadata, snapshot, keys, frozenset(partitions), part.layout.fields)
    found = by_column([file for file in files if file.snapshot_id == snapshot.snapshot_id], part.layout)
    figures: dict[str, int | float] = {}
    for number, one in enumerate(found, start=1):
        figures |= {f"lookup_{number}_files": one.worst, f"lookup_{number}_mean": round(one.mean, 1)}
    return figures
