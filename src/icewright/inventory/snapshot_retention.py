"""Which snapshots an expiry would keep: the rules of Iceberg's ``expire_snapshots``, as a function of the metadata.

Source: ``RemoveSnapshots.internalApply`` of Iceberg 1.12; a test compares with it on real Spark.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from icewright.core.times import Instant
from icewright.model.actions.expire_snapshots import ExpiryRule
from icewright.model.iceberg.tables import MAIN_BRANCH, Ref, RefKind, Snapshot, TableMetadata

_MIN_SNAPSHOTS_KEY: Final = "history.expire.min-snapshots-to-keep"
_MAX_REF_AGE_KEY: Final = "history.expire.max-ref-age-ms"
_LONG: Final = re.compile(r"\d{1,19}", re.ASCII)


def retained_snapshots(metadata: TableMetadata, rule: ExpiryRule, now: Instant) -> frozenset[int]:
    """The ids of the snapshots that stay."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    oldest_at = now - rule.older_than_ms
    refs = retained_refs(metadata, now)
    kept = {ref.snapshot_id for ref in refs if ref.snapshot_id in by_id}
    referenced = set(kept)
    least = rule.retain_last or _number(metadata, _MIN_SNAPSHOTS_KEY) or 1
    for ref in refs:
        if ref.kind is RefKind.BRANCH:
            kept.update(_of_branch(by_id, ref, oldest_at=oldest_at, least=least, now=now))
            referenced.update(snapshot.snapshot_id for snapshot in _lineage(by_id, ref.snapshot_id))
    kept.update(
        snapshot.snapshot_id
        for snapshot in metadata.snapshots
        if snapshot.snapshot_id not in referenced and snapshot.committed_at >= oldest_at
    )
    return frozenset(kept)


def next_of_age(metadata: TableMetadata, ages: Collection[int], now: Instant) -> Instant | None:
    """When the answer of :func:`retained_snapshots` may be another one, for rules of these ages; None if it never is.

    Never too late: some of these instants change nothing.
    """
    of_refs = [age for ref in metadata.refs for age in (ref.max_snapshot_age_ms, ref.max_ref_age_ms)]
    every = {*ages, *(age for age in (*of_refs, _number(metadata, _MAX_REF_AGE_KEY)) if age is not None)}
    at = (snapshot.committed_at + age_ms + 1 for snapshot in metadata.snapshots for age_ms in every)
    return min((each for each in at if each > now), default=None)


def retained_refs(metadata: TableMetadata, now: Instant) -> tuple[Ref, ...]:
    """The refs that stay; one at a snapshot that is not there does not."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    return tuple(ref for ref in metadata.refs if _stays(metadata, by_id, ref, now))


def _stays(metadata: TableMetadata, by_id: Mapping[int, Snapshot], ref: Ref, now: Instant) -> bool:
    """Whether a ref itself stays: it may have an age of its own."""
    if ref.name == MAIN_BRANCH:
        return True
    age_max_ms = _number(metadata, _MAX_REF_AGE_KEY) if ref.max_ref_age_ms is None else ref.max_ref_age_ms
    snapshot = by_id.get(ref.snapshot_id)
    return snapshot is not None and (age_max_ms is None or now - snapshot.committed_at <= age_max_ms)


def _of_branch(
    by_id: Mapping[int, Snapshot], ref: Ref, *, oldest_at: Instant, least: int, now: Instant
) -> Iterator[int]:
    """The newest ones of a branch, up to the first that is old and not among the least number."""
    oldest_at = oldest_at if ref.max_snapshot_age_ms is None else now - ref.max_snapshot_age_ms
    least = least if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
    for number, snapshot in enumerate(_lineage(by_id, ref.snapshot_id)):
        if number >= least and snapshot.committed_at < oldest_at:
            return
        yield snapshot.snapshot_id


def _lineage(by_id: Mapping[int, Snapshot], snapshot_id: int) -> Iterator[Snapshot]:
    """A snapshot and its ancestors as far back as they are kept; never more than there are."""
    at = by_id.get(snapshot_id)
    for _ in range(len(by_id)):
        if at is None:
            return
        yield at
        at = None if at.parent_id is None else by_id.get(at.parent_id)


def _number(metadata: TableMetadata, key: str) -> int | None:
    text = metadata.properties.get(key, "")
    return int(text) if _LONG.fullmatch(text) else None
