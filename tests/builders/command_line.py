"""The command line as a test uses it: in this process, on a lake of its own, away from the user's own settings."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from icewright.app.main import app
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.server.control import ControlPlane
from tests.builders.served import TOKEN, at_a_port
from tests.lakes.house import House, serving
from tests.lakes.sqlite import BY_CITY, append, make_lake, make_table

_House = TypeVar("_House", bound=House)

COMMAND = get_command(app)
"""Made once: CliRunner.invoke makes it for each command, which takes longer than most commands."""

HOSTILE = ("we'ird", "[bold]x`\x1b[31m\n\u202e🧊")


@dataclass(frozen=True, slots=True)
class Said:
    """What a command said, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


def icewright(*arguments: str) -> Said:
    """Run a command; an exception that it does not expect is raised here."""
    with CliRunner().isolation() as (out, err, _both):
        with pytest.raises(SystemExit) as ended:
            COMMAND.main(args=list(arguments), prog_name="icewright")
        sys.stdout.flush()
        sys.stderr.flush()
        said, complained = (stream.getvalue().decode().replace("\r\n", "\n") for stream in (out, err))
    assert isinstance(ended.value.code, int)
    return Said(ended.value.code, said, complained)


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    @property
    def plain(self) -> str:
        """What was written, without styles."""
        return _STYLES.sub("", self.getvalue())


_STYLES = re.compile(r"\x1b\[[0-9;]*m")


def on_screen(*arguments: str, width: int = 80) -> Said:
    """Run a command at a terminal of so many columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        patch.setenv("TERM", "xterm")  # a dumb one has 80 columns for rich, whatever is said
        patch.setattr("sys.stdout", out := Screen())
        patch.setattr("sys.stderr", err := Screen())
        with pytest.raises(SystemExit) as ended:
            COMMAND.main(args=list(arguments), prog_name="icewright")
    assert isinstance(ended.value.code, int)
    return Said(ended.value.code, out.plain, err.plain)


def at_home(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """From now on commands run in a folder with a home of its own, and the environment says nothing of icewright."""
    patch.chdir(folder)
    patch.setenv("HOME", str(folder / "home"))
    for name in ("ICEWRIGHT_CONFIG", "ICEWRIGHT_TOKEN"):
        patch.delenv(name, raising=False)


@contextmanager
def beside(control: ControlPlane, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """The control plane behind a socket: what the environment names to commands, which run in a folder."""
    with at_a_port(control) as url:
        at_home(folder, patch)
        patch.setenv("ICEWRIGHT_URL", url)
        patch.setenv("ICEWRIGHT_TOKEN", TOKEN)
        yield


@contextmanager
def within(house: _House, patch: pytest.MonkeyPatch) -> Iterator[_House]:
    """The house behind a socket: what commands find by the configuration in its folder."""
    write_configuration(house.folder, house.entry)
    at_home(house.folder, patch)
    with serving(house):
        yield house


def write_configuration(folder: Path, entry: CatalogEntry, more: str = "") -> None:
    """``icewright.toml`` for one catalog, its state beside it."""
    text = f'[server]\nport = 0\nstate_dir = "state"\n{_catalog(entry)}{more}'
    (folder / "icewright.toml").write_text(text)


def _catalog(entry: CatalogEntry) -> str:
    values = {"name": entry.name, "type": "sql", "uri": entry.uri, "warehouse": entry.warehouse}
    places = {"quarantine": list(entry.quarantine)} if entry.quarantine else {}
    return "[[catalogs]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in {**values, **places}.items())


def make_sample_lake(folder: Path) -> CatalogEntry:
    """A table of many small files, a good one, an empty one, one with a hostile name, and a broken one."""
    entry = make_lake(folder)
    busy = make_table(entry, spec=BY_CITY)
    for first in range(0, 60, 10):
        append(busy, range(first, first + 10), ("Bonn", "Kyoto"))
    append(make_table(entry, ("db", "good")), range(100))
    make_table(entry, ("db", "empty"))
    append(make_table(entry, HOSTILE), range(3))
    broken = make_table(entry, ("db", "broken"))
    append(broken, range(3))
    Path(broken.metadata_location.removeprefix("file://")).unlink()
    return entry
