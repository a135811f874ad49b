"""By which rules a table is looked after, and what is missing until they fire: what "why nothing yet?" asks for."""

from __future__ import annotations

from collections.abc import Sequence

from icewright.actions.rewrite_data_files.layouts.ordering import Ordering
from icewright.core import wording
from icewright.inventory.specs import current_spec_obstacle, spec_said
from icewright.model.iceberg.inventory import PartitionStatistics
from icewright.model.iceberg.layouts import Layout
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import MigrateSpec, Policy, Trigger
from icewright.policy.settings import LAYOUT_KEY, LEVEL_1_SIZE_KEY, LEVEL_2_RUNS_KEY, MIGRATE_SPEC_KEY, TRIGGER_KEY


def rules(observation: Observation, policy: Policy, layout: Layout | Reason | None) -> tuple[Reason, ...]:
    """The rules of a table, the cheap ones first; ``layout`` as :func:`.layouts.resolve` has it."""
    return (_merging(policy), *_moving(observation, policy), *_ordering(observation, policy, layout))


def _merging(policy: Policy) -> Reason:
    trigger, origin = policy.trigger, policy.origins[TRIGGER_KEY]
    text = f"Level 0, small files are merged: trigger {trigger} ({origin})"
    figures = {"trigger": trigger.value, "small_below_bytes": policy.small_file_size_bytes}
    if trigger is Trigger.LEVELS:
        text += f", from {policy.min_input_files:,} files below {wording.size(policy.small_file_size_bytes)} on"
        figures["min_input_files"] = policy.min_input_files
    return Reason("rule-level-0", text, figures)


def _moving(observation: Observation, policy: Policy) -> tuple[Reason, ...]:
    """What becomes of files of older partition specs, where there are any."""
    metadata = observation.metadata
    current = metadata.default_spec_id
    older = [
        one for one in observation.inventory.partitions if one.partition.spec_id != current and one.counts.data_files
    ]
    if not older:
        return ()
    files, obstacle = sum(one.counts.data_files for one in older), current_spec_obstacle(metadata)
    text = f"{wording.count(files, 'file')} in {wording.count(len(older), 'partition')} of older partition specs"
    figures: dict[str, int | float | str] = {"files": files, "partitions": len(older)}
    if obstacle is not None:
        return (Reason("rule-spec", f"{text}: {obstacle.text}", {**figures, "spec_obstacle": obstacle.code}),)
    moved = {
        MigrateSpec.NEVER: "never moved to",
        MigrateSpec.TOUCHED: "moved, when they are rewritten and that makes fewer files, to",
        MigrateSpec.ALL: "moved to",
    }[policy.migrate_spec]
    text += f", {moved} {spec_said(metadata, current)} ({MIGRATE_SPEC_KEY}, {policy.origins[MIGRATE_SPEC_KEY]})"
    return (Reason("rule-spec", text, figures),)


def _ordering(observation: Observation, policy: Policy, layout: Layout | Reason | None) -> tuple[Reason, ...]:
    if layout is None:
        text = "No layout: rows stay in the order in which they came"
        text += f", as {LAYOUT_KEY} says" if policy.layout is not None else f"; {LAYOUT_KEY} asks for one"
        return (Reason("rule-layout", text),)
    if isinstance(layout, Reason):
        return (Reason("rule-layout", f"No layout, because {layout.text}", {"layout_obstacle": layout.code}),)
    ordering = Ordering.of(observation.metadata, observation.inventory, layout)
    origin = "the table's sort order" if policy.layout is None else policy.origins[LAYOUT_KEY]
    partitions = observation.inventory.partitions
    return (
        Reason("rule-layout", f"Layout {ordering.said} ({origin})", {"layout": layout.key}),
        _level_1(partitions, policy, ordering),
        _level_2(partitions, policy, ordering),
    )


def _level_1(partitions: Sequence[PartitionStatistics], policy: Policy, ordering: Ordering) -> Reason:
    least = policy.level_1_size_bytes
    gathered = [(ordering.unordered(one.counts)[1], one.path) for one in partitions]
    due = sum(size_bytes >= least for size_bytes, _ in gathered)
    most, path = max(gathered, default=(0, ""))
    text = f"Level 1, what came is put in its order: from {wording.size(least)} in a partition on"
    text += f" ({LEVEL_1_SIZE_KEY}, {policy.origins[LEVEL_1_SIZE_KEY]}); "
    text += _progress(due, f"{wording.size(most)} of {wording.size(least)} gathered", path if most else None)
    return Reason("rule-level-1", text, {"partitions_due": due, "most_bytes": most, "least_bytes": least})


def _level_2(partitions: Sequence[PartitionStatistics], policy: Policy, ordering: Ordering) -> Reason:
    least = policy.level_2_runs
    beside = [(len(ordering.level_1 & one.counts.runs.keys()), one.path) for one in partitions]
    due = sum(runs >= least for runs, _ in beside)
    most, path = max(beside, default=(0, ""))
    text = f"Level 2, a partition is put in order as a whole: from {least:,} runs of Level 1 on"
    text += f" ({LEVEL_2_RUNS_KEY}, {policy.origins[LEVEL_2_RUNS_KEY]}); "
    text += _progress(due, f"{most:,} of {wording.count(least, 'run')}", path if most else None)
    return Reason("rule-level-2", text, {"partitions_due": due, "most_runs": most, "least_runs": least})


def _progress(due: int, most: str, path: str | None) -> str:
    """How far it is: how many partitions are due, else the one that is nearest to it."""
    if due:
        return f"{wording.count(due, 'partition')} due"
    return "nothing gathered yet" if path is None else f"{most} in {wording.place(path)}"
