"""The tag that keeps what expires: there before the commit, and for long enough whichever attempt made it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from icewright.core.errors import Conflict
from icewright_spark.iceberg.commits.commit import make_tag

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NAME, AT = "icewright-before-expire-data-task-1", 7


@dataclass
class Ref:
    """Iceberg's SnapshotRef, on paper."""

    snapshot_id: int
    age_ms: int | None
    is_tag: bool = True

    def isTag(self) -> bool:  # noqa: N802 - Java's name
        return self.is_tag

    def snapshotId(self) -> int:  # noqa: N802 - Java's name
        return self.snapshot_id

    def maxRefAgeMs(self) -> int | None:  # noqa: N802 - Java's name
        return self.age_ms


@dataclass
class Table:
    """Iceberg's Table and ManageSnapshots in one, with tags alone."""

    there: dict[str, Ref] = field(default_factory=dict)
    snapshots: tuple[int, ...] = (AT,)
    commits: int = 0

    @property
    def java(self) -> Table:
        return self

    def refresh(self) -> None:
        self.changed = dict(self.there)

    def refs(self) -> dict[str, Ref]:
        return self.there

    def has_snapshot(self, snapshot_id: int) -> bool:
        return snapshot_id in self.snapshots

    def manageSnapshots(self) -> Table:  # noqa: N802 - Java's name
        return self

    def createTag(self, name: str, snapshot_id: int) -> Table:  # noqa: N802 - Java's name
        assert name not in self.there
        self.changed[name] = Ref(snapshot_id, None)
        return self

    def setMaxRefAgeMs(self, name: str, age_ms: int) -> Table:  # noqa: N802 - Java's name
        self.changed[name] = Ref(self.changed[name].snapshot_id, age_ms)
        return self

    def commit(self) -> None:
        self.there, self.commits = self.changed, self.commits + 1


def made(table: Any, age_ms: int) -> int | None:
    make_tag(table, NAME, AT, age_ms, lambda: None, lambda _s: None)
    tag: Ref = table.there[NAME]
    assert tag.snapshot_id == AT
    return tag.age_ms


def test_it_is_made_once() -> None:
    table = Table()
    assert made(table, 8 * DAY_MS) == 8 * DAY_MS
    assert made(table, 8 * DAY_MS + HOUR_MS // 2) == 8 * DAY_MS
    assert table.commits == 1


def test_i12_one_of_an_attempt_long_ago_stays_as_long_as_a_new_one() -> None:
    """A task that waited for the next window of a week: its tag would go a day after the commit."""
    table = Table()
    made(table, 8 * DAY_MS)
    assert made(table, 15 * DAY_MS) == 15 * DAY_MS


def test_none_is_made_to_go_sooner() -> None:
    assert made(Table({NAME: Ref(AT, None)}), DAY_MS) is None
    assert made(Table({NAME: Ref(AT, 9 * DAY_MS)}), DAY_MS) == 9 * DAY_MS


@pytest.mark.parametrize("other", [Ref(8, DAY_MS), Ref(AT, DAY_MS, is_tag=False)])
def test_another_ref_of_the_name_is_a_conflict(other: Ref) -> None:
    table = Table({NAME: other}, snapshots=(AT, 8))
    with pytest.raises(Conflict, match="at another snapshot"):
        made(table, 9 * DAY_MS)
    assert table.there == {NAME: other}


def test_a_snapshot_that_has_expired_is_a_conflict() -> None:
    with pytest.raises(Conflict, match="has expired"):
        made(Table(snapshots=()), DAY_MS)
