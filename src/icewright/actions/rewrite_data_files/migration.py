"""Plans on demand that bring files into the current partition spec or the table's own format, and do nothing else.

The policy says what happens by itself. A person may ask for more, once: then the policy is taken as if it said so, and
of what could be done only that is planned. What is left afterwards is planned when it is asked for again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from icewright.actions.rewrite_data_files.formats import other_formats
from icewright.actions.rewrite_data_files.groups import Candidate, Group, without
from icewright.core import wording
from icewright.model.actions.actions import RewriteDataFiles
from icewright.model.iceberg.inventory import PartitionStatistics
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Migration, PartitionVerdict, Reason, Verdict
from icewright.model.policy.policy import MigrateSpec, Policy

OF_FORMATS: Final = (Migration.FORMATS, Migration.ALL)
OF_SPECS: Final = (Migration.SPEC, Migration.ALL)
_NOTHING: Final = Reason("nothing-to-migrate", "none of its files is to be migrated")


def to_migrate(policy: Policy, migration: Migration) -> Policy:
    """The policy as if it said what is asked for."""
    if migration in OF_FORMATS:
        policy = replace(policy, migrate_formats=True)
    return replace(policy, migrate_spec=MigrateSpec.ALL) if migration in OF_SPECS else policy


def only_to_migrate(
    verdicts: Sequence[PartitionVerdict], observation: Observation, policy: Policy, migration: Migration
) -> tuple[PartitionVerdict, ...]:
    """The verdicts, those partitions being left that have nothing to migrate; ``policy`` is the one that was asked."""
    wanted = {each.partition: _files(each, observation, policy, migration) for each in observation.inventory.partitions}
    return tuple(
        verdict if wanted.get(verdict.partition) else without(verdict, Verdict.LEAVE, _NOTHING).verdict
        for verdict in verdicts
    )


def only_migrating(
    found: Sequence[Candidate], observation: Observation, policy: Policy, migration: Migration
) -> list[Candidate]:
    """The candidates, with no other groups than those of which a file is migrated."""
    others = other_formats(observation.metadata, policy)

    def migrates(group: Group) -> bool:
        moves = migration in OF_SPECS and group.output_spec_id is not None
        return moves or (migration in OF_FORMATS and any(file.file_format in others for file in group.files))

    kept = [replace(item, groups=tuple(filter(migrates, item.groups))) for item in found]
    return [
        after if after.groups or not before.groups else without(before.verdict, Verdict.LEAVE, _NOTHING)
        for before, after in zip(found, kept, strict=True)
    ]


def told(
    reason: Reason, observation: Observation, policy: Policy, migration: Migration, action: RewriteDataFiles | None
) -> Reason:
    """The reason of a plan on demand, with how many files there are to migrate, and how many remain after it."""
    total = sum(_files(each, observation, policy, migration) for each in observation.inventory.partitions)
    others = other_formats(observation.metadata, policy) if migration in OF_FORMATS else frozenset()
    done = sum(
        (migration in OF_SPECS and group.output_spec_id is not None) or file.file_format in others
        for group in (() if action is None else action.groups)
        for file in group.files
    )
    figures = {**reason.figures, "files_to_migrate": total, "files_remaining": total - done}
    if not total:
        what = {
            Migration.FORMATS: "of the table's own format",
            Migration.SPEC: "of the current partition spec",
            Migration.ALL: "of the current partition spec and of the table's own format",
        }[migration]
        return Reason("nothing-to-migrate", f"nothing to do: all files are {what}", figures)
    text = f"{reason.text}; of {wording.count(total, 'file')} to be migrated {total - done:,} remain"
    return replace(reason, text=text, figures=figures)


def _files(each: PartitionStatistics, observation: Observation, policy: Policy, migration: Migration) -> int:
    """How many files of a partition are to be migrated."""
    if migration in OF_SPECS and each.partition.spec_id != observation.metadata.default_spec_id:
        return each.counts.data_files
    if migration not in OF_FORMATS:
        return 0
    return sum(each.counts.formats.get(other, 0) for other in other_formats(observation.metadata, policy))
