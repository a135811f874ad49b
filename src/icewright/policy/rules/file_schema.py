"""The JSON Schema of policy files, for editors and for CI. It is never stricter than reading is."""

from __future__ import annotations

from typing import Any, Final

from icewright.model.policy.policies import (
    GROUPS_MAX,
    NAME_LENGTH_MAX,
    PATTERNS_MAX,
    PRIORITY_MAX,
    TEXT_LENGTH_MAX,
)
from icewright.model.policy.policy import Enforced
from icewright.model.policy.resource_groups import OPTIMIZERS_MAX, WINDOWS_MAX
from icewright.policy.rules.files import VERSION
from icewright.policy.settings import SETTINGS

_TEXT: Final = {"type": ["string", "number", "boolean"]}
"""A YAML reader of another kind takes ``true`` and ``10`` for more than text; to icewright they are what is written."""


def policy_schema() -> dict[str, Any]:
    """The schema, in draft 2020-12."""
    settings = {one.key: {**_TEXT, "description": f"{one.doc} Allowed: {one.allowed}."} for one in SETTINGS}
    condition = {**_TEXT, "description": "A text in which * is any run of characters."}
    match = _object(
        {
            "tables": {
                "type": "array",
                "minItems": 1,
                "maxItems": PATTERNS_MAX,
                "items": {"type": "string", "maxLength": TEXT_LENGTH_MAX},
                "description": "Patterns of catalog.namespace.table: * within one part, ** for one part or more.",
            },
            "owner": {**condition, "description": "Only tables whose property `owner` matches; * as in patterns."},
            "properties": {"type": "object", "additionalProperties": condition},
        },
        ["tables"],
    )
    rule = _object(
        {
            "name": {"type": "string", "pattern": rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_LENGTH_MAX - 1}}}$"},
            "match": match,
            "priority": {"type": "integer", "minimum": -PRIORITY_MAX, "maximum": PRIORITY_MAX, "default": 0},
            "enforce": {
                "enum": [False, True, *(one.value for one in Enforced)],
                "default": False,
                "description": "Above the properties of tables; over-opt-outs: also where these want less done.",
            },
            "settings": {**_object(settings, []), "minProperties": 1},
            "note": {"type": "string", "maxLength": TEXT_LENGTH_MAX},
        },
        ["name", "match", "settings"],
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "icewright policy file",
        **_object(
            {
                "version": {"enum": [VERSION, int(VERSION)]},
                "rules": {"type": "array", "items": rule},
                "groups": {"type": "object", "maxProperties": GROUPS_MAX, "additionalProperties": _group()},
            },
            ["version"],
        ),
    }


def _group() -> dict[str, Any]:
    """A resource group; see ``docs/queue.md``."""
    cap = {"type": ["integer", "string"], "description": "At least 1; left out, no cap."}
    optimizers = {"type": ["integer", "string"], "minimum": 0, "maximum": OPTIMIZERS_MAX}
    memory = {"type": ["integer", "string"], "description": "Bytes, or a number and k, m, g or t."}
    caps = {"tasks": cap, "cores": cap, "memory": memory}
    window = _object({"cron": _TEXT, "time_zone": _TEXT, "duration": _TEXT}, ["cron", "duration"])
    return _object(
        {
            **caps,
            "applications": cap,
            "optimizers": cap,
            "large_share": {"type": ["number", "string"]},
            **dict.fromkeys(("normal_min", "normal_max", "large_min", "large_max"), optimizers),
            "windows": {"type": "array", "maxItems": WINDOWS_MAX, "items": window},
            "tenants": {"type": "object", "additionalProperties": _object(caps, [])},
        },
        [],
    )


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
