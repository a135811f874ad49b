"""What writers of Iceberg call their files: a closed list of complete names, each from the writer's sources.

Whoever owns a table says where it lies, and may say the place of somebody else's files. So a file that nothing needs is
removed without a question only if its whole name is one of these; an extension is no pattern. Other names are listed,
and a person who has seen them approves them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from icewright.model.iceberg.locations import CanonicalPath, checksummed

_UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_DATA: Final = r"\.(?:parquet|orc|avro)"
_TRINO: Final = r"\d{8}_\d{6}_\d{5}_[0-9a-z]{5}"
_CODEC: Final = r"(?:\.(?:snappy|gz|zstd|lz4|lz4raw|lz4_raw|brotli|bz2|zlib|lzo|lzma|deflate))?"


@dataclass(frozen=True, slots=True)
class WrittenName:
    """One kind of name: who writes it, what it is for, one such name, and the pattern of all of them.

    ``pattern`` is of the last part of a path, complete; ``<uuid>`` stands for a UUID.
    """

    writer: str
    what: str
    example: str
    pattern: str

    @property
    def compiled(self) -> re.Pattern[str]:
        """As it is compared with whole names."""
        return re.compile(self.pattern.replace("<uuid>", _UUID), re.ASCII)


_SOME_UUID: Final = "2dd664f9-d2c4-4ffe-878f-c6c70c1fb0cb"
WRITTEN_NAMES: Final = (
    WrittenName(
        "Iceberg (Java)",
        "data and delete files of Spark, Flink, Hive and Kafka Connect",
        f"00000-0-{_SOME_UUID}-00001.parquet",
        rf"\d{{5,10}}-\d{{1,19}}-<uuid>(?:-\d{{1,19}})?-\d{{5,10}}(?:-deletes)?(?:{_DATA}|\.puffin)",
    ),
    WrittenName("PyIceberg", "data files", f"00000-0-{_SOME_UUID}.parquet", rf"\d{{5,10}}-\d{{1,19}}-<uuid>{_DATA}"),
    WrittenName(
        "Trino",
        "data and delete files",
        f"20260101_123456_00012_abcde-{_SOME_UUID}.parquet",
        rf"{_TRINO}-<uuid>(?:{_DATA}|\.puffin)",
    ),
    WrittenName(
        "icewright",
        "data and delete files",
        f"00000-task-{_SOME_UUID}-1.parquet",
        r"\d{5,10}-task-<uuid>-\d{1,9}(?:-deletes)?(?:-\d{5,10})?(?:-try\d{1,19})?\.parquet",
    ),
    WrittenName(
        "Spark and Hadoop",
        "files of a job that wrote into the folder itself",
        f"part-00000-{_SOME_UUID}-c000.snappy.parquet",
        rf"part-\d{{5,10}}-<uuid>(?:_\d{{5,10}})?(?:[.-]c\d{{3,10}})?{_CODEC}{_DATA}",
    ),
    WrittenName("Spark and Hadoop", "the mark of a job that ended", "_SUCCESS", "_SUCCESS"),
    WrittenName("Iceberg, PyIceberg, Trino", "manifests", f"{_SOME_UUID}-m0.avro", r"<uuid>-m\d{1,10}\.avro"),
    WrittenName(
        "Iceberg (Spark)",
        "manifests of `rewrite_manifests`",
        f"optimized-m-{_SOME_UUID}.avro",
        r"optimized-m-<uuid>\.avro",
    ),
    WrittenName(
        "Iceberg (Spark)",
        "manifests of `add_files`, `migrate` and `snapshot`",
        f"stage-1-task-2-manifest-{_SOME_UUID}.avro",
        r"stage-\d{1,10}-task-\d{1,19}-manifest-<uuid>\.avro",
    ),
    WrittenName(
        "icewright",
        "manifests",
        f"task-{_SOME_UUID}-1-data-0-{_SOME_UUID}-m0.avro",
        r"task-<uuid>-\d{1,9}-(?:data|deletes)-\d{1,9}-<uuid>-m\d{1,10}\.avro",
    ),
    WrittenName(
        "Iceberg (Flink)",
        "manifests of a checkpoint",
        f"{'0' * 32}-{'1' * 32}-00000-0-12-00001.avro",
        r"[0-9a-f]{32}-[0-9a-f]{32}-\d{5,10}-\d{1,10}-\d{1,19}-\d{5,10}(?:-<uuid>)?\.avro",
    ),
    WrittenName(
        "Iceberg, PyIceberg, Trino",
        "manifest lists",
        f"snap-3014518774835702005-1-{_SOME_UUID}.avro",
        r"snap-\d{1,19}-\d{1,10}-<uuid>\.avro",
    ),
    WrittenName(
        "Iceberg, PyIceberg, Trino",
        "metadata files; their content must be of the table",
        f"00001-{_SOME_UUID}.metadata.json",
        r"(?:\d{5,18}-<uuid>|v\d{1,18})(?:\.gz)?\.metadata\.json(?:\.gz)?",
    ),
    WrittenName(
        "Iceberg, Trino, icewright",
        "statistics",
        f"3014518774835702005-{_SOME_UUID}.stats",
        rf"(?:\d{{1,19}}|\d{{1,19}}-task-<uuid>-\d{{1,9}}|{_TRINO})-<uuid>\.stats",
    ),
    WrittenName(
        "Iceberg, Trino",
        "statistics of partitions",
        f"partition-stats-3014518774835702005-{_SOME_UUID}.parquet",
        rf"partition-stats-\d{{1,19}}-<uuid>{_DATA}",
    ),
)
"""All of them, by the sources of Iceberg 1.11 (``OutputFileFactory``, ``SnapshotProducer``, ``PartitionStatsHandler``,
``BaseMetastoreTableOperations``, ``ManifestOutputFileFactory``), PyIceberg 0.11, Trino 479 (``session.getQueryId()``)
and Spark 4.1 (``HadoopMapReduceCommitProtocol``)."""
_COMPILED: Final = tuple((one.writer, one.compiled) for one in WRITTEN_NAMES)
_STAGING: Final = re.compile(rf"_temporary|\.spark-staging-{_UUID}", re.ASCII)


def written_by(path: CanonicalPath) -> str | None:
    """Who calls files so, by the last part of a path; None for a name of no writer at hand.

    A checksum of Hadoop is called after its file.
    """
    name = (checksummed(path) or path).rpartition("/")[2]
    return next((writer for writer, pattern in _COMPILED if pattern.fullmatch(name)), None)


def is_staging(folder: str) -> bool:
    """Whether a folder's name is that of one in which Hadoop or Spark keep the files of a job that has not ended."""
    return _STAGING.fullmatch(folder) is not None
