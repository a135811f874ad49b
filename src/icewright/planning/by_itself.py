"""What a table's owner lets happen by itself, beside work on its data files, and by which property."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icewright.domain.actions import ActionKind
from icewright.domain.policy import Policy
from icewright.planning.data_settings import DATA_EXPIRES_KEY
from icewright.planning.expiry_settings import EXPIRES_KEY, REMOVES_FILES_KEY
from icewright.planning.manifest_settings import REWRITES_KEY
from icewright.planning.orphan_settings import REMOVES_KEY
from icewright.planning.statistics_settings import COMPUTES_KEY

UPKEEP_KEYS: Final[Mapping[ActionKind, str]] = {
    ActionKind.EXPIRE_SNAPSHOTS: EXPIRES_KEY,
    ActionKind.REWRITE_MANIFESTS: REWRITES_KEY,
    ActionKind.COMPUTE_STATISTICS: COMPUTES_KEY,
    ActionKind.EXPIRE_DATA: DATA_EXPIRES_KEY,
    ActionKind.REMOVE_ORPHAN_FILES: REMOVES_KEY,
    ActionKind.REMOVE_EXPIRED_FILES: REMOVES_FILES_KEY,
}
"""The properties that let each kind happen by itself."""


def by_itself(policy: Policy) -> frozenset[ActionKind]:
    """What the owner lets happen by itself, beside work on data files."""
    wanted = {
        ActionKind.EXPIRE_SNAPSHOTS: policy.expires_snapshots,
        ActionKind.REWRITE_MANIFESTS: policy.rewrites_manifests,
        ActionKind.COMPUTE_STATISTICS: policy.computes_statistics,
        ActionKind.EXPIRE_DATA: policy.expires_data,
        ActionKind.REMOVE_ORPHAN_FILES: policy.removes_orphan_files,
        ActionKind.REMOVE_EXPIRED_FILES: policy.removes_expired_files,
    }
    return frozenset(kind for kind, is_wanted in wanted.items() if is_wanted)
