"""What the files of a partition give: groups worth rewriting, or a verdict that says why there are none."""

from __future__ import annotations

from dataclasses import dataclass, replace

from icewright.actions.rewrite_data_files.executors import Choice
from icewright.actions.rewrite_data_files.level_rotation import MERGING, ORDERING, Work
from icewright.actions.rewrite_data_files.packing import Run
from icewright.core.times import Instant
from icewright.model.plans.plans import PartitionVerdict, Reason, Verdict


@dataclass(frozen=True, slots=True)
class Group:
    """Files to become one file (of Level 1 and 2, several), and what carries that out."""

    files: Run
    choice: Choice
    references: int
    """Pairs of a file and a delete file that applies to it."""
    work: Work = MERGING
    output_files: int = 1
    output_spec_id: int | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes to be read."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the files of one shortlisted partition give: groups, or a verdict that says why there are none.

    ``following`` files are in no group, since a task cannot have all.
    """

    verdict: PartitionVerdict
    groups: tuple[Group, ...]
    following: int = 0

    @property
    def gain(self) -> int:
        """How many files fewer there will be; one that is rewritten for its deletes counts as one, too.

        Of files that are put in order, their bytes; groups of both kinds are never in one task.
        """
        if any(group.work in ORDERING for group in self.groups):
            return sum(group.size_bytes for group in self.groups)
        return sum(max(len(group.files) - 1, 1) for group in self.groups)


def without(verdict: PartitionVerdict, kind: Verdict, reason: Reason, until: Instant | None = None) -> Candidate:
    """A candidate from which nothing is merged, and why."""
    changed = replace(verdict, verdict=kind, reason=reason, files_after=verdict.files_before, wait_until=until)
    return Candidate(changed, ())
