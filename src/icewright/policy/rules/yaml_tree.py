"""YAML as texts, lists and maps with the places where they stand, and nothing else.

Read from the parser's events, so that nothing is ever constructed: a text is what is written (``no`` is not false, and
``1.10`` not a number), and anchors, aliases, tags and second documents are refused. A key that is written twice is an
error and not the last one, and depth and length have limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from icewright.core import wording
from icewright.core.errors import InvalidConfiguration

FILE_BYTES_MAX: Final = 1_048_576
_DEPTH_MAX: Final = 10
_QUOTE: Final = 'put it in quotes: "*.sales.*"'


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def error(self, text: str, hint: str = "") -> InvalidConfiguration:
        """What is wrong here, and what to do about it."""
        return InvalidConfiguration(f"{self}: {text}", hint=hint)


@dataclass(frozen=True, slots=True)
class Text:
    """A scalar as it is written, without its quotes."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Fields:
    """A map; ``keys`` says where each key stands."""

    fields: dict[str, Node]
    keys: dict[str, Place]
    place: Place


Node = Text | Items | Fields


def read_yaml(file: Path) -> Node:
    """The one document in a file. Raises ``InvalidConfiguration`` with file, line and column."""
    try:
        with file.open("rb") as opened:
            data = opened.read(FILE_BYTES_MAX + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise InvalidConfiguration(f"{file}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidConfiguration(f"{file}: not UTF-8 text", hint="save the file as UTF-8") from error
    if len(data) > FILE_BYTES_MAX:
        raise InvalidConfiguration(f"{file}: more than {FILE_BYTES_MAX:,} bytes", hint="make several files of it")
    return parse_yaml(text, str(file))


def parse_yaml(text: str, file: str) -> Node:
    """As :func:`read_yaml`, of a text."""
    # PyIceberg's YAML is strictyaml, and ruamel within it what reads: no other reader is installed.
    from strictyaml.ruamel.error import MarkedYAMLError, YAMLError  # noqa: PLC0415 - only where there is such a file
    from strictyaml.ruamel.loader import SafeLoader  # noqa: PLC0415 - see above
    from strictyaml.ruamel.main import parse  # noqa: PLC0415 - see above

    try:
        return _document(_Events(parse(text, Loader=SafeLoader), file))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(file, 1, 1) if mark is None else Place(file, mark.line + 1, mark.column + 1)
        alias = "alias" in str(error.context)
        said = "a text that begins with a star is an alias in YAML" if alias else f"not YAML: {error.problem}"
        raise place.error(said, _QUOTE if alias else "") from error
    except (YAMLError, ValueError, ArithmeticError, LookupError) as error:
        raise InvalidConfiguration(f"{file}: not YAML: {str(error).splitlines()[0][:200]}") from error


class _Events:
    """The events of a parser, one looked at at a time."""

    def __init__(self, events: Iterator[Any], file: str) -> None:
        self._events, self._file = events, file

    def next(self) -> tuple[str, Any, Place]:
        """The kind of the next event, itself, and where it is."""
        event = next(self._events)
        kind = type(event).__name__.removesuffix("Event")
        place = Place(self._file, event.start_mark.line + 1, event.start_mark.column + 1)
        if kind == "Alias":
            raise place.error("a text that begins with a star is an alias in YAML", _QUOTE)
        if getattr(event, "anchor", None) is not None:
            raise place.error("anchors are not used here", "say it again; or put a text that begins with & in quotes")
        if getattr(event, "tag", None) not in {None, "!"}:
            raise place.error("tags are not used here", "put a text that begins with ! in quotes")
        return kind, event, place


def _document(events: _Events) -> Node:
    kind, _, place = events.next()
    while kind in {"StreamStart", "DocumentStart"}:
        kind, event, place = events.next()
    if kind == "StreamEnd":
        raise place.error("the file is empty", "`version: 1` is the least")
    found = _node(events, kind, event, place, 1)
    while kind != "StreamEnd":
        kind, _, place = events.next()
        if kind == "DocumentStart":
            raise place.error("there is a second document", "one file has one: remove the line ---")
    return found


def _node(events: _Events, kind: str, event: Any, place: Place, depth: int) -> Node:
    if kind == "Scalar":
        return Text(event.value, place)
    if depth > _DEPTH_MAX:
        raise place.error(f"nested more than {_DEPTH_MAX} deep")
    if kind == "SequenceStart":
        return Items(tuple(_items(events, depth)), place)
    fields: dict[str, Node] = {}
    keys: dict[str, Place] = {}
    while True:
        kind, event, at = events.next()
        if kind == "MappingEnd":
            return Fields(fields, keys, place)
        if kind != "Scalar":
            raise at.error("expected a key", "keys are plain texts: `name: ...`")
        if event.value in fields:
            hint = f"it is in line {keys[event.value].line} already"
            raise at.error(f"{wording.quoted(event.value)} is there twice", hint)
        keys[event.value] = at
        kind, event_of_value, place_of_value = events.next()
        fields[event.value] = _node(events, kind, event_of_value, place_of_value, depth + 1)


def _items(events: _Events, depth: int) -> Iterator[Node]:
    while True:
        kind, event, place = events.next()
        if kind == "SequenceEnd":
            return
        yield _node(events, kind, event, place, depth + 1)
