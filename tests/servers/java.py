"""Java for the servers that are written in it: the one of Spark, Spark's own jars, and jars that Ivy brings.

Ivy is among Spark's jars and knows by itself where packages come from. Its cache is not made for two processes that
fill it at once, and tests run in several: one fetches, the others wait for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from icewright.model.iceberg.object_stores import AWS_PACKAGE
from icewright.model.iceberg.sql_urls import POSTGRESQL_PACKAGE, SQLITE_PACKAGE
from icewright.model.work.optimizers import ICEBERG_RUNTIME


def _spark_jars() -> Path:
    found = find_spec("pyspark")  # without loading it, which takes a while
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "jars"


SPARK_JARS = _spark_jars()
_SPARK_SUBMIT = SPARK_JARS.parent / "bin" / "spark-submit"
# Hadoop has chmod run for each file that it makes on a local disk, and Java its own helper each time to start that.
_NO_HELPER = ("-Djdk.lang.Process.launchMechanism=VFORK",) if sys.platform == "linux" else ()
QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=128m", *_NO_HELPER)
"""Options of a JVM that lives for minutes: one compiler, room for what it makes, no threads that collect garbage."""
_SMALL = ("-Xmx384m", *QUICK)
_CLASSPATHS = Path.home() / ".ivy2" / "icewright-tests"
_FETCHED = Path.home() / ".ivy2.5.2" / "jars"
"""Where Spark puts what Ivy fetches for it."""
PACKAGES = (ICEBERG_RUNTIME, SQLITE_PACKAGE, POSTGRESQL_PACKAGE, AWS_PACKAGE)
_JARS = tuple(str(_FETCHED / "{}_{}-{}.jar".format(*package.split(":"))) for package in PACKAGES)
CLASS_PATH = os.pathsep.join(_JARS)
"""What Spark finds by ``SPARK_DIST_CLASSPATH``: Java archives no class of packages that Spark adds as it starts."""
_WARM_UP = """
import sys
from pyspark.sql import SparkSession

folder = sys.argv[1]
conf = {
    "spark.ui.enabled": "false",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "jdbc",
    "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{folder}/lake.db",
    "spark.sql.catalog.lake.warehouse": folder,
}
spark = SparkSession.builder.config(map=conf).getOrCreate()
spark.range(100).selectExpr("id % 3 AS k", "cast(id AS string) AS v").createOrReplaceTempView("t")
spark.sql("SELECT k, count(v) FROM t WHERE v <> '7' GROUP BY k ORDER BY k").collect()
spark.range(9).mapInArrow(lambda batches: batches, "id bigint").collect()
spark.sql("CREATE NAMESPACE lake.db")
options = "'format-version' = '2', 'write.delete.mode' = 'merge-on-read'"
spark.sql(f"CREATE TABLE lake.db.t (id bigint, v string) USING iceberg TBLPROPERTIES ({options})")
for _ in range(2):
    spark.sql("INSERT INTO lake.db.t SELECT id, cast(id AS string) FROM range(0, 100, 1, 2)")
spark.sql("DELETE FROM lake.db.t WHERE id = 3")
spark.sql("SELECT v, count(*) FROM lake.db.t GROUP BY v").collect()
spark.stop()
"""


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
    with _alone():
        if not (known.is_file() and all(Path(jar).is_file() for jar in known.read_text().strip().split(os.pathsep))):
            (ivy,) = SPARK_JARS.glob("ivy-*.jar")
            written = known.with_suffix(f".{os.getpid()}")
            _fetch(java("-jar", str(ivy), "-ivy", str(ivy_file), "-cachepath", str(written), "-warn"), ivy_file.name)
            written.replace(known)
        return known.read_text().strip()


def fetch_for_spark(packages: Iterable[str], folder: Path) -> None:
    """Have Spark fetch packages into its own cache, once on this machine; ``folder`` is for what it needs to do so."""
    names = ",".join(sorted(packages))
    done = _CLASSPATHS / f"{hashlib.sha256(names.encode()).hexdigest()[:16]}.spark"
    with _alone():
        if done.is_file():
            return
        nothing = folder / "nothing.py"
        nothing.write_text("")
        _fetch([str(_SPARK_SUBMIT), "--master", "local[1]", "--packages", names, str(nothing)], names)
        done.touch()


@cache
def jars_for_spark() -> tuple[str, ...]:
    """Jars for a Spark that asks Ivy for none: the smallest, since ``SPARK_DIST_CLASSPATH`` has all of ``PACKAGES``.

    Spark copies what it is given. Ivy's way is that of tests/e2e/test_demo_e2e.py, and of all that run on a cluster,
    whose executors have no such class path.
    """
    with tempfile.TemporaryDirectory() as folder:
        fetch_for_spark(PACKAGES, Path(folder))
    return (_JARS[PACKAGES.index(POSTGRESQL_PACKAGE)],)


def spark_options() -> str:
    """Options of Spark's JVMs in tests: quick ones, with their classes from an archive where it was made."""
    return " ".join((*QUICK, f"-XX:SharedArchiveFile={_archive()}", "-Xlog:disable"))


def archive_for_spark() -> None:
    """Have a JVM keep the classes that a session loads (CDS), once for this environment: it halves the next starts."""
    archive = _archive()
    if archive.is_file():
        return
    made = archive.with_suffix(f".{os.getpid()}")
    options = " ".join((*QUICK, f"-XX:ArchiveClassesAtExit={made}", "-Xlog:disable"))
    environ = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_SUBMIT_OPTS": options,
        "SPARK_DIST_CLASSPATH": CLASS_PATH,
    }
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "warm_up.py")
        script.write_text(_WARM_UP)
        command = [str(_SPARK_SUBMIT), "--master", "local[1]", str(script), folder]
        _fetch(command, "Spark's archive of classes", environ)
    made.replace(archive)


def _archive() -> Path:
    """It holds for one JVM and one class path, so it lies beside Spark's jars."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java") or ""
    named = f"{os.path.realpath(found)} {SPARK_JARS} {version('pyspark')} {CLASS_PATH} {_WARM_UP}"
    return Path(sys.prefix) / f"spark-{hashlib.sha256(named.encode()).hexdigest()[:16]}.jsa"


@contextmanager
def _alone() -> Iterator[None]:
    """One process, and one thread of it, at a time."""
    _CLASSPATHS.mkdir(parents=True, exist_ok=True)
    with (_CLASSPATHS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(command: list[str], what: str, environ: Mapping[str, str] = os.environ) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)  # noqa: S603 - found above
    assert done.returncode == 0, f"{what} could not be fetched: {done.stdout[-4000:]}{done.stderr[-4000:]}"
