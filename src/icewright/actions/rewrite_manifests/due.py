"""Rewriting manifests by itself: whether it is worth a closer look, and whether planning is in danger.

Most tables have few manifests, and in order. Their keys alone tell that, which every look at a table has at hand; what
is in the manifests is in the store.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from icewright.actions.rewrite_manifests.plan import FEWER_MIN, OVERSIZED, SMALL
from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.model.actions.rewrite_manifests import RewriteManifestsPrediction
from icewright.model.iceberg.inventory import ManifestKey
from icewright.model.policy.policy import Policy

DANGER_OPENED: Final = 1_000
"""From so many manifests on that a query for one partition opens, planning is in danger.

An object store answers the request for one in 50 to 100 ms when nothing is cached, parsing included (ClickHouse issue
1740 at Altinity), and Iceberg's planning reads as many at a time as there are cores (``iceberg.worker.num-threads``):
with eight of them a query waits 6 to 12 seconds before it reads its first row, whatever is done to data files.
"""


def in_order(manifests: Collection[ManifestKey], policy: Policy) -> Reason | None:
    """Why a table with these manifests needs nothing, whatever is in them; None where that has to be looked at."""
    target = policy.manifest_target_size_bytes
    small = sum(key.length_bytes <= SMALL * target for key in manifests)
    oversized = any(key.length_bytes > OVERSIZED * target for key in manifests)
    if oversized or small >= policy.manifest_min_count or len(manifests) > FEWER_MIN:
        return None
    text = f"nothing to do: {wording.count(len(manifests), 'manifest')} are too few to slow down planning"
    return Reason("few-manifests", text, {"manifests": len(manifests)})


def may_be_in_danger(manifests: Collection[ManifestKey]) -> bool:
    """Whether there are enough of them for :func:`in_danger`: it is worth working that out."""
    return len(manifests) >= DANGER_OPENED


def in_danger(prediction: RewriteManifestsPrediction) -> bool:
    """Whether so many manifests are opened for one partition that queries suffer more by it than by small files."""
    return any(each.mean_before >= DANGER_OPENED for each in prediction.opened)
