"""What of one OpenAPI document would break programs that were written for another one.

    python -m scripts.compare_api OLD.json NEW.json

Exit status 1 where anything would. Callers may send less and be sent more: an operation, a parameter, a property of an
answer, a value of an enumeration may come; none may go, and nothing that is sent may become required. ``make docs``
compares with the document that is kept in docs/.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

_ARGUMENTS: Final = 2
_DEPTH_MAX: Final = 12
_METHODS: Final = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})


def breaking(old: Any, new: Any) -> list[str]:
    """Each way in which programs for the old document may break on the new one, as a line for people."""
    return sorted(set(_breaking(old, new)))


def _breaking(old: Any, new: Any) -> Iterator[str]:
    for path, methods in old["paths"].items():
        for method in _METHODS & set(methods):
            where, now = f"{method.upper()} {path}", new["paths"].get(path, {}).get(method)
            if now is None:
                yield f"{where} is gone"
                continue
            both = _Both(old, new, where)
            if methods[method]["operationId"] != now["operationId"]:
                yield f"{where} is called {now['operationId']}, and was {methods[method]['operationId']}"
            yield from both.parameters(methods[method], now)
            yield from both.bodies(methods[method], now)
            yield from both.answers(methods[method], now)


class _Both:
    """One operation in both documents."""

    def __init__(self, old: Any, new: Any, where: str) -> None:
        self._old, self._new, self._where = old, new, where

    def parameters(self, was: Any, now: Any) -> Iterator[str]:
        """What is asked for in the address and in headers."""
        before, after = self._by_name(self._old, was), self._by_name(self._new, now)
        for name in before.keys() - after.keys():
            yield f"{self._where}: the parameter {name[1]} is gone"
        for name, parameter in after.items():
            if parameter.get("required") and not before.get(name, {}).get("required"):
                yield f"{self._where}: the parameter {name[1]} is required"
            if name in before:
                sent = before[name].get("schema", {}), parameter.get("schema", {})
                yield from self._narrower(*sent, f"the parameter {name[1]}", ())

    def bodies(self, was: Any, now: Any) -> Iterator[str]:
        """What is sent."""
        before, after = _content(was.get("requestBody")), _content(now.get("requestBody"))
        if before is None and after is not None and now["requestBody"].get("required"):
            yield f"{self._where}: a body is required"
        elif before is not None and after is None:
            yield f"{self._where}: no body is taken any more"
        elif before is not None and after is not None:
            yield from self._narrower(before, after, "the body", ())

    def answers(self, was: Any, now: Any) -> Iterator[str]:
        """What comes back when all is well."""
        for status, answer in was["responses"].items():
            if not status.startswith("2"):
                continue
            if status not in now["responses"]:
                yield f"{self._where}: it is not answered with {status} any more"
                continue
            before, after = _content(answer), _content(now["responses"][status])
            if before is not None and after is None:
                yield f"{self._where}: the answer has no body any more"
            elif before is not None and after is not None:
                yield from self._wider(before, after, "the answer", ())

    def _narrower(self, was: Any, now: Any, what: str, seen: tuple[str, ...]) -> Iterator[str]:
        """How that which may be sent became less."""
        was, now, seen, known = self._resolved(was, now, seen)
        if known:
            return
        for name in set(now.get("required", ())) - set(was.get("required", ())):
            yield f"{self._where}: {what}.{name} is required"
        if was.get("type") != now.get("type") and "type" in now:
            yield f"{self._where}: {what} is of type {now['type']}, and was of type {was.get('type')}"
        for value in set(was.get("enum", ())) - set(now.get("enum", ())):
            yield f"{self._where}: {what} is never {value} any more"
        if "enum" in now and "enum" not in was and "const" not in was:
            yield f"{self._where}: {what} is one of few values"
        yield from self._within(was, now, what, seen, self._narrower)
        if now.get("additionalProperties") is False:
            for name in set(was.get("properties", ())) - set(now.get("properties", ())):
                yield f"{self._where}: {what}.{name} is not taken any more"

    def _wider(self, was: Any, now: Any, what: str, seen: tuple[str, ...]) -> Iterator[str]:
        """How that which may come back lost something that callers rely on."""
        was, now, seen, known = self._resolved(was, now, seen)
        if known:
            return
        if was.get("type") != now.get("type") and "type" in was:
            yield f"{self._where}: {what} is of type {now.get('type')}, and was of type {was['type']}"
        for name in set(was.get("properties", ())) - set(now.get("properties", ())):
            yield f"{self._where}: {what}.{name} is gone"
        for name in set(was.get("required", ())) & set(now.get("properties", ())) - set(now.get("required", ())):
            yield f"{self._where}: {what}.{name} is not always there any more"
        yield from self._within(was, now, what, seen, self._wider)

    def _within(self, was: Any, now: Any, what: str, seen: tuple[str, ...], compare: Any) -> Iterator[str]:
        for name in set(was.get("properties", ())) & set(now.get("properties", ())):
            yield from compare(was["properties"][name], now["properties"][name], f"{what}.{name}", seen)
        if isinstance(was.get("items"), dict) and isinstance(now.get("items"), dict):
            yield from compare(was["items"], now["items"], f"{what}[]", seen)
        before, after = _members(was), _members(now)
        for name in before.keys() & after.keys():
            yield from compare(before[name], after[name], what, seen)
        for name in before.keys() - after.keys():
            yield f"{self._where}: {what} is never {name} any more"

    def _resolved(self, was: Any, now: Any, seen: tuple[str, ...]) -> tuple[Any, Any, tuple[str, ...], bool]:
        """Both schemas behind their references; whether they were compared above, or too deep."""
        name = f"{was.get('$ref')} {now.get('$ref')}"
        known = ("$ref" in was and name in seen) or len(seen) > _DEPTH_MAX
        return _follow(self._old, was), _follow(self._new, now), (*seen, name), known

    @staticmethod
    def _by_name(document: Any, operation: Any) -> Mapping[tuple[str, str], Any]:
        found = [_follow(document, one) for one in operation.get("parameters", ())]
        return {(one["in"], one["name"]): one for one in found}


def _members(schema: Any) -> dict[str, Any]:
    """The members of a union by what they are."""
    return {str(one.get("$ref") or one.get("type") or sorted(one)): one for one in schema.get("anyOf", ())}


def _content(described: Any) -> Any:
    return ((described or {}).get("content") or {}).get("application/json", {}).get("schema")


def _follow(document: Any, schema: Any) -> Any:
    while "$ref" in schema:
        found = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


def main(arguments: list[str]) -> int:
    """Compare two files."""
    if len(arguments) != _ARGUMENTS:
        print(__doc__, file=sys.stderr)
        return 2
    old, new = (json.loads(Path(name).read_text(encoding="utf-8")) for name in arguments)
    found = breaking(old, new)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
