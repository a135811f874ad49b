"""A server that starts before its database: it waits for it, for so long and no longer, and never starts anew later."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import structlog

from icewright.core.errors import IcewrightError, NotAllowed, OutcomeUnknown, StoreTaken, StoreUnavailable
from icewright.store_admin.wait_for_database import Start


class Clock:
    """Passes when it is slept by."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def start(wait_s: float = 120.0) -> Start:
    clock = Clock()
    return Start(wait_s, lambda: clock.now_s, clock.sleep)


def failing(at: Start, times: int, error: IcewrightError) -> tuple[list[int], Callable[[], None]]:
    """Begins behind so many failures; and the times that it was asked."""
    asked: list[int] = []

    def begin() -> None:
        asked.append(len(asked))
        if len(asked) <= times:
            raise error
        at.has_begun = True

    return asked, begin


@pytest.mark.parametrize("error", [StoreUnavailable("away"), OutcomeUnknown("in the middle of an upgrade")])
def test_it_waits_for_a_store_that_comes(error: IcewrightError) -> None:
    at = start()
    asked, begin = failing(at, 30, error)
    with structlog.testing.capture_logs() as logs:
        at.until_it_has_begun(begin)
    assert len(asked) == 31
    assert [log["event"] for log in logs] == ["waiting for the store"] * 3, "it says so at once, and every ten seconds"


def test_it_gives_up_in_the_end() -> None:
    at = start(wait_s=60.0)
    asked, begin = failing(at, 1_000, StoreUnavailable("a wrong address"))
    with pytest.raises(StoreUnavailable, match="a wrong address"):
        at.until_it_has_begun(begin)
    assert len(asked) == 61


@pytest.mark.parametrize("error", [NotAllowed("another server holds it"), StoreTaken("another server leads")])
def test_what_does_not_pass_is_raised_at_once(error: IcewrightError) -> None:
    at = start()
    asked, begin = failing(at, 1, error)
    with pytest.raises(type(error)):
        at.until_it_has_begun(begin)
    assert len(asked) == 1


def test_a_server_that_has_begun_is_not_begun_again() -> None:
    at = start()
    asked: list[None] = []

    def begin() -> None:
        asked.append(None)
        at.has_begun = True
        raise StoreUnavailable("its part among the servers is over")

    with pytest.raises(StoreUnavailable):
        at.until_it_has_begun(begin)
    assert len(asked) == 1
