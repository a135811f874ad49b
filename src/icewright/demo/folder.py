"""The folder of the demo: one directory that holds its lake, its configuration, its state and its logs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from icewright.core.errors import NotAllowed
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind

CATALOG = "demo"
_MARK = ".icewright-demo"

_CONFIGURATION = """\
# The demo's configuration. Yours would look the same, with mode = "observe" until you say otherwise.

[server]
state_dir = "{state}"
lease_ms = 10000

[optimizer]
master = "local[2]"

[[catalogs]]
name = "{catalog}"
type = "sql"
uri = "{uri}"
warehouse = "{warehouse}"
mode = "auto"
"""


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """The paths of one demo."""

    path: Path

    @property
    def configuration(self) -> Path:
        """The ``icewright.toml`` of the demo."""
        return self.path / "icewright.toml"

    @property
    def state(self) -> Path:
        """The server's state directory."""
        return self.path / "state"

    @property
    def entry(self) -> CatalogEntry:
        """The demo's catalog."""
        return CatalogEntry(
            CATALOG, CatalogKind.SQL, f"sqlite:///{self.path / 'catalog.db'}", str(self.path / "warehouse")
        )

    def log(self, name: str) -> Path:
        """Where a process of the demo writes its log."""
        return self.path / f"{name}.log"

    def create(self) -> None:
        """Make the folder, empty but for the configuration; a demo of before is removed.

        Raises :class:`NotAllowed` when the path holds something else.
        """
        self.remove()
        self.path.mkdir(parents=True)
        (self.path / _MARK).touch()
        (self.path / "warehouse").mkdir()
        entry = self.entry
        self.configuration.write_text(
            _CONFIGURATION.format(state=self.state, catalog=entry.name, uri=entry.uri, warehouse=entry.warehouse),
            encoding="utf-8",
        )

    def remove(self) -> bool:
        """Remove the folder with all that is in it; False when there is none.

        Raises :class:`NotAllowed` for a folder that no demo made.
        """
        if not self.path.exists():
            return False
        if not (self.path / _MARK).exists():
            raise NotAllowed(f"{self.path} was not made by the demo; it is left alone", hint="choose another --folder")
        shutil.rmtree(self.path)
        return True
