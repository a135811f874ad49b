"""JSON Schema of domain values in the very shape that :mod:`icewright.core.codec` gives them.

Derived from the dataclasses themselves, so that the OpenAPI document cannot say anything else than the code.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Final, NewType, Union, get_args, get_origin, get_type_hints

from icewright.core.codec import members_of
from icewright.web.problems import MEDIA_TYPE, ProblemDocument

Schema = dict[str, Any]

_SCALARS: Final[Mapping[Any, Schema]] = {
    Any: {},
    str: {"type": "string"},
    int: {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
}

_COMPONENTS: dict[str, Schema] = {}
_CLASSES: dict[str, Any] = {}
"""Which dataclass each of them is of."""


def components() -> Mapping[str, Schema]:
    """The schemas of all dataclasses that were asked for so far, by name."""
    return dict(sorted(_COMPONENTS.items()))


def schema_of(hint: Any) -> Schema:
    """The schema of a type; dataclasses become references into :func:`components`."""
    hint = hint.__supertype__ if isinstance(hint, NewType) else hint
    origin, args = get_origin(hint), get_args(hint)
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    if origin in (Union, types.UnionType, Annotated):
        return {"anyOf": [schema_of(member) for member in members_of(hint)]}
    if origin in (tuple, frozenset) or (isinstance(origin, type) and issubclass(origin, Sequence)):
        return {"type": "array", "items": schema_of(args[0])}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(args[1])}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"type": "string", "enum": [member.value for member in hint]}
    return _reference(hint)


def page_of(item: Any) -> Schema:
    """The schema of one page of a list."""
    return {
        "type": "object",
        "required": ["items", "next_cursor"],
        "additionalProperties": False,
        "properties": {
            "items": {"type": "array", "items": schema_of(item)},
            "next_cursor": {"type": ["string", "null"]},
        },
    }


def operation(
    returns: Any,
    *,
    status: int = 200,
    accepts: Schema | None = None,
    problems: Mapping[int, str] | None = None,
    media_type: str = "application/json",
) -> dict[str, Any]:
    """What a route's decorator takes so that the OpenAPI document is true of it.

    ``returns`` is a type, a schema, or None for an answer without a body; ``problems`` says when which status comes.
    """
    answer: dict[str, Any] = {"description": "Done." if returns is None else "The answer."}
    if returns is not None:
        schema = returns if isinstance(returns, dict) else schema_of(returns)
        answer["content"] = {media_type: {"schema": schema}}
    said = {401: "No or wrong credentials.", **(problems or {}), 503: "Something that this needs does not answer."}
    problem = {MEDIA_TYPE: {"schema": schema_of(ProblemDocument)}}
    keywords: dict[str, Any] = {
        "status_code": status,
        "responses": {
            status: answer,
            "4XX": {"description": "A problem; `code` says which.", "content": problem},
            **{code: {"description": text, "content": problem} for code, text in said.items()},
        },
    }
    if accepts is not None:
        body = {"required": True, "content": {"application/json": {"schema": accepts}}}
        keywords["openapi_extra"] = {"requestBody": body}
    return keywords


def _reference(cls: Any) -> Schema:
    name = cls.__name__
    if _CLASSES.setdefault(name, cls) is not cls:
        raise TypeError(f"{cls.__module__} and {_CLASSES[name].__module__} have a {name} each, and the document one")
    if name not in _COMPONENTS:
        _COMPONENTS[name] = {}  # types may refer to themselves
        hints = get_type_hints(cls, include_extras=True)
        fields = dataclasses.fields(cls)
        properties = {field.name: schema_of(hints[field.name]) for field in fields}
        required = [field.name for field in fields if field.default is field.default_factory is dataclasses.MISSING]
        kind = getattr(cls, "kind", None)
        if isinstance(kind, str):  # a constant; a field of that name is a field like others
            properties = {"kind": {"const": kind}, **properties}
            required = ["kind", *required]
        _COMPONENTS[name] = {
            "type": "object",
            "description": cls.__doc__ or name,
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
    return {"$ref": f"#/components/schemas/{name}"}
