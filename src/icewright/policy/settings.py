"""The settings that owners can give: one registry, from which parsing, origins and documentation come."""

from __future__ import annotations

from icewright.actions.analyze_queries.settings import ANALYSIS_SETTINGS
from icewright.actions.compute_statistics.settings import STATISTICS_SETTINGS
from icewright.actions.expire_data.settings import DATA_SETTINGS
from icewright.actions.expire_snapshots.settings import EXPIRY_SETTINGS
from icewright.actions.remove_files.orphans.settings import ORPHAN_SETTINGS
from icewright.actions.rewrite_manifests.settings import MANIFEST_SETTINGS
from icewright.core import wording
from icewright.model.iceberg.predicates.cuts import CutsError, parse_cuts
from icewright.model.policy.policy import (
    IGNORE_OTHER_OPTIMIZERS_KEY,
    MODE_KEY,
    PREFIX,
    TASK_FILES_MAX,
    MigrateSpec,
    Mode,
    Trigger,
)
from icewright.model.policy.setting_values import (
    BYTES,
    Setting,
    duration_ms,
    number,
    ratio,
    value_text,
    whole_number,
    yes_or_no,
)
from icewright.model.policy.time_windows import WindowTextError
from icewright.model.work.breaker import BREAKER_SETTINGS
from icewright.plans.branches import BRANCH_WINDOW_KEY
from icewright.policy.groups.queue_settings import QUEUE_SETTINGS
from icewright.policy.layout_text import LayoutTextError, parse_layout
from icewright.policy.owner_settings import OWNER_SETTINGS
from icewright.policy.window_settings import WINDOW_SETTINGS

REWRITE_PREFIX = "icewright.rewrite-data-files."
TARGET_FILE_SIZE_KEY = "write.target-file-size-bytes"
LAYOUT_KEY = "icewright.layout"
LAYOUT_CUTS_KEY = "icewright.layout.cuts"
TRIGGER_KEY = "icewright.trigger"
SCANS_KEY = "icewright.cost-benefit.scans-per-day"
LEVEL_1_SIZE_KEY = "icewright.level-1.size-bytes"
LEVEL_2_RUNS_KEY = "icewright.level-2.runs"
MIGRATE_SPEC_KEY = "icewright.rewrite-data-files.migrate-spec"

MIB = 1024 * 1024

