"""The server in figures, for Prometheus: what the store counts, what this server sees, and what its process did.

Three kinds, and their help texts say which they are. *Of the store*: the same on every server, to be read from any one
(``max`` over the servers), and right after any death. *Of the server*: what this one holds or sees at this moment.
*Of the process*: what it and its further processes did since it started (``sum`` over the servers, of ``rate`` or
``increase``).

The number of series does not grow with the number of tables. Labels are closed sets (states, kinds, ends, codes,
routes), or what an administrator named (catalogs, resource groups); single tables are shown for the few tasks that
have waited longest, as many as ``server.metrics_tables`` says.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Final

import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from icewright import __version__
from icewright.core.errors import IcewrightError
from icewright.core.servers import CoordinatorLink
from icewright.core.times import Instant
from icewright.identity.authorization import On, needs
from icewright.model.access.permissions import Permission
from icewright.model.actions.actions import ActionKind
from icewright.model.queries.measurements import Effect
from icewright.model.work.halts import Halt, HaltState, PartKind
from icewright.model.work.lifecycle import LIVE_STATES
from icewright.model.work.retention import Pruned, RowKind, Rows
from icewright.model.work.tasks import AttemptState, TaskState
from icewright.model.work.totals import BEYOND, BOUNDS_MS, Total, TotalKey
from icewright.notifications.service import ReceiverView
from icewright.ports.census import TableCensus, TaskCensus
from icewright.ports.telemetry import PROCESS
from icewright.queries.service import QueryLog
from icewright.server.cluster.leading import Leading
from icewright.server.control import ControlPlane
from icewright.server.http.status import OPTIMIZER_SEEN_MS
from icewright.server.loop import Loop
from icewright.web.deps import LedOrOwn, Service
from icewright.web.schema import operation
from icewright.work.autotune.model import DecisionState, Move

router = APIRouter(tags=["server"])
_log = structlog.get_logger("icewright.api")


@dataclass(frozen=True, slots=True)
class Shown:
    """For how many tables there is a series of their own, where the server's own files are, and what was counted."""

    tables_max: int = 20
    state_dir: Path | None = None
    counted: Collector = PROCESS


OTHER_GROUPS: Final = "other"
"""The label of all groups that nobody configured: optimizers name theirs, and a mistake must not make one each."""


@router.get(
    "/metrics",
    dependencies=[needs(Permission.READ, On.EVERYTHING)],
    response_class=PlainTextResponse,
    **operation({"type": "string"}, media_type="text/plain"),
)
def show_metrics(request: Request, control: Service[ControlPlane], led: LedOrOwn[ControlPlane]) -> Response:
    """Figures in the text format of Prometheus, which asks with the token as any program does."""
    registry = CollectorRegistry(auto_describe=False)
    leading: Leading = request.app.state.leading
    shown: Shown = request.app.state.shown
    registry.register(Figures(control, shown, led, leading))
    text = generate_latest(registry) + generate_latest(shown.counted)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


class Figures:
    """What is asked for at the moment of asking."""

    def __init__(self, control: ControlPlane, shown: Shown, led: ControlPlane, leading: Leading) -> None:
        """``leading`` tells what this server is among several."""
        self._control, self._shown, self._led, self._leading = control, shown, led, leading

    def collect(self) -> Iterator[Metric]:
        """All figures; those of the store only while it answers."""
        control = self._control
        yield _one("icewright_build_info", "The version of this server.", 1, {"version": __version__})
        yield from _of_server(control, self._led.loop)
        if self._leading.buckets is not None:
            about = "Of the server: buckets whose tables it looks at."
            yield _one("icewright_buckets", about, self._leading.buckets)
        if self._leading.differing is not None:
            about = "Of the server, while it leads: servers that have another configuration."
            yield _one("icewright_servers_differing", about, self._leading.differing)
        if self._leading.link is not None:
            yield from _of_link(self._leading.link)
        if self._shown.state_dir is not None:
            free_bytes = shutil.disk_usage(self._shown.state_dir).free
            yield _one("icewright_state_free_bytes", "Of the server: what is free where its own files are.", free_bytes)
        yield from _of_queries(control.queries)
        try:
            tasks, tables = control.tasks.census(max(1, self._shown.tables_max)), control.tables.census()
            halts, groups = control.tasks.halts.present(), control.group_views.defined()
            receivers = control.notifications.views()
            measured = control.recommendations.effects()
            decided, held = control.autotune.counts(), control.autotune.held()
            pruned = {} if control.prunings is None else control.prunings.pruned()
        except IcewrightError as error:
            _log.warning("no figures of the store", code=error.code, detail=error.message)
            yield _one("icewright_store_up", "Whether the store answers this server.", 0)
            return
        yield _one("icewright_store_up", "Whether the store answers this server.", 1)
        yield _of_halts(halts)
        yield from _of_tasks(tasks, self._shown.tables_max)
        yield from _of_tables(tables, tasks.now, groups)
        yield from _of_totals(tasks.totals)
        yield from _of_receivers(receivers)
        yield from _of_pruned(pruned, tasks.now)
        yield _of_measurements(measured)
        yield _of_decisions(decided)
        about = "Of the store: decisions about optimizers and their memory that a person holds."
        yield _one("icewright_autotune_held", about, held)
        lag_ms = None if self._led.history is None else self._led.history.lag_ms(tasks.now)
        if lag_ms is not None:
            about = "Of the server: for how long tasks that ended are not yet in the history."
            yield _one("icewright_history_lag_seconds", about, lag_ms / 1_000)


