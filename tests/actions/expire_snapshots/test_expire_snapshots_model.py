"""The action that expires snapshots, as it is stored and as lists show it."""

from __future__ import annotations

from icewright.core.codec import dumps, loads
from icewright.model.actions.expire_snapshots import (
    ExpireSnapshots,
    ExpireSnapshotsFigures,
    ExpireSnapshotsPrediction,
    ExpiryRule,
    RefAt,
)
from icewright.model.iceberg.tables import Ref, RefKind

MAIN = RefAt("main", RefKind.BRANCH, 4)
OLD = RefAt("v1", RefKind.TAG, 1)
ACTION = ExpireSnapshots(
    base_metadata_location="s3://b/t/metadata/7.metadata.json",
    base_snapshot_id=4,
    snapshot_ids=(1, 2),
    refs_removed=(OLD,),
    refs_seen=(MAIN, OLD),
    retained_snapshot_ids=(3, 4),
    rule=ExpiryRule(older_than_ms=432_000_000, retain_last=10),
    as_of=1_700_000_000_000,
)


def test_it_is_stored_and_read_as_it_is() -> None:
    prediction = ExpireSnapshotsPrediction(4, 2, ("v1",), 2, "CALL ...", can_be_undone=True, undo="because")
    assert loads(ExpireSnapshots, dumps(ACTION)) == ACTION
    assert loads(ExpireSnapshotsFigures, dumps(ACTION.figures)) == ACTION.figures
    assert loads(ExpireSnapshotsPrediction, dumps(prediction)) == prediction
    assert '"kind":"expire_snapshots"' in dumps(ACTION)


def test_lists_show_how_many() -> None:
    assert ACTION.figures == ExpireSnapshotsFigures(
        base_snapshot_id=4, snapshots=2, refs=1, retained=2, older_than_ms=432_000_000, retain_last=10
    )


def test_a_ref_as_it_was_seen() -> None:
    assert RefAt.of(Ref("v1", RefKind.TAG, 1, max_ref_age_ms=5)) == OLD
