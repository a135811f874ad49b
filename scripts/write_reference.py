"""Writes the reference parts of docs/ from the code, between their markers; everything else on a page is prose.

``make docs`` runs it. A test asserts that the pages are what this would write, so a setting, a command or a route
cannot be changed without its page.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import typer
from fastapi.testclient import TestClient

from icewright.actions.undo.undo_records_sql import SqlUndoRecordStore
from icewright.app.main import app as command_line
from icewright.audit.sql import SqlAudit
from icewright.config.layers import ENVIRONMENT_PREFIX
from icewright.config.setting import Kind, Setting
from icewright.config.settings import CATALOG, SECTIONS
from icewright.identity.authentication import Access, loopback_hosts
from icewright.identity.sql import SqlIdentities
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.receivers import RECEIVER
from icewright.notifications.service import MessageDelivery
from icewright.policy import settings as policy_settings
from icewright.server.control import build_control_plane
from icewright.server.http.app import create_app
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from scripts.compare_api import breaking
from tests.doubles.clock import ManualClock
from tests.doubles.ids import SequentialIds
from tests.doubles.removals import removal_ports
from tests.lakes.stores import new_store

DOCS: Final = Path(__file__).parent.parent / "docs"
OPENAPI: Final = DOCS / "openapi.json"
_BLOCK = re.compile(r"(<!-- generated: (?P<name>[a-z]+) -->\n).*?(<!-- end of generated -->)", re.DOTALL)
_DOCUMENT: Final = "/api/v1/openapi.json"
_PORT: Final = 7077
_NOBODYS_TOKEN: Final = "unused"  # noqa: S105 - of a server that only lives for one question
_ERRORS_FROM: Final = 400
_SAID_ONCE: Final = frozenset({"304", "4XX", "401", "503"})
"""Said of every route, so the page says it once."""


def configuration() -> str:
    """The settings of ``icewright.toml``, a table per section."""
    parts = []
    for section, settings in SECTIONS.items():
        parts += [f"### `[{section}]`", "", "| key | default | environment | meaning |", "|---|---|---|---|"]
        for one in settings:
            variable = f"{ENVIRONMENT_PREFIX}{section.upper()}__{one.key.upper()}"
            parts.append(f"| `{one.key}` | {_default(one)} | `{variable}` | {_meaning(one)} |")
        parts.append("")
    parts += ["### `[[catalogs]]`", "", "| key | type | meaning |", "|---|---|---|"]
    parts.append("| `name` | a string, required | The catalog's name: letters, digits, `_` and `-`. |")
    parts += [f"| `{one.key}` | {_kind(one)} | {_meaning(one)} |" for one in CATALOG]
    parts += ["", "### `[receivers.NAME]`", "", "| key | default | meaning |", "|---|---|---|"]
    parts += [
        f"| `{one.key}` | {'required' if one.required else _default(one)} | {_meaning(one)} |" for one in RECEIVER
    ]
    return "\n".join([*parts, ""])


def policy() -> str:
    """The table properties that make up a policy."""
    return policy_settings.documentation()


def commands() -> str:
    """Every command of the command line with its arguments and options."""
    root = typer.main.get_command(command_line)
    parts = [_help_of(root), "", "Options before the command:", "", *_options(root), ""]
    for words, command in _leaves(root, "icewright"):
        parts += [
            f"### `{words}`",
            "",
            f"`{_usage(words, command)}`",
            "",
            _help_of(command),
            "",
            *_options(command),
            "",
        ]
    return "\n".join([*parts[:-1], ""])


def routes() -> str:
    """Every route of the HTTP API, from its OpenAPI document."""
    found = document()
    parts = [found["info"]["description"].strip(), ""]
    tags: dict[str, list[str]] = {}
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            tags.setdefault(operation["tags"][0], []).extend(_route(method.upper(), path, operation))
    for tag, lines in tags.items():
        parts += [f"### {tag.capitalize()}", "", *lines]
    return "\n".join(parts)


def document() -> Any:
    """The OpenAPI document of a server over nothing."""
    store, clock = new_store(), ManualClock()
    tables, tasks, delivery = SqlTableStore(store), SqlTaskStore(store), MessageDelivery(SqlMessages(store))
    control = build_control_plane(
        {},
        tables,
        tasks,
        clock,
        SequentialIds(),
        removal_ports(store, clock),
        SqlUndoRecordStore(store),
        delivery,
        decisions=SqlDecisions(store, clock),
    )
    hosts = loopback_hosts("127.0.0.1", _PORT)
    app = create_app(control, Access(_NOBODYS_TOKEN, hosts, SqlIdentities(store), SqlAudit(store)))
    with TestClient(app, f"http://127.0.0.1:{_PORT}", headers={"Authorization": f"Bearer {_NOBODYS_TOKEN}"}) as client:
        return client.get(_DOCUMENT).raise_for_status().json()


def stored() -> str:
    """The OpenAPI document as it is kept in docs/."""
    return json.dumps(document(), indent=1) + "\n"


def shape(schema: Any) -> str:
    """A schema in a few words: the document itself says the rest. Raises ``ValueError`` where it would say nothing."""
    match schema:
        case {"$ref": str(name)}:
            return f"`{name.rsplit('/', 1)[-1]}`"
        case {"anyOf": [_, *_] as members}:
            return " or ".join(map(shape, members))
        case {"properties": {"items": {"items": item}, "next_cursor": _, **others}} if not others:
            return f"a page of {shape(item)}"
        case {"properties": {**properties}} if properties:
            required = [f"`{name}`" for name in properties if name in schema.get("required", ())]
            optional = [f"`{name}`" for name in properties if name not in schema.get("required", ())]
            said = [", ".join(required)] if required else []
            said += [f"optional {', '.join(optional)}"] if optional else []
            return f"an object with {'; '.join(said)}"
        case _:
            raise ValueError(f"there are no words for {schema}")


GENERATED: Final[Mapping[str, Callable[[], str]]] = {
    "configuration": configuration,
    "policy": policy,
    "commands": commands,
    "routes": routes,
}


def rendered(text: str) -> str:
    """A page with its generated parts as the code has them now."""
    return _BLOCK.sub(lambda match: match[1] + "\n" + GENERATED[match["name"]]() + "\n" + match[3], text)


def pages() -> list[Path]:
    """The pages that have generated parts."""
    return [page for page in sorted(DOCS.rglob("*.md")) if _BLOCK.search(page.read_text(encoding="utf-8"))]


def main() -> int:
    """Write what is out of date."""
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = rendered(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"wrote {page.relative_to(DOCS.parent)}")
    before, after = OPENAPI.read_text(encoding="utf-8"), stored()
    if after != before:
        for broken in breaking(json.loads(before), json.loads(after)):
            print(f"callers may break, which CHANGELOG.md has to say: {broken}")
        OPENAPI.write_text(after, encoding="utf-8")
        print(f"wrote {OPENAPI.relative_to(DOCS.parent)}")
    return 0


def _default(one: Setting) -> str:
    if one.default is None:
        return "none"
    if isinstance(one.default, tuple):
        return ", ".join(f"`{item}`" for item in one.default) or "none"
    return f"`{one.default}`"


def _kind(one: Setting) -> str:
    return f"{one.kind}, required" if one.required else str(one.kind)


def _meaning(one: Setting) -> str:
    allowed = "" if not one.allowed else f" Allowed: {one.allowed.rstrip('.')}."
    environment = " In the environment: JSON." if one.kind is Kind.MAPPING else ""
    return f"{one.about}{allowed}{environment}".replace("|", r"\|")


def _leaves(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield words, command
        return
    for name, one in below.items():
        yield from _leaves(one, f"{words} {name}")


def _usage(words: str, command: Any) -> str:
    arguments = [_metavar(one) if one.required else f"[{_metavar(one)}]" for one in command.params if _is_argument(one)]
    needed = [f"{one.opts[0]} {_metavar(one)}" for one in command.params if not _is_argument(one) and one.required]
    return " ".join([words, *arguments, *needed])


def _help_of(command: Any) -> str:
    return "\n".join(line.strip() for line in str(command.help).strip().splitlines())


def _options(command: Any) -> Iterator[str]:
    if not command.params:
        yield "No options."
        return
    yield "| option | default | meaning |"
    yield "|---|---|---|"
    for one in command.params:
        names = [_metavar(one)] if _is_argument(one) else [*one.opts, *one.secondary_opts]
        default = "" if one.default is None or one.default is False or one.required else f"`{one.default}`"
        yield f"| {', '.join(f'`{name}`' for name in names)} | {default} | {one.help or ''} |"


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _route(method: str, path: str, operation: Any) -> Iterator[str]:
    yield f"`{method} {path}`"
    yield ""
    yield " ".join(operation["description"].replace("``", "`").split())
    parameters = [one for one in operation.get("parameters", ()) if one.get("in") == "query"]
    body = operation.get("requestBody")
    yield ""
    for one in parameters:
        meaning = one.get("description", "")
        default = one["schema"].get("default")
        yield f"- `{one['name']}`: {meaning}{'' if default is None else f' Default {default}.'}"
    if body is not None:
        yield f"- body: {shape(body['content']['application/json']['schema'])}"
    for status, answer in operation["responses"].items():
        if status.isdigit() and int(status) < _ERRORS_FROM and status not in _SAID_ONCE:
            content = answer.get("content", {}).get("application/json")
            yield f"- {status}: {shape(content['schema']) if content is not None else answer['description']}"
        elif status not in _SAID_ONCE:
            yield f"- {status}: {answer['description']}"
    yield ""


if __name__ == "__main__":
    sys.exit(main())
