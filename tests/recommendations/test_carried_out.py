"""Since when a layout is in the files: by tasks that ended, and not before; nor after the table was rolled back."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.tables import Operation, TableMetadata
from icewright.model.queries.decisions import Decision, KeptRecommendation, RecommendationState
from icewright.ports.store import TaskStore
from icewright.recommendations import carried_out as module
from icewright.recommendations.carried_out import CarriedOut, carried_out, rewritten_by_others
from tests.builders.queries import recommendation
from tests.builders.served import EVENTS, Served

BYTES = recommendation().evidence.bytes


class Ended:
    """The rewrites of a table, each of half of it; ``layouts`` are theirs, by task."""

    def __init__(self, *ended: tuple[int, str | None, int, int]) -> None:
        self._ended = ended

    def listed(self, *_: Any, **__: Any) -> list[Any]:
        return [
            SimpleNamespace(
                task_id=f"task-{at}",
                created_at=at,
                updated_at=at + 1,
                outcome=SimpleNamespace(snapshot_id=snapshot_id),
                rewrite_prediction=SimpleNamespace(layout=layout),
                size=size,
            )
            for at, layout, size, snapshot_id in self._ended
        ]

    def attempts(self, task_id: str) -> list[Any]:
        return [one for one in self.listed() if one.task_id == task_id]


@pytest.fixture(autouse=True)
def sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "measured", lambda attempts: SimpleNamespace(input_bytes=attempts[0].size))


@pytest.fixture
def metadata() -> TableMetadata:
    served = Served()
    served.table()
    return served.lake.load(EVENTS)


def since(metadata: TableMetadata, *ended: tuple[int, str | None, int, int]) -> CarriedOut | None:
    table_id = TableId("lake", "u")
    decision = Decision(RecommendationState.ACCEPTED, "ann", 100, was={}, snapshot_id=1)
    said = recommendation(EVENTS, "city")
    kept = KeptRecommendation("recommendation-1", table_id, "task-1", 1, said, decision.state, decision)
    return carried_out(cast("TaskStore", Ended(*ended)), kept, metadata)


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
