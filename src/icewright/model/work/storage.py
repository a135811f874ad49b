"""What server and optimizers say to each other of storages: where workers must be able to read and write, and can."""

from __future__ import annotations

from dataclasses import dataclass

from icewright.core.times import Instant
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.observation import WorkerAccess


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """The server wants to know whether workers reach the storage of a table: ``root`` is where its new files go."""

    table_id: TableId
    table_name: TableName
    root: str


@dataclass(frozen=True, slots=True)
class Probes:
    """The server's answer to an optimizer that has nothing to do."""

    requests: tuple[ProbeRequest, ...]


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What an optimizer found. ``access`` is proved or refused; ``detail`` says why it is refused, without secrets."""

    table_id: TableId
    table_name: TableName
    root: str
    access: WorkerAccess
    detail: str


@dataclass(frozen=True, slots=True)
class ProbeReports:
    """What an optimizer found out; what it could not find out is left out, and asked again."""

    reports: tuple[ProbeReport, ...]


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """What is known of the workers' access to the files below ``root``, for the tables of one catalog."""

    catalog: str
    root: str
    access: WorkerAccess
    detail: str
    optimizer_id: str
    decided_at: Instant
