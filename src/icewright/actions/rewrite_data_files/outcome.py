"""What a plan says as a whole: its reason and the verdicts that are listed, given those of all partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from icewright.actions.rewrite_data_files.formats import OTHER_FORMAT
from icewright.actions.rewrite_data_files.layouts.ordering import Ordering
from icewright.core import wording
from icewright.inventory.specs import OTHER_SPEC
from icewright.model.actions.actions import Executor, RewriteDataFiles
from icewright.model.iceberg.layouts import Level
from icewright.model.plans.plans import PartitionVerdict, Reason, Verdict
from icewright.model.policy.policy import Policy, Trigger

VERDICTS_LISTED_MAX = 200
"""Verdicts that a plan carries: more than a person reads, little enough to be kept for each plan."""


def listed(verdicts: Sequence[PartitionVerdict]) -> tuple[PartitionVerdict, ...]:
    """The verdicts that a person would ask about: most files first."""
    return tuple(sorted(verdicts, key=lambda item: (-item.files_before, item.partition))[:VERDICTS_LISTED_MAX])


def counted(verdicts: Sequence[PartitionVerdict]) -> Mapping[Verdict, int]:
    """All verdicts by kind, absent where there is none."""
    return dict(Counter(item.verdict for item in verdicts))


def rewrite(
    action: RewriteDataFiles,
    verdicts: Sequence[PartitionVerdict],
    ordering: Ordering | None = None,
    hurry: Reason | None = None,
) -> Reason:
    """The reason of a plan that does something; ``hurry`` is why it does not do more."""
    partitions = len({group.partition for group in action.groups})
    following = {
        v.partition: f for v in verdicts if isinstance(f := v.reason.figures.get("files_following", 0), int) and f
    }
    files_following = sum(following.values())
    deletes = len({delete for group in action.groups for delete in group.delete_files})
    staged = sum(group.executor is Executor.STAGED for group in action.groups)
    stitched = sum(group.executor is Executor.STITCH for group in action.groups)
    alone = all(len(group.files) == 1 for group in action.groups)
    moved = [group for group in action.groups if group.output_spec_id is not None]
    small = action.level is Level.LEVEL_0 and not alone and len(moved) < len(action.groups)
    text = (
        f"{'merge' if small else 'rewrite'} {wording.count(action.input_files, 'small file' if small else 'file')} "
        f"({wording.size(action.input_bytes)}) in {wording.count(partitions, 'partition')} into "
        f"{'at most ' if moved else ''}{action.output_files:,}"
    )
    text = text if action.level is Level.LEVEL_0 else f"{level_said(action.level)}: {text}"
    if action.layout is not None and ordering is not None:
        text += f" in the order of {ordering.said}"
    text += f" with {wording.count(deletes, 'delete file')} folded in" if deletes else ""
    if stitched:
        text += ", stitched" if stitched == len(action.groups) else f", {stitched:,} of them stitched"
    if staged:
        text += ", staged for Spark" if staged == len(action.groups) else f", {staged:,} of them staged for Spark"
    if moved:
        files = sum(len(group.files) for group in moved)
        which = "moved" if len(moved) == len(action.groups) else f"{wording.count(files, 'file')} of them moved"
        text += f", {which} to the current partition spec"
    if following:
        text += f"; {files_following:,} more files in {wording.count(len(following), 'partition')} follow"
    text += "" if hurry is None else f"; {hurry.text}"
    figures: dict[str, int | float | str] = {
        "input_files": action.input_files,
        "input_bytes": action.input_bytes,
        "output_files": action.output_files,
        "partitions": partitions,
        "files_following": files_following,
        "partitions_following": len(following),
        "delete_files": deletes,
        "staged_groups": staged,
        "stitched_groups": stitched,
    }
    figures |= {"moved_files": sum(len(group.files) for group in moved)} if moved else {}
    figures |= {} if hurry is None else hurry.figures
    code = "small-files" if not alone else "deletes" if deletes else OTHER_FORMAT
    code = OTHER_SPEC if len(moved) == len(action.groups) else code
    return Reason(code if action.level is Level.LEVEL_0 else action.level.value, text, figures)


def level_said(level: Level) -> str:
    """``Level 1``: a level for people."""
    return level.value.replace("level-", "Level ")


def unordered(reason: Reason, obstacle: Reason) -> Reason:
    """The reason of a plan for a table whose layout cannot be used: everything else goes on, and it says so."""
    text = f"{reason.text}; nothing is put in order, because {obstacle.text}"
    return Reason(reason.code, text, {**reason.figures, "layout_obstacle": obstacle.code})


def nothing(verdicts: Sequence[PartitionVerdict], policy: Policy, ordering: Ordering | None = None) -> Reason:
    """The reason of a plan that does nothing: of all partitions' reasons, the one that matters most to its owner."""
    waiting = [item for item in verdicts if item.verdict is Verdict.WAIT]
    refused = [item for item in verdicts if item.verdict is Verdict.REFUSE]
    figures = {"partitions": len(verdicts), "waiting": len(waiting), "refused": len(refused)}
    if not verdicts:
        return Reason("no-files", "nothing to do: the table has no data files", figures)
    if waiting:
        soonest = min(waiting, key=lambda item: (item.wait_until is None, item.wait_until or 0, item.partition))
        if soonest.wait_until is not None:
            figures["wait_until"] = soonest.wait_until
        text = f"nothing to do yet: {wording.count(len(waiting), 'partition')} must wait; {_such_as(soonest, waiting)}"
        if refused:
            text += f"; {wording.count(len(refused), 'more partition')} cannot be rewritten yet"
        return Reason("waiting", text, figures)
    if refused:
        text = f"nothing to do: {wording.count(len(refused), 'partition')} cannot be rewritten yet; "
        return Reason("refused", text + _such_as(listed(refused)[0], refused), figures)
    text = (
        f"nothing to compact: no partition has {policy.min_input_files:,} or more files "
        f"below {wording.size(policy.small_file_size_bytes)} worth merging"
    )
    if policy.trigger is not Trigger.LEVELS:
        text = f"nothing to do: the trigger {policy.trigger} fires for no partition with small files worth merging"
    if ordering is not None:
        text += f", and none is to be put in the order of {ordering.said}"
    return Reason("well-laid-out", text, figures)


def _such_as(example: PartitionVerdict, among: Sequence[PartitionVerdict]) -> str:
    said = f"{wording.place(example.path)}: {example.reason.text}"
    return said if len(among) == 1 else f"for one, {said}"
