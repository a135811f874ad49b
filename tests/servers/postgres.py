"""A PostgreSQL of the tests' own: Debian's programs, a fresh cluster on a free port, and a password to get in."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psutil

from tests.servers.processes import HOST, free_port, running

USER = "tester"
PASSWORD = "pw-of/the:tester@pg"  # noqa: S105 - of a server that lives for some tests; signs that URLs must escape
PASSWORD_IN_URLS = "pw-of%2Fthe%3Atester%40pg"  # noqa: S105 - the same
_NOT_ROOT = "nobody"
"""PostgreSQL refuses to run as root."""
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=32MB", "max_connections=300")
_LASTING = ("shared_buffers=32MB", "max_connections=300")
"""What it has committed is there after it was killed."""


@dataclass(frozen=True)
class PostgresServer:
    """A running server; each test asks for a database of its own."""

    port: int
    programs: Path
    _numbers: count[int] = field(default_factory=count)

    def new_database(self, template: str | None = None) -> str:
        """SQLAlchemy's URL of a fresh database, empty or a copy of the one named ``template``."""
        name = f"db{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}" + (f" TEMPLATE {template}" if template else ""))
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is still connected to it: each takes some 8 MB and a share of the shutdown."""
        self.execute(f'DROP DATABASE "{url.rpartition("/")[2]}" WITH (FORCE)')

    def url(self, database: str = "postgres") -> str:
        """SQLAlchemy's URL of a database."""
        return f"postgresql+psycopg://{USER}:{PASSWORD_IN_URLS}@{HOST}:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> str:
        """Run a statement by ``psql``, which needs no driver; what it printed."""
        where = ["-h", HOST, "-p", str(self.port), "-U", USER, "-d", database]
        command = [str(self.programs / "psql"), *where, "-X", "-q"]
        return subprocess.run(  # noqa: S603 - the program that was found
            [*command, "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PGPASSWORD": PASSWORD},
        ).stdout


def find_programs() -> Path | None:
    """The directory of PostgreSQL's programs, the newest of Debian's; None where it is not installed."""
    on_path = shutil.which("initdb")
    if on_path is not None:
        return Path(on_path).resolve().parent
    debian = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((path.parent for path in debian), key=lambda path: float(path.parent.name), default=None)


@contextmanager
def postgres_server(programs: Path, settings: Sequence[str] = _FAST) -> Iterator[PostgresServer]:
    """A server with a fresh cluster, which is removed with it. Unless ``settings`` say otherwise, it is in a hurry."""
    with _cluster(programs) as cluster, cluster.running(settings):
        yield PostgresServer(cluster.port, programs)


class MortalPostgres:
    """A server that can be killed and started again, on one port, with all that it had committed."""

    def __init__(self, cluster: _Cluster) -> None:
        self._cluster, self._life = cluster, ExitStack()
        self.server = PostgresServer(cluster.port, cluster.programs)

    def start(self) -> None:
        """Take connections again, after whatever recovery it needs."""
        self._life.enter_context(self._cluster.running(_LASTING))

    def kill(self) -> None:
        """End it and all its sessions at once, as a crash does: nothing is written to its end."""
        self._life.close()

    def pause(self, away_s: float) -> None:
        """Stop it and all its sessions for some seconds: connections stay, and nothing is answered."""
        first, *_ = (self._cluster.folder / "data" / "postmaster.pid").read_text().split()
        postmaster = psutil.Process(int(first))
        paused = [postmaster, *postmaster.children(recursive=True)]
        for each in paused:
            each.suspend()
        time.sleep(away_s)
        for each in paused:
            each.resume()


@contextmanager
def mortal_postgres(programs: Path) -> Iterator[MortalPostgres]:
    """A running server over a fresh cluster, which is removed at the end."""
    with _cluster(programs) as cluster:
        found = MortalPostgres(cluster)
        found.start()
        try:
            yield found
        finally:
            found.kill()


@dataclass(frozen=True)
class _Cluster:
    """Where a server keeps its data, and as whom it runs."""

    programs: Path
    folder: Path
    port: int
    user: str | None

    @contextmanager
    def running(self, settings: Sequence[str]) -> Iterator[None]:
        options = [part for setting in settings for part in ("-c", setting)]
        listening = ["-p", str(self.port), "-k", str(self.folder), "-c", f"listen_addresses={HOST}"]
        data = str(self.folder / "data")
        command = [str(self.programs / "postgres"), "-D", data, *listening, *options]
        is_ready = [str(self.programs / "pg_isready"), "-h", HOST, "-p", str(self.port), "-q"]
        with running(
            command,
            log=self.folder / "postgres.log",
            ready=lambda: subprocess.run(is_ready, check=False).returncode == 0,  # noqa: S603 - found by find_programs
            user=self.user,
            end=signal.SIGQUIT,  # it has children, which it then ends at once, and writes nothing: a crash
        ):
            yield


@contextmanager
def _cluster(programs: Path) -> Iterator[_Cluster]:
    user = _NOT_ROOT if os.geteuid() == 0 else None
    # Not below pytest's folder, which another user could not enter.
    with tempfile.TemporaryDirectory(prefix="icewright-postgres-") as name:
        folder = Path(name)
        password_file = folder / "password"
        password_file.write_text(PASSWORD, encoding="utf-8")
        if user is not None:
            entry = pwd.getpwnam(user)
            for path in (folder, password_file):
                os.chown(path, entry.pw_uid, entry.pw_gid)
        subprocess.run(  # noqa: S603 - the program that was found
            [
                *(programs / "initdb", "-D", folder / "data", "-U", USER, "-A", "scram-sha-256"),
                *("--pwfile", password_file, "-E", "UTF8", "--locale", "C.UTF-8", "--no-sync", "--no-instructions"),
            ],
            check=True,
            capture_output=True,
            cwd=folder,
            user=user,
            group=None if user is None else pwd.getpwnam(user).pw_gid,
            extra_groups=None if user is None else (),
        )
        yield _Cluster(programs, folder, free_port(), user)
