"""What differs between two versions in all that others build on: API, commands, configuration, metrics and database.

    python -m scripts.compare_behaviour OLD [NEW]

OLD and NEW are commits, or folders with a checkout; NEW is this checkout unless it is given. Prints a line for each
name that went or came (``- api: ...``, ``+ cli: ...``); exit status 1 where there are any. The first four are read from
the references in docs/, which a test holds to the code; the database is made by the migrations of either version.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

ROOT: Final = Path(__file__).parent.parent
Surfaces: TypeAlias = Mapping[str, frozenset[str]]

_HEADING: Final = re.compile(r"#{2,4} `(?P<name>[^`]+)`")
_BLOCK: Final = re.compile(r"<!-- generated: (?P<name>[a-z]+) -->\n(?P<text>.*?)<!-- end of generated -->", re.DOTALL)
_ROW: Final = re.compile(r"\| (?P<names>`[^|]+)\|(?P<value>[^|]*)\|")
_METRIC: Final = re.compile(r"\| `(?P<name>icewright_\w+)` \|(?P<labels>[^|]*)\|")
_SCHEMA: Final = """
import sys
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text
config = Config()
config.set_main_option("script_location", sys.argv[1])
with create_engine("sqlite://").begin() as connection:
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    for (made,) in connection.execute(text("select sql from sqlite_master where sql is not null")):
        print(" ".join(made.split()))
"""


def surfaces(checkout: Path) -> Surfaces:
    """All names of a version, by what they are names of."""
    docs = checkout / "docs"
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(docs.glob("*.md")))
    blocks = {found["name"]: found["text"] for found in _BLOCK.finditer(text)}
    metrics = (f"{found['name']} {found['labels'].strip()}".strip() for found in _METRIC.finditer(text))
    return {
        "api": frozenset(api(json.loads((docs / "openapi.json").read_text(encoding="utf-8")))),
        "cli": frozenset(rows(blocks["commands"])),
        "configuration": frozenset(rows(blocks["configuration"] + blocks["policy"])),
        "metrics": frozenset(metrics),
        "database": frozenset(database(checkout)),
    }


def api(document: Any) -> Iterator[str]:
    """Operations with what they take and answer, and the properties of all schemas with their types."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            where = f"{method.upper()} {path}"
            yield f"{where} {operation['operationId']}"
            yield from (f"{where} ?{_compact(one)}" for one in operation.get("parameters", ()))
            yield from (f"{where} -> {status}" for status in operation["responses"])
    for name, schema in document["components"]["schemas"].items():
        required = schema.get("required", ())
        yield f"{name} {_compact({key: schema[key] for key in ('enum', 'type') if key in schema})}"
        for field, its in schema.get("properties", {}).items():
            yield f"{name}.{field}{'' if field in required else '?'} {_compact(its)}"


def rows(block: str) -> Iterator[str]:
    """Headings that are code, and below each the first two cells of its rows: a name, and what holds by default."""
    heading = ""
    for line in block.splitlines():
        if found := _HEADING.match(line):
            heading = found["name"]
            yield heading
        elif found := _ROW.match(line):
            yield f"{heading} {found['names'].strip()} {found['value'].strip()}".strip()


def database(checkout: Path) -> list[str]:
    """The statements that a new database on SQLite is made of."""
    (environment,) = (checkout / "src").rglob("migrations/env.py")
    command = [sys.executable, "-c", _SCHEMA, str(environment.parent)]
    environ = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    made = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)  # noqa: S603 - our own words
    return made.stdout.splitlines()


def differences(old: Surfaces, new: Surfaces) -> list[str]:
    """A line for each name that went or came."""
    return [
        line
        for what in new
        for line in (
            *(f"- {what}: {name}" for name in sorted(old[what] - new[what])),
            *(f"+ {what}: {name}" for name in sorted(new[what] - old[what])),
        )
    ]


def checkout_of(version: str, folder: Path) -> Path:
    """A folder with the sources and the docs of a version: itself where it is one, else those of a commit."""
    if Path(version).is_dir():
        return Path(version)
    packed = subprocess.check_output(["git", "archive", version, "src", "docs"], cwd=ROOT)  # noqa: S603, S607 - git as it is found
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(folder, filter="data")
    return folder


def _compact(schema: Any) -> str:
    """A part of the document without the words for people."""
    return re.sub(
        r'"(?:description|title|examples?)": "(?:[^"\\]|\\.)*"(?:, )?', "", json.dumps(schema, sort_keys=True)
    )


def main(arguments: list[str]) -> int:
    """Compare two versions."""
    if not 1 <= len(arguments) <= 2:  # noqa: PLR2004 - the old one, and perhaps a new one
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as old, tempfile.TemporaryDirectory() as new:
        before = checkout_of(arguments[0], Path(old))
        after = checkout_of(arguments[1], Path(new)) if len(arguments) > 1 else ROOT
        found = differences(surfaces(before), surfaces(after))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
