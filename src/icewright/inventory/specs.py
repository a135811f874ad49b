"""Files of older partition specs: whether their rows can be moved to the current one, and how many files that makes.

A file of an older spec is found by readers like any other, but it is left out of scans by the older spec's fields
alone. Its rows may belong to several partitions of the current spec. How many is known where each field of the new spec
follows from one of the old (an hour from its day, a bucket of 8 from one of 4), or from the bounds of a column in the
files; else only the job finds out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, Final

from icewright.core import wording
from icewright.core.times import Instant
from icewright.inventory.placement import column_types
from icewright.model.iceberg.column_types import all_fields
from icewright.model.iceberg.files import DataFile, Partition, Span
from icewright.model.iceberg.tables import PartitionField, PartitionSpec, Snapshot, SortField, TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import MigrateSpec, Policy

OTHER_SPEC: Final = "other-spec"
"""The reason of a candidate whose files are moved to the current spec, and of an executor that moves them."""

PARTITIONS_MAX: Final = 1_000
"""The most partitions that one group's rows may be spread over. A month of hours is 744."""

QUIET_MS: Final = 86_400_000
"""How long nobody must have written under a spec that has equality deletes, before its files are moved: a day."""

_ANY_TIME = "date|timestamp|timestamptz"
_PLAIN = rf"int|long|string|binary|{_ANY_TIME}|decimal\(\s*\d+\s*,\s*\d+\s*\)"
_COMPUTED: Final = (
    (re.compile(r"identity"), re.compile(rf"boolean|{_PLAIN}", re.ASCII)),
    (re.compile(r"bucket\[[1-9]\d{0,8}\]", re.ASCII), re.compile(_PLAIN, re.ASCII)),
    (re.compile(r"truncate\[[1-9]\d{0,8}\]", re.ASCII), re.compile(r"int|long|string|binary|decimal\(.*\)")),
    (re.compile(r"year|month|day"), re.compile(_ANY_TIME)),
    (re.compile(r"hour"), re.compile(r"timestamp|timestamptz")),
)
"""Transforms whose values are computed and proved, and of which types. Floating-point numbers are left out, whose NaN
has no form in Iceberg's JSON, and uuids, which Spark only has as text."""

_COARSE_TO_FINE: Final = ("year", "month", "day", "hour")
_PARTS: Final = {("year", "month"): 12, ("year", "day"): 366, ("month", "day"): 31, ("day", "hour"): 24}
_SIZED: Final = re.compile(r"(?:bucket|truncate)\[(\d{1,9})\]", re.ASCII)
_COUNTED_TYPES: Final = ("int", "long", "date")


def current_spec_obstacle(metadata: TableMetadata) -> Reason | None:
    """Why nothing can be moved to the current partition spec of a table, or None."""
    spec = next((each for each in metadata.specs if each.spec_id == metadata.default_spec_id), None)
    if spec is None:
        return Reason("unknown-spec", f"the metadata has no partition spec {metadata.default_spec_id}")
    types = column_types(metadata)
    for field in spec.fields:
        kind = types.get(field.source_id)
        if kind is None:
            why = f"of field {wording.name(field.name)}, whose column was dropped"
        elif not any(known.fullmatch(field.transform) and _is(kind, kinds) for known, kinds in _COMPUTED):
            why = (
                f"{_transform_said(field.transform)} of a {wording.name(_type_name(kind))}, {wording.name(field.name)}"
            )
        else:
            continue
        text = f"nothing can be moved to the current partition spec {spec.spec_id}: its values cannot be computed"
        return Reason("partition-transform", f"{text}, {why}", {"spec_id": spec.spec_id})
    return None


def spec_said(metadata: TableMetadata, spec_id: int) -> str:
    """``spec 1 (day(ts), bucket[4](id))``: a spec by the names that its columns have now."""
    names = {int(field["id"]): path for path, field in all_fields(metadata.schema.fields)}
    terms = [
        f"{_transform_said(field.transform)}({wording.name(names.get(field.source_id, f'field-{field.source_id}'))})"
        for field in metadata.spec(spec_id).fields
        if field.transform != "void"
    ]
    return f"spec {spec_id} ({', '.join(terms) or 'unpartitioned'})"


