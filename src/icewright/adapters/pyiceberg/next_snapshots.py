"""Snapshots and refs taken out of a table's raw metadata, and put back into it; all else is kept as it is.

Parents of snapshots stay as they are, also when they are gone: whoever walks back must see that there was one. Counters
are never touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from icewright.domain.expire_snapshots import ExpireSnapshots
from icewright.planning.expiry_commit import trimmed

_OF_SNAPSHOTS = ("statistics", "partition-statistics")
_LOG = "snapshot-log"


def without_snapshots(metadata: Mapping[str, Any], action: ExpireSnapshots) -> dict[str, Any]:
    """The metadata without what the action removes; its log without gaps (spec, "Snapshot Log")."""
    gone, names = frozenset(action.snapshot_ids), {ref.name for ref in action.refs_removed}
    after = dict(metadata)
    after["snapshots"] = [one for one in metadata.get("snapshots") or () if _id(one) not in gone]
    if metadata.get("refs") is not None:
        after["refs"] = {name: ref for name, ref in metadata["refs"].items() if name not in names}
    if metadata.get(_LOG) is not None:
        after[_LOG] = trimmed(metadata[_LOG], _id, gone)
    for key in _OF_SNAPSHOTS:
        if metadata.get(key) is not None:
            after[key] = [one for one in metadata[key] if _id(one) not in gone]
    return after


def with_snapshots(metadata: Mapping[str, Any], base: Mapping[str, Any], action: ExpireSnapshots) -> dict[str, Any]:
    """The metadata with what the action removed, as ``base`` has it, from which the action was planned.

    Snapshots come back to their places. So does the log, where what is left of it is what the action left.
    """
    gone, names = frozenset(action.snapshot_ids), {ref.name for ref in action.refs_removed}
    after = dict(metadata)
    after["snapshots"] = _woven(metadata.get("snapshots") or (), base.get("snapshots") or (), gone)
    lost = {name: ref for name, ref in (base.get("refs") or {}).items() if name in names}
    if lost:
        after["refs"] = {**(metadata.get("refs") or {}), **lost}
    for key in _OF_SNAPSHOTS:
        if back := [one for one in base.get(key) or () if _id(one) in gone]:
            after[key] = [*(metadata.get(key) or ()), *back]
    whole = _whole_log(metadata.get(_LOG) or (), base.get(_LOG) or (), gone)
    if whole is not None and {_id(one) for one in whole} <= {_id(one) for one in after["snapshots"]}:
        after[_LOG] = whole
    return after


def _woven(now: Sequence[Any], base: Sequence[Any], gone: frozenset[int]) -> list[Any]:
    """Those of now, and those that come back between them, where they were."""
    here = {_id(one): one for one in now}
    known = {_id(one) for one in base}
    old = [here.get(_id(one), one) for one in base if _id(one) in here or _id(one) in gone]
    return [*old, *(one for one in now if _id(one) not in known)]


def _whole_log(now: Sequence[Any], base: Sequence[Any], gone: frozenset[int]) -> list[Any] | None:
    left = trimmed(base, _id, gone)
    return [*base, *now[len(left) :]] if list(now[: len(left)]) == left else None


def _id(entry: Mapping[str, Any]) -> int:
    found = entry["snapshot-id"]
    if not isinstance(found, int):
        raise TypeError(f"expected a snapshot id, found {found!r:.100}")
    return found