def _of_server(control: ControlPlane, loop: Loop) -> Iterator[Metric]:
    now = control.clock.now()
    ended_at = loop.round_ended_at
    paused = GaugeMetricFamily(
        "icewright_catalog_paused",
        "Of the server: 1 while it leaves a catalog alone that did not answer.",
        labels=("catalog",),
    )
    for name in sorted(control.catalogs):
        paused.add_metric((name,), float(loop.paused_until(name) is not None))
    yield paused
    yield _one("icewright_leader", "Of the server: 1 while it turns the loop.", ended_at is not None)
    silent = GaugeMetricFamily(
        "icewright_thread_silent", "Of the server: 1 for a background thread that hangs.", labels=("thread",)
    )
    doing = {one.thread: one.is_silent for one in loop.doing}
    for thread in ("housekeeper", "removals"):
        silent.add_metric((thread,), float(doing.get(thread, False)))
    yield silent
    if ended_at is not None:
        about = "Of the server: how long ago its loop ended a round well."
        yield _one("icewright_loop_round_age_seconds", about, max(0, now - ended_at) / 1_000)
    about = "Of the server: tables that were never readable, so that they are in no list."
    yield _one("icewright_tables_unreadable", about, len(loop.unreadable))


def _of_link(link: CoordinatorLink) -> Iterator[Metric]:
    about = "Of the server: 1, labelled with what says which servers are there, and how it is connected with that."
    yield _one("icewright_coordinator", about, 1, {"coordinator": link.coordinator, "state": link.state})
    if link.since is not None:
        about = "Of the server: since when it is connected so with its coordinator, in seconds of the epoch."
        yield _one("icewright_coordinator_since_timestamp_seconds", about, link.since / 1_000)


def _of_queries(log: QueryLog) -> Iterator[Metric]:
    """Queries of engines: those that came in, and those that wait in the spool."""
    received = CounterMetricFamily(
        "icewright_queries_received",
        "Of the process: queries that came in, by what became of them.",
        labels=("source", "result"),
    )
    for (source, result), number in sorted(log.received.items()):
        received.add_metric((source, result), number)
    yield received
    try:
        figures = log.figures()
    except IcewrightError as error:
        _log.warning("no figures of the spool", code=error.code, detail=error.message)
        return
    if figures is not None:
        about = "Of the server: queries that came in and are not counted or logged yet."
        yield _one("icewright_queries_waiting", about, figures.waiting)
        about = "Of the server: what the queries that wait take of the spool, in bytes."
        yield _one("icewright_queries_waiting_bytes", about, figures.waiting_bytes)
        about = "Of the server: what came as a query and could not be read, of what is kept."
        yield _one("icewright_queries_set_aside", about, figures.set_aside)


def _of_measurements(measured: Mapping[Effect, int]) -> GaugeMetricFamily:
    about = "Of the store: accepted recommendations that were measured, by what was measured last."
    family = GaugeMetricFamily("icewright_accepted_recommendations", about, labels=("effect",))
    for effect in Effect:
        family.add_metric((effect.value,), measured.get(effect, 0))
    return family


def _of_decisions(decided: Mapping[tuple[Move, DecisionState], int]) -> GaugeMetricFamily:
    about = "Of the store: decisions about optimizers and their memory that are kept, by what became of them."
    family = GaugeMetricFamily("icewright_autotune_decisions", about, labels=("move", "state"))
    for move in Move:
        for state in DecisionState:
            family.add_metric((move.value, state.value), decided.get((move, state), 0))
    return family


