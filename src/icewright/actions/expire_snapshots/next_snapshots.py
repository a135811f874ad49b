"""Snapshots and refs taken out of a table's raw metadata, and put back into it; all else is kept as it is.

Parents of snapshots stay as they are, also when they are gone: whoever walks back must see that there was one. Counters
are never touched.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from icewright.actions.expire_snapshots.commit import trimmed
from icewright.core.errors import Conflict
from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.actions.undo import SIGNATURE_KEY, UndoExpiry

_OF_SNAPSHOTS: Final = ("statistics", "partition-statistics")
_LOG: Final = "snapshot-log"
_NOT_KEPT: Final = frozenset({"metadata-log", "properties", "current-snapshot-id", _LOG})
"""What nothing that comes back needs. Properties may hold what should not be written down elsewhere."""


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


def taken_by(metadata: Mapping[str, Any], location: str, action: ExpireSnapshots) -> bytes:
    """What the action takes from the metadata in ``location``, as JSON, compressed: each entry as it is there.

    Beside it are the schemas and specs of then, without which nobody could tell whether it may come back.
    """
    gone, names = frozenset(action.snapshot_ids), {ref.name for ref in action.refs_removed}
    log = metadata.get(_LOG) or ()
    left = trimmed(log, _id, gone)
    kept = {key: value for key, value in metadata.items() if key not in _NOT_KEPT}
    for key in ("snapshots", *_OF_SNAPSHOTS):
        kept[key] = [one for one in metadata.get(key) or () if _id(one) in gone]
    kept["refs"] = {name: ref for name, ref in (metadata.get("refs") or {}).items() if name in names}
    taken = {
        "metadata-location": location,
        "metadata": kept,
        "log": list(log[: len(log) - len(left)]),
        "log-next": left[0] if left else None,
    }
    return gzip.compress(json.dumps(taken, separators=(",", ":")).encode("ascii"), mtime=0)


def with_snapshots(
    metadata: Mapping[str, Any], taken: Mapping[str, Any], action: UndoExpiry, task_id: str
) -> dict[str, Any]:
    """The metadata with what the action puts back of that which was ``taken``, signed by its task.

    Snapshots come back to their places. So does the log, where what is left of it is what the expiry left. Raises
    :class:`Conflict` where a counter of the table is below what a snapshot that comes back has used: then this is not
    what became of the table that it was taken from.
    """
    back, names = frozenset(action.snapshot_ids), {ref.name for ref in action.refs}
    kept: Mapping[str, Any] = taken["metadata"]
    after = dict(metadata)
    coming = [one for one in kept["snapshots"] if _id(one) in back]
    _check_counters(metadata, coming)
    after["snapshots"] = _woven(metadata.get("snapshots") or (), coming)
    refs = {name: ref for name, ref in kept["refs"].items() if name in names}
    if refs:
        after["refs"] = {**(metadata.get("refs") or {}), **refs}
    for key in _OF_SNAPSHOTS:
        if entries := [one for one in kept[key] if _id(one) in back]:
            after[key] = _by_snapshot([*(metadata.get(key) or ()), *entries], after["snapshots"])
    log, cut = list(metadata.get(_LOG) or ()), taken["log"]
    goes_on = taken["log-next"] is None or log[:1] == [taken["log-next"]]
    if cut and goes_on and {_id(one) for one in cut} <= {_id(one) for one in after["snapshots"]}:
        after[_LOG] = [*cut, *log]
    after["properties"] = {**(metadata.get("properties") or {}), SIGNATURE_KEY: task_id}
    return after


def _check_counters(metadata: Mapping[str, Any], coming: Sequence[Any]) -> None:
    version = int(metadata["format-version"])
    for one in coming:
        rows = (one.get("first-row-id") or 0) + (one.get("added-rows") or 0)
        low = version > 1 and int(one.get("sequence-number", 0)) > int(metadata["last-sequence-number"])
        if low or rows > int(metadata.get("next-row-id") or 0):
            raise Conflict(f"the table counts lower than snapshot {_id(one)} did: it was put back to an older state")
        if version > 1 and not one.get("manifest-list"):
            raise Conflict(f"snapshot {_id(one)} has no manifest list, which format version {version} asks for")


def _woven(now: Sequence[Any], coming: Sequence[Any]) -> list[Any]:
    """Those of now in their order, and those that come back between them, by age."""
    left = sorted(coming, key=_age, reverse=True)
    woven: list[Any] = []
    for one in now:
        while left and _age(left[-1]) < _age(one):
            woven.append(left.pop())
        woven.append(one)
    return [*woven, *reversed(left)]


def _by_snapshot(entries: Sequence[Any], snapshots: Sequence[Any]) -> list[Any]:
    """In the order of their snapshots, as far as these are there."""
    places = {_id(one): place for place, one in enumerate(snapshots)}
    return sorted(entries, key=lambda one: places.get(_id(one), -1))


def _age(snapshot: Any) -> tuple[int, int]:
    return int(snapshot.get("sequence-number", 0)), int(snapshot["timestamp-ms"])


def _id(entry: Mapping[str, Any]) -> int:
    found = entry["snapshot-id"]
    if not isinstance(found, int):
        raise TypeError(f"expected a snapshot id, found {found!r:.100}")
    return found
