"""What the owner wants of a table: table properties over the policies of namespace and catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from icewright.model.actions.expire_data import IntegerTime
from icewright.model.iceberg.layouts import LayoutExpression
from icewright.model.iceberg.predicates.cuts import CutTree

PREFIX: Final = "icewright."
MODE_KEY: Final = "icewright.mode"
IGNORE_OTHER_OPTIMIZERS_KEY: Final = "icewright.ignore-other-optimizers"
TASK_FILES_MAX: Final = 100_000
"""The most files that one task may ever have: planning keeps twice as many in memory (about 100 MB)."""


class Mode(StrEnum):
    """How far icewright may go by itself.

    ``observe``: plans and explanations only. ``approve``: plans wait for a person. ``auto``: it acts.
    """

    OBSERVE = "observe"
    APPROVE = "approve"
    AUTO = "auto"


class Trigger(StrEnum):
    """When the small files of a partition are merged."""

    LEVELS = "levels"
    """As soon as there are enough of them, without writing a byte again too often."""
    MSE = "mse"
    """When the mean squared distance of file sizes from their target is too large, at most so often."""
    TIERED = "tiered"
    """By counts and intervals for fragments, undersized files and all of them: minor, major and full."""
    COST_BENEFIT = "cost-benefit"
    """When readers save more than the rewrite costs."""


class RealTime(StrEnum):
    """Whether a table's tasks go before those that are not real-time."""

    AUTO = "auto"
    """Where it is committed to often enough."""
    YES = "true"
    NO = "false"


class MigrateSpec(StrEnum):
    """Which files of older partition specs are moved to the current one."""

    NEVER = "never"
    """None: they are merged within their own spec."""
    TOUCHED = "touched"
    """Those that are rewritten for another reason, where that makes fewer files than there were."""
    ALL = "all"
    """All of them, whatever their size."""


@dataclass(frozen=True, slots=True)
class PolicyProblem:
    """A setting that cannot be used, reported on the table and never guessed."""

    key: str
    value: str
    origin: str
    problem: str


@dataclass(frozen=True, slots=True)
class Policy:
    """The effective policy of a table. ``origins`` says where each value came from, by property name.

    With ``problems``, nothing is done to the table until they are mended. Without a ``layout``, the table's own sort
    order is one. A ``layout`` by cuts has its tree where ``layout_cuts`` is the one that it names.
    """

    mode: Mode
    target_file_size_bytes: int
    min_input_files: int
    min_file_size_ratio: float
    max_file_group_size_bytes: int
    max_file_group_files: int
    max_task_size_bytes: int
    max_task_files: int
    delete_file_threshold: int
    delete_ratio_threshold: float
    write_window_ms: int | None
    origins: Mapping[str, str]
    problems: tuple[PolicyProblem, ...] = ()
    ignore_other_optimizers: bool = False
    layout: LayoutExpression | None = None
    layout_cuts: CutTree | None = None
    trigger: Trigger = Trigger.LEVELS
    trigger_target_size_bytes: int = 134_217_728
    mse_ratio: float = 0.2
    mse_interval_ms: int = 3_600_000
    tiered_fragment_ratio: int = 8
    tiered_minor_files: int = 12
    tiered_minor_interval_ms: int = 3_600_000
    tiered_full_interval_ms: int | None = None
    scans_per_day: float = 600.0
    horizon_ms: int = 604_800_000
    open_ms: float = 1.0
    plan_ms: float = 0.05
    rewrite_ms: float = 400.0
    read_bytes_per_s: int = 200_000_000
    write_bytes_per_s: int = 85_000_000
    level_1_size_bytes: int = 2 << 30
    level_2_runs: int = 10
    migrate_formats: bool = False
    migrate_spec: MigrateSpec = MigrateSpec.TOUCHED
    max_task_time_ratio: float = 0.1
    expires_snapshots: bool = False
    removes_expired_files: bool = False
    max_snapshot_age_ms: int = 432_000_000
    min_snapshots_to_keep: int = 10
    max_hold_ms: int = 2_592_000_000
    rewrites_manifests: bool = False
    removes_orphan_files: bool = False
    orphan_age_ms: int = 604_800_000
    manifest_target_size_bytes: int = 8 << 20
    manifest_min_count: int = 100
    manifest_merge: bool = True
    rewrite_manifests_min_gain: float = 0.5
    window_cron: str | None = None
    window_time_zone: str = "UTC"
    window_duration_ms: int = 14_400_000
    breaker_conflicts: int = 5
    breaker_failures: int = 5
    parked_ms: int = 86_400_000
    computes_statistics: bool = False
    statistics_columns: tuple[str, ...] | None = None
    statistics_min_change: float = 0.1
    statistics_interval_ms: int = 72_000_000
    expires_data: bool = False
    expire_data_field: str | None = None
    expire_data_older_than_ms: int | None = None
    expire_data_time_zone: str = "UTC"
    expire_data_integers: IntegerTime | None = None
    analyzes_queries: bool = True
    analysis_interval_ms: int = 604_800_000
    analysis_drift: float = 0.5
    accepts_recommendations: bool = False
    accept_min_saved_bytes_ratio: float = 0.3
    accept_min_saved_cpu_s_per_day: float = 0.0
    owner: str | None = None
    resource_group: str = "default"
    priority: int = 0
    real_time: RealTime = RealTime.AUTO
    real_time_interval_ms: int = 60_000
    large_successes: int = 3
    branch_window_ms: int = 86_400_000

    @property
    def output_size_bytes_max(self) -> int:
        """The most that one merge may read, hence about the largest file that it makes.

        That is the target file size, unless the limits of a group or of a task are lower, or the trigger measures
        files against a target of its own.
        """
        target = self.target_file_size_bytes
        if self.trigger in (Trigger.MSE, Trigger.TIERED):
            target = min(target, self.trigger_target_size_bytes)
        return min(target, self.max_file_group_size_bytes, self.max_task_size_bytes)

    @property
    def small_file_size_bytes(self) -> int:
        """Files below this are small: Iceberg's ``min-file-size-bytes`` (75 % of the target by default).

        Counted from ``output_size_bytes_max``: a file as large as merges can make is never taken for a small one,
        or it would be merged with each newcomer for ever.
        """
        return int(self.output_size_bytes_max * self.min_file_size_ratio)


class Enforced(StrEnum):
    """Whether a rule is above the properties of tables."""

    NO = "false"
    YES = "true"
    """It is, but for a table that opts out: what its owner does not want is not done."""
    OVER_OPT_OUTS = "over-opt-outs"
    """It is, whatever the table says."""


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """Settings that configuration gives to a catalog, or to a namespace of it and all below."""

    catalog: str
    namespace: tuple[str, ...]
    properties: Mapping[str, str]
    enforce: Enforced = Enforced.NO
