"""What holds for all tests: how many examples Hypothesis tries, the servers they share, that CI trusts no test."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from icewright.domain.optimizers import ICEBERG_RUNTIME
from tests.servers import java, rest
from tests.servers.hdfs import Hdfs, await_data_node, hdfs
from tests.servers.hive import HiveMetastore, hive_metastore
from tests.servers.postgres import PostgresServer, find_programs, postgres_server
from tests.servers.s3 import S3Server, s3_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REST_CATALOG_TESTS = (
    "tests/adapters/test_second_tables_on_rest.py",
    "tests/contracts/test_catalog_contract.py",
    "tests/spark/test_catalogs_on_spark.py",
    "tests/spark/test_commit_outcomes.py",
    "tests/spark/test_metrics_reports_on_spark.py",
)
KINDS = {"acceptance": 2, "simulation": 2, "browser": 2, "contracts": 3, "adapters": 3}
"""Folders of tests that take longer than others, by when they come."""
IN_MEMORY, IN_MEMORY_BYTES_MIN = Path("/dev/shm"), 8 << 30  # noqa: S108 - pytest makes folders of the user's alone
TEMP_ROOT = "PYTEST_DEBUG_TEMPROOT"
"""Where pytest makes its temporary folders."""
CAMPAIGN = bool(os.environ.get("ICEWRIGHT_CAMPAIGN"))

settings.register_profile(
    "short", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile(
    "campaign", deadline=None, max_examples=5_000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("campaign" if CAMPAIGN else "short")
# As icewright logs: structlog by itself shows all variables of each frame of an exception, which takes seconds.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """PostgreSQL; each test takes a database of its own."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (on Debian and Ubuntu: apt-get install postgresql)")
    with postgres_server(programs) as server:
        yield server


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An object store that speaks S3; each test takes a bucket of its own."""
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One real Spark session for all tests of the process; each test brings its own lake as a catalog of its own."""
    from icewright_spark.session import build_session  # noqa: PLC0415 - most tests need no Spark
    from tests.spark.conftest import settings as session_settings  # noqa: PLC0415 - the same

    session = build_session(session_settings())
    yield session
    session.stop()


@pytest.fixture
def other_file_system(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system than the test's own."""
    places = (place for place in (IN_MEMORY, Path("/var/tmp")) if place.stat().st_dev != tmp_path.stat().st_dev)  # noqa: S108 - a folder of its own there
    with tempfile.TemporaryDirectory(dir=next(places)) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """A Hive Metastore that all tests share."""
    with hive_metastore(tmp_path_factory.mktemp("metastore")) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """An HDFS that all tests share, with its one name space."""
    with hdfs(tmp_path_factory.mktemp("hdfs")) as server:
        await_data_node(server)
        yield server


@pytest.fixture(scope="session")
def rest_catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rest.RestCatalogServer]:
    """An Iceberg REST catalog that all tests share."""
    with rest.rest_catalog_server(tmp_path_factory.mktemp("rest")) as server:
        yield server


class OneSpark(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Files as wholes, since their fixtures are shared, and all of Spark in one process: one JVM."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "spark" if file.startswith(("tests/spark/", "tests/adversary/")) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneSpark | None:
    return OneSpark(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave long forms to the campaign. Where several processes share the tests, what takes longest comes first."""
    if not CAMPAIGN:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("campaign")])
        items[:] = [item for item in items if not item.get_closest_marker("campaign")]
    if hasattr(config, "workerinput"):
        items.sort(key=place)


def place(item: pytest.Item) -> int:
    """The place of a test in the order: Spark, real processes, long folders, all others."""
    folder = item.nodeid.split("/")[1]
    if folder in {"spark", "adversary"}:
        return 0
    return 1 if item.get_closest_marker("e2e") is not None else KINDS.get(folder, 4)


def pytest_configure(config: pytest.Config) -> None:
    """Let files of tests lie in memory where there is room: SQLite waits for the disk at each commit.

    No test takes the power from a machine, which is all that a disk would tell apart. Some start programs that they
    have written themselves.
    """
    if TEMP_ROOT in os.environ or config.option.basetemp is not None or not IN_MEMORY.is_dir():
        return
    there = os.statvfs(IN_MEMORY)
    if there.f_bavail * there.f_frsize >= IN_MEMORY_BYTES_MIN and not there.f_flag & os.ST_NOEXEC:
        os.environ[TEMP_ROOT] = str(IN_MEMORY)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Fetch what Spark needs before several processes want it at once, and fill one cache."""
    if session.config.getoption("numprocesses", None):
        from tests.spark.conftest import settings as session_settings  # noqa: PLC0415 - one process needs none of it

        with tempfile.TemporaryDirectory() as folder:
            java.fetch_for_spark({ICEBERG_RUNTIME, *session_settings().packages}, Path(folder))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch the jars of the REST catalog meanwhile, where a test will want them: the first time takes long."""
    wanted = any(item.nodeid.startswith(REST_CATALOG_TESTS) for item in session.items)
    if wanted and not session.config.option.collectonly:
        threading.Thread(target=java.resolve, args=(rest.NEEDS,), daemon=True).start()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """In CI a skipped test is a failure: it would look like one that passed."""
    skipped = terminalreporter.stats.get("skipped", [])
    if os.environ.get("CI") and skipped:
        for report in skipped:
            terminalreporter.write_line(f"skipped in CI: {report.nodeid}", red=True)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Make such a run fail."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and exitstatus == 0 and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
