"""Whether what expired may be put back: into the table as it is now, and never over anything that came since."""

from __future__ import annotations

from collections.abc import Iterator

from icewright.domain.expire_snapshots import ExpireSnapshots
from icewright.domain.plans import Reason
from icewright.domain.tables import Ref, Snapshot, TableMetadata
from icewright.domain.writer_settings import encryption_property
from icewright.planning import wording


def is_back(action: ExpireSnapshots, now: TableMetadata) -> bool:
    """Whether all that the action removed is there."""
    known = {one.snapshot_id for one in now.snapshots}
    here = {(ref.name, ref.kind, ref.snapshot_id) for ref in now.refs}
    refs = {(ref.name, ref.kind, ref.snapshot_id) for ref in action.refs_removed}
    return known.issuperset(action.snapshot_ids) and here >= refs


def lost_snapshots(action: ExpireSnapshots, base: TableMetadata) -> tuple[Snapshot, ...]:
    """The snapshots that the action removed, as the metadata has them that it was planned from."""
    gone = frozenset(action.snapshot_ids)
    return tuple(one for one in base.snapshots if one.snapshot_id in gone)


def lost_refs(action: ExpireSnapshots, base: TableMetadata) -> tuple[Ref, ...]:
    """The refs that the action removed, with their settings."""
    gone = {ref.name for ref in action.refs_removed}
    return tuple(ref for ref in base.refs if ref.name in gone)


def undo_conflict(action: ExpireSnapshots, base: TableMetadata, now: TableMetadata) -> Reason | None:
    """Why nothing can be put back, None when it can. ``base`` is what the action was planned from."""
    return next(_conflicts(action, base, now), None)


def _conflicts(action: ExpireSnapshots, base: TableMetadata, now: TableMetadata) -> Iterator[Reason]:
    if base.table_id != now.table_id:
        yield Reason("other-table", f"{wording.cut(action.base_metadata_location)} is of another table")
    if len(lost_snapshots(action, base)) != len(action.snapshot_ids):
        yield Reason("snapshots-missing", "the metadata file of before does not have the snapshots any more")
    if there := {one.snapshot_id for one in now.snapshots}.intersection(action.snapshot_ids):
        yield Reason("snapshot-there", f"snapshot {min(there)} is in the table", {"snapshots": len(there)})
    expected = {(ref.name, ref.kind, ref.snapshot_id) for ref in action.refs_removed}
    if {(ref.name, ref.kind, ref.snapshot_id) for ref in lost_refs(action, base)} != expected:
        yield Reason("snapshots-missing", "the metadata file of before does not have the refs any more")
    names = {ref.name for ref in now.refs}
    if taken := sorted(names.intersection(ref.name for ref in action.refs_removed)):
        yield Reason("ref-there", f"there is a ref {wording.name(taken[0])} by now", {"refs": len(taken)})
    known = {one.snapshot_id for one in now.snapshots}.union(action.snapshot_ids)
    if homeless := [ref for ref in lost_refs(action, base) if ref.snapshot_id not in known]:
        text = f"ref {wording.name(homeless[0].name)} was at snapshot {homeless[0].snapshot_id}, which is gone since"
        yield Reason("snapshots-missing", text)
    schemas = {schema.schema_id for schema in base.schemas} - {schema.schema_id for schema in now.schemas}
    specs = {spec.spec_id for spec in base.specs} - {spec.spec_id for spec in now.specs}
    if schemas or specs:
        yield Reason("schema-removed", "schemas or partition specs of then have been removed since")
    if encryption_property(now.properties) is not None:
        yield Reason("encryption", "the table is encrypted, which nothing here can do")
