"""Signs of life of the threads beside the loop: what is long at something gives them, what hangs does not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from icewright.actions.remove_files.removals_port import CatalogFiles, RemovalPorts
from icewright.catalogs.objects import Objects
from icewright.catalogs.table_files_port import TableFiles
from icewright.core.errors import IcewrightError
from icewright.server.liveness import SILENT_MS_MAX, Doing, Liveness, heard
from tests.doubles.clock import ManualClock

NOTHING: Any = None


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def pulse(clock: ManualClock) -> Iterator[Liveness]:
    made = Liveness(clock)
    made.begin("removals", "look_for_orphans")
    yield made
    made.end()
    assert made.doing == ()


def is_silent(pulse: Liveness) -> bool:
    (one,) = pulse.doing
    return one.is_silent


def test_a_thread_that_gives_no_sign_of_life_hangs(clock: ManualClock, pulse: Liveness) -> None:
    begun = clock.now()
    clock.advance(SILENT_MS_MAX)
    assert pulse.doing == (Doing("removals", "look_for_orphans", begun, begun),)
    clock.advance(1)
    assert pulse.doing == (Doing("removals", "look_for_orphans", begun, begun, is_silent=True),)
    pulse.beat()
    assert pulse.doing == (Doing("removals", "look_for_orphans", begun, clock.now()),)


def test_one_that_rests_is_only_told_of_when_it_is_silent(clock: ManualClock, pulse: Liveness) -> None:
    pulse.begin("removals")
    assert pulse.doing == ()
    clock.advance(SILENT_MS_MAX + 1)
    assert is_silent(pulse)  # it has ended, and nobody noticed


def test_signs_of_others_are_none_of_its_own(clock: ManualClock, pulse: Liveness) -> None:
    """The requests of people ask the same storages, which says nothing of a thread that waits for an answer."""
    clock.advance(SILENT_MS_MAX + 1)
    person = threading.Thread(target=pulse.beat)
    person.start()
    person.join()
    assert is_silent(pulse)


def test_signs_of_who_works_for_it_are_its_own_as_long_as_that_lasts(clock: ManualClock, pulse: Liveness) -> None:
    def work() -> None:
        with pulse.working_for("removals"):
            pulse.beat()
        clock.advance(SILENT_MS_MAX + 1)
        pulse.beat()

    clock.advance(SILENT_MS_MAX)
    heard_at = clock.now()
    helper = threading.Thread(target=work)
    helper.start()
    helper.join()
    (one,) = pulse.doing
    assert (one.heard_at, one.is_silent) == (heard_at, True)


class Answers:
    """A catalog's files and objects, which take long to answer."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def answer(*_: object) -> Any:
            self._clock.advance(SILENT_MS_MAX)
            return [1, 2] if name in ("list", "live_files") else None

        return answer


@pytest.mark.parametrize("method", ["roots", "size_bytes", "manifests", "live_files", "now", "list", "stat", "read"])
def test_what_is_read_of_catalogs_and_storages_is_a_sign_of_life(
    clock: ManualClock, pulse: Liveness, method: str
) -> None:
    answers: Any = Answers(clock)
    ports = RemovalPorts(NOTHING, NOTHING, NOTHING, {"lake": CatalogFiles(answers, answers, NOTHING)})
    own = heard(ports, pulse).catalogs["lake"]
    door: Any = own.files if hasattr(TableFiles, method) else own.objects
    assert hasattr(TableFiles, method) != hasattr(Objects, method)
    asked = [None] * {"roots": 1, "now": 1, "list": 1, "stat": 1}.get(method, 2)
    for _ in range(3):
        clock.advance(1)
        list(getattr(door, method)(*asked) or ())
        assert not is_silent(pulse)


@pytest.mark.parametrize("method", ["check", "quarantine", "restore", "purge", "look"])
def test_each_file_that_is_moved_is_a_sign_of_life(clock: ManualClock, pulse: Liveness, method: str) -> None:
    """Putting 50,000 files back takes hours, in which nothing else is read."""
    answers: Any = Answers(clock)
    ports = RemovalPorts(NOTHING, NOTHING, NOTHING, {"lake": CatalogFiles(NOTHING, NOTHING, answers)})
    door = heard(ports, pulse).catalogs["lake"].quarantine
    asked = [None] * {"check": 1, "quarantine": 2, "look": 2}.get(method, 3)
    for _ in range(3):
        clock.advance(1)
        getattr(door, method)(*asked)
        assert not is_silent(pulse)


def test_what_is_not_answered_is_raised_as_it_was(pulse: Liveness) -> None:
    class Away:
        def __getattr__(self, name: str) -> Any:
            raise IcewrightError(name)

    away: Any = Away()
    ports = heard(RemovalPorts(NOTHING, NOTHING, NOTHING, {"lake": CatalogFiles(away, away, NOTHING)}), pulse)
    with pytest.raises(IcewrightError, match="stat"):
        ports.catalogs["lake"].objects.stat(NOTHING)
