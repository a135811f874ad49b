"""Which manifests are rewritten, and into which: three causes, each recognised from the stored inventory alone.

*Oversized*: one commit put far more into a manifest than the table's target size. *Many small*: frequent writes left as
many small ones as the owner lets pile up. *Spread*: the files of one partition are in more manifests than they need, so
that a query for it opens many. What would not help enough is left alone, and this comes to an end: each rewrite for the
third cause lowers the sum of what queries open, each for the second the number of small manifests.

An append does not get in the way of such a commit, nor it in the way of an append. What does is a commit that rewrites
one of the planned manifests itself (Iceberg 1.12, ``BaseRewriteManifests.validateDeletedManifests``), as those do which
remove rows: so actions are smaller where that is often.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, TypeAlias

from icewright.actions.rewrite_manifests.classes import KnownClass, KnownManifest, known_classes
from icewright.actions.rewrite_manifests.settings import MIN_COUNT_KEY, TARGET_SIZE_KEY
from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.inventory.row_removals import OVERHEAD_MS, task_ms_max
from icewright.model.actions.rewrite_manifests import (
    ENTRIES_MAX,
    ONE_MANIFEST_ENTRIES_MAX,
    OUTPUTS_MAX,
    SHARES_MAX,
    InputManifest,
    ManifestCause,
    Opened,
    OutputManifest,
    RewriteManifests,
    RewriteManifestsPrediction,
    Share,
)
from icewright.model.iceberg.inventory import ManifestSummary
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.policy.policy import Policy
from icewright.plans.branches import branch_obstacle
from icewright.plans.eligibility import manifests_obstacle
from icewright.plans.procedure_call import procedure_call
from icewright.plans.standalone_plan import Decided

OVERSIZED: Final = 2
"""A manifest of more than so many times the target size is split."""
SMALL: Final = 0.5
"""A manifest of at most this share of the target size is small: two of them fit into one."""
WIDE: Final = 2
"""A manifest is spread if queries of more partitions open it than of so many times its share of the bytes."""
FEWER_MIN: Final = 4
"""What a query for one partition opens must become fewer by at least so many manifests, on average."""
SLACK: Final = 1.2
"""How far a manifest may be above its share of entries, so that a partition is not cut in two; as Iceberg's action."""
ENTRIES_MIN: Final = 1_000
"""So many entries may be moved in any case, however often rows are removed."""
MS_AN_ENTRY: Final = 0.5
"""About what reading, writing and reading back one entry takes."""


ManifestsDecision: TypeAlias = Decided[RewriteManifests, RewriteManifestsPrediction]


@dataclass(frozen=True, slots=True)
class _Limits:
    """What an action may still take; one manifest of as many entries as ``hard`` in any case."""

    entries: int
    shares: int
    hard: int


@dataclass(frozen=True, slots=True)
class _Choice:
    """What of one class is rewritten, and into what."""

    of: KnownClass
    causes: frozenset[ManifestCause]
    manifests: tuple[KnownManifest, ...]
    outputs: tuple[OutputManifest, ...]

    @property
    def kept(self) -> list[KnownManifest]:
        """The manifests of the class that stay."""
        gone = {manifest.key for manifest in self.manifests}
        return [manifest for manifest in self.of.manifests if manifest.key not in gone]

    @property
    def output_bytes(self) -> int:
        """About what the new manifests take."""
        return round(sum(m.live_bytes for m in self.manifests)) + self.of.head_bytes * len(self.outputs)

    def opened(self) -> Opened:
        """What a query for one partition opens of the class, before and after."""
        worst_before, mean_before = self.of.opened(manifest.mask for manifest in self.of.manifests)
        kept = [manifest.mask for manifest in self.kept]
        worst_after, mean_after = self.of.opened([*kept, *map(self.of.mask, self.outputs)])
        of = self.of
        return Opened(of.name, of.pruning.partitions, worst_before, worst_after, mean_before, mean_after)


