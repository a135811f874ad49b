"""What ``icewright why`` says on good and bad days: stored text, as a person at the keyboard would see it.

``ICEWRIGHT_WRITE_STORIES=1`` writes the texts anew; look at the difference before committing it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from icewright.core.codec import from_json, to_json
from icewright.explain.cli import print_why
from icewright.model.work.breaker import FAILURES_MAX
from icewright.model.work.why import Why
from icewright.terminal.cli import Terminal
from tests.builders.lakehouse import AUTO, BONN, HOUR_MS, KYOTO, LEASE_MS, MIB, MINUTE_MS, NAME, SECOND_MS, Lakehouse
from tests.builders.worker import FINAL, RETRYABLE, Worker
from tests.cases import each_case

STORED = Path(__file__).parent / "why"
KEPT_UP = {
    "icewright.expire-snapshots.enabled": "true",
    "icewright.rewrite-manifests.enabled": "true",
    "icewright.remove-orphan-files.enabled": "true",
    "history.expire.max-snapshot-age-ms": str(24 * HOUR_MS),
    "history.expire.min-snapshots-to-keep": "2",
}


class Asking:
    """A lakehouse, and somebody who asks why; each answer is told under what has happened."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.house = Lakehouse()
        self.worker = Worker(self.house)
        self.lines: list[str] = []
        self._capsys = capsys

    def asks(self, what_happened: str, *, verbose: bool = False) -> None:
        """Somebody asks, and sees this."""
        found = self.house.control.explainer.why(self.house.record())
        assert from_json(Why, to_json(found)) == found
        self._capsys.readouterr()
        print_why(Terminal(as_json=False), found, verbose=verbose)
        command = f"$ icewright why {NAME}{' --verbose' if verbose else ''}"
        self.lines += [f"# {what_happened}", command, self._capsys.readouterr().out]


def nobody_takes_it(asking: Asking) -> None:
    """The commonest question: everything is ready, and no optimizer runs."""
    asking.house.ready_table()
    asking.house.rounds(1)
    asking.asks("a table has eight small files, and icewright may act by itself", verbose=True)
    asking.worker.introduce()
    asking.asks("an optimizer has come up")
    spec = asking.worker.claimed()
    asking.worker.beat(spec)
    asking.asks("it is at work")
    asking.worker.report(spec, asking.worker.try_commit(spec))
    asking.asks("it has committed")
    asking.house.rounds(2)
    asking.asks("the commit was verified")


def only_observed(asking: Asking) -> None:
    """A table that nobody let us touch."""
    asking.house.ready_table(properties={"icewright.mode": "observe"})
    asking.house.rounds(1)
    asking.asks("nobody has set a mode")


def a_person_has_to_apply(asking: Asking) -> None:
    """Mode approve: plans wait, and upkeep does not go by itself."""
    asking.house.ready_table(properties={"icewright.mode": "approve", **KEPT_UP})
    asking.house.rounds(1)
    asking.asks("a table in mode approve has something to do")
    task = asking.house.control.dispatcher.apply(asking.house.record().plan_id or "")
    asking.house.control.dispatcher.cancel(task.task_id)
    asking.house.catalog.set_properties(NAME, {"icewright.mode": "auto"})
    asking.house.rounds(1)
    asking.asks("somebody applied the plan and cancelled its task, and then let it go by itself")


