"""Who still reads a table from a snapshot on: streaming consumers that say so, and Flink's sinks, which leave traces.

A consumer goes from its snapshot to the newest one step by step, so that it needs every snapshot in between. A Flink
sink looks for the last checkpoint that it committed by walking back from the newest snapshot, and commits it anew when
that walk ends before it.

Each consumer has a property of its own, since two that share one would overwrite each other. Properties, summaries and
names are input from strangers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from icewright.core import wording
from icewright.core.times import Instant
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.iceberg.tables import RefKind, TableMetadata
from icewright.model.plans.plans import Reason

CONSUMER_PREFIX: Final = "icewright.consumer."
"""``icewright.consumer.<name>`` = ``<snapshot id>`` or ``<snapshot id>@<heartbeat>``."""

_VALUE: Final = re.compile(r"(?P<id>\d{1,19})(?:@(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ))?", re.ASCII)
_ALLOWED: Final = "a snapshot id, or one with the instant of a heartbeat (8473621@2026-11-22T10:00:00Z)"
_JOB: Final = "flink.job-id"
_OPERATOR: Final = "flink.operator-id"
_CHECKPOINT: Final = "flink.max-committed-checkpoint-id"
_AHEAD_MS_MAX: Final = 60_000


@dataclass(frozen=True, slots=True)
class Consumer:
    """Somebody who needs a snapshot and all that came after it. ``heartbeat_at`` is when it last said so."""

    name: str
    snapshot_id: int
    heartbeat_at: Instant | None = None


def consumer_problem(key: str, text: str) -> str | None:
    """What is wrong with a consumer as a property says it, for people."""
    if key == CONSUMER_PREFIX:
        return f"a consumer has a name: {CONSUMER_PREFIX}nightly"
    try:
        _parsed(text)
    except ValueError:
        return f"{wording.quoted(text)} is not {_ALLOWED}"
    return None


def declared_consumers(metadata: TableMetadata) -> Iterator[Consumer]:
    """Those that the table's properties name; one that cannot be read is a problem of the policy already."""
    for key, text in sorted(metadata.properties.items()):
        if key.startswith(CONSUMER_PREFIX) and consumer_problem(key, text) is None:
            yield Consumer(key.removeprefix(CONSUMER_PREFIX), *_parsed(text))


def flink_sinks(metadata: TableMetadata) -> Iterator[Consumer]:
    """The last checkpoint that each Flink sink committed, by job and operator: in each branch, and of all snapshots.

    A sink that is restored looks for it in its own branch; what was rolled back may yet be what it goes on from.
    """
    signed = {one.snapshot_id for one in metadata.snapshots if _JOB in one.summary and _CHECKPOINT in one.summary}
    if not signed:
        return
    lines = [metadata.ancestors(ref.snapshot_id) for ref in metadata.refs if ref.kind is RefKind.BRANCH]
    lines.append(tuple(sorted(metadata.snapshots, key=lambda one: (-one.sequence_number, -one.committed_at))))
    found: set[tuple[str, int]] = set()
    for line in lines:
        seen: set[tuple[str, str]] = set()
        for snapshot in line:
            sink = (snapshot.summary.get(_JOB, ""), snapshot.summary.get(_OPERATOR, ""))
            if snapshot.snapshot_id in signed and sink not in seen:
                seen.add(sink)
                found.add((sink[0], snapshot.snapshot_id))
    for job, snapshot_id in sorted(found):
        yield Consumer(f"flink-job-{job}", snapshot_id)


def holds_of(
    metadata: TableMetadata, consumers: Iterable[Consumer], now: Instant, max_hold_ms: int
) -> tuple[tuple[Hold, ...], tuple[Reason, ...]]:
    """What consumers keep, and what is to be said of those that keep nothing any more.

    A consumer counts as long as its snapshot or its heartbeat is no older than ``max_hold_ms``. A heartbeat that is
    ahead of the clock is none.
    """
    holds: list[Hold] = []
    findings: list[Reason] = []
    for consumer in consumers:
        who = f"consumer {wording.name(consumer.name)}"
        snapshot = metadata.snapshot(consumer.snapshot_id)
        if snapshot is None:
            text = f"{who} says that it is at snapshot {consumer.snapshot_id}, which the table does not have (any more)"
            findings.append(Reason("consumer-without-snapshot", text, {"snapshot_id": consumer.snapshot_id}))
            continue
        beat = consumer.heartbeat_at
        heard_at = snapshot.committed_at if beat is None or beat > now + _AHEAD_MS_MAX else beat
        heard_at = max(heard_at, snapshot.committed_at)
        if now - heard_at > max_hold_ms:
            text = (
                f"{who} has not been heard of since {wording.instant(heard_at)}, longer than "
                f"{wording.duration(max_hold_ms)}: what it needs may expire"
            )
            findings.append(Reason("consumer-silent", text, {"snapshot_id": consumer.snapshot_id}))
        else:
            holds.append(Hold(who, consumer.snapshot_id))
    return tuple(holds), tuple(findings)


def _parsed(text: str) -> tuple[int, Instant | None]:
    match = _VALUE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    at = match["at"]
    if at is None:
        return int(match["id"]), None
    heard_at = datetime.strptime(at, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return int(match["id"]), int(heard_at.timestamp()) * 1000