def plan_manifests(
    observation: Observation, policy: Policy, summaries: Iterable[ManifestSummary], now: Instant
) -> ManifestsDecision:
    """What should be done to the manifests of a table; ``summaries`` are those of its inventory, and maybe others."""
    metadata = observation.metadata
    obstacle = manifests_obstacle(metadata, policy) or branch_obstacle(metadata, policy, now)
    if obstacle is not None or metadata.current_snapshot_id is None:
        return Decided(obstacle or Reason("no-snapshots", "nothing has been committed to the table yet"))
    wanted = set(observation.inventory.manifests)
    known = {summary.key: summary for summary in summaries if summary.key in wanted}
    if len(known) < len(wanted):
        said = wording.count(len(wanted) - len(known), "of its manifests is", "of its manifests are")
        return Decided(Reason("inventory-behind", f"nothing to do: {said} not known yet"))
    classes = known_classes(metadata, known.values())
    choices = _choices(classes, policy, _entries_max(observation, policy, now))
    if not choices:
        return Decided(_nothing(classes, policy))
    action = RewriteManifests(
        base_snapshot_id=metadata.current_snapshot_id,
        causes=tuple(cause for cause in ManifestCause if any(cause in choice.causes for choice in choices)),
        manifests=tuple(_input(choice.of, manifest) for choice in choices for manifest in choice.manifests),
        outputs=tuple(output for choice in choices for output in choice.outputs),
        target_size_bytes=policy.manifest_target_size_bytes,
    )
    lengths = [key.length_bytes for key in wanted]
    saved = sum(manifest.key.length_bytes for choice in choices for manifest in choice.manifests)
    saved -= sum(choice.output_bytes for choice in choices)
    prediction = RewriteManifestsPrediction(
        manifests_before=len(lengths),
        manifests_after=len(lengths) - len(action.manifests) + len(action.outputs),
        bytes_before=sum(lengths),
        bytes_after=sum(lengths) - saved,
        entries=action.entries,
        opened=tuple(choice.opened() for choice in choices),
        call=manifests_call(metadata, action),
    )
    return Decided(_why(action, prediction), action, prediction)


def _choices(classes: Sequence[KnownClass], policy: Policy, entries_max: int) -> list[_Choice]:
    """What of each class is rewritten, all of it within the limits of one action."""
    choices: list[_Choice] = []
    entries = shares = 0
    for each in classes:
        limits = _Limits(entries_max - entries, SHARES_MAX - shares, 0 if choices else ONE_MANIFEST_ENTRIES_MAX)
        choice = _choice(each, policy, limits)
        if choice is not None:
            choices.append(choice)
            entries += sum(manifest.entries for manifest in choice.manifests)
            shares += sum(len(output.shares) for output in choice.outputs)
    return choices


def _choice(of: KnownClass, policy: Policy, limits: _Limits) -> _Choice | None:
    """What of one class is rewritten for the causes that hold; each has to hold within the limits."""
    target = policy.manifest_target_size_bytes
    able = [manifest for manifest in of.manifests if not manifest.is_fixed]
    found: dict[ManifestCause, list[KnownManifest]] = {}
    oversized = _within([m for m in able if m.key.length_bytes > OVERSIZED * target and m.entries > 1], limits)
    if oversized:
        found[ManifestCause.OVERSIZED] = oversized
    small = _within([manifest for manifest in able if manifest.key.length_bytes <= SMALL * target], limits)
    if len(small) >= policy.manifest_min_count and _is_fewer(len(clustered(of, small, target)), len(small), policy):
        found[ManifestCause.MANY_SMALL] = small
    spread = _within(_spread(of, able), limits)
    if _opens_fewer(of, spread, policy):
        found[ManifestCause.SPREAD] = spread
    wanted = {manifest.key for members in found.values() for manifest in members}
    chosen = _within([manifest for manifest in able if manifest.key in wanted], limits)
    taken = {manifest.key for manifest in chosen}
    causes = frozenset(cause for cause, members in found.items() if any(m.key in taken for m in members))
    return _Choice(of, causes, tuple(chosen), tuple(clustered(of, chosen, target))) if causes else None


