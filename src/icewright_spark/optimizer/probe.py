"""The proof that Python workers reach where a table keeps its files, before anything is planned that relies on it.

A worker, in a Spark task like those of a merge, writes a small object below the table's own data location, looks for
it and reads it back, with the settings of the table's own ``FileIO``. Then the driver asks that ``FileIO`` itself for
the object: Java and Arrow must mean the same place. The object has one fixed name per table and takes the place of the
one before, so that probes do not pile up; nothing here deletes anything.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

from icewright.core.errors import IcewrightError, NotFound, Unavailable
from icewright.model.plans.observation import WorkerAccess
from icewright.model.work.storage import ProbeReport, ProbeRequest
from icewright_spark.iceberg.java_api import SparkTable, first_line
from icewright_spark.iceberg.table_io import worker_storage
from icewright_spark.parquet.errors import UnsupportedLocation
from icewright_spark.parquet.storage import Storage, is_local
from icewright_spark.session.session import activate

PROBE_NAME: Final = "icewright-probe"
"""The name of the object below a table's data location."""

_TEXT: Final = b"icewright wrote this to find out whether it can read and write here. It holds no data.\n"


@dataclass(frozen=True, slots=True)
class _Probe:
    """One object to be written by a worker. ``number`` is the place of its request."""

    number: int
    location: str
    storage: Storage
    content: bytes


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A probe, and the table's own ``FileIO``, which stays with the driver."""

    java_io: Any
    probe: _Probe


@dataclass(frozen=True, slots=True)
class _Found:
    """What became of a probe: None when all went well, or why it did not."""

    number: int
    trouble: str | None


def probe(spark: SparkSession, requests: Sequence[ProbeRequest]) -> list[ProbeReport]:
    """What the workers of this session can do where these tables keep their files.

    A table that cannot be loaded just now is left out: nothing was learned of it.
    """
    activate(spark)
    prepared = {number: _prepare(spark, number, request) for number, request in enumerate(requests)}
    ready = {number: one for number, one in prepared.items() if isinstance(one, _Prepared)}
    troubles: dict[int, str | None] = {number: one for number, one in prepared.items() if isinstance(one, str)}
    for found in _run(spark, [one.probe for one in ready.values()]):
        one = ready[found.number]
        troubles[found.number] = found.trouble or _seen_by_java(one.java_io, one.probe)
    return [_report(requests[number], trouble) for number, trouble in sorted(troubles.items())]


def _prepare(spark: SparkSession, number: int, request: ProbeRequest) -> _Prepared | str | None:
    """The probe of a table, or why there can be none; None when the table cannot be looked at."""
    try:
        table = SparkTable(spark, request.table_name)
        if table.uuid != request.table_id.uuid:
            return None
        location = str(table.java.locationProvider().newDataLocation(PROBE_NAME))
        java_io = table.java.io()
        if is_local(location):
            return "Spark puts the new files of this table on a local file system"
        storage = worker_storage(spark, java_io, location)
    except (NotFound, Unavailable):
        return None
    except UnsupportedLocation as error:
        return error.message
    except Exception as error:  # noqa: BLE001 - whatever a table makes Java throw: the other tables are not concerned
        return f"Spark does not say where it writes new files: {first_line(error)}"
    content = _TEXT + secrets.token_hex(16).encode() + b"\n"
    return _Prepared(java_io, _Probe(number, location, storage, content))


def try_out(one: _Probe) -> str | None:
    """Write, look for and read back one object; why that did not work, or None. Runs in a worker."""
    try:
        one.storage.put(one.location, one.content)
        if one.storage.size(one.location) != len(one.content):
            return "an object that was just written has another size"
        if one.storage.read(one.location, 0, len(one.content) + 1) != one.content:
            return "an object that was just written reads otherwise"
    except IcewrightError as error:
        return one.storage.without_secrets(error.message)
    return None


def _run(spark: SparkSession, probes: Sequence[_Probe]) -> list[_Found]:
    """All probes in one Spark job; one by one when that breaks, so that none takes the others with it."""
    try:
        return _job(spark, probes)
    except Exception as error:  # noqa: BLE001 - whatever Spark throws when a worker breaks
        if len(probes) == 1:
            return [_Found(probes[0].number, f"a worker broke: {first_line(error)}")]
    return [found for one in probes for found in _run(spark, [one])]


def _job(spark: SparkSession, probes: Sequence[_Probe]) -> list[_Found]:
    if not probes:
        return []

    def run(batch: Iterable[_Probe]) -> Iterable[_Found]:
        for one in batch:
            yield _Found(one.number, try_out(one))

    context = spark.sparkContext
    slices = min(len(probes), context.defaultParallelism)
    return list(context.parallelize(probes, slices).mapPartitions(run).collect())


def _seen_by_java(java_io: Any, one: _Probe) -> str | None:
    """Whether the table's own ``FileIO`` has the object that a worker wrote."""
    try:
        size_bytes = int(java_io.newInputFile(one.location).getLength())
    except Exception as error:  # noqa: BLE001 - whatever the storage's client throws, the two do not meet
        return one.storage.without_secrets(f"Spark does not find what a worker wrote: {first_line(error)}")
    return None if size_bytes == len(one.content) else "Spark finds something else than what a worker wrote"


def _report(request: ProbeRequest, trouble: str | None) -> ProbeReport:
    access = WorkerAccess.PROVED if trouble is None else WorkerAccess.REFUSED
    return ProbeReport(request.table_id, request.table_name, request.root, access, trouble or "")
