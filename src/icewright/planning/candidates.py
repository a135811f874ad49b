"""Candidates: from the files of the shortlisted partitions to groups worth merging, or to why there are none.

Appends never put a partition off, since they do not conflict with a rewrite; only the youngest files are left out,
whose writer may be about to replace them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from icewright.domain.files import DataFile, FileFormat, Partition
from icewright.domain.observation import Observation
from icewright.domain.plans import PartitionVerdict, Reason, Verdict
from icewright.domain.policy import Policy
from icewright.domain.tables import Instant
from icewright.planning import wording
from icewright.planning.packing import Bounds, Run, in_order, pack
from icewright.planning.settings import TASK_FILES_MAX

YOUNG_MAX_MS = 60_000
"""Files are left out for one commit interval, but no longer than this: a minute is enough for a streaming writer to
show what follows, and the files of a daily job need not wait for a day."""

SETTLED_AFTER_MS = 86_400_000
"""A partition without new data for a day has settled: it gets one last merge however its bytes are spread."""

COLLECTED_FILES_MAX = TASK_FILES_MAX
"""At most twice as many files are held in memory, about 100 MB, and as many are planned for."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the files of one shortlisted partition give: groups, or a verdict that says why there are none."""

    verdict: PartitionVerdict
    groups: tuple[Run, ...]

    @property
    def gain(self) -> int:
        """How many files fewer there will be."""
        return sum(len(group) - 1 for group in self.groups)


def find(
    observation: Observation,
    policy: Policy,
    verdicts: Sequence[PartitionVerdict],
    files: Iterable[DataFile],
    now: Instant,
) -> list[Candidate]:
    """The groups of each partition whose verdict is ``rewrite``, in the order of the verdicts."""
    return _Finder(observation, policy, now).find(verdicts, files)


@dataclass(frozen=True, slots=True)
class _Finder:
    observation: Observation
    policy: Policy
    now: Instant

    def find(self, verdicts: Sequence[PartitionVerdict], files: Iterable[DataFile]) -> list[Candidate]:
        candidates = {verdict.partition: verdict for verdict in verdicts if verdict.verdict is Verdict.REWRITE}
        collected = collect(files, frozenset(candidates), self.policy.small_file_size_bytes)
        by_partition: dict[Partition, list[DataFile]] = {partition: [] for partition in candidates}
        for file in collected:
            by_partition[file.partition].append(file)
        damaged = _partitions_with_doubled_files(collected)
        added_at = {s.snapshot_id: s.committed_at for s in self.observation.metadata.snapshots}
        written_at = {s.partition: s.written_at for s in self.observation.inventory.partitions}
        return [
            self._found(verdict, by_partition[partition], added_at, written_at.get(partition), partition in damaged)
            for partition, verdict in candidates.items()
        ]

    def _found(
        self,
        verdict: PartitionVerdict,
        files: list[DataFile],
        added_at: Mapping[int, Instant],
        written_at: Instant | None,
        damaged: bool,  # noqa: FBT001 - one caller, right above
    ) -> Candidate:
        if damaged:
            text = "a file is listed twice; merging it would change what readers see, so its owner has to look first"
            return without(verdict, Verdict.REFUSE, Reason("file-listed-twice", text))
        if any(file.file_format is not FileFormat.PARQUET for file in files):
            text = "it has small files that are not Parquet, and merging can only do Parquet yet"
            return without(verdict, Verdict.REFUSE, Reason("not-parquet", text))
        old_at = {file.path: self._old_at(added_at.get(file.snapshot_id)) for file in files}
        old = [file for file in files if old_at[file.path] <= self.now]
        settled_at = None if written_at is None else written_at + SETTLED_AFTER_MS
        settled = settled_at is None or settled_at <= self.now
        bounds = Bounds.of(self.policy)
        groups = pack(in_order(old, added_at), bounds, allow_dominated=settled)
        if groups:
            return Candidate(verdict, groups)
        if len(old) < len(files):
            until = min(at for at in old_at.values() if at > self.now)
            young = wording.count(len(files) - len(old), "small file")
            text = f"{young} too new to be merged; looked at again at {wording.instant(until)}"
            return without(verdict, Verdict.WAIT, Reason("young-files", text), until)
        if settled_at is not None and not settled and pack(in_order(old, added_at), bounds, allow_dominated=True):
            text = (
                "one of its small files holds most of their bytes, and is not written again for a few small ones "
                f"before the partition has settled, at {wording.instant(settled_at)}"
            )
            return without(verdict, Verdict.WAIT, Reason("not-settled", text), settled_at)
        small = wording.count(len(files), "small file")
        text = f"no {self.policy.min_input_files:,} neighbours among its {small} fit into one file"
        return without(verdict, Verdict.LEAVE, Reason("no-group", text))

    def _old_at(self, added_at: Instant | None) -> Instant:
        """When a file that was added then is old enough.

        At once when the snapshot has expired, or when its clock is so far ahead that it says nothing.
        """
        interval_ms = self.observation.commit_interval_ms
        young_ms = YOUNG_MAX_MS if interval_ms is None else min(interval_ms, YOUNG_MAX_MS)
        if added_at is None or added_at > self.now + YOUNG_MAX_MS:
            return self.now
        return added_at + young_ms


def collect(files: Iterable[DataFile], partitions: frozenset[Partition], small_file_size_bytes: int) -> list[DataFile]:
    """The small files of some partitions, by path; of very many, those whose paths sort first.

    Memory is bounded by :data:`COLLECTED_FILES_MAX`, and the outcome does not depend on the order of ``files``.
    By path, since the files of a partition mostly share a directory and so are kept or put off together; and
    entries of one path stay together, so that a file that is listed twice is noticed.
    """
    kept: list[DataFile] = []
    for file in files:
        if file.size_bytes < small_file_size_bytes and file.partition in partitions:
            kept.append(file)
            if len(kept) >= 2 * COLLECTED_FILES_MAX:
                kept = _first_by_path(kept)
    return _first_by_path(kept)


def _first_by_path(files: list[DataFile]) -> list[DataFile]:
    files.sort(key=lambda file: (file.path, file.partition))
    end = min(COLLECTED_FILES_MAX, len(files))
    while 0 < end < len(files) and files[end].path == files[end - 1].path:
        end += 1
    return files[:end]


def _partitions_with_doubled_files(by_path: Sequence[DataFile]) -> frozenset[Partition]:
    pairs = [(one, other) for one, other in pairwise(by_path) if one.path == other.path]
    return frozenset(file.partition for pair in pairs for file in pair)


def without(verdict: PartitionVerdict, kind: Verdict, reason: Reason, until: Instant | None = None) -> Candidate:
    """A candidate from which nothing is merged, and why."""
    changed = replace(verdict, verdict=kind, reason=reason, files_after=verdict.files_before, wait_until=until)
    return Candidate(changed, ())
