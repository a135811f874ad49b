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

from icewright.domain.errors import IcewrightError, NotFound, Unavailable
from icewright.domain.observation import WorkerAccess
from icewright.domain.storage import ProbeReport, ProbeRequest
from icewright_spark.iceberg import SparkTable, first_line
from icewright_spark.merge.errors import UnsupportedLocation
from icewright_spark.merge.storage import Storage, is_local
from icewright_spark.session import activate
from icewright_spark.table_io import worker_storage

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
class _Found:
    """What became of a probe: None when all went well, or why it did not."""

    number: int
    trouble: str | None


def probe(spark: SparkSession, requests: Sequence[ProbeRequest]) -> list[ProbeReport]:
    """What the workers of this session can do where these tables keep their files.

    A table that cannot be loaded just now is left out: nothing was learned of it.
    """
    activate(spark)
    tables: dict[int, SparkTable] = {}
    probes: list[_Probe] = []
    troubles: dict[int, str | None] = {}
    for number, request in enumerate(requests):
        try:
            table = SparkTable(spark, request.table_name)
        except (NotFound, Unavailable):
            continue
        if table.uuid != request.table_id.uuid:
            continue
        location = str(table.java.locationProvider().newDataLocation(PROBE_NAME))
        content = _TEXT + secrets.token_hex(16).encode() + b"\n"
        try:
            storage = worker_storage(spark, table.java.io(), location)
        except UnsupportedLocation as error:
            troubles[number] = error.message
            continue
        if is_local(location):
            troubles[number] = None
            continue
        tables[number] = table
        probes.append(_Probe(number, location, storage, content))
    for found in _run(spark, probes):
        troubles[found.number] = found.trouble
    for one in probes:
        if troubles[one.number] is None:
            troubles[one.number] = _seen_by_java(tables[one.number].java.io(), one)
    return [_report(requests[number], trouble) for number, trouble in sorted(troubles.items())]


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
