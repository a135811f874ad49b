"""Disks that are full or fail: what icewright writes on them is never what keeps their owner from writing."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icewright.catalogs.metadata.metadata import parse_metadata
from icewright.core.errors import Unsupported
from icewright.core.fault_points import Fault
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.writer_settings import WriterSettings
from icewright.model.work.jobs import Committed, CommitUnknown, Conflicted, Failed
from icewright.model.work.tasks import TaskState
from icewright.work.tasks.retry import BACKOFF_MAX_MS
from icewright_spark.executors.merge.merge import merge_group
from icewright_spark.executors.merge.write import ARROW_RS, PYARROW, Writer
from icewright_spark.iceberg.commits.commit import Swap
from icewright_spark.parquet.errors import DiskFull
from tests.adversary.test_rewrites_beside_owners import at
from tests.builders.merge_tables import arrow_table, column, job_of, write_input
from tests.lakes.sqlite import append, make_lake, make_table, writer
from tests.spark.loop import SparkLoop

KIB = 1024
FIELDS = [column(1, "id", "long", required=True), column(2, "text", "string")]


class Disk:
    """A small file system of its own, to be filled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    @property
    def free_bytes(self) -> int:
        said = os.statvfs(self.folder)
        return said.f_bavail * said.f_frsize

    def fill(self, free_bytes: int) -> None:
        """Leave so much."""
        with self._ballast.open("ab") as file:
            file.write(b"\0" * max(0, self.free_bytes - free_bytes))

    def empty(self) -> None:
        self._ballast.unlink()

    def files(self) -> set[Path]:
        return {path for path in self.folder.rglob("*") if path.is_file() and path != self._ballast}


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Disk]:
    folder.mkdir()
    try:
        subprocess.run(  # noqa: S603 - as root, of a folder of the test
            ["/bin/mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount a small file system")
    try:
        yield Disk(folder)
    finally:
        with suppress(subprocess.CalledProcessError):
            subprocess.run(["/bin/umount", "-l", folder], check=True)  # noqa: S603 - mounted above


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted(tmp_path / "disk", "64m") as made:
        yield made


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted(tmp_path / "small", "2m") as made:
        yield made


@pytest.fixture
def loop(spark: SparkSession, disk: Disk, request: pytest.FixtureRequest) -> SparkLoop:
    """Eight files on the small disk, in which hardly anything can be packed."""
    entry = make_lake(disk.folder, f"full{abs(hash(request.node.nodeid))}")
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)
    made = SparkLoop(spark, entry)
    table = make_table(entry)
    for number in range(8):
        append(table, range(number * 10_000, number * 10_000 + 10_000), ["Bonn"])
    return made


def ids(entry: CatalogEntry) -> list[int]:
    return sorted(writer(entry).load_table("db.events").scan().to_arrow()["id"].to_pylist())


def data_files(disk: Disk) -> set[Path]:
    return {path for path in disk.files() if path.suffix == ".parquet"}


@pytest.mark.parametrize("writes", [ARROW_RS, PYARROW], ids=lambda one: one.name)
@pytest.mark.parametrize("left_bytes", [0, 100 * KIB, 1_500 * KIB])
def test_r2_a_file_that_finds_no_room_is_told_as_such_and_gives_back_what_it_took(
    tmp_path: Path, small_disk: Disk, writes: Writer, left_bytes: int
) -> None:
    chance = random.Random(7)  # noqa: S311 - the same rows each time
    (tmp_path / "inputs").mkdir()
    inputs = [
        write_input(
            tmp_path / "inputs",
            arrow_table(
                FIELDS,
                {
                    "id": [chance.getrandbits(60) for _ in range(10_000)],
                    "text": [str(chance.getrandbits(99)) for _ in range(10_000)],
                },
            ),
        )
        for _ in range(8)
    ]
    small_disk.fill(left_bytes)
    before = small_disk.free_bytes
    for row_group in (16 * KIB, 1 << 27):  # while it writes, and when it closes
        settings = WriterSettings(row_group_size_bytes=row_group)
        with pytest.raises(DiskFull):
            merge_group(job_of(FIELDS, inputs, small_disk.folder / "out.parquet", settings=settings), writer=writes)
    assert small_disk.free_bytes == before
    assert small_disk.files() == set()


