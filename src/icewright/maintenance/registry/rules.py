"""The kinds of actions, with what is decided of each by pure functions: one value a kind."""

from __future__ import annotations

from typing import Final

from icewright.actions.compute_statistics import plan as compute_statistics
from icewright.actions.compute_statistics.commit import statistics_conflict
from icewright.actions.compute_statistics.settings import COMPUTES_KEY
from icewright.actions.expire_data import plan as expire_data
from icewright.actions.expire_data.column import expire_data_obstacle
from icewright.actions.expire_data.settings import DATA_EXPIRES_KEY
from icewright.actions.expire_snapshots import plan as expire_snapshots
from icewright.actions.expire_snapshots.settings import EXPIRES_KEY, REMOVES_FILES_KEY
from icewright.actions.remove_files.orphans import plan as orphan_plan
from icewright.actions.remove_files.orphans.settings import REMOVES_KEY
from icewright.actions.rewrite_data_files import estimates
from icewright.actions.rewrite_data_files.executors import rewrite_obstacle
from icewright.actions.rewrite_manifests import plan as rewrite_manifests
from icewright.actions.rewrite_manifests.settings import REWRITES_KEY
from icewright.actions.rollback.plan import rollback_conflict
from icewright.actions.undo.data_undo_plan import data_undo_conflict
from icewright.inventory import applied_deletes
from icewright.maintenance.registry import applies, effects
from icewright.model.actions.actions import RewriteDataFiles, UndoExpireData
from icewright.model.actions.compute_statistics import ComputeStatistics
from icewright.model.actions.expire_data import ExpireData
from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.actions.remove_files import RemoveExpiredFiles, RemoveOrphanFiles
from icewright.model.actions.rewrite_delete_files import RemoveDanglingDeletes, RewritePositionDeletes
from icewright.model.actions.rewrite_manifests import RewriteManifests
from icewright.model.actions.rollback import Rollback
from icewright.model.actions.undo import RestoreFiles, UndoExpiry
from icewright.model.plans.plans import Reason
from icewright.plans import eligibility
from icewright.plans.action_types import ActionRules, Upkeep

REWRITE_DATA_FILES: Final = ActionRules(
    RewriteDataFiles,
    obstacle=rewrite_obstacle,
    conflict=applies.rewrite_conflict,
    effect=effects.snapshot_effect,
    explain=estimates.explain_rewrite,
)

EXPIRE_SNAPSHOTS: Final = ActionRules(
    ExpireSnapshots,
    obstacle=eligibility.metadata_action_obstacle,
    conflict=applies.no_conflict,
    effect=effects.expiry_effect,
    done_by_others=Reason("gone-already", "another writer removed everything that was to expire"),
    upkeep=Upkeep(
        EXPIRES_KEY,
        lambda policy: policy.expires_snapshots,
        "the policy no longer expires snapshots automatically",
        expire_snapshots.wanted_less,
    ),
)

REWRITE_MANIFESTS: Final = ActionRules(
    RewriteManifests,
    obstacle=eligibility.manifests_action_obstacle,
    conflict=applies.manifests_conflict,
    effect=effects.snapshot_effect,
    explain=rewrite_manifests.explain_manifests,
    upkeep=Upkeep(
        REWRITES_KEY,
        lambda policy: policy.rewrites_manifests,
        "the policy no longer rewrites manifests automatically",
    ),
)

REMOVE_DANGLING_DELETES: Final = ActionRules(
    RemoveDanglingDeletes,
    obstacle=eligibility.manifests_action_obstacle,
    conflict=applies.deletes_conflict,
    effect=effects.snapshot_effect,
    explain=applied_deletes.explain_deletes,
)

REWRITE_POSITION_DELETES: Final = ActionRules(
    RewritePositionDeletes,
    obstacle=eligibility.manifests_action_obstacle,
    conflict=applies.deletes_conflict,
    effect=effects.snapshot_effect,
    explain=applied_deletes.explain_deletes,
)

COMPUTE_STATISTICS: Final = ActionRules(
    ComputeStatistics,
    obstacle=eligibility.statistics_obstacle,
    conflict=statistics_conflict,
    effect=effects.statistics_effect,
    done_by_others=Reason("there-already", "another client computed all these statistics"),
    explain=compute_statistics.explain_statistics,
    upkeep=Upkeep(
        COMPUTES_KEY,
        lambda policy: policy.computes_statistics,
        "the policy no longer computes statistics automatically",
    ),
)

EXPIRE_DATA: Final = ActionRules(
    ExpireData,
    obstacle=expire_data_obstacle,
    conflict=applies.expire_data_conflict,
    effect=effects.snapshot_effect,
    explain=expire_data.explain_data,
    upkeep=Upkeep(
        DATA_EXPIRES_KEY,
        lambda policy: policy.expires_data,
        "the policy no longer expires data automatically",
        expire_data.wanted_less,
    ),
    over_budget=expire_data.over_budget,
)

UNDO_EXPIRE_DATA: Final = ActionRules(
    UndoExpireData,
    obstacle=eligibility.insert_obstacle,
    conflict=data_undo_conflict,
    effect=effects.snapshot_effect,
)

UNDO_EXPIRY: Final = ActionRules(
    UndoExpiry,
    obstacle=eligibility.recovery_action_obstacle,
    conflict=applies.no_conflict,
    effect=effects.expiry_undo_effect,
    done_by_others=Reason("there-already", "another writer put all of it back"),
)

ROLLBACK: Final = ActionRules(
    Rollback,
    obstacle=eligibility.recovery_action_obstacle,
    conflict=rollback_conflict,
    effect=effects.rollback_effect,
)

REMOVE_ORPHAN_FILES: Final = ActionRules(
    RemoveOrphanFiles,
    obstacle=eligibility.metadata_action_obstacle,
    conflict=applies.no_conflict,
    effect=effects.no_effect,
    upkeep=Upkeep(
        REMOVES_KEY,
        lambda policy: policy.removes_orphan_files,
        "the policy no longer removes orphan files automatically",
        orphan_plan.wanted_less,
    ),
    over_budget=orphan_plan.over_budget,
)

REMOVE_EXPIRED_FILES: Final = ActionRules(
    RemoveExpiredFiles,
    obstacle=eligibility.metadata_action_obstacle,
    conflict=applies.no_conflict,
    effect=effects.no_effect,
    upkeep=Upkeep(
        REMOVES_FILES_KEY,
        lambda policy: policy.removes_expired_files,
        "the policy no longer removes files of expired snapshots",
    ),
)

RESTORE_FILES: Final = ActionRules(
    RestoreFiles,
    obstacle=eligibility.no_obstacle,
    conflict=applies.no_conflict,
    effect=effects.no_effect,
)
