"""Frozen dataclasses to JSON and back, for all that is stored or sent.

The shape is what the dataclass says: tuples are arrays, enums their values, a mapping an object (or an array of
pairs when its keys are not strings), and a dataclass with a ``kind`` constant carries it, so that unions can be told
apart. Reading is strict: an unknown or missing field raises :class:`InvalidMessage` with its path.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Any, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from icewright.core.errors import InvalidMessage

T = TypeVar("T")
_PLAIN_TYPES = frozenset({str, int, float, bool, type(None)})


@dataclasses.dataclass(frozen=True, slots=True)
class OneOf:
    """Beside a type in ``Annotated``: the dataclasses that its values are of, each with a ``kind`` of its own."""

    members: tuple[Any, ...]


def members_of(hint: Any) -> tuple[Any, ...]:
    """The types that a value of a union is of, with those of each :class:`OneOf` among them."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return tuple(member for said in args[1:] for member in said.members)
    if origin in (Union, types.UnionType):
        return tuple(member for part in args for member in members_of(part))
    return (hint,)


def dumps(value: Any) -> str:
    """``value`` as compact JSON text."""
    return json.dumps(to_json(value), separators=(",", ":"), ensure_ascii=False)


def loads(cls: type[T], text: str | bytes) -> T:
    """A ``cls`` from JSON text. Raises :class:`InvalidMessage`."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InvalidMessage(f"not JSON: {error}") from error
    return from_json(cls, data)


def to_json(value: Any) -> Any:
    """``value`` as what ``json.dumps`` takes."""
    cls: Any = type(value)
    return value if cls in _PLAIN_TYPES else _writer(cls)(value)


def from_json(cls: type[T], data: Any) -> T:
    """A ``cls`` from what ``json.loads`` gave. Raises :class:`InvalidMessage` with the path of what is wrong."""
    try:
        return cast("T", _reader(cast("Any", cls))(data))
    except _Wrong as error:
        raise InvalidMessage(f"${error.place}: {error.what}") from error


class _Wrong(Exception):
    """What is wrong, and at which place below what was read."""

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(what, place)
        self.what, self.place = what, place

    def below(self, place: str) -> _Wrong:
        """The same, of what lies at a place."""
        return _Wrong(self.what, place + self.place)


def _kind_of(cls: Any) -> str | None:
    """The ``kind`` constant of a dataclass; one with a *field* of that name has none."""
    kind = getattr(cls, "kind", None)
    return kind if isinstance(kind, str) else None


Writer = Callable[[Any], Any]


@cache
def _writer(cls: Any) -> Writer:
    """What turns the values of a class into JSON. Made once: asking what a class is takes longer than writing it."""
    if issubclass(cls, Enum):
        return lambda value: value.value
    if dataclasses.is_dataclass(cls):
        return _dataclass_writer(cls)
    if issubclass(cls, Mapping):
        return _write_mapping
    if issubclass(cls, frozenset):
        return lambda value: sorted([to_json(item) for item in value])
    if issubclass(cls, (tuple, list)):
        return lambda value: [to_json(item) for item in value]
    return lambda value: value


def _dataclass_writer(cls: Any) -> Writer:
    names, kind = tuple(field.name for field in dataclasses.fields(cls)), _kind_of(cls)

    def write(value: Any) -> Any:
        data = {} if kind is None else {"kind": kind}
        for name in names:
            data[name] = to_json(getattr(value, name))
        return data

    return write


def _write_mapping(value: Mapping[Any, Any]) -> Any:
    if all(isinstance(key, str) for key in value):
        return {key.value if isinstance(key, Enum) else key: to_json(item) for key, item in value.items()}
    return [[to_json(key), to_json(item)] for key, item in value.items()]


Reader = Callable[[Any], Any]
"""Raises :class:`_Wrong`, whose place grows on its way up: to say it of all that is right takes longer than to read."""


@cache
def _reader(hint: Any) -> Reader:  # noqa: PLR0911 - one return per kind of type reads best
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda data: data
    if isinstance(hint, NewType):
        return _reader(hint.__supertype__)
    if hint is None or hint is type(None):
        return _read_none
    if origin in (Union, types.UnionType, Annotated):
        return _union_reader(members_of(hint))
    if origin is tuple:
        return _sequence_reader(_reader(args[0]), tuple)
    if origin is frozenset:
        return _sequence_reader(_reader(args[0]), frozenset)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_reader(_reader(args[0]), _reader(args[1]))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum_reader(hint)
    if dataclasses.is_dataclass(hint):
        return _dataclass_reader(hint)
    return _scalar_reader(hint)


def _read_none(data: Any) -> None:
    if data is not None:
        raise _Wrong("expected null")


def _scalar_reader(cls: type) -> Reader:
    def read(data: Any) -> Any:
        if type(data) is cls:
            return data
        if cls is float and type(data) is int:
            return float(data)
        raise _Wrong(f"expected {cls.__name__}, found {type(data).__name__}")

    return read


def _enum_reader(cls: type[Enum]) -> Reader:
    def read(data: Any) -> Enum:
        try:
            return cls(data)
        except ValueError as error:
            allowed = ", ".join(str(member.value) for member in cls)
            raise _Wrong(f"{data!r} is none of {allowed}") from error

    return read


def _sequence_reader(item: Reader, build: Callable[[list[Any]], Any]) -> Reader:
    def read(data: Any) -> Any:
        if not isinstance(data, list):
            raise _Wrong("expected an array")
        found: list[Any] = []
        try:
            for element in data:
                found.append(item(element))  # noqa: PERF401 - how many there are says which one is wrong
        except _Wrong as error:
            raise error.below(f"[{len(found)}]") from None
        return build(found)

    return read


def _mapping_reader(key: Reader, value: Reader) -> Reader:
    def read(data: Any) -> Any:
        pairs: Iterable[Any]
        if isinstance(data, dict):
            pairs, place = data.items(), ".{}"
        elif isinstance(data, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in data):  # noqa: PLR2004 - pairs
            pairs, place = data, "[{}]"
        else:
            raise _Wrong("expected an object")
        found: dict[Any, Any] = {}
        for k, v in pairs:
            name = key(k)
            try:
                found[name] = value(v)
            except _Wrong as error:
                raise error.below(place.format(k)) from None
        return found

    return read


def _union_reader(members: tuple[Any, ...]) -> Reader:
    kinds = {kind: _reader(member) for member in members if (kind := _kind_of(member)) is not None}
    others = [_reader(member) for member in members if _kind_of(member) is None]

    def read(data: Any) -> Any:
        if kinds and isinstance(data, dict):
            kind = data.get("kind")
            tagged = kinds.get(kind) if isinstance(kind, str) else None
            if tagged is None:
                raise _Wrong(f"{kind!r} is none of {', '.join(sorted(kinds))}", ".kind")
            return tagged(data)
        if data is None and _read_none in others:
            return None
        problem: _Wrong | None = None
        for reader in others:
            try:
                return reader(data)
            except _Wrong as error:
                problem = problem or error
        raise problem or _Wrong("not of any expected type")

    return read


def _dataclass_reader(cls: Any) -> Reader:
    hints, kind, fields = get_type_hints(cls, include_extras=True), _kind_of(cls), dataclasses.fields(cls)
    allowed = frozenset(field.name for field in fields) | ({"kind"} if kind else frozenset())
    required = frozenset(field.name for field in fields if _required(field))
    readers: list[tuple[str, Reader]] = []

    def read(data: Any) -> Any:
        if not isinstance(data, dict):
            raise _Wrong("expected an object")
        if not readers:  # filled on first use, so that types may refer to themselves
            readers.extend([(field.name, _reader(hints[field.name])) for field in fields])
        if not allowed.issuperset(data):
            raise _Wrong(f"unknown field {min(data.keys() - allowed, key=str)!r}")
        if kind is not None and data.get("kind") != kind:
            raise _Wrong(f"expected {kind!r}", ".kind")
        if not required <= data.keys():
            raise _Wrong(f"missing field {next(name for name, _ in readers if name in required - data.keys())!r}")
        values: dict[str, Any] = {}
        for name, reader in readers:
            if name in data:
                try:
                    values[name] = reader(data[name])
                except _Wrong as error:
                    raise error.below(f".{name}") from None
        return cls(**values)

    return read


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