def nothing_to_do(asking: Asking) -> None:
    """All is well, and some of it too young."""
    asking.house.create(properties=AUTO)
    for _ in range(3):
        asking.house.catalog.append(NAME, asking.house.files(1, BONN, 60 * MIB))
        asking.house.pass_time(10 * MINUTE_MS)
    asking.house.rounds(1)
    asking.asks("three files of the right size")
    asking.house.append(6, KYOTO)
    asking.house.pass_time(HOUR_MS // 12)
    asking.house.append(6, BONN)
    asking.house.notify(asking.house.append(2, KYOTO))
    asking.house.control.loop.round()
    asking.asks("small files came just now", verbose=True)


def first_expiry_and_window(asking: Asking) -> None:
    """Upkeep: the first expiry waits for a person, the next ones for the window."""
    house = asking.house
    house.create(properties={**AUTO, **KEPT_UP})
    for _ in range(4):
        house.catalog.append(NAME, house.files(1, BONN, 60 * MIB))
        house.rounds(1, every_ms=13 * HOUR_MS)
    house.rounds(1)
    asking.asks("snapshots are old enough to expire, and none ever did by icewright")
    house.approve_all()
    asking.asks("somebody has approved that")
    house.rounds(2)
    asking.asks("it is done")
    house.catalog.set_properties(NAME, {"icewright.maintenance-window.cron": "0 2 * * *"})
    for _ in range(3):
        house.catalog.append(NAME, house.files(1, BONN, 60 * MIB))
        house.pass_time(13 * HOUR_MS)
    house.rounds(1)
    asking.asks("a window was set, and it is closed")


def failures_and_the_breaker(asking: Asking) -> None:
    """A back-off after one failure, and a day of rest after five tasks that failed."""
    house, worker = asking.house, asking.worker
    house.ready_table()
    house.rounds(1)
    worker.introduce()
    worker.report(worker.claimed(), RETRYABLE)
    house.rounds(1)
    asking.asks("the first try came to nothing, and may do better")
    house.pass_time(HOUR_MS)
    worker.introduce()
    for _ in range(FAILURES_MAX):
        worker.report(worker.claimed(), FINAL)
        house.append(1)
        house.pass_time(HOUR_MS)
        house.rounds(1)
        worker.introduce()
    asking.asks("five tasks in a row failed")
    house.pass_time(25 * HOUR_MS)
    asking.asks("a day later, before the next look")


def optimizer_fell_silent(asking: Asking) -> None:
    """Nobody knows whether the attempt committed."""
    asking.house.ready_table()
    asking.house.rounds(1)
    asking.worker.introduce()
    asking.worker.claimed()
    asking.house.pass_time(2 * LEASE_MS)
    asking.house.control.loop._expire_leases()
    asking.asks("the optimizer was killed, and its lease ran out")


def left_alone(asking: Asking) -> None:
    """A setting that cannot be used: nothing is done before it is mended."""
    asking.house.ready_table(properties={"icewright.mode": "auto", "icewright.write-windw": "PT2H"})
    asking.house.rounds(1)
    asking.asks("a setting was mistyped")


def catalog_away(asking: Asking) -> None:
    """What the catalog does not answer is said, with what was known before."""
    asking.house.ready_table()
    asking.house.rounds(1)
    asking.house.catalog.available = False
    asking.house.pass_time(10 * SECOND_MS)
    asking.asks("the catalog does not answer")


def cannot_be_read(asking: Asking) -> None:
    """A damaged table."""
    asking.house.ready_table()
    asking.house.rounds(1)
    snapshot = asking.house.append(1)
    asking.house.notify(snapshot)
    asking.house.catalog.damage(snapshot.manifest_list)
    asking.house.rounds(1)
    asking.asks("the manifest list of the last commit is damaged")


STORIES: list[Callable[[Asking], None]] = [
    nobody_takes_it,
    only_observed,
    a_person_has_to_apply,
    nothing_to_do,
    first_expiry_and_window,
    failures_and_the_breaker,
    optimizer_fell_silent,
    left_alone,
    catalog_away,
    cannot_be_read,
]


@each_case("play", STORIES, ids=lambda play: play.__name__)
def test_what_why_answers(play: Callable[[Asking], None], capsys: pytest.CaptureFixture[str]) -> None:
    asking = Asking(capsys)
    play(asking)
    text = f"{play.__doc__}\n\n" + "\n".join(asking.lines)
    stored = STORED / f"{play.__name__}.txt"
    if os.environ.get("ICEWRIGHT_WRITE_STORIES"):
        stored.parent.mkdir(exist_ok=True)
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")


def test_no_why_story_is_left_over() -> None:
    assert {path.stem for path in STORED.iterdir()} == {play.__name__ for play in STORIES}
