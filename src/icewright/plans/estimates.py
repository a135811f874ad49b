"""What a rewrite will roughly take, and how likely it comes to nothing: for people who are asked before.

Rates are those of the policy (``icewright.cost-benefit.*``), by which the trigger ``cost-benefit`` decides as well.
"""

from __future__ import annotations

from typing import Final

from icewright.actions.rewrite_data_files.layouts import lookups
from icewright.core import wording
from icewright.inventory.commit_rate import commits_said
from icewright.inventory.output_bytes import file_bytes, modelled_bytes, output_bytes
from icewright.inventory.row_removals import duration_ms, removals_said, removed_every_ms
from icewright.model.actions.actions import Executor, FileGroup, RewriteDataFiles
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Estimate, Reason, RewritePrediction, Risk
from icewright.model.policy.policy import Policy

TIMES_A_MERGE: Final = {
    Executor.MERGE: 1.0,
    Executor.SORT: 1.5,
    Executor.STITCH: 0.1,
    Executor.STAGED: 2.3,
    Executor.SHUFFLE: 4.0,
}
"""CPU for a byte, against a merge: B1 has 0.07 for a stitch of 5 MB files and 2.3 for Spark's own reader and writer; a
sort, and a shuffle, which sorts through Spark, are guesses so far."""

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
    return cpu_ms(len(group.files) + len(group.delete_files), group.size_bytes, output_bytes, group.executor, policy)


def cpu_ms(opened: int, input_bytes: int, output_bytes: int, executor: Executor, policy: Policy) -> float:
    """What one group takes on one core that opens so many files."""
    bytes_s = input_bytes / policy.read_bytes_per_s + output_bytes / policy.write_bytes_per_s
    return opened * policy.open_ms + 1000 * bytes_s * TIMES_A_MERGE[executor]


def bytes_within(work_ms: float, executor: Executor, policy: Policy) -> float:
    """How many bytes a group reads that takes so long on one core, but for the opening of its files."""
    seconds_a_byte = TIMES_A_MERGE[executor] * (1 / policy.read_bytes_per_s + 1 / policy.write_bytes_per_s)
    return work_ms / 1000 / seconds_a_byte


def _risk(observation: Observation, action: RewriteDataFiles, cpu_ms: int) -> tuple[Risk, Reason]:
    """How likely rows are removed while the work goes on, from the partition where they are most often.

    Files that are added meanwhile are no conflict.
    """
    removals, interval_ms = observation.removals, observation.commit_interval_ms
    partitions = {group.partition for group in action.groups}
    now = observation.observed_at
    found = {partition: removed_every_ms(removals, partition, now) for partition in partitions}
    often = [(every_ms, partition) for partition, every_ms in found.items() if every_ms is not None]
    every_ms, busiest = min(often, default=(None, None))
    took_ms = round(duration_ms(cpu_ms, observation.experience.pace))
    figures: dict[str, int | float | str] = {"cpu_ms": cpu_ms, "duration_ms": took_ms}
    said = commits_said(observation.metadata, now)
    rhythm = f"; {said}" if said else ""
    if interval_ms is not None:
        figures["commit_interval_ms"] = interval_ms
    if every_ms is None or busiest is None:
        text = f"no rows were removed lately from its {wording.count(len(partitions), 'partition')}{rhythm}"
        return Risk.LOW, Reason("conflict-risk", text, figures)
    share = min(1.0, took_ms / every_ms)
    risk = Risk.HIGH if share >= RISK_HIGH_FROM else Risk.MEDIUM if share >= RISK_MEDIUM_FROM else Risk.LOW
    figures |= {"removed_every_ms": every_ms, "share": round(share, 4)}
    where = "its partition" if len(partitions) == 1 else "one of its partitions"
    text = f"{removals_said(removals, busiest, where, now)}, and the work takes about "
    return risk, Reason("conflict-risk", f"{text}{wording.about(took_ms)}{rhythm}", figures)


def explain_rewrite(said: RewritePrediction) -> tuple[str, ...]:
    """What a rewrite would bring, in sentences."""
    other = said.data_files_after != said.data_files_before
    instead = f" instead of {said.data_files_before:,}" if other else " as before"
    after = f"The table would have {wording.count(said.data_files_after, 'data file')}{instead}."
    if said.estimate is None:
        return (after,)
    guess = said.estimate
    written = f"{wording.size(guess.output_bytes)} written, {guess.output_reason.text}"
    return (after, *(f"Estimated: {text}." for text in (written, *(lookups.said(one) for one in guess.lookups))))
