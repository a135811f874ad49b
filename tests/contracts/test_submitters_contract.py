"""Who starts applications for what waits: noted as they ask, for all servers of a store, and forgotten after a day."""

from dataclasses import replace

import pytest

from icewright.core.errors import InvalidMessage
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.optimizers import SeenSubmitter, Submitter, Submitting
from icewright.ports.submitters import SUBMITTERS_KEPT_MS, SUBMITTERS_MAX
from tests.cases import each_case
from tests.contracts.stores import Stores
from tests.doubles.clock import ManualClock

FIRST = Submitter(Submitting("submitter-1", "edge-1", 0, 4), "default", ("lake",), tuple(Queue), 2, 2**31)
SECOND = Submitter(Submitting("submitter-2", "edge-2", 1, 1), "etl", (), (Queue.LARGE,), None, None)


def test_each_is_noted_as_it_asked_last(stores: Stores, clock: ManualClock) -> None:
    came_at = clock.now()
    stores.tables().submitters.note(SECOND)
    clock.advance(5_000)
    stores.tables().submitters.note(FIRST)
    clock.advance(5_000)
    later = replace(FIRST, submitting=replace(FIRST.submitting, applications=3))
    stores.tables().submitters.note(later)
    assert stores.tables().submitters.noted() == [
        SeenSubmitter(later, came_at + 10_000),
        SeenSubmitter(SECOND, came_at),
    ]


def test_who_asks_no_more_is_forgotten_after_a_day(stores: Stores, clock: ManualClock) -> None:
    stores.tables().submitters.note(FIRST)
    clock.advance(SUBMITTERS_KEPT_MS)
    stores.tables().submitters.note(SECOND)
    assert len(stores.tables().submitters.noted()) == 2
    clock.advance(1)
    stores.tables().submitters.note(SECOND)
    assert [seen.submitter for seen in stores.tables().submitters.noted()] == [SECOND]


def test_whoever_names_itself_over_and_over_pushes_out_whoever_asked_longest_ago(
    stores: Stores, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icewright.work.launch.submitters.SUBMITTERS_MAX", 3)
    assert SUBMITTERS_MAX >= 100
    for number in (3, 1, 2, 4, 3, 5):
        clock.advance(1)
        stores.tables().submitters.note(replace(FIRST, submitting=Submitting(f"submitter-{number}", "edge", 0, 1)))
    found = [seen.submitter.submitting.submitter_id for seen in stores.tables().submitters.noted()]
    assert found == ["submitter-3", "submitter-4", "submitter-5"]


def test_they_are_counted_by_their_groups(stores: Stores, clock: ManualClock) -> None:
    assert stores.tables().census().asked_at == {}
    stores.tables().submitters.note(SECOND)
    stores.tables().submitters.note(FIRST)
    assert stores.tables().census().asked_at == {"default": [clock.now()], "etl": [clock.now()]}


@each_case("wrong", [("", "h", 0, 1), ("s", "h", -1, 1), ("s", "h", 0, 0)])
def test_what_nobody_could_reckon_with_is_refused(wrong: tuple[str, str, int, int]) -> None:
    with pytest.raises(InvalidMessage):
        Submitting(*wrong)
