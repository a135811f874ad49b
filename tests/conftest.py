"""What holds for all tests: how many examples Hypothesis tries, the servers they share, who runs which, what they cost.

CI trusts no test that was skipped, and no folder that takes twice its budget.
"""

from __future__ import annotations

import os
import tempfile
import threading
import tomllib
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from icewright.core.extras import without_collection
from tests.e2e import forks
from tests.lakes.stores import SharedStore, postgres_store, sqlite_store
from tests.servers import java, rest
from tests.servers.hdfs import Hdfs, await_data_node, hdfs
from tests.servers.hive import HiveMetastore, hive_metastore
from tests.servers.postgres import PostgresServer, find_programs, postgres_server
from tests.servers.s3 import S3Server, s3_server
from tests.servers.zookeeper import ZooKeeperServer, zookeeper_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from sqlalchemy import Engine

    from tests.builders.served import Served

REST_CATALOG_TESTS = (
    "tests/actions/undo/test_second_tables_on_rest.py",
    "tests/contracts/test_catalog_contract.py",
    "tests/spark/test_catalogs_on_spark.py",
    "tests/spark/test_commit_outcomes.py",
    "tests/spark/test_metrics_reports_on_spark.py",
)
PLACES = {
    **dict.fromkeys(("adversary", "benchmarks", "store", "contracts"), 1),
    **dict.fromkeys(("app", "identity", "server", "browser"), 3),
    "simulation": 4,
}
"""Folders between what is on Spark, at the front, and what has real processes; what is short is in the middle."""
MIDDLE, LAST = 2, 5
SERVERS = frozenset({"postgres", "s3", "metastore", "hdfs_cluster", "rest_catalog", "zookeeper"})
BUDGET = Path(__file__).with_name("budget.toml")
SLOWEST = 10
IN_MEMORY, IN_MEMORY_BYTES_MIN = Path("/dev/shm"), 8 << 30  # noqa: S108 - pytest makes folders of the user's alone
TEMP_ROOT = "PYTEST_DEBUG_TEMPROOT"
"""Where pytest makes its temporary folders."""
CAMPAIGN = bool(os.environ.get("ICEWRIGHT_CAMPAIGN"))
# Spark's JVMs live too short for the second compiler and for threads that collect garbage to be worth their CPU.
os.environ.setdefault("SPARK_SUBMIT_OPTS", java.spark_options())
os.environ.setdefault("SPARK_DIST_CLASSPATH", java.CLASS_PATH)
os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(java.QUICK))

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


@pytest.fixture(scope="session", autouse=True)
def forking() -> Iterator[None]:
    """Have all processes ended with the tests that are forked."""
    yield
    forks.end()


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
    from icewright_spark.session.session import build_session  # noqa: PLC0415 - most tests need no Spark
    from tests.spark.conftest import keep_checksums  # noqa: PLC0415 - the same
    from tests.spark.conftest import settings as session_settings  # noqa: PLC0415 - the same

    session = build_session(session_settings())
    keep_checksums(session, wanted=False)
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
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A ZooKeeper; each test takes a root of its own, and leaves it running."""
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(scope="session")
def rest_catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rest.RestCatalogServer]:
    """An Iceberg REST catalog that all tests share."""
    with rest.rest_catalog_server(tmp_path_factory.mktemp("rest")) as server:
        yield server


@pytest.fixture
def served() -> Served:
    """A server over a lake in memory."""
    from tests.builders.served import Served  # noqa: PLC0415 - most tests need no server

    return Served()


@pytest.fixture(scope="module")
def shared_store(postgres: PostgresServer) -> Iterator[SharedStore]:
    """One store on PostgreSQL for all tests of a module in turn, each of which empties it."""
    url = postgres_store(postgres)
    shared = SharedStore(url)
    yield shared
    shared.engine.dispose()
    postgres.drop(url)


@pytest.fixture
def engine(shared_store: SharedStore) -> Engine:
    """An empty store on PostgreSQL, for writers at once and for listeners of its own."""
    shared_store.empty()
    return shared_store.engine.execution_options()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """SQLAlchemy's URL of an empty database on PostgreSQL."""
    url = postgres.new_database()
    yield url
    postgres.drop(url)


