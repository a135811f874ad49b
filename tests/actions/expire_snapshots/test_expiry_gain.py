"""An expiry by itself is worth its commit, or it waits, for less than a day."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.expire_snapshots.gain import LEAST, LONGEST_MS, too_little
from icewright.model.actions.expire_snapshots import ExpireSnapshots, RefAt
from icewright.model.iceberg.tables import RefKind
from tests.builders.expiring import DAYS, decided
from tests.cases import each_case

DECIDED = decided(DAYS).action


def expiry(snapshots: int, refs: int = 0) -> ExpireSnapshots:
    assert DECIDED is not None
    tags = tuple(RefAt(f"v{number}", RefKind.TAG, number) for number in range(refs))
    return replace(DECIDED, snapshot_ids=tuple(range(snapshots)), refs_removed=tags)


@each_case(
    ("gone", "of", "rested_ms"),
    [(LEAST, 100_000, 0), (5, 10, 0), (1, 100_000, LONGEST_MS), (1, 100_000, None), (1, 100_000, -1)],
    ids=["many", "half", "hours", "the first one", "a clock set back"],
)
def test_it_is_worth_a_commit(gone: int, of: int, rested_ms: int | None) -> None:
    assert too_little(expiry(gone), of, rested_ms) is None


@each_case(("gone", "of"), [(1, 3), (LEAST - 1, 100_000), (4, 10)])
def test_it_is_not_yet_and_says_what_is_missing(gone: int, of: int) -> None:
    reason = too_little(expiry(gone), of, LONGEST_MS - 1)
    assert reason is not None
    assert reason.code == "too-little-yet"
    assert f"{gone} of {of:,} snapshots" in reason.text
    assert str(LEAST) in reason.text


def test_refs_count_as_snapshots_do() -> None:
    assert too_little(expiry(LEAST - 1, refs=1), 100_000, 0) is None


@given(st.integers(0, 300), st.integers(0, 5), st.integers(1, 100_000), st.integers(0, 3 * LONGEST_MS))
def test_nothing_waits_for_ever_and_more_never_waits_where_less_goes(
    gone: int, refs: int, of: int, rested_ms: int
) -> None:
    waits = too_little(expiry(gone, refs), of, rested_ms) is not None
    assert not (waits and rested_ms >= LONGEST_MS)
    if waits:
        assert too_little(expiry(gone, refs), of, rested_ms + LONGEST_MS) is None
    else:
        assert too_little(expiry(gone + 1, refs), of, rested_ms) is None
        assert too_little(expiry(gone, refs), of, rested_ms + 1) is None
