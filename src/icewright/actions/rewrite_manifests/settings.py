"""The settings of rewriting manifests: Iceberg's own properties where it has them, ours for what it has not."""

from __future__ import annotations

from typing import Final

from icewright.model.policy.setting_values import BYTES, Setting, ratio, whole_number, yes_or_no

TARGET_SIZE_KEY: Final = "commit.manifest.target-size-bytes"
MIN_COUNT_KEY: Final = "commit.manifest.min-count-to-merge"
MERGE_KEY: Final = "commit.manifest-merge.enabled"
REWRITES_KEY: Final = "icewright.rewrite-manifests.enabled"
MIN_GAIN_KEY: Final = "icewright.rewrite-manifests.min-gain"

_INT_MAX: Final = 2**31 - 1

MANIFEST_SETTINGS: Final = (
    Setting(
        TARGET_SIZE_KEY,
        "manifest_target_size_bytes",
        whole_number(1),
        8 << 20,
        "Size of the manifests that writers and `rewrite_manifests` aim at: Iceberg's own property and default.",
        BYTES,
    ),
    Setting(
        MIN_COUNT_KEY,
        "manifest_min_count",
        whole_number(2, _INT_MAX),
        100,
        "Small manifests that pile up before they are merged, by writers or by `rewrite_manifests`: Iceberg's own "
        "property and default.",
        f"a whole number, 2 to {_INT_MAX}",
    ),
    Setting(
        MERGE_KEY,
        "manifest_merge",
        yes_or_no,
        True,
        "Whether writers that do not append fast merge manifests themselves: Iceberg's own property and default. "
        "`rewrite_manifests` does so in either case.",
    ),
    Setting(
        REWRITES_KEY,
        "rewrites_manifests",
        yes_or_no,
        False,
        "Rewrite manifests in mode `auto`, once an hour at most, where one of the three causes applies and it helps: "
        "after work on data files, unless planning is in danger. [More](rewrite-manifests.md).",
    ),
    Setting(
        MIN_GAIN_KEY,
        "rewrite_manifests_min_gain",
        ratio,
        0.5,
        "What share of the small manifests, or of those that a query for one partition opens, a rewrite must replace "
        "to be worth it. [More](rewrite-manifests.md).",
    ),
)