def _spread(of: KnownClass, able: Sequence[KnownManifest]) -> list[KnownManifest]:
    """The manifests that queries for far more partitions open than it would take."""
    each_byte = of.pruning.partitions / max(1, of.size_bytes)
    return [m for m in able if m.mask.bit_count() > WIDE * max(1.0, each_byte * m.key.length_bytes)]


def _opens_fewer(of: KnownClass, spread: Sequence[KnownManifest], policy: Policy) -> bool:
    """Whether a query for one partition opens fewer manifests in place of these, by enough to be worth it."""
    _, before = of.opened(manifest.mask for manifest in spread)
    if before < FEWER_MIN:
        return False
    _, after = of.opened(of.mask(output) for output in clustered(of, spread, policy.manifest_target_size_bytes))
    return before - after >= FEWER_MIN and after <= (1 - policy.rewrite_manifests_min_gain) * before


def _is_fewer(after: int, before: int, policy: Policy) -> bool:
    return after <= (1 - policy.rewrite_manifests_min_gain) * before


def _within(manifests: Sequence[KnownManifest], limits: _Limits) -> list[KnownManifest]:
    """As many of the manifests as one action may take, those first that begin with the least partitions.

    At least one, if there is any that is within the hard limit. They are given in the order that they were in.
    """
    if sum(m.entries for m in manifests) <= limits.entries and sum(len(m.live) for m in manifests) <= limits.shares:
        return list(manifests)
    first_bit = {m.key: (m.mask & -m.mask) for m in manifests}
    taken: set[object] = set()
    entries = shares = 0
    for manifest in sorted(manifests, key=lambda m: (first_bit[m.key], m.age, m.key)):
        entries, shares = entries + manifest.entries, shares + len(manifest.live)
        fits = entries <= limits.entries and shares <= limits.shares
        if not fits and (taken or manifest.entries > limits.hard or len(manifest.live) > limits.shares):
            break
        taken.add(manifest.key)
        if not fits:
            break
    return [manifest for manifest in manifests if manifest.key in taken]


def clustered(of: KnownClass, manifests: Collection[KnownManifest], target_size_bytes: int) -> list[OutputManifest]:
    """The manifests that these become: their partitions in order, cut into equal parts of about the target size.

    A partition is only cut in two where it is larger than such a part, or a part would become far too small.
    """
    counts: dict[str, int] = {}
    for manifest in manifests:
        for values, entries in manifest.live.items():
            counts[values] = counts.get(values, 0) + entries
    if not counts:
        return []
    total = sum(counts.values())
    parts = min(
        total, OUTPUTS_MAX // 2, max(1, ceil(sum(manifest.live_bytes for manifest in manifests) / target_size_bytes))
    )
    each = ceil(total / parts)
    outputs: list[list[Share]] = [[]]
    filled = 0
    for values in sorted(counts, key=lambda one: (of.order.key(one), one)):
        left = counts[values]
        while left:
            if filled and (filled + left > SLACK * each) and (left <= SLACK * each and filled >= SMALL * each):
                outputs.append([])
                filled = 0
            takes = left if filled + left <= SLACK * each else each - filled
            if takes <= 0:
                outputs.append([])
                filled = 0
                continue
            outputs[-1].append(Share(values, takes))
            filled, left = filled + takes, left - takes
    return [OutputManifest(of.name, tuple(shares)) for shares in outputs]


def _entries_max(observation: Observation, policy: Policy, now: Instant) -> int:
    """How many entries one action moves: fewer where rows are removed often, so that it ends before that."""
    removals = observation.removals
    partitions = {*removals.removed_at}
    if removals.everywhere_at is not None:
        partitions |= {each.partition for each in observation.inventory.partitions}
    most_ms = min((task_ms_max(observation, policy, each, now) for each in partitions), default=float("inf"))
    by_time = (most_ms / observation.experience.pace - OVERHEAD_MS) / MS_AN_ENTRY
    return int(max(ENTRIES_MIN, min(ENTRIES_MAX, by_time)))


