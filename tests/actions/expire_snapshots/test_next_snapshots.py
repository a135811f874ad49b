"""Raw metadata without some snapshots and with them again: what comes back is what went, to the last byte."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.expire_snapshots.next_snapshots import taken_by, with_snapshots, without_snapshots
from icewright.catalogs.metadata.bounded_reader import unpack_gzip
from icewright.model.actions.expire_snapshots import ExpireSnapshots, ExpiryRule, RefAt
from icewright.model.actions.undo import SIGNATURE_KEY, UndoExpiry
from icewright.model.iceberg.tables import RefKind

Raw = dict[str, Any]


def entry(number: int, version: int, more: Raw) -> Raw:
    found = {"snapshot-id": number * 1_000_003, "timestamp-ms": number * 1000, "manifest-list": f"l{number}", **more}
    if version > 1:
        found["sequence-number"] = number
    if version > 2:
        found |= {"first-row-id": number * 10, "added-rows": 10}
    return found


unknown = st.dictionaries(st.sampled_from(["of-the-future", "summary"]), st.fixed_dictionaries({"a": st.text()}))


@st.composite
def tables(draw: st.DrawFn) -> Raw:
    """A table of any version with up to eight snapshots, tags at some, and logs."""
    version, count = draw(st.integers(1, 3)), draw(st.integers(2, 8))
    snapshots = [entry(number, version, draw(unknown)) for number in range(1, count + 1)]
    ids = [one["snapshot-id"] for one in snapshots]
    logged = [one for one in snapshots if one is snapshots[-1] or draw(st.booleans())]
    raw: Raw = {
        "format-version": version,
        "table-uuid": "u",
        "last-sequence-number": count,
        "next-row-id": count * 10 + 10,
        "current-snapshot-id": ids[-1],
        "snapshots": snapshots,
        "refs": {
            "main": {"type": "branch", "snapshot-id": ids[-1]},
            **{
                f"t{n}": {"type": "tag", "snapshot-id": draw(st.sampled_from(ids)), "max-ref-age-ms": n} for n in (1, 2)
            },
        },
        "snapshot-log": [{"timestamp-ms": one["timestamp-ms"], "snapshot-id": one["snapshot-id"]} for one in logged],
        "statistics": [{"snapshot-id": one, "statistics-path": f"s{one}"} for one in ids if draw(st.booleans())],
        "properties": {"a": draw(st.text())},
    }
    for key in ("statistics", "snapshot-log", "properties"):
        if draw(st.integers(0, 9)) == 0:
            del raw[key]
    return raw


def expiry(raw: Raw, ids: list[int]) -> ExpireSnapshots:
    refs = [
        RefAt(name, RefKind(ref["type"]), ref["snapshot-id"])
        for name, ref in raw["refs"].items()
        if ref["snapshot-id"] in ids
    ]
    return ExpireSnapshots("m", raw["current-snapshot-id"], tuple(ids), tuple(refs), (), (), ExpiryRule(0, 1), 0)


def taken(raw: Raw, action: ExpireSnapshots) -> Raw:
    found: Raw = json.loads(unpack_gzip(taken_by(raw, "m", action), "kept", 1 << 20))
    return found


def undo(action: ExpireSnapshots) -> UndoExpiry:
    return UndoExpiry("task-1", None, action.snapshot_ids, action.refs_removed, 0)


def appended(raw: Raw) -> Raw:
    """One more commit."""
    number = raw["last-sequence-number"] + 1
    one = entry(number, raw["format-version"], {})
    log = {"timestamp-ms": one["timestamp-ms"], "snapshot-id": one["snapshot-id"]}
    return {
        **raw,
        "last-sequence-number": number,
        "next-row-id": raw["next-row-id"] + 10,
        "current-snapshot-id": one["snapshot-id"],
        "snapshots": [*raw["snapshots"], one],
        "refs": {**raw["refs"], "main": {"type": "branch", "snapshot-id": one["snapshot-id"]}},
        "snapshot-log": [*raw.get("snapshot-log", ()), log],
    }


def unsigned(raw: Raw) -> Raw:
    properties = {key: text for key, text in raw["properties"].items() if key != SIGNATURE_KEY}
    empty: Raw = {"statistics": [], "snapshot-log": []}
    return {**empty, **raw, "properties": properties}


@given(tables(), st.data(), st.integers(0, 3))
def test_s_14_what_comes_back_is_what_went_whatever_was_committed_since(
    raw: Raw, data: st.DataObject, commits: int
) -> None:
    older = [one["snapshot-id"] for one in raw["snapshots"][:-1]]
    gone = data.draw(st.lists(st.sampled_from(older), min_size=1, unique=True))
    action = expiry(raw, gone)
    kept, expected = taken(raw, action), raw
    after = without_snapshots(raw, action)
    for _ in range(commits):
        after, expected = appended(after), appended(expected)
    found = unsigned(with_snapshots(after, kept, undo(action), "task-2"))
    expected = unsigned({"properties": {}, **expected})
    # A ref comes back behind the others: what maps of refs are in the file has no order.
    assert found == expected
    assert [one["snapshot-id"] for one in found["snapshots"]] == [one["snapshot-id"] for one in expected["snapshots"]]


@given(tables(), st.data())
def test_two_expiries_come_back_in_either_order(raw: Raw, data: st.DataObject) -> None:
    older = [one["snapshot-id"] for one in raw["snapshots"][:-1]]
    first = data.draw(st.lists(st.sampled_from(older), min_size=1, unique=True))
    rest = [one for one in older if one not in first]
    one = expiry(raw, first)
    middle = without_snapshots(raw, one)
    two = expiry(middle, rest)
    after = without_snapshots(middle, two)
    undos = [(taken(raw, one), one), (taken(middle, two), two)]
    for kept, action in undos if data.draw(st.booleans()) else reversed(undos):
        after = with_snapshots(after, kept, undo(action), "task-2")
    assert after["snapshots"] == raw["snapshots"]
    assert after["refs"] == raw["refs"]
    assert after.get("statistics", []) == raw.get("statistics", [])
    known = {snapshot["snapshot-id"] for snapshot in after["snapshots"]}
    log = [(each["timestamp-ms"], each["snapshot-id"]) for each in after.get("snapshot-log", ())]
    assert {snapshot_id for _, snapshot_id in log} <= known
    assert log == sorted(log)