@pytest.mark.spark
def test_r2_a_rewrite_that_does_not_fit_is_not_begun_and_its_owner_goes_on(loop: SparkLoop, disk: Disk) -> None:
    before, rows = data_files(disk), ids(loop.entry)
    spec = loop.claim(loop.name("db", "events"))
    disk.fill(400 * KIB)
    report = loop.attempt(spec)
    assert isinstance(report.result, Failed), report.result
    assert (report.result.code, report.result.retryable) == ("disk-full", True)
    assert "stay free for others" in report.result.detail
    assert data_files(disk) == before
    append(writer(loop.entry).load_table("db.events"), [-1])
    assert ids(loop.entry) == [-1, *rows]


@pytest.mark.spark
def test_r2_outputs_go_when_nothing_was_sent_and_stay_when_nobody_knows(
    loop: SparkLoop, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, before, rows = loop.name("db", "events"), data_files(disk), ids(loop.entry)
    spec = loop.claim(name)
    with at(Fault.COMMIT_PREPARED, lambda: writer(loop.entry).load_table("db.events").delete("id >= 0")):
        report = loop.attempt(spec)
    assert isinstance(report.result, Conflicted), report.result
    assert data_files(disk) == before, "what met another commit is taken back"
    loop.control.dispatcher.report(report)
    for number in range(8):
        append(writer(loop.entry).load_table("db.events"), range(number * 10_000, number * 10_000 + 10_000))

    def lost(_swap: Swap) -> None:
        raise ConnectionResetError("the answer was lost")

    before = data_files(disk)
    loop.clock.ahead_ms += 3_600_000
    spec = loop.claim(name)
    with monkeypatch.context() as patched:
        patched.setattr(Swap, "commit", lost)
        report = loop.attempt(spec)
    assert isinstance(report.result, CommitUnknown), report.result
    assert len(data_files(disk) - before) == 1, "nobody knows whether the table has it"
    assert ids(loop.entry) == rows


@pytest.mark.spark
def test_r6_a_full_metadata_directory_costs_no_rewrite_and_heals_without_a_person_or_a_commit(
    loop: SparkLoop, disk: Disk, small_disk: Disk
) -> None:
    name, rows = loop.name("db", "events"), ids(loop.entry)
    loop.spark.sql(f"alter table {name} set tblproperties ('write.metadata.path' = 'file://{small_disk.folder}')")
    before = data_files(disk)
    small_disk.fill(0)
    spec = loop.claim(name)
    for _ in range(3):
        report = loop.attempt(spec)
        assert isinstance(report.result, Failed), report.result
        assert report.result.code == "disk-full"
        assert "metadata directory" in report.result.detail
        loop.control.dispatcher.report(report)
        loop.control.loop.round()
        loop.clock.ahead_ms += BACKOFF_MAX_MS
        following = loop.claim_if_any(name)
        if following is None:
            break
        assert following.task_id == spec.task_id
        spec = following
    loop.clock.ahead_ms += BACKOFF_MAX_MS  # whether an earlier try was committed is asked after its lease
    loop.control.loop.round()
    assert loop.control.tasks.get(spec.task_id).state is TaskState.FAILED
    assert data_files(disk) == before, "nothing was written that could not be committed"
    small_disk.empty()
    loop.clock.ahead_ms += BACKOFF_MAX_MS
    loop.control.maintainer.look(name)
    again = loop.control.dispatcher.claim("optimizer-test")
    assert again is not None, "taken up again"
    assert isinstance(loop.attempt(again).result, Committed)
    assert ids(loop.entry) == rows


@pytest.mark.parametrize("folder", ["a#b", "a?b"])
def test_r6_a_location_that_libraries_read_as_different_files_is_refused_by_name(folder: str) -> None:
    raw = {"format-version": 2, "location": f"file:///lake/{folder}"}
    with pytest.raises(Unsupported, match=r"has # or [?]"):
        parse_metadata(raw, name=TableName("lake", ("db",), "events"), metadata_location="file:///lake/m.json")
