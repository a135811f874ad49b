"""Commit events: hints from writers and schedulers, taken in without asking any catalog."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Response

from icewright.api.deps import Control
from icewright.api.messages import json_body, render
from icewright.api.schema import operation, schema_of
from icewright.domain.codec import from_json, to_json
from icewright.domain.errors import InvalidMessage, InvalidName
from icewright.domain.events import CommitEvent
from icewright.domain.faults import Fault, fault
from icewright.domain.names import TableName
from icewright.domain.tables import Operation

router = APIRouter(prefix="/events", tags=["events"])

_DECIMAL: Final = re.compile(r"[0-9]{1,19}\Z", re.ASCII)
_ID_MAX: Final = 2**63 - 1

EVENT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["table_name", "snapshot_id"],
    "additionalProperties": False,
    "properties": {
        "table_name": {
            "anyOf": [
                schema_of(TableName),
                {"type": "string", "description": "catalog.namespace.table; parts with other characters in backticks"},
            ]
        },
        "snapshot_id": {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": _ID_MAX},
                {"type": "string", "pattern": "^[0-9]{1,19}$"},
            ],
            "description": "As a string where numbers are not exact beyond 2**53, as in JavaScript.",
        },
        "table_uuid": {"type": ["string", "null"]},
        "operation": {"anyOf": [schema_of(Operation), {"type": "null"}]},
        "added_data_files": {"type": ["integer", "null"], "minimum": 0},
        "added_records": {"type": ["integer", "null"], "minimum": 0},
    },
}


@dataclass(frozen=True, slots=True)
class EventAnswer:
    """``repeated``: the same table and snapshot id were reported before, and nothing more will happen."""

    accepted: bool
    repeated: bool


@router.post(
    "/commits",
    **operation(EventAnswer, status=202, accepts=EVENT_SCHEMA, problems={404: "No such catalog."}),
)
def receive_commit(control: Control, body: Annotated[Any, Depends(json_body())]) -> Response:
    """Somebody committed to a table. Answered at once; what is true is then read from the catalog."""
    event = parse_event(body)
    control.observer.catalog(event.table_name.catalog)
    is_new = control.tables.receive(event)
    fault(Fault.EVENT_STORED)
    control.loop.wake()
    return render(EventAnswer(accepted=True, repeated=not is_new), 202)


def parse_event(data: Any) -> CommitEvent:
    """The event in a request's body. Raises :class:`InvalidMessage` with the path of what is wrong."""
    if not isinstance(data, Mapping):
        raise InvalidMessage("$: expected an object")
    fields = dict(data)
    if isinstance(fields.get("table_name"), str):
        try:
            fields["table_name"] = to_json(TableName.parse(fields["table_name"]))
        except InvalidName as error:
            raise InvalidMessage(f"$.table_name: {error.message}", hint=error.hint) from error
    if isinstance(fields.get("snapshot_id"), str):
        if not _DECIMAL.match(fields["snapshot_id"]):
            raise InvalidMessage("$.snapshot_id: expected a number, or its decimal digits as a string")
        fields["snapshot_id"] = int(fields["snapshot_id"])
    try:
        event = from_json(CommitEvent, fields)
    except InvalidName as error:
        raise InvalidMessage(f"$.table_name: {error.message}", hint=error.hint) from error
    for name in ("snapshot_id", "added_data_files", "added_records"):
        number = getattr(event, name)
        if number is not None and not 0 <= number <= _ID_MAX:
            raise InvalidMessage(f"$.{name}: {number} is not between 0 and {_ID_MAX}")
    return event
