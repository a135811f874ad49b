"""An object store of the tests' own: moto's S3 as a process. It keeps what it holds in its memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from pyarrow.fs import S3FileSystem

from tests.servers.processes import HOST, accepts, free_port, running

REGION = "us-east-1"
ACCESS_KEY = "access-key-of-the-tests"
SECRET_KEY = "secret-key-of-the-tests"  # noqa: S105 - moto takes any


@dataclass(frozen=True)
class S3Server:
    """A running store; each test asks for a bucket of its own."""

    port: int
    _numbers: count[int] = field(default_factory=count)

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self.port}"

    @property
    def file_io(self) -> dict[str, str]:
        """Properties of a catalog by which both clients reach it."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET_KEY,
            "s3.region": REGION,
            "s3.path-style-access": "true",
        }

    def new_bucket(self) -> str:
        """The name of a fresh, empty bucket."""
        name = f"bucket-{next(self._numbers)}"
        self.files().create_dir(name)
        return name

    def files(self) -> S3FileSystem:
        """Arrow's view of it, for setting the stage and for looking behind it."""
        return S3FileSystem(
            endpoint_override=f"{HOST}:{self.port}",
            scheme="http",
            access_key=ACCESS_KEY,
            secret_key=SECRET_KEY,
            region=REGION,
            allow_bucket_creation=True,
        )


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """A store that is empty; ``folder`` is for its log."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
    with running(command, log=folder / "s3.log", ready=lambda: accepts(port)):
        yield S3Server(port)
