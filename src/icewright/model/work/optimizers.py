"""What an optimizer process is started with.

The command line resolves the configuration and hands this over on the child's standard input, so that no secret
stands in its arguments or environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from icewright.core.errors import InvalidMessage
from icewright.core.times import Instant
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.policy.resource_groups import Queue

ICEBERG_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
"""Maven coordinates of the Iceberg that the optimizer's Spark runs with: the version that was tested."""

RECYCLE_EXIT_CODE = 75
"""The exit status (BSD's EX_TEMPFAIL) by which an optimizer asks to be started anew with a fresh Spark session."""


class LauncherKind(StrEnum):
    """How optimizers come to run: one process that stays, or an application of Spark's for each task."""

    RESIDENT = "resident"
    SPARK_SUBMIT = "spark-submit"


class TuneMode(StrEnum):
    """Whether icewright says which optimizers there should be, or sees to it."""

    ADVISE = "advise"
    ACT = "act"


class DeployMode(StrEnum):
    """Where the driver of a submitted application runs: on the machine that submits it, or in the cluster."""

    CLIENT = "client"
    CLUSTER = "cluster"


EXECUTORS_WAIT_MS: Final = 5 * 60 * 1000
LOG_FORMATS: Final = ("console", "json")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class OptimizerSettings:
    """Everything that an optimizer reads; it looks at no other configuration.

    ``packages`` are Maven coordinates that Spark resolves; ``jars`` are local files for machines without a registry
    and, when there are any, stand in for ``packages``. At most ``batch_tasks`` small tasks share a Spark job; together
    they read at most ``batch_bytes``. ``tasks_max`` is after how many tasks, or batches of them, the optimizer ends by
    itself, and then also when there is nothing to do; None is never. ``spark_conf_keys`` are the keys of ``spark_conf``
    that the administrator's own file allows beyond :mod:`.spark_conf`. ``archive`` is the archive of
    Python packages for executors on a cluster, and ``executor_python`` the interpreter there; None is that of this one.
    ``log_format`` and ``log_level`` are of :data:`LOG_FORMATS` and :data:`LOG_LEVELS`.
    ``queues`` are those of its group whose tasks it takes. ``executors_wait_ms`` is how long work may wait on a cluster
    while no executor lives. ``queries_hash_key`` is the key of the digests that queries have of strings, where this
    optimizer can have it.
    """

    server_url: str
    token: str = field(repr=False)
    optimizer_id: str
    resource_group: str
    slots: int
    batch_tasks: int
    batch_bytes: int
    master: str
    driver_memory: str
    packages: tuple[str, ...]
    jars: tuple[str, ...]
    spark_conf: Mapping[str, str] = field(repr=False)
    catalogs: tuple[CatalogEntry, ...]
    poll_interval_ms: int
    recycle_after_tasks: int
    recycle_memory_bytes: int
    deploy_mode: DeployMode = DeployMode.CLIENT
    spark_conf_keys: tuple[str, ...] = ()
    tasks_max: int | None = None
    archive: str | None = None
    executor_python: str | None = None
    log_format: str = "console"
    log_level: str = "info"
    queues: tuple[Queue, ...] = tuple(Queue)
    executors_wait_ms: int = EXECUTORS_WAIT_MS
    queries_hash_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class WorkerEnvironment:
    """What an optimizer's Python workers have: versions of Python, of Spark and of packages, by their names."""

    python: str
    spark: str
    packages: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Submitting:
    """Who starts an application for each task that waits: on which host, how many run by now, and how many may."""

    submitter_id: str
    host: str
    applications: int
    applications_max: int

    def __post_init__(self) -> None:
        """Refuse what nobody could reckon with."""
        if not self.submitter_id or self.applications < 0 or self.applications_max < 1:
            raise InvalidMessage("a submitter has a name, starts at least one application, and no fewer than none run")


@dataclass(frozen=True, slots=True)
class BacklogRequest:
    """Who wants to know what waits: applications that would take so much each, None where that cannot be told.

    ``submitting`` says who starts them, None of one that does not say so. ``actions`` are the kinds of actions that
    they carry out, each in the version that they understand.
    """

    resource_group: str
    cores: int | None = None
    memory_bytes: int | None = None
    queues: tuple[Queue, ...] = tuple(Queue)
    submitting: Submitting | None = None
    actions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Submitter:
    """A submitter as it asked: for which group, with which catalogs, and what each application would take.

    ``actions`` as in :class:`BacklogRequest`.
    """

    submitting: Submitting
    resource_group: str
    catalogs: tuple[str, ...]
    queues: tuple[Queue, ...]
    cores: int | None
    memory_bytes: int | None
    actions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SeenSubmitter:
    """A submitter, and when it asked last, to a few seconds, by the store's clock."""

    submitter: Submitter
    asked_at: Instant


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits for optimizers of a resource group right now.

    ``tasks`` could be claimed at this moment, each by an application of its own, and are counted up to a limit;
    ``probes`` are storages to be tried out.
    ``seen_at`` has the optimizers of the group that were heard of lately, and when, by the server's clock.
    """

    tasks: int
    probes: int
    seen_at: Mapping[str, Instant]