def span_field(metadata: TableMetadata, policy: Policy) -> SortField | None:
    """The field of the current spec that the bounds of files tell partitions of; None where none does, or none asks."""
    if policy.migrate_spec is MigrateSpec.NEVER or current_spec_obstacle(metadata) is not None:
        return None
    types = column_types(metadata)
    for field in metadata.spec(metadata.default_spec_id).fields:
        identity = field.transform == "identity" and types[field.source_id] in _COUNTED_TYPES
        if identity or field.transform in _COARSE_TO_FINE:
            return SortField(field.source_id, field.transform, "asc", "nulls-first")
    return None


def in_use(until: Instant) -> Reason:
    """Why the files of a spec that may still get equality deletes are not moved yet."""
    text = "equality deletes of its spec may still come, and would not apply to rows that have moved; "
    return Reason("spec-in-use", f"{text}moved once the spec was unused for a day, at {wording.instant(until)}")


@dataclass(frozen=True, slots=True)
class Moves:
    """What the policy, the specs and the writers of a table say of moving files to its current spec.

    ``parts`` has, by older spec, into how many values of each field of the current one its partitions fall apart at
    most, None where that is not known. ``spanned`` is a field, by its place, and the place of its spans in each file.
    ``quiet_at`` is when the specs with equality deletes may be moved, where somebody wrote under them lately.
    """

    metadata: TableMetadata
    asked: MigrateSpec
    obstacle: Reason | None
    parts: Mapping[int, tuple[int | None, ...]]
    spanned: tuple[int, int] | None
    quiet_at: Mapping[int, Instant]

    @classmethod
    def of(
        cls, observation: Observation, policy: Policy, not_staged: Reason | None, asked: Sequence[SortField] = ()
    ) -> Moves:
        """``not_staged`` is why Spark can rewrite nothing in the table; ``asked`` what the spans of files are of."""
        metadata = observation.metadata
        obstacle = current_spec_obstacle(metadata) or not_staged
        if obstacle is not None:
            return cls(metadata, policy.migrate_spec, obstacle, {}, None, {})
        current = metadata.spec(metadata.default_spec_id)
        field = span_field(metadata, policy)
        terms = [(each.source_id, each.transform) for each in current.fields]
        return cls(
            metadata,
            policy.migrate_spec,
            None,
            {spec.spec_id: _parts(spec, current) for spec in metadata.specs if spec.spec_id != current.spec_id},
            (terms.index((field.source_id, field.transform)), asked.index(field))
            if field is not None and field in asked
            else None,
            _quiet_at(observation),
        )

    @property
    def spec_id(self) -> int:
        """The current spec."""
        return self.metadata.default_spec_id

    def is_asked(self, partition: Partition) -> bool:
        """Whether all files of a partition are to be moved."""
        return self.asked is MigrateSpec.ALL and partition.spec_id != self.spec_id

    def waits_until(self, partition: Partition, now: Instant) -> Instant | None:
        """When the files of a partition may be moved, None for now.

        A writer that still works under an older spec deletes by equality within its partitions alone. What it
        deletes after a move would not apply to the moved rows.
        """
        until = self.quiet_at.get(partition.spec_id)
        return until if until is not None and until > now else None

    def said(self, partition: Partition) -> str:
        """``from spec 0 (unpartitioned) to spec 1 (day(ts))``."""
        before, after = spec_said(self.metadata, partition.spec_id), spec_said(self.metadata, self.spec_id)
        return f"from {before} to {after}"

    def partitions_made(self, files: Sequence[DataFile]) -> int | None:
        """Over how many partitions of the current spec the rows of files of one partition are spread at most.

        None where only the job finds out.
        """
        found = 1
        for place, known in enumerate(self.parts[files[0].partition.spec_id]):
            spanned = self.spanned is not None and place == self.spanned[0]
            values = [each for each in (known, self._values(files) if spanned else None) if each]
            if not values:
                return None
            found *= min(values)
        return found

    def when_touched(self, files: Sequence[DataFile], now: Instant) -> int | None:
        """The most files that a group becomes where it is moved since it is rewritten anyway; None where it is not."""
        partition = files[0].partition
        if self.asked is MigrateSpec.NEVER or self.obstacle is not None or partition.spec_id == self.spec_id:
            return None
        made = None if self.waits_until(partition, now) is not None else self.partitions_made(files)
        return made if made is not None and (made == 1 or made < len(files)) and made <= PARTITIONS_MAX else None

    def span(self, file: DataFile) -> Span | None:
        """From the least to the greatest value of the spanned field in a file; None where nobody knows."""
        if self.spanned is None or self.spanned[1] >= len(file.spans):
            return None
        return file.spans[self.spanned[1]]

    def _values(self, files: Sequence[DataFile]) -> int | None:
        """How many values of the spanned field files have at most, by their bounds."""
        ends = [end for file in files for end in (self.span(file) or (None, None))]
        values = [end[1] for end in ends if end is not None and type(end[1]) is int]
        if len(values) < len(ends):
            return None
        return max(values) - min(values) + 1


