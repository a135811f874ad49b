"""Java for the servers that are written in it: the one of Spark, Spark's own jars, and jars that Ivy brings.

Ivy is among Spark's jars and knows by itself where packages come from.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import threading
from importlib.util import find_spec
from pathlib import Path


def _spark_jars() -> Path:
    found = find_spec("pyspark")  # without loading it, which takes a while
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "jars"


SPARK_JARS = _spark_jars()
_SMALL = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_CLASSPATHS = Path.home() / ".ivy2" / "icewright-tests"
_RESOLVING = threading.Lock()


def java(*arguments: str) -> list[str]:
    """The command line of a small JVM."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    assert found, "there is no java on the path"
    return [found, *_SMALL, *arguments]


def resolve(ivy_file: Path) -> str:
    """The class path of an Ivy file's dependencies, fetched when they are not in Ivy's cache yet."""
    key = hashlib.sha256(ivy_file.read_bytes()).hexdigest()[:16]
    known = _CLASSPATHS / f"{key}.classpath"
    with _RESOLVING:
        if not (known.is_file() and all(Path(jar).is_file() for jar in known.read_text().strip().split(os.pathsep))):
            known.parent.mkdir(parents=True, exist_ok=True)
            (ivy,) = SPARK_JARS.glob("ivy-*.jar")
            written = known.with_suffix(f".{os.getpid()}")
            command = java("-jar", str(ivy), "-ivy", str(ivy_file), "-cachepath", str(written), "-warn")
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - found above
            assert done.returncode == 0, f"Ivy could not fetch {ivy_file.name}: {done.stdout[-4000:]}{done.stderr}"
            written.replace(known)
        return known.read_text().strip()