def _of_halts(halts: Sequence[Halt]) -> GaugeMetricFamily:
    found = Counter((halt.part.kind, halt.state) for halt in halts)
    about = "Of the store: parts of the queue that a person has paused, is draining or has stopped."
    family = GaugeMetricFamily("icewright_queue_halts", about, labels=("part", "state"))
    for kind in PartKind:
        for state in HaltState:
            family.add_metric((kind.value, state.value), found[kind, state])
    return family


def _of_tasks(census: TaskCensus, tables_max: int) -> Iterator[Metric]:
    live = GaugeMetricFamily(
        "icewright_tasks", "Of the store: tasks that have not ended, by state and kind.", labels=("state", "kind")
    )
    for state in sorted(LIVE_STATES):
        for kind in ActionKind:
            live.add_metric((state.value, kind.value), census.live.get((state, kind), 0))
    yield live
    yield _one("icewright_epoch", "Of the store: how many servers have led so far.", census.epoch)
    oldest = GaugeMetricFamily(
        "icewright_table_task_age_seconds",
        "Of the store: age of the tasks that have waited or run longest, as many as server.metrics_tables says.",
        labels=("table", "kind", "state"),
    )
    for task in census.oldest[:tables_max]:
        age_ms = max(0, census.now - task.created_at)
        oldest.add_metric((_printable(str(task.table_name)), task.kind.value, task.state.value), age_ms / 1_000)
    yield oldest
    age_ms = max((census.now - task.created_at for task in census.oldest), default=0)
    yield _one(
        "icewright_task_age_max_seconds",
        "Of the store: age of the oldest task that has not ended.",
        max(0, age_ms) / 1_000,
    )


def _of_tables(census: TableCensus, now: Instant, groups: Collection[str]) -> Iterator[Metric]:
    yield _one("icewright_tables", "Of the store: tables that are known.", census.tables)
    yield _one(
        "icewright_tables_put_aside", "Of the store: tables that are left alone for a problem.", census.put_aside
    )
    late_ms = 0 if census.next_look_at is None else max(0, now - census.next_look_at)
    yield _one(
        "icewright_sweep_lag_seconds",
        "Of the store: how long the next table has been due to be looked at.",
        late_ms / 1_000,
    )
    yield _one("icewright_events_waiting", "Of the store: events that wait to be worked on.", census.events_waiting)
    waited_ms = 0 if census.oldest_event_at is None else max(0, now - census.oldest_event_at)
    yield _one(
        "icewright_events_lag_seconds", "Of the store: how long the oldest event has been waiting.", waited_ms / 1_000
    )
    optimizers = GaugeMetricFamily(
        "icewright_optimizers",
        "Of the store: optimizers that were heard of within two minutes, by resource group.",
        labels=("resource_group",),
    )
    for group, seen_at in _of_groups(census.seen_at, groups).items():
        optimizers.add_metric((group,), sum(now - at < OPTIMIZER_SEEN_MS for at in seen_at))
    yield optimizers
    submitters = GaugeMetricFamily(
        "icewright_submitters",
        "Of the store: submitters that asked what waits within two minutes, by resource group.",
        labels=("resource_group",),
    )
    for group, asked_at in _of_groups(census.asked_at, groups).items():
        submitters.add_metric((group,), sum(now - at < OPTIMIZER_SEEN_MS for at in asked_at))
    yield submitters


def _of_groups(at: Mapping[str, Sequence[Instant]], groups: Collection[str]) -> Mapping[str, list[Instant]]:
    """When optimizers of groups were heard of; of all that nobody configured together."""
    found: dict[str, list[Instant]] = {}
    for group, times in sorted(at.items()):
        found.setdefault(_printable(group) if group in groups else OTHER_GROUPS, []).extend(times)
    return found


def _of_receivers(receivers: Sequence[ReceiverView]) -> Iterator[Metric]:
    messages = CounterMetricFamily(
        "icewright_notifications",
        "Of the store: messages to a receiver that arrived, attempts that failed, and messages that were given up.",
        labels=("receiver", "result"),
    )
    lag = GaugeMetricFamily(
        "icewright_notifications_lag_seconds",
        "Of the store: how long the oldest fact waits for a receiver, or for a reader of the feed.",
        labels=("receiver",),
    )
    for one in receivers:
        for result, count in (("sent", one.sent), ("failed", one.failed), ("given-up", one.given_up)):
            messages.add_metric((one.name, result), count)
        lag.add_metric((one.name,), one.lag_ms / 1_000)
    yield messages
    yield lag


