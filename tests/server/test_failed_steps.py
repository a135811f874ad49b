"""Steps that are to be tried again: of a store that is away not each of them is told."""

from __future__ import annotations

from structlog.testing import capture_logs

from icewright.core.errors import BucketLost, StoreUnavailable, Unavailable
from icewright.server.failed_steps import FailedSteps
from tests.builders.lakehouse import Lakehouse


def test_a_store_that_is_away_is_told_of_once_a_minute_and_all_else_each_time() -> None:
    now_s = [0.0]
    steps = FailedSteps(lambda: now_s[0])
    with capture_logs() as logs:
        for moment_s in (0.0, 1.0, 59.0, 60.0):
            now_s[0] = moment_s
            steps.begin_turn()
            for step in ("sweep", "prune"):
                steps.tell(step, "", StoreUnavailable("it is away"))
            steps.tell("discover", "lake", Unavailable("a catalog"))
            steps.tell("keep_claims", "", BucketLost("another server's"))
        assert [one["times"] for one in logs if one["step"] in {"sweep", "prune"}] == [1, 7]
        assert len(logs) == 2 + 4 * 2
        for _ in range(2):  # all of one round went well
            steps.begin_turn()
        steps.tell("sweep", "", StoreUnavailable("it is away again"))
    assert logs[-1]["detail"] == "it is away again"


def test_a_round_without_its_store_says_so_once() -> None:
    house = Lakehouse()

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("it is away")

    loop = house.control.loop
    for step in ("_sweep", "_expire_leases", "_keep_claims"):
        away.__name__ = step
        setattr(loop, step, away)
    with capture_logs() as logs:
        for _ in range(3):
            loop.turn()
        assert len([one for one in logs if one["event"] == "put off"]) == 1