@pytest.fixture
def postgres_store_url(postgres: PostgresServer) -> Iterator[str]:
    """SQLAlchemy's URL of a store on PostgreSQL at the newest schema."""
    url = postgres_store(postgres)
    yield url
    postgres.drop(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """SQLAlchemy's URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/icewright.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture(params=["sqlite", "postgresql"])
def migrated_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """SQLAlchemy's URL of a store at the newest schema, of each kind in turn."""
    if request.param == "sqlite":
        return sqlite_store(tmp_path / "icewright.db")
    return str(request.getfixturevalue("postgres_store_url"))


class FromBothEnds(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Files as wholes, since their fixtures are shared: every other process takes them from the end, until all meet.

    So what computes and what waits run side by side, most of Spark is in one JVM, and what is left for the last minute
    is short.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self.nodes.index(node) % 2:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FromBothEnds | None:
    return FromBothEnds(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave long forms to the campaign. Where several processes share the tests, what takes long is at both ends."""
    if not CAMPAIGN:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("campaign")])
        items[:] = [item for item in items if not item.get_closest_marker("campaign")]
    for item in items:
        if SERVERS & {*getattr(item, "fixturenames", ())}:
            item.add_marker("servers")
    if hasattr(config, "workerinput"):
        files: dict[str, int] = {}
        for item in items:
            file, its = file_of(item.nodeid), place(item)
            files[file] = max(files.get(file, its), its, key=lambda one: abs(one - MIDDLE))
        items.sort(key=lambda item: files[file_of(item.nodeid)])


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def folder_of(nodeid: str) -> str:
    """The folder below ``tests`` in which a test is; of those in none, its file."""
    return file_of(nodeid).removeprefix("tests/").partition("/")[0]


def place(item: pytest.Item) -> int:
    """The place of a test in the order: Spark, what is long, what is short, what is long, real processes."""
    if item.get_closest_marker("e2e") is not None or folder_of(item.nodeid) == "acceptance":
        return LAST
    if "spark" in getattr(item, "fixturenames", ()):
        return 0
    return PLACES.get(folder_of(item.nodeid), MIDDLE)


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
    """Fetch what Spark needs before several processes want it at once, and fill one cache.

    They collect their tests while an archive of Spark's classes is made.
    """
    if session.config.getoption("numprocesses", None) and "not spark" not in session.config.getoption("markexpr", ""):
        with tempfile.TemporaryDirectory() as folder:
            java.fetch_for_spark(java.PACKAGES, Path(folder))
        threading.Thread(target=java.archive_for_spark).start()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the garbage collector what is imported, which stays: a fifth of the CPU went into looking at it again."""
    with without_collection():
        return (yield)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch the jars of the REST catalog meanwhile, where a test will want them: the first time takes long."""
    wanted = any(item.nodeid.startswith(REST_CATALOG_TESTS) for item in session.items)
    if wanted and not session.config.option.collectonly:
        threading.Thread(target=java.resolve, args=(rest.NEEDS,), daemon=True).start()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """In CI a skipped test is a failure: it would look like one that passed. And what took longest, everywhere."""
    skipped = terminalreporter.stats.get("skipped", [])
    if os.environ.get("CI") and skipped:
        for report in skipped:
            terminalreporter.write_line(f"skipped in CI: {report.nodeid}", red=True)
    if getattr(config.option, "numprocesses", None):
        files, folders = taken_s(terminalreporter)
        for kind, found in (("folders", folders), ("files", files)):
            slowest = sorted(found.items(), key=lambda one: -one[1])[:SLOWEST]
            listed = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in slowest)
            terminalreporter.write_line(f"slowest {kind}: {listed}")
        for line in beyond_budget(folders):
            terminalreporter.write_line(line, red=True)


def taken_s(reporter: pytest.TerminalReporter) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Seconds that the tests of each file and of each folder took, their fixtures included."""
    files: defaultdict[str, float] = defaultdict(float)
    folders: defaultdict[str, float] = defaultdict(float)
    for report in (one for reports in reporter.stats.values() for one in reports):
        if isinstance(report, pytest.TestReport):
            files[file_of(report.nodeid)] += report.duration
            folders[folder_of(report.nodeid)] += report.duration
    return files, folders


def beyond_budget(folders: Mapping[str, float]) -> Sequence[str]:
    """A line for each folder that took more than twice what ``budget.toml`` gives it, on a machine that is not slow.

    Where most of those that are listed took more than they may, the machine was slow or busy, and each may take as much
    more: what the median of them took of its budget. One that got slow alone does not raise what it may take.
    """
    budget: dict[str, int] = tomllib.loads(BUDGET.read_text())["seconds"]
    shares = [seconds / budget[name] for name, seconds in folders.items() if name in budget]
    slowness = max(1.0, median_low(shares or [1.0]))
    given = {name: budget.get(name, budget["others"]) for name in folders}
    return [
        f"tests/{name} took {seconds:.0f} s, more than {2 * slowness:.1f} times its budget of {given[name]} s "
        f"(tests/budget.toml)"
        for name, seconds in sorted(folders.items())
        if seconds > 2 * slowness * given[name]
    ]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Make such a run fail."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get("CI") or exitstatus != 0 or reporter is None:
        return
    if reporter.stats.get("skipped") or (
        getattr(session.config.option, "numprocesses", None) and beyond_budget(taken_s(reporter)[1])
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