def _of_pruned(pruned: Mapping[RowKind, Pruned], now: Instant) -> Iterator[Metric]:
    removed = CounterMetricFamily(
        "icewright_pruned_rows", "Of the store: rows of the past that were removed.", labels=("kind",)
    )
    rows = GaugeMetricFamily(
        "icewright_kept_rows", "Of the store: rows of the past, as of when they were last pruned.", labels=("kind",)
    )
    oldest = GaugeMetricFamily(
        "icewright_kept_oldest_age_seconds",
        "Of the store: age of the oldest of them; 0 where there was none.",
        labels=("kind",),
    )
    for kind in RowKind:
        one = pruned.get(kind, Pruned(now, 0, Rows()))
        removed.add_metric((kind.value,), one.removed)
        rows.add_metric((kind.value,), one.left.count)
        age_ms = 0 if one.left.oldest_at is None else max(0, now - one.left.oldest_at)
        oldest.add_metric((kind.value,), age_ms / 1_000)
    yield from (removed, rows, oldest)
    done_at = min((one.pruned_at for one in pruned.values()), default=None)
    if done_at is not None:
        about = "Of the store: how long ago the rows of some kind were last pruned."
        yield _one("icewright_pruning_age_seconds", about, max(0, now - done_at) / 1_000)


def _of_totals(totals: Mapping[TotalKey, int]) -> Iterator[Metric]:
    yield _counted(
        "icewright_task_changes",
        "Of the store: tasks that came into a state.",
        totals,
        Total.CHANGES,
        "state",
        TaskState,
    )
    yield _counted("icewright_attempts", "Of the store: attempts that ended.", totals, Total.ATTEMPTS, "end", _ENDS)
    for name, about, total in (
        ("icewright_read_bytes", "Of the store: bytes of tables that attempts read.", Total.READ_BYTES),
        ("icewright_written_bytes", "Of the store: bytes of tables that attempts wrote.", Total.WRITTEN_BYTES),
    ):
        family = CounterMetricFamily(name, about, labels=("kind",))
        for kind in ActionKind:
            family.add_metric((kind.value,), totals.get(TotalKey(total, kind.value), 0))
        yield family
    for name, about, by_bound, sum_ms in (
        (
            "icewright_task_wait_seconds",
            "Of the store: how long tasks that could run waited.",
            Total.WAITED,
            Total.WAIT_MS,
        ),
        ("icewright_attempt_duration_seconds", "Of the store: how long attempts took.", Total.TOOK, Total.ATTEMPT_MS),
        (
            "icewright_task_turnaround_seconds",
            "Of the store: from being queued to being verified.",
            Total.TURNED,
            Total.TURNAROUND_MS,
        ),
    ):
        yield _histogram(name, about, totals, by_bound, sum_ms)


_ENDS: Final = tuple(state for state in AttemptState if state is not AttemptState.RUNNING)


def _counted(
    name: str, about: str, totals: Mapping[TotalKey, int], total: Total, label: str, values: object
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, about, labels=("kind", label))
    for kind in ActionKind:
        for value in values:  # type: ignore[attr-defined]  # an enum, or some of one
            family.add_metric((kind.value, value.value), totals.get(TotalKey(total, kind.value, value.value), 0))
    return family


def _histogram(
    name: str, about: str, totals: Mapping[TotalKey, int], by_bound: Total, sum_ms: Total
) -> HistogramMetricFamily:
    """Kept by the least bound that each span is within; Prometheus wants those below counted along."""
    family = HistogramMetricFamily(name, about, labels=("kind",))
    for kind in ActionKind:
        counts = accumulate(totals.get(TotalKey(by_bound, kind.value, bound), 0) for bound in _BOUNDS)
        buckets = [(_seconds(bound), float(count)) for bound, count in zip(_BOUNDS, counts, strict=True)]
        family.add_metric((kind.value,), buckets, totals.get(TotalKey(sum_ms, kind.value), 0) / 1_000)
    return family


_BOUNDS: Final = (*map(str, BOUNDS_MS), BEYOND)


def _seconds(bound: str) -> str:
    return bound if bound == BEYOND else str(int(bound) / 1_000)


def _one(name: str, about: str, value: float, labels: Mapping[str, str] | None = None) -> GaugeMetricFamily:
    labels = labels or {}
    family = GaugeMetricFamily(name, about, labels=tuple(labels))
    family.add_metric(tuple(labels.values()), value)
    return family


def _printable(name: str) -> str:
    """Names may hold characters that UTF-8 cannot."""
    return name.encode("utf-8", "backslashreplace").decode()
