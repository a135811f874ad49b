"""The settings of a table's own ``FileIO``, for the workers: read from Java, never from a configuration of ours.

They are read anew for each attempt, since a catalog may vend credentials that last for an hour. Java applies the
credentials of the longest prefix that fits a location (``SupportsStorageCredentials``); so does this.
"""

from __future__ import annotations

import json
from typing import Any, Final

from py4j.java_gateway import is_instance_of
from pyspark.sql import SparkSession

from icewright_spark.iceberg.java_api import REFUSALS, first_line, iterate
from icewright_spark.parquet.errors import UnsupportedLocation
from icewright_spark.parquet.file_systems import address, honoured
from icewright_spark.parquet.storage import LOCAL, Storage, is_local
from icewright_spark.session.session import java_gateway

_S3: Final = frozenset({"s3", "s3a", "s3n"})
_GCS: Final = frozenset({"gs"})
_ADLS: Final = frozenset({"abfs", "abfss", "wasb", "wasbs"})
_HADOOP: Final = frozenset({"hdfs", "viewfs"})

_KNOWN: Final = {
    "org.apache.iceberg.aws.s3.S3FileIO": _S3,
    "org.apache.iceberg.gcp.gcs.GCSFileIO": _GCS,
    "org.apache.iceberg.azure.adlsv2.ADLSFileIO": _ADLS,
    "org.apache.iceberg.hadoop.HadoopFileIO": _HADOOP,
    "org.apache.iceberg.io.ResolvingFileIO": _S3 | _GCS | _ADLS | _HADOOP,
}
"""Implementations of ``FileIO``, with the schemes that each reaches by the settings that icewright knows. Hadoop's own
connectors to object stores have settings of their own, in files that Arrow does not read."""


def worker_storage(spark: SparkSession, java_io: Any, location: str) -> Storage:
    """How Python workers reach ``location`` as this ``FileIO`` does, as of now.

    Raises :class:`UnsupportedLocation` when they cannot, whatever they are told.
    """
    if is_local(location):
        return LOCAL
    implementation = str(java_io.getClass().getName())
    scheme = address(location).scheme
    if scheme not in _KNOWN.get(implementation, frozenset()):
        raise UnsupportedLocation(
            f"Python workers cannot replace {implementation} on {scheme}: locations",
            hint="such tables are rewritten by Spark's own reader and writer",
        )
    try:
        properties = _strings(spark, java_io.properties())
    except REFUSALS as error:
        raise UnsupportedLocation(f"{implementation} does not say how it is set up: {first_line(error)}") from error
    return Storage(honoured(properties | _vended(spark, java_io, location), location))


def _vended(spark: SparkSession, java_io: Any, location: str) -> dict[str, str]:
    """The settings that the catalog vended for the longest prefix of the location."""
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - py4j's only way to ask for a Java type
    if not is_instance_of(gateway, java_io, "org.apache.iceberg.io.SupportsStorageCredentials"):
        return {}
    fitting = [credential for credential in iterate(java_io.credentials()) if location.startswith(credential.prefix())]
    if not fitting:
        return {}
    return _strings(spark, max(fitting, key=lambda credential: len(str(credential.prefix()))).config())


def _strings(spark: SparkSession, java_map: Any) -> dict[str, str]:
    """A Java map of strings, in one call."""
    text = java_gateway(spark).com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(java_map)
    return {str(key): str(value) for key, value in json.loads(text).items() if value is not None}
