"""Since when a layout is in the files: by tasks that ended, and not before; nor after the table was rolled back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from icewright.core.codec import dumps
from icewright.core.reasons import Reason
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.tables import Operation, TableMetadata
from icewright.model.queries.decisions import Decision, KeptRecommendation, RecommendationState
from icewright.model.queries.recommendations import Recommendation
from icewright.model.work.jobs import GroupFigures
from icewright.model.work.tasks import Attempt, AttemptState
from icewright.ports.store import TaskStore
from icewright.recommendations.carried_out import CarriedOut, carried_out, rewritten_by_others
from tests.builders.queries import of_format, recommendation
from tests.builders.served import EVENTS, Served
from tests.builders.specs import group, report_of, spec_of

BY_CITY = recommendation(EVENTS, "city")
BYTES = BY_CITY.evidence.bytes


class Ended:
    """The rewrites of a table, and of each its layout and bytes; of those of ``stitched`` tasks row groups are copied.

    Tasks of ``older`` releases do not say how many of their groups are stitched.
    """

    def __init__(
        self,
        *ended: tuple[int, str | None, int, int],
        stitched: Mapping[int, int] | None = None,
        older: bool = False,
    ) -> None:
        self._ended, self._stitched, self._older = ended, stitched or {}, older

    def listed(self, *_: Any, **__: Any) -> list[Any]:
        return [
            SimpleNamespace(
                task_id=f"task-{at}",
                created_at=at,
                updated_at=at + 1,
                outcome=SimpleNamespace(snapshot_id=snapshot_id),
                rewrite_prediction=SimpleNamespace(layout=layout),
                reason=Reason("small-files", "", {} if self._older else {"stitched_groups": int(at in self._stitched)}),
                figures=spec_of(groups=1 if self._stitched.get(at) == size else 2).action.figures,
            )
            for at, layout, size, snapshot_id in self._ended
        ]

    def attempts(self, task_id: str) -> list[Attempt]:
        """Group 0 is merged, and group 1 stitched."""
        return [
            attempt_of(task_id, (size - self._stitched.get(at, 0), self._stitched.get(at, 0)))
            for at, _layout, size, _snapshot_id in self._ended
            if task_id == f"task-{at}"
        ]

    def get(self, _task_id: str) -> Any:
        groups = (group(0), replace(group(1), executor=Executor.STITCH))
        return SimpleNamespace(rewrite=SimpleNamespace(groups=groups))


def attempt_of(task_id: str, sizes: tuple[int, ...]) -> Attempt:
    """One that committed groups of so many bytes."""
    done = tuple(GroupFigures(number, 1, size, (), 1, 1, 1, 1, 1) for number, size in enumerate(sizes))
    report = replace(report_of(spec_of(task_id)), groups=done)
    return Attempt(task_id, 1, "o", 1, AttemptState.COMMITTED, 0, 1, None, dumps(report))


@pytest.fixture
def metadata() -> TableMetadata:
    served = Served()
    served.table()
    return served.lake.load(EVENTS)


def since(
    metadata: TableMetadata, *ended: tuple[int, str | None, int, int], said: Recommendation = BY_CITY, **of: Any
) -> CarriedOut | None:
    table_id = TableId("lake", "u")
    decision = Decision(RecommendationState.ACCEPTED, "ann", 100, was={}, snapshot_id=1)
    kept = KeptRecommendation("recommendation-1", table_id, "task-1", 1, said, decision.state, decision)
    return carried_out(cast("TaskStore", Ended(*ended, **of)), kept, metadata)


def test_it_takes_half_of_the_bytes_in_that_layout_since_the_acceptance(metadata: TableMetadata) -> None:
    half, now = BYTES // 2, metadata.current_snapshot_id
    assert now is not None
    assert since(metadata) is None  # accepted, and no task has run
    assert since(metadata, (99, "sort(city)", BYTES, now)) is None
    assert since(metadata, (101, "sort(id)", BYTES, now)) is None
    assert since(metadata, (101, None, BYTES, now)) is None
    assert since(metadata, (101, "sort(city)", half - 1, now)) is None
    found = since(
        metadata, (101, "sort(city)", half - 1, now), (120, "sort(city)", 1, now), (130, "sort(city)", 9, now)
    )
    assert found == CarriedOut(121, now)


def test_what_is_stitched_has_the_old_table_properties(metadata: TableMetadata) -> None:
    """Row groups are copied as they are: they have the codec of before."""
    half, now = BYTES // 2, metadata.current_snapshot_id
    assert now is not None
    merged = (101, None, BYTES, now)
    for older in (False, True):
        assert since(metadata, merged, said=of_format(), older=older) == CarriedOut(102, now)
        assert since(metadata, merged, said=of_format(), older=older, stitched={101: BYTES}) is None
        assert since(metadata, merged, said=of_format(), older=older, stitched={101: half + 1}) is None
        assert since(metadata, merged, said=of_format(), older=older, stitched={101: half}) == CarriedOut(102, now)
        found = ((101, None, half, now), (120, None, half, now))
        assert since(metadata, *found, said=of_format(), older=older, stitched={101: half}) == CarriedOut(121, now)


def test_the_files_of_a_task_are_read_only_where_its_groups_differ(
    metadata: TableMetadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may be megabytes, and the ledger asks every few minutes."""
    read: list[str] = []
    get = Ended.get

    def counted(ended: Ended, task_id: str) -> Any:
        read.append(task_id)
        return get(ended, task_id)

    monkeypatch.setattr(Ended, "get", counted)
    ended = ((101, None, 10, 7), (120, None, 10, 7), (130, None, 10, 7))
    assert since(metadata, *ended, said=of_format(), stitched={120: 10, 130: 5}) is None
    assert read == ["task-130"]


def test_what_another_layout_has_rewritten_since_does_not_count(metadata: TableMetadata) -> None:
    """One that was accepted later and taken back: files are not rewritten for that, and say nothing of the first."""
    now = metadata.current_snapshot_id
    assert now is not None
    ours = (101, "sort(city)", BYTES, now)
    assert since(metadata, ours, (110, "sort(id)", BYTES // 4, now)) is None
    assert since(metadata, ours, (110, None, BYTES, now)) == CarriedOut(102, now)  # merged in no order
    assert since(metadata, ours, (110, "sort(id)", 9, now), (120, "sort(city)", BYTES, now)) == CarriedOut(121, now)


def test_a_table_that_was_rolled_back_is_as_before(metadata: TableMetadata) -> None:
    current = metadata.ancestors()[0]
    ended = (101, "sort(city)", BYTES, current.snapshot_id)
    assert since(metadata, ended) is not None
    rolled_back = replace(metadata, current_snapshot_id=current.parent_id)
    assert since(rolled_back, ended) is None
    assert since(rolled_back, (101, "sort(city)", BYTES, 12_345)) is not None  # expired since: it says nothing


def test_what_others_rewrite_afterwards_is_seen(metadata: TableMetadata) -> None:
    ours, last = metadata.ancestors()[1], metadata.ancestors()[0]
    done = CarriedOut(ours.committed_at, ours.snapshot_id)
    assert not rewritten_by_others(done, metadata)  # an append
    changed = replace(last, operation=Operation.REPLACE)
    others = replace(metadata, snapshots=(*metadata.snapshots[:-1], changed))
    assert rewritten_by_others(done, others)
    assert not rewritten_by_others(CarriedOut(last.committed_at, last.snapshot_id), others)
