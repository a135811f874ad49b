"""Says what this machine lacks before anything is installed. Runs on any Python 3, with its standard library alone."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

PYTHON_MIN = (3, 11)
JAVA_VERSIONS = (17, 21)


def java_version() -> int | None:
    """The major version of the Java on the path, None without one."""
    java = shutil.which("java")
    if java is None:
        return None
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603 - java as found on the path
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found.group(1)) if found else None


def main() -> str | None:
    """Exit with a message that says what to install, or silently."""
    if sys.version_info < PYTHON_MIN:
        return f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}. Try: make PYTHON=python3.11"
    found = java_version()
    if found not in JAVA_VERSIONS:
        what = "there is no java on the path" if found is None else f"this is Java {found}"
        hint = "On Debian and Ubuntu: apt-get install openjdk-17-jre-headless"
        return f"Java 17 or 21 is needed for Spark; {what}. {hint}"
    return None


if __name__ == "__main__":
    sys.exit(main())
