"""Commit events as they come from outside: our own JSON, one or many, a CloudEvents envelope, Iceberg's own reports.

All of it is input from strangers. Whatever is not as it should be raises :class:`InvalidMessage`, with where.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from icewright.core.codec import from_json, to_json
from icewright.core.errors import InvalidMessage, InvalidName
from icewright.model.events.events import Channel, CommitEvent
from icewright.model.iceberg.names import TableName, require_text
from icewright.model.iceberg.tables import Operation

EVENTS_MAX: Final = 1_000
"""Events of one message: one transaction of the store."""
WAITING_MAX: Final = 100_000
"""Events that wait in the inbox: names of tables are free to invent, and the sweep finds what is refused."""
SHARE_MAX: Final = WAITING_MAX // 5
"""Events of one reporter that wait: what it sends beyond is refused, and that of others is taken."""
RETRY_AFTER_MS: Final = (0, 2_000, 8_000, 32_000)
"""How long an event waits behind others at least, after its first look that came to nothing, its second, and so on."""
TRIES_MAX: Final = len(RETRY_AFTER_MS) + 1
"""Looks for an event that came to nothing while its catalog answered; then it is parked."""
ID_MAX: Final = 2**63 - 1
COMMIT_REPORT: Final = "commit-report"

_DECIMAL: Final = re.compile(r"[0-9]{1,19}\Z", re.ASCII)
_TOLD_BY: Final = {channel.value: channel for channel in (Channel.HTTP, Channel.OUTBOX)}


def parse_event(data: Any, path: str = "$") -> CommitEvent:
    """One event, as ``POST /api/v1/events/commits`` takes it."""
    if not isinstance(data, Mapping):
        raise InvalidMessage(f"{path}: expected an object")
    fields = dict(data)
    try:
        if isinstance(fields.get("table_name"), str):
            fields["table_name"] = to_json(TableName.parse(fields["table_name"]))
        if isinstance(fields.get("snapshot_id"), str):
            fields["snapshot_id"] = _number(fields["snapshot_id"], f"{path}.snapshot_id")
        event = from_json(CommitEvent, fields)
    except InvalidName as error:
        raise InvalidMessage(f"{path}.table_name: {error.message}", hint=error.hint) from error
    except InvalidMessage as error:
        if path == "$" or error.message.startswith(path):
            raise
        raise InvalidMessage(error.message.replace("$", path, 1), hint=error.hint) from error
    if event.table_uuid is not None:
        _check_text(event.table_uuid, f"{path}.table_uuid")
    for name in ("snapshot_id", "added_data_files", "added_records"):
        number = getattr(event, name)
        if number is not None and not 0 <= number <= ID_MAX:
            raise InvalidMessage(f"{path}.{name}: {number} is not between 0 and {ID_MAX}")
    return event


def parse_events(data: Any) -> tuple[Sequence[CommitEvent], Channel]:
    """Many events, and by which channel whoever sends them says that they come: ``http``, or ``outbox``."""
    if not isinstance(data, Mapping) or not isinstance(data.get("events"), list):
        raise InvalidMessage("$.events: expected an array")
    unknown = data.keys() - {"events", "channel"}
    if unknown:
        raise InvalidMessage(f"$: unknown field {min(unknown, key=str)!r}")
    channel = data.get("channel", Channel.HTTP.value)
    if not isinstance(channel, str) or channel not in _TOLD_BY:
        raise InvalidMessage(f"$.channel: {channel!r} is none of {', '.join(_TOLD_BY)}")
    if len(data["events"]) > EVENTS_MAX:
        raise InvalidMessage(f"$.events: more than {EVENTS_MAX:,} events", hint="send them in several requests")
    events = [parse_event(one, f"$.events[{index}]") for index, one in enumerate(data["events"])]
    return events, _TOLD_BY[channel]


def parse_message(text: bytes) -> CommitEvent:
    """The event in a message of a queue: as it is, or in a CloudEvents envelope (structured JSON, version 1.0)."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"not JSON that can be read: {error}") from error
    if isinstance(data, Mapping) and "specversion" in data:
        return parse_event(_unwrapped(data), "$.data")
    return parse_event(data)


def parse_report(data: Any, name: TableName) -> tuple[str, CommitEvent | None]:
    """What kind of report Iceberg sends, and the event if it tells of a commit.

    By the REST specification's ``ReportMetricsRequest``. Fields that nobody here knows are passed over: clients of all
    versions and languages send them. ``name`` is by the address; the table's name in the report is the client's own.
    """
    if not isinstance(data, Mapping) or not isinstance(data.get("report-type"), str):
        raise InvalidMessage("$.report-type: expected a string")
    kind = data["report-type"]
    if kind != COMMIT_REPORT:
        return kind, None
    snapshot_id = data.get("snapshot-id")
    if not isinstance(snapshot_id, int) or isinstance(snapshot_id, bool) or not 0 <= snapshot_id <= ID_MAX:
        raise InvalidMessage(f"$.snapshot-id: expected a number between 0 and {ID_MAX}")
    operation = data.get("operation")
    known = operation if isinstance(operation, str) and operation in tuple(Operation) else None
    return kind, CommitEvent(
        name,
        snapshot_id,
        operation=None if known is None else Operation(known),
        added_data_files=_counter(data.get("metrics"), "added-data-files"),
        added_records=_counter(data.get("metrics"), "added-records"),
    )


def _unwrapped(envelope: Mapping[str, Any]) -> Any:
    if not str(envelope["specversion"]).startswith("1."):
        raise InvalidMessage(f"$.specversion: {envelope['specversion']!r} is not version 1 of CloudEvents")
    if "data_base64" not in envelope:
        return envelope.get("data")
    try:
        return json.loads(base64.b64decode(envelope["data_base64"], validate=True))
    except (TypeError, ValueError, binascii.Error, RecursionError) as error:
        raise InvalidMessage(f"$.data_base64: not JSON in base64: {error}") from error


def _counter(metrics: Any, name: str) -> int | None:
    result = metrics.get(name) if isinstance(metrics, Mapping) else None
    value = result.get("value") if isinstance(result, Mapping) else None
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= ID_MAX
    return value if fits else None


def _check_text(text: str, path: str) -> None:
    try:
        require_text(text)
    except InvalidName as error:
        raise InvalidMessage(f"{path}: {error.message}", hint=error.hint) from error


def _number(text: str, path: str) -> int:
    if not _DECIMAL.match(text):
        raise InvalidMessage(f"{path}: expected a number, or its decimal digits as a string")
    return int(text)