def _input(of: KnownClass, manifest: KnownManifest) -> InputManifest:
    key = manifest.key
    return InputManifest(key.path, key.length_bytes, key.added_snapshot_id, of.name, manifest.entries, manifest.removed)


_SAID: Final = {
    ManifestCause.OVERSIZED: f"larger than {OVERSIZED} times the target from one commit",
    ManifestCause.MANY_SMALL: "small from frequent writes",
    ManifestCause.SPREAD: "with files of one partition spread over many of them",
}


def _why(action: RewriteManifests, prediction: RewriteManifestsPrediction) -> Reason:
    opened = max(prediction.opened, key=lambda each: each.mean_before - each.mean_after)
    before, after = wording.count(len(action.manifests), "manifest"), f"{len(action.outputs):,}"
    text = (
        f"{before} become {after} ({', '.join(_SAID[cause] for cause in action.causes)}): a query for one partition "
        f"opens {opened.mean_after:.1f} instead of {opened.mean_before:.1f}, at worst {opened.worst_after:,} "
        f"instead of {opened.worst_before:,}"
    )
    figures: dict[str, int | float | str] = {
        "manifests_before": prediction.manifests_before,
        "manifests_after": prediction.manifests_after,
        "entries": action.entries,
        "causes": "+".join(action.causes),
        "opened_before": round(opened.mean_before, 2),
        "opened_after": round(opened.mean_after, 2),
    }
    return Reason("rewrite-manifests", text, figures)


def _nothing(classes: Sequence[KnownClass], policy: Policy) -> Reason:
    """Why no manifest is rewritten, with what is missing until one is."""
    manifests = [manifest for each in classes for manifest in each.manifests]
    small = [m for m in manifests if m.key.length_bytes <= SMALL * policy.manifest_target_size_bytes]
    fixed = sum(manifest.is_fixed for manifest in manifests)
    mean = max((each.opened(m.mask for m in each.manifests)[1] for each in classes), default=0.0)
    target = wording.size(policy.manifest_target_size_bytes)
    text = (
        f"nothing to do: it would not help: of {wording.count(len(manifests), 'manifest')} {len(small):,} are small "
        f"(merged from {policy.manifest_min_count:,} on, {MIN_COUNT_KEY}), a query for one partition opens "
        f"{mean:.1f} on average, and none is {OVERSIZED} times as large as {target} ({TARGET_SIZE_KEY})"
    )
    if policy.manifest_merge:
        text += "; writers that append by merging keep them in order themselves"
    if fixed:
        text += f"; {wording.count(fixed, 'is', 'are')} of partitions that cannot be handed to Spark"
    figures = {"manifests": len(manifests), "small": len(small), "opened": round(mean, 2), "fixed": fixed}
    return Reason("manifests-in-order", text, figures)


def explain_manifests(said: RewriteManifestsPrediction) -> tuple[str, ...]:
    """What a rewrite of manifests would bring, in sentences."""
    after = wording.count(said.manifests_after, "manifest")
    return (f"The table would have {after} instead of {said.manifests_before:,}.",)


def manifests_call(metadata: TableMetadata, action: RewriteManifests) -> str:
    """One SQL statement. The procedure takes one spec at a time: this is that of most entries.

    It also chooses the manifests itself, all of the spec's.
    """
    entries: dict[int, int] = {}
    for manifest in action.manifests:
        spec_id = manifest.belongs_to.spec_id
        entries[spec_id] = entries.get(spec_id, 0) + manifest.entries
    spec_id = max(sorted(entries), key=lambda each: entries[each])
    arguments = ["use_caching => false"]
    if spec_id != metadata.default_spec_id:
        arguments.append(f"spec_id => {spec_id}")
    return procedure_call(metadata.name, "rewrite_manifests", *arguments)
