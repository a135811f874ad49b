"""Installs the servers that some tests need and no Python package brings: PostgreSQL, from the system's packages.

Only on Debian and its kin, and only where it may be done without asking for a password; elsewhere it says so, and those
tests are skipped by name. Runs on any Python 3, with its standard library alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

PACKAGE: Final = "postgresql"
_ENVIRONMENT: Final = {"DEBIAN_FRONTEND": "noninteractive"}


def is_there() -> bool:
    """Whether PostgreSQL's server is installed."""
    return shutil.which("initdb") is not None or any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


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


def main() -> int:
    """Install what is missing; the exit status is that of the installation, 0 where it is left out."""
    if is_there():
        return 0
    prefix, apt = as_root(), shutil.which("apt-get")
    if prefix is None or apt is None:
        print(f"{PACKAGE} is not installed and cannot be installed from here: tests on PostgreSQL will be skipped")
        return 0
    print(f"installing {PACKAGE} by apt-get, for the tests on PostgreSQL")
    environment = ["env", *(f"{key}={value}" for key, value in _ENVIRONMENT.items())]
    command = [*prefix, *environment, apt, "-qq", "-y", "--no-install-recommends"]
    install = [*command, "install", PACKAGE]
    if subprocess.run(install, stdout=subprocess.DEVNULL, check=False).returncode == 0:  # noqa: S603 - apt-get as found
        return 0
    # A fresh container has no lists of packages.
    subprocess.run([*command, "update"], stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - apt-get as found
    return subprocess.run(install, stdout=subprocess.DEVNULL, check=False).returncode  # noqa: S603 - apt-get as found


if __name__ == "__main__":
    sys.exit(main())
