"""Part of the build of the wheel: the web pages are in it, so that whoever installs it needs no Node.

They are built here where npm is, and taken as they are where somebody has built them before, as images do.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuildWebPages(BuildHookInterface[Any]):
    """What hatchling calls before it collects files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the pages. Raises ``RuntimeError`` where they are missing and cannot be built."""
        del build_data
        if version != "editable":  # there `make web` builds them, and the server says so where nobody has
            build(Path(self.root), shutil.which("npm"))


def build(root: Path, npm: str | None) -> None:
    """Build the pages of the sources at ``root``."""
    web, built = root / "web", root / "src/icewright/server/http/static/ui/index.html"
    if npm is not None and (web / "package.json").is_file():
        if not (web / "node_modules").is_dir():
            subprocess.run([npm, "ci", "--silent"], cwd=web, check=True)  # noqa: S603 - npm as found
        subprocess.run([npm, "run", "--silent", "build"], cwd=web, check=True)  # noqa: S603 - npm as found
    if not built.is_file():
        raise RuntimeError("the wheel would have no web pages: npm (Node 20.19 or newer) has to build them from web/")
