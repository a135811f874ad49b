"""What a rewrite will roughly take, and how likely it comes to nothing: for people who are asked before.

Rates are those of the policy (``icewright.cost-benefit.*``), by which the trigger ``cost-benefit`` decides as well.
"""

from __future__ import annotations

from typing import Final

from icewright.domain.actions import Executor, FileGroup, RewriteDataFiles
from icewright.domain.observation import Observation
from icewright.domain.plans import Estimate, Reason, Risk
from icewright.domain.policy import Policy
from icewright.planning import wording
from icewright.planning.output_bytes import file_bytes, modelled_bytes, output_bytes

TIMES_A_MERGE: Final = {Executor.MERGE: 1.0, Executor.STITCH: 0.1, Executor.STAGED: 2.3, Executor.SHUFFLE: 4.0}
"""CPU for a byte, against a merge: B1 has 0.07 for a stitch of 5 MB files and 2.3 for Spark's own reader and writer; a
shuffle, which sorts besides, is a guess so far."""

RISK_MEDIUM_FROM: Final = 0.01
RISK_HIGH_FROM: Final = 0.1
"""Of rewrites that would come to nothing; 1 % is what is tolerated with a busy writer."""


def estimate(observation: Observation, policy: Policy, action: RewriteDataFiles) -> Estimate:
    """What an action takes, on one core as if nothing else ran, and its risk."""
    written, each_file = output_bytes(observation, action), file_bytes(observation.metadata)
    of_groups = sum(_cpu_ms(group, modelled_bytes(group, each_file), policy) for group in action.groups)
    cpu_ms = round(policy.rewrite_ms + of_groups)
    risk, reason = _risk(observation, action, cpu_ms)
    return Estimate(written.expected, cpu_ms, risk, reason, written.modelled, written.reason)


def _cpu_ms(group: FileGroup, output_bytes: int, policy: Policy) -> float:
    opened = len(group.files) + len(group.delete_files)
    bytes_s = group.size_bytes / policy.read_bytes_per_s + output_bytes / policy.write_bytes_per_s
    return opened * policy.open_ms + 1000 * bytes_s * TIMES_A_MERGE[group.executor]


def _risk(observation: Observation, action: RewriteDataFiles, cpu_ms: int) -> tuple[Risk, Reason]:
    """How likely rows are removed while the work goes on: as often as the last removal is ago, in so much time.

    Files that are added meanwhile are no conflict.
    """
    removals, interval_ms = observation.removals, observation.commit_interval_ms
    partitions = {group.partition for group in action.groups}
    times = [removals.removed_at[partition] for partition in partitions if partition in removals.removed_at]
    times += [] if removals.everywhere_at is None else [removals.everywhere_at]
    figures: dict[str, int | float | str] = {"cpu_ms": cpu_ms}
    rhythm = ""
    if interval_ms is not None:
        figures["commit_interval_ms"] = interval_ms
        rhythm = f"; others commit every {wording.duration(interval_ms)}"
    if not times:
        text = f"no rows were removed lately from its {wording.count(len(partitions), 'partition')}{rhythm}"
        return Risk.LOW, Reason("conflict-risk", text, figures)
    ago_ms = max(1, observation.observed_at - max(times))
    share = min(1.0, cpu_ms / ago_ms)
    risk = Risk.HIGH if share >= RISK_HIGH_FROM else Risk.MEDIUM if share >= RISK_MEDIUM_FROM else Risk.LOW
    figures |= {"removed_ms_ago": ago_ms, "share": round(share, 4)}
    text = f"rows were removed from its partitions {wording.about(ago_ms)} ago, and the work takes "
    return risk, Reason("conflict-risk", f"{text}{wording.about(cpu_ms)}{rhythm}", figures)