def _parts(old: PartitionSpec, new: PartitionSpec) -> tuple[int | None, ...]:
    """Into how many values of each new field the rows of one partition of the old spec fall at most."""
    return tuple(
        _parts_of(field, [each for each in old.fields if each.source_id == field.source_id]) for field in new.fields
    )


def _parts_of(field: PartitionField, old: Sequence[PartitionField]) -> int | None:
    buckets = _number(field.transform) if field.transform.startswith("bucket") else None
    # With nulls, there is one more where nothing is known of the column.
    found = [] if buckets is None else [buckets + 1]
    for each in old:
        if each.transform in (field.transform, "identity"):
            return 1
        if buckets is not None and each.transform.startswith("bucket"):
            # Both are the same hash modulo their number.
            found.append(buckets // gcd(buckets, _number(each.transform) or 1))
        if each.transform in _COARSE_TO_FINE and field.transform in _COARSE_TO_FINE:
            found.append(_finer(each.transform, field.transform))
    return min(found, default=None)


def _finer(coarse: str, fine: str) -> int:
    """How many of one unit of time are in the other at most; 1 where that is no finer."""
    first, last = _COARSE_TO_FINE.index(coarse), _COARSE_TO_FINE.index(fine)
    if last <= first:
        return 1
    if (coarse, fine) in _PARTS:
        return _PARTS[coarse, fine]
    return _finer(coarse, "day") * _finer("day", fine)


def _quiet_at(observation: Observation) -> dict[int, Instant]:
    """Until when older specs are not moved whose writer may delete by equality, told by who wrote under them last.

    All of a table whose commits tell of such deletes: those of a writer may just have been folded in. A write whose
    snapshot has expired came before all that are left of its lineage.
    """
    metadata, removals = observation.metadata, observation.removals
    everywhere = {spec.spec_id for spec in metadata.specs if spec.is_unpartitioned}
    by_commits = any(_tells_of_equality_deletes(snapshot) for snapshot in metadata.snapshots)
    with_deletes = {
        each.partition.spec_id
        for each in observation.inventory.partitions
        if by_commits or each.counts.equality_delete_files
    }
    oldest = metadata.ancestors()[-1:]
    latest_at = oldest[0].committed_at if oldest else None
    found: dict[int, Instant] = {}
    for each in observation.inventory.partitions:
        spec_id = each.partition.spec_id
        if spec_id not in with_deletes or spec_id in everywhere:
            continue
        written_at = latest_at if each.written_at is None else each.written_at
        for at in (written_at, removals.removed_at.get(each.partition), removals.everywhere_at):
            if at is not None:
                found[spec_id] = max(found.get(spec_id, 0), at + QUIET_MS)
    return found


def _tells_of_equality_deletes(snapshot: Snapshot) -> bool:
    return any("equality-delete" in key and value != "0" for key, value in snapshot.summary.items())


def _transform_said(transform: str) -> str:
    return transform if _SIZED.fullmatch(transform) else wording.name(transform)


def _number(transform: str) -> int | None:
    sized = _SIZED.fullmatch(transform)
    return None if sized is None else int(sized[1])


def _is(kind: Any, known: re.Pattern[str]) -> bool:
    return isinstance(kind, str) and known.fullmatch(kind) is not None


def _type_name(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind["type"])
