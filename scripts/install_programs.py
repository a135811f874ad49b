"""Installs the programs that some tests need and no Python package brings: PostgreSQL and Chromium, from the system's.

Only on Debian and its kin, and only where it may be done without asking for a password; elsewhere it says so, and those
tests are skipped by name. Runs on any Python 3, with its standard library alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

_ENVIRONMENT: Final = {"DEBIAN_FRONTEND": "noninteractive"}
BROWSERS: Final = ("chromium-headless-shell", "chromium", "google-chrome")
"""Those that tests look for, in this order; see ``tests/browser/conftest.py``."""


def missing() -> dict[str, str]:
    """The packages that are to be installed, and what their tests are on."""
    has_postgresql = shutil.which("initdb") is not None or any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    has_browser = any(shutil.which(name) for name in BROWSERS)
    needs = {"postgresql": ("PostgreSQL", has_postgresql), BROWSERS[0]: ("the page in a browser", has_browser)}
    return {package: what for package, (what, is_there) in needs.items() if not is_there}


def as_root() -> list[str] | None:
    """What to put before a command so that root runs it, None where that needs a password."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo is None:
        return None
    command = [sudo, "-n"]
    answer = subprocess.run([*command, "true"], capture_output=True, check=False)  # noqa: S603 - sudo as found
    return command if answer.returncode == 0 else None


def install(command: list[str], package: str) -> bool:
    """Whether a package could be installed by ``command``, which is apt-get's."""
    wanted = [*command, "install", package]
    if subprocess.run(wanted, stdout=subprocess.DEVNULL, check=False).returncode == 0:  # noqa: S603 - apt-get as found
        return True
    # A fresh container has no lists of packages.
    subprocess.run([*command, "update"], stdout=subprocess.DEVNULL, check=False)  # noqa: S603 - apt-get as found
    return subprocess.run(wanted, stdout=subprocess.DEVNULL, check=False).returncode == 0  # noqa: S603 - see above


def main() -> None:
    """Install what is missing, as far as that can be done, and say what is left out."""
    prefix, apt = as_root(), shutil.which("apt-get")
    for package, what in missing().items():
        if prefix is None or apt is None:
            print(f"{package} is not installed and cannot be installed from here: tests on {what} will be skipped")
            continue
        print(f"installing {package} by apt-get, for the tests on {what}")
        environment = ["env", *(f"{key}={value}" for key, value in _ENVIRONMENT.items())]
        if not install([*prefix, *environment, apt, "-qq", "-y", "--no-install-recommends"], package):
            print(f"{package} could not be installed: tests on {what} will be skipped")


if __name__ == "__main__":
    main()
