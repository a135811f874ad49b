"""An application of Spark's for each task, by Spark's own ``spark-submit``."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from icewright.core.clock import Ids
from icewright.core.errors import InvalidConfiguration
from icewright.core.system_clock import SystemIds
from icewright.model.work.optimizers import OptimizerSettings
from icewright.work.launch.port import Trace
from icewright.work.launch.process import LeadingProcess
from icewright.work.launch.submission import SETTINGS_FILE, SparkHome, Submission, submission

LOG_FILE: Final = "log.txt"
FOLDERS_KEPT: Final = 20
"""Folders of the latest applications stay, for whoever wants to read their logs."""
_READ_BYTES: Final = 1 << 20
_CLUSTER_ID: Final = (
    re.compile(r"\b(application_[0-9]{1,20}_[0-9]{1,10})\b"),
    re.compile(r"\bwith app ID (app-[0-9]{1,20}-[0-9]{1,10})\b"),
    re.compile(r"\bpod name: ([a-z0-9][a-z0-9.-]{0,252})"),
)
_URL: Final = re.compile(r"\btracking URL: (https?://[^\s<>\"]{1,500})", re.IGNORECASE)


class SubmittedApplication(LeadingProcess):
    """One run of ``spark-submit``; its folder has what it was started with, and its log.

    Where it is killed, a driver in the cluster goes on, and ends after its task.
    """

    def __init__(self, name: str, told: Submission, folder: Path) -> None:
        self.name, self.folder = name, folder
        for file_name, text in told.files.items():
            with os.fdopen(_created(folder / file_name), "w", encoding="utf-8") as file:
                file.write(text)
        log = _created(folder / LOG_FILE)
        try:
            super().__init__(told.argv, output=log, environ=told.environ)
        finally:
            os.close(log)

    def poll(self) -> int | None:
        """See the port."""
        return self._settled(super().poll())

    def wait(self) -> int:
        """See the port."""
        code = super().wait()
        self._settled(code)
        return code

    def stop(self) -> None:
        """See the port: it ends after its task."""

    def trace(self) -> Trace:
        """See the port."""
        log = self.folder / LOG_FILE
        try:
            with log.open("rb") as file:
                text = file.read(_READ_BYTES).decode(errors="replace")
        except OSError:
            return Trace(log)
        found = next((hit[1] for pattern in _CLUSTER_ID if (hit := pattern.search(text))), None)
        url = _URL.search(text)
        return Trace(log, found, url[1] if url else None)

    def _settled(self, code: int | None) -> int | None:
        if code is not None:
            (self.folder / SETTINGS_FILE).unlink(missing_ok=True)  # it has secrets, and nobody needs it any more
        return code


class SparkSubmitLauncher:
    """Submits applications. ``folder`` is where each gets a folder of its own, for its owner's eyes.

    ``secret`` is the name of the Kubernetes Secret with the settings of drivers that run there.
    """

    def __init__(self, home: SparkHome, folder: Path, environ: Mapping[str, str], *, secret: str | None = None) -> None:
        self._home, self._folder, self._environ, self._secret = home, folder, environ, secret
        self._ids: Ids = SystemIds()
        self._started: list[SubmittedApplication] = []

    def start(self, settings: OptimizerSettings) -> SubmittedApplication:
        """See the port."""
        folder = self._folder / self._ids.new("application")
        told = submission(settings, self._home, str(folder), self._environ, secret=self._secret)
        self._forget_old()
        folder.mkdir(mode=0o700)
        application = SubmittedApplication(settings.optimizer_id, told, folder)
        self._started.append(application)
        return application

    def _forget_old(self) -> None:
        """Remove the folders of all but the latest applications and those that run."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._started = [application for application in self._started if application.poll() is None]
        running = {application.folder.name for application in self._started}
        names = sorted(path.name for path in self._folder.iterdir() if path.is_dir())
        for name in names[:-FOLDERS_KEPT]:
            if name not in running:
                shutil.rmtree(self._folder / name, ignore_errors=True)


def spark_home(configured: str | None) -> str:
    """Where Spark is: as configured, or the one that PySpark brings. Raises :class:`InvalidConfiguration`."""
    if configured is not None:
        path = Path(configured)
    else:
        found = find_spec("pyspark")  # without loading it
        if found is None or found.origin is None:
            raise InvalidConfiguration("pyspark is not installed", hint="pip install 'icewright[spark]'")
        path = Path(found.origin).parent
    if not path.is_absolute() or not (path / "bin" / "spark-submit").is_file():
        raise InvalidConfiguration(f"there is no bin/spark-submit in {path}", hint="see optimizer.spark_home")
    return str(path)


def _created(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
