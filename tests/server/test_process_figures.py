"""Metrics of a server with further processes: the sums over all, which never go back, and which nobody holds up."""

from __future__ import annotations

import multiprocessing
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from icewright.config.model import Config
from icewright.configuration.load import load_config
from icewright.core.servers import Server
from icewright.ports.telemetry import PROCESS, note_statement
from icewright.server import processes
from icewright.server.process_figures import FiguresOfAll, sending_figures

STATEMENTS = "icewright_store_statement_seconds_count"


class Counted:
    """What a process counts: looks by their outcome, and how long they took."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._looks = Counter("looks", "Looks.", ("outcome",), registry=self.registry)
        self._took = Histogram("took_seconds", "How long.", buckets=(1.0, 5.0), registry=self.registry)

    def look(self, outcome: str, seconds: float) -> None:
        self._looks.labels(outcome).inc()
        self._took.observe(seconds)


def figures(shown: FiguresOfAll) -> dict[str, float]:
    """Each series that is not a time, as Prometheus reads it."""
    families = text_string_to_metric_families(generate_latest(shown).decode())
    return {
        f"{sample.name}{''.join(sample.labels.values())}": sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def await_figures(shown: FiguresOfAll, is_so: Callable[[dict[str, float]], bool]) -> dict[str, float]:
    until_s = time.monotonic() + 60
    while not is_so(found := figures(shown)):
        assert time.monotonic() < until_s, found
        time.sleep(0.01)
    return found


def of_looks(number: float) -> Callable[[dict[str, float]], bool]:
    return lambda found: found.get("looks_totalok", 0) == number


@contextmanager
def received_by(shown: FiguresOfAll) -> Iterator[Connection]:
    """The end of a pipe by which a process sends; the process is dead after the block, and all is read."""
    before = set(threading.enumerate())
    receiving, sending = multiprocessing.Pipe(duplex=False)
    shown.receive(receiving)
    (thread,) = set(threading.enumerate()) - before
    try:
        with closing(sending):
            yield sending
    finally:
        thread.join(60)
        assert not thread.is_alive()


def test_what_all_did_is_added_up_by_series() -> None:
    own, first, second = Counted(), Counted(), Counted()
    own.look("ok", 0.5)
    first.look("ok", 3)
    first.look("defect", 9)
    second.look("ok", 3)
    shown = FiguresOfAll(own.registry)
    with received_by(shown) as one, received_by(shown) as other:
        for pipe, counted in ((one, first), (other, second)):
            with sending_figures(pipe, counted.registry):
                pass
    assert figures(shown) == {
        "looks_totalok": 3,
        "looks_totaldefect": 1,
        "took_seconds_bucket1.0": 1,
        "took_seconds_bucket5.0": 3,
        "took_seconds_bucket+Inf": 4,
        "took_seconds_count": 4,
        "took_seconds_sum": 15.5,
    }


def test_what_a_dead_process_did_stays_and_another_begins_at_nothing() -> None:
    own = Counted()
    shown = FiguresOfAll(own.registry)
    for looks in (0.0, 1.0, 2.0):
        counted = Counted()
        with received_by(shown) as pipe, sending_figures(pipe, counted.registry, every_s=0.01):
            await_figures(shown, of_looks(looks))
            counted.look("ok", 1)
            await_figures(shown, of_looks(looks + 1))
        assert figures(shown)["looks_totalok"] == looks + 1
    began = [one.value for one in next(iter(shown.collect())).samples if one.name == "looks_created"]
    assert len(began) == 1
    assert 0 < began[0] <= time.time()


def test_a_sum_does_not_go_back_by_a_digit_when_a_process_ends() -> None:
    """By floats 0.1 + 0.2 + 0.3 is more than 0.1 + 0.3 + 0.2, and what becomes less has begun anew for Prometheus."""
    own, first, second = Counted(), Counted(), Counted()
    for counted, seconds in ((own, 0.1), (first, 0.2), (second, 0.3)):
        counted.look("ok", seconds)
    shown, ends = FiguresOfAll(own.registry), ExitStack()
    with received_by(shown) as staying:
        with ends:
            for pipe, counted in ((ends.enter_context(received_by(shown)), first), (staying, second)):
                ends.enter_context(sending_figures(pipe, counted.registry, every_s=0.01))
                await_figures(shown, lambda found: found.get("took_seconds_count", 0) > 1)
            before = await_figures(shown, lambda found: found["took_seconds_count"] == 3)
        after = figures(shown)
    assert after["took_seconds_sum"] == before["took_seconds_sum"] == figures(shown)["took_seconds_sum"]


def test_one_that_stops_within_a_message_holds_nothing_up() -> None:
    counted = Counted()
    counted.look("ok", 1)
    shown = FiguresOfAll(Counted().registry)
    with received_by(shown) as stopped:
        with received_by(shown) as sending, sending_figures(sending, counted.registry):
            os.write(stopped.fileno(), struct.pack("!i", 1_000) + b"a part")
        assert figures(shown)["looks_totalok"] == 1
    assert figures(shown)["looks_totalok"] == 1


def test_a_series_that_this_release_does_not_have_is_left_out() -> None:
    newer = Counted()
    Counter("of_newer", "What another release counts.", registry=newer.registry).inc()
    shown = FiguresOfAll(Counted().registry)
    with received_by(shown) as pipe, sending_figures(pipe, newer.registry):
        pass
    assert {name for name in figures(shown) if "newer" in name} == set()


def test_one_whose_server_is_gone_goes_on() -> None:
    receiving, sending = multiprocessing.Pipe(duplex=False)
    receiving.close()
    with capture_logs() as logs, sending_figures(sending, Counted().registry):
        pass
    assert [one["event"] for one in logs] == ["figures not sent"]


def test_whatever_a_process_counts_can_be_added_up() -> None:
    """A gauge could not be: its last value would stay behind a process that ended."""
    registry = CollectorRegistry()
    Gauge("some", "A gauge.", registry=registry)
    assert {one.type for one in registry.collect()} == {"gauge"}
    assert {one.type for one in PROCESS.collect()} == {"counter", "histogram"}


def _counts(_config: Config, _environ: object, _own: Server, sending: Connection) -> None:
    """In place of a process that looks at tables: it carries out seven statements, and hangs."""
    for _ in range(7):
        note_statement(0.01)
    with sending_figures(sending, every_s=0.01):
        threading.Event().wait(60)


def test_a_server_counts_what_its_processes_do_also_those_that_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_look", _counts)
    config = load_config(None, {"HOME": str(tmp_path)}, tmp_path)
    config = replace(config, server=replace(config.server, processes=3))
    shown = FiguresOfAll()
    before = figures(shown).get(STATEMENTS, 0)
    own = Server("server-1", "http://127.0.0.1:1", "0")
    with processes.looking_beside(config, {}, own, lambda _: None, lambda: False, shown):
        await_figures(shown, lambda found: found[STATEMENTS] == before + 14)
        multiprocessing.active_children()[0].kill()
        await_figures(shown, lambda found: found[STATEMENTS] == before + 21)
    assert figures(shown)[STATEMENTS] == before + 21