SETTINGS: tuple[Setting, ...] = (
    Setting(
        MODE_KEY,
        "mode",
        Mode,
        Mode.OBSERVE,
        "What icewright does by policy: `observe` plans and explains, `approve` waits for a person, `auto` acts.",
        "observe, approve or auto",
    ),
    Setting(
        TARGET_FILE_SIZE_KEY,
        "target_file_size_bytes",
        whole_number(1),
        512 * MIB,
        "Size of the files that writers and merges aim at: Iceberg's own property and default.",
        BYTES,
    ),
    Setting(
        LAYOUT_KEY,
        "layout",
        parse_layout,
        None,
        "In which order rows are spread over files: `sort` for lookups by its first column, `hilbert` (2 to 4 columns) "
        "or `zorder` (2 to 8) for lookups by any of its columns, `cuts` by the filters of its queries. Without it the "
        "table's own sort order is its layout; `none` is no layout even then. [More](layouts.md).",
        "sort(a, b.c desc nulls last), zorder(a, b), hilbert(a, b), cuts(ID) or none",
    ),
    Setting(
        LAYOUT_CUTS_KEY,
        "layout_cuts",
        parse_cuts,
        None,
        "The tree that `icewright.layout = cuts(ID)` names: comparisons from the filters of queries, as JSON. "
        "Accepting a recommendation sets both. [More](layouts.md#cuts).",
        "a tree of cuts, as a recommendation writes it",
    ),
    Setting(
        LEVEL_1_SIZE_KEY,
        "level_1_size_bytes",
        whole_number(1),
        2_048 * MIB,
        "Level 1: a table with a layout has the files of a partition put into its order as soon as so many bytes are "
        "not in it. Lower, and the order comes earlier, in more runs that overlap each other.",
        BYTES,
    ),
    Setting(
        LEVEL_2_RUNS_KEY,
        "level_2_runs",
        whole_number(2),
        10,
        "Level 2: a partition is put in order as a whole when files of so many runs of Level 1 are in it, since a "
        "lookup has to look into each of them. Lower, and lookups open fewer files, for more bytes written.",
        "a whole number, at least 2",
    ),
    Setting(
        REWRITE_PREFIX + "min-input-files",
        "min_input_files",
        whole_number(2),
        5,
        "Small files that a partition must have before they are merged. Default as Iceberg's `rewrite_data_files`.",
        "a whole number, at least 2",
    ),
    Setting(
        REWRITE_PREFIX + "min-file-size-ratio",
        "min_file_size_ratio",
        ratio,
        0.75,
        "Files below this share of the target are small. Default as Iceberg's `min-file-size-bytes`.",
    ),
    Setting(
        REWRITE_PREFIX + "delete-ratio-threshold",
        "delete_ratio_threshold",
        ratio,
        0.3,
        "A file of any size with this share of its rows deleted is rewritten, as far as its delete files are for it "
        "alone. Default as Iceberg's `rewrite_data_files`.",
    ),
    Setting(
        REWRITE_PREFIX + "delete-file-threshold",
        "delete_file_threshold",
        whole_number(1),
        10,
        "A file of any size to which so many delete files apply is rewritten. Every reader of the file opens each of "
        "them, mostly to find little; so Iceberg's own default, never, is not taken over.",
        "a whole number, at least 1",
    ),
    Setting(
        REWRITE_PREFIX + "migrate-formats",
        "migrate_formats",
        yes_or_no,
        False,
        "Rewrite files of any size of another format than the table's own (`write.format.default`, Parquet if not "
        "set). Without it they are brought into that format when they are rewritten for another reason.",
    ),
    Setting(
        MIGRATE_SPEC_KEY,
        "migrate_spec",
        MigrateSpec,
        MigrateSpec.TOUCHED,
        "Which files of older partition specs are moved to the current one: `touched` those that are rewritten for "
        "another reason, where that makes fewer files than there were; `all` every one of any size; `never` merges "
        "them within their own spec. [More](rewrite-data-files.md#older-partition-specs).",
        "never, touched or all",
    ),
    Setting(
        REWRITE_PREFIX + "max-file-group-size-bytes",
        "max_file_group_size_bytes",
        whole_number(1),
        192 * MIB,
        "The most that one merge reads. A merge runs in one Python worker, which may hold all of it decoded: "
        "1.1 GB were measured for 164 MB of Parquet, so 192 MiB keep within a worker's 1.5 GB.",
        BYTES,
    ),
    Setting(
        REWRITE_PREFIX + "max-file-group-files",
        "max_file_group_files",
        whole_number(2, TASK_FILES_MAX),
        1_000,
        "The most files that one merge reads. They are opened one after the other by one worker; "
        "1,000 keep a group of tiny files to about the time that a full group takes.",
        f"a whole number, 2 to {TASK_FILES_MAX}",
    ),
    Setting(
        REWRITE_PREFIX + "max-task-size-bytes",
        "max_task_size_bytes",
        whole_number(1),
        4_096 * MIB,
        "The most that one task reads, and commits at once. A core merges and proves about 33 MB a second, so two "
        "cores need about a minute for 4 GiB.",
        BYTES,
    ),
    Setting(
        REWRITE_PREFIX + "max-task-files",
        "max_task_files",
        whole_number(2, TASK_FILES_MAX),
        10_000,
        "The most files that one task replaces: 10,000 keep its description near 2 MB (6 MB with a deletion vector for "
        "each) and its commit short.",
        f"a whole number, 2 to {TASK_FILES_MAX}",
    ),
    Setting(
        REWRITE_PREFIX + "max-task-time-ratio",
        "max_task_time_ratio",
        ratio,
        0.1,
        "The share of the time between two commits that remove rows from a partition, less the wait after the first, "
        "that a task which rewrites it may take: about the share of such work that is lost to these commits. Five "
        "seconds are allowed in any case; `1` sets no bound. [More](rewrite-data-files.md#busy-partitions).",
    ),
    Setting(
        PREFIX + "write-window",
        "write_window_ms",
        duration_ms,
        None,
        "How long the owner's longest DELETE, UPDATE or MERGE runs. A partition that lost rows is left alone for as "
        "long, because a rewrite that commits first can make such a statement fail, and rewrites that one statement "
        "could meet are 150 times as far apart. `PT0S` keeps no rewrites apart.",
    ),
    Setting(
        BRANCH_WINDOW_KEY,
        "branch_window_ms",
        duration_ms,
        86_400_000,
        "How long `main` is left alone while a branch is ahead of it, or a `wap.id` is staged, since a commit on "
        "`main` would keep it from being published. `PT0S` protects none. [More](safety.md#write-audit-publish).",
    ),
    Setting(
        TRIGGER_KEY,
        "trigger",
        Trigger,
        Trigger.LEVELS,
        "When the small files of a partition are merged; `cost-benefit` by default where at least 50 queries of the "
        "table are counted a week. [The four triggers](rewrite-data-files.md#triggers).",
        "levels, mse, tiered or cost-benefit",
    ),
    Setting(
        TRIGGER_KEY + ".target-size-bytes",
        "trigger_target_size_bytes",
        whole_number(1),
        128 * MIB,
        "Size that `mse` and `tiered` measure files against, and merge them to, where it is below the target of the "
        "table: 128 MB, as published for both.",
        BYTES,
    ),
    Setting(
        PREFIX + "mse.ratio",
        "mse_ratio",
        ratio,
        0.2,
        "`mse`: how far files may be below the target, as the root of the mean of squares, in shares of the target.",
    ),
    Setting(
        PREFIX + "mse.interval",
        "mse_interval_ms",
        duration_ms,
        3_600_000,
        "`mse`: how long a partition is left alone after a rewrite.",
    ),
    Setting(
        PREFIX + "tiered.fragment-ratio",
        "tiered_fragment_ratio",
        whole_number(1, 1_000_000),
        8,
        "`tiered`: a file of at most the target divided by this is a fragment. Default as Amoro's "
        "`self-optimizing.fragment-ratio`.",
        "a whole number, 1 to 1000000",
    ),
    Setting(
        PREFIX + "tiered.minor-file-count",
        "tiered_minor_files",
        whole_number(2),
        12,
        "`tiered`: so many fragments and equality deletes are merged at once. Default as Amoro's "
        "`self-optimizing.minor.trigger.file-count`.",
        "a whole number, at least 2",
    ),
    Setting(
        PREFIX + "tiered.minor-interval",
        "tiered_minor_interval_ms",
        duration_ms,
        3_600_000,
        "`tiered`: two or more of them are merged when the last rewrite of the partition is so long ago. Default as "
        "Amoro's `self-optimizing.minor.trigger.interval`.",
    ),
    Setting(
        PREFIX + "tiered.full-interval",
        "tiered_full_interval_ms",
        duration_ms,
        None,
        "`tiered`: once in each such span of time, counted from 1970, all small files of a partition are merged "
        "together. Never by default, as Amoro's `self-optimizing.full.trigger.interval`.",
    ),
    Setting(
        SCANS_KEY,
        "scans_per_day",
        number,
        600.0,
        "`cost-benefit`: how many queries a day read a partition whole. Not set, it is the number of queries of the "
        "table that were counted, where these are enough for the default trigger; else 600 is assumed.",
    ),
    Setting(
        PREFIX + "cost-benefit.horizon",
        "horizon_ms",
        duration_ms,
        604_800_000,
        "`cost-benefit`: how long a merged file is of use, unless it is written again sooner.",
    ),
    Setting(
        PREFIX + "cost-benefit.open-ms",
        "open_ms",
        number,
        1.0,
        "`cost-benefit`: CPU milliseconds to open one more file. Default as measured on a local disk (B2); "
        "on object storage put in what a request costs you.",
    ),
    Setting(
        PREFIX + "cost-benefit.plan-ms",
        "plan_ms",
        number,
        0.05,
        "`cost-benefit`: CPU milliseconds to plan a scan of one more file.",
    ),
    Setting(
        PREFIX + "cost-benefit.rewrite-ms",
        "rewrite_ms",
        number,
        400.0,
        "`cost-benefit`: CPU milliseconds of a rewrite however small, planning, commit and verification. Default as "
        "measured (B2).",
    ),
    Setting(
        PREFIX + "cost-benefit.read-bytes-per-second",
        "read_bytes_per_s",
        whole_number(1),
        200_000_000,
        "`cost-benefit`: bytes that a rewrite reads in a CPU second. Both rates together are as measured (B2).",
        BYTES,
    ),
    Setting(
        PREFIX + "cost-benefit.write-bytes-per-second",
        "write_bytes_per_s",
        whole_number(1),
        85_000_000,
        "`cost-benefit`: bytes that a rewrite writes, and proves, in a CPU second.",
        BYTES,
    ),
    Setting(
        IGNORE_OTHER_OPTIMIZERS_KEY,
        "ignore_other_optimizers",
        yes_or_no,
        False,
        "Work on the table although another optimizer seems to maintain it.",
    ),
    *EXPIRY_SETTINGS,
    *MANIFEST_SETTINGS,
    *WINDOW_SETTINGS,
    *BREAKER_SETTINGS,
    *STATISTICS_SETTINGS,
    *ORPHAN_SETTINGS,
    *DATA_SETTINGS,
    *ANALYSIS_SETTINGS,
    *OWNER_SETTINGS,
    *QUEUE_SETTINGS,
)

BY_KEY = {setting.key: setting for setting in SETTINGS}


def value_problem(setting: Setting, text: str) -> str | None:
    """What is wrong with a value, for people; None when it can be used."""
    try:
        setting.parse(text)
    except (LayoutTextError, WindowTextError, CutsError) as error:
        return f"{wording.quoted(text)} is not {setting.allowed}: {error}"
    except ValueError:
        return f"{wording.quoted(text)} is not {setting.allowed}"
    return None


def documentation() -> str:
    """All settings as a Markdown table."""
    rows = [f"| `{one.key}` | {_default(one)} | {one.allowed} | {one.doc} |" for one in SETTINGS]
    return "\n".join(["| property | default | allowed | meaning |", "|---|---|---|---|", *rows, ""])


def _default(setting: Setting) -> str:
    return "none" if setting.default is None else f"`{value_text(setting, setting.default)}`"
