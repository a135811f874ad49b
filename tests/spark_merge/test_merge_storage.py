"""The merge over an object store: the same rows and the same file as on a disk, and every way to be refused."""

from __future__ import annotations

import dataclasses
import io
import pickle
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import StorageUnavailable, Unavailable
from icewright.model.actions.actions import InputFile
from icewright.model.iceberg.files import DeleteFile
from icewright_spark.merge import storage as storage_module
from icewright_spark.merge.errors import (
    FileUnreadable,
    OutputExists,
    OutputUnwritable,
    StorageRefused,
    UnsupportedFile,
    UnsupportedLocation,
)
from icewright_spark.merge.file_systems import REQUEST_TIMEOUT_S, arguments, honoured
from icewright_spark.merge.merge import MergeJob, MergeResult, merge_group
from icewright_spark.merge.storage import LOCAL, BlockReader, Storage, same_file
from icewright_spark.merge.write import ARROW_RS, PYARROW, Writer
from tests.cases import each_case
from tests.servers.processes import HOST, free_port
from tests.servers.refusing import refusing_server
from tests.servers.s3 import ACCESS_KEY, SECRET_KEY, S3Server
from tests.spark_merge.delete_files import deletion_vector, position_deletes, with_deletes
from tests.spark_merge.merge_tables import arrow_table, column, job_of, list_of, map_of, write_input

FIELDS = [
    column(1, "id", "long", required=True),
    column(2, "s", "string"),
    column(3, "u", "fixed[16]"),
    column(4, "l", list_of(5, "double")),
    column(6, "m", map_of(7, "string", 8, "int")),
]
SECRET = "a-secret/that+nobody=says"  # noqa: S105 - to be looked for


@pytest.fixture
def bucket(s3: S3Server) -> str:
    return s3.new_bucket()


F = TypeVar("F", InputFile, DeleteFile)


def storage_of(properties: dict[str, str], location: str = "s3://bucket/data") -> Storage:
    return Storage(honoured(properties, location))


def stored(s3: S3Server, bucket: str, file: F) -> F:
    """The file, brought to the object store."""
    key = f"{bucket}/wh/db.db/t é/data/p=a%20b/{Path(file.path).name}"
    with s3.files().open_output_stream(key) as stream:
        stream.write(Path(file.path).read_bytes())
    return dataclasses.replace(file, path=f"s3://{key}")


def inputs(folder: Path) -> list[InputFile]:
    rows: dict[str, list[Any]] = {
        "id": list(range(40)),
        "s": [None if n % 7 == 0 else f"v{n}" for n in range(40)],
        "u": [bytes([n]) * 16 for n in range(40)],
        "l": [[float(n), None, None] for n in range(40)],
        "m": [[("k", n)] for n in range(40)],
    }
    table = arrow_table(FIELDS, rows)
    return [write_input(folder, table.slice(start, 10)) for start in range(0, 40, 10)]


def job_on_s3(s3: S3Server, bucket: str, folder: Path) -> MergeJob:
    files = [stored(s3, bucket, file) for file in inputs(folder)]
    job = job_of(FIELDS, files, folder / "unused")
    output = f"s3a://{bucket}/wh/db.db/t é/data/p=a%20b/out.parquet"
    return dataclasses.replace(job, output_paths=(output,), storage=storage_of(s3.file_io))


def content(s3: S3Server, location: str) -> bytes:
    return bytes(s3.files().open_input_stream(location.partition("://")[2]).read())


@pytest.mark.parametrize("writer", [ARROW_RS, PYARROW], ids=lambda writer: writer.name)
@pytest.mark.parametrize("whole_bytes", [0, storage_module.WHOLE_BYTES_MAX])
def test_the_output_is_the_same_as_on_a_disk(
    s3: S3Server, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: Writer, whole_bytes: int
) -> None:
    """Small files are read at once, large ones by parts."""
    monkeypatch.setattr(storage_module, "WHOLE_BYTES_MAX", whole_bytes)
    remote = job_on_s3(s3, bucket, tmp_path)
    # Names of inputs decide which of them are sampled, and nothing else.
    local = job_of(FIELDS, inputs(tmp_path), tmp_path / "out.parquet")

    on_s3, on_disk = merge_group(remote, writer=writer), merge_group(local, writer=writer)

    assert content(s3, remote.output_paths[0]) == Path(local.output_paths[0]).read_bytes()
    assert dataclasses.replace(on_s3.outputs[0], path="") == dataclasses.replace(on_disk.outputs[0], path="")
    assert on_s3.receipt == on_disk.receipt


def test_what_was_written_has_the_rows_in_order(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    job = job_on_s3(s3, bucket, tmp_path)
    result: MergeResult = merge_group(job)
    table = pq.read_table(pa.BufferReader(content(s3, job.output_paths[0])))
    assert table.column("id").to_pylist() == list(range(40))
    assert result.outputs[0].size_bytes == len(content(s3, job.output_paths[0]))


def test_deletes_are_read_from_there_as_well(
    s3: S3Server, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_on_s3(s3, bucket, tmp_path)
    first, second, *_ = job.group.files
    deletes = (
        stored(s3, bucket, position_deletes(tmp_path, [(first.path, 0), (second.path, 9)])),
        stored(s3, bucket, deletion_vector(tmp_path, job.group.files[2].path, [4, 5])),
    )
    group = with_deletes(job.group, [(deletes[0], [first, second]), (deletes[1], [job.group.files[2]])])
    job = dataclasses.replace(job, group=group)
    monkeypatch.setattr("icewright_spark.merge.merge.FILES_PER_SAMPLE", 1)

    result = merge_group(job)

    table = pq.read_table(pa.BufferReader(content(s3, job.output_paths[0])))
    assert table.column("id").to_pylist() == [n for n in range(40) if n not in (0, 19, 24, 25)]
    assert result.receipt.deleted_records == 4


def test_an_object_that_is_there_is_not_overwritten(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    job = job_on_s3(s3, bucket, tmp_path)
    with s3.files().open_output_stream(job.output_paths[0].partition("://")[2]) as stream:
        stream.write(b"somebody's")
    with pytest.raises(OutputExists):
        merge_group(job)
    assert content(s3, job.output_paths[0]) == b"somebody's"


def test_an_input_that_is_not_there_is_said(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    job = job_on_s3(s3, bucket, tmp_path)
    gone = dataclasses.replace(job.group.files[0], path=f"s3://{bucket}/gone.parquet")
    job = dataclasses.replace(job, group=dataclasses.replace(job.group, files=(gone, *job.group.files[1:])))
    with pytest.raises(FileUnreadable, match=r"gone\.parquet"):
        merge_group(job)
    folder = f"s3://{bucket}/wh"
    with pytest.raises(UnsupportedFile, match="no regular file"):
        job.storage.size(folder)


def test_one_file_under_two_names_is_noticed(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    job = job_on_s3(s3, bucket, tmp_path)
    first = job.group.files[0]
    again = dataclasses.replace(first, path=first.path.replace("s3://", "s3a://"))
    assert same_file(first.path) == same_file(again.path)
    job = dataclasses.replace(job, group=dataclasses.replace(job.group, files=(first, again)))
    with pytest.raises(Exception, match="names a file twice"):
        merge_group(job)


@pytest.fixture
def refusing() -> Iterator[str]:
    with refusing_server() as address:
        yield address


def with_endpoint(endpoint: str) -> Storage:
    return storage_of(
        {
            "s3.endpoint": endpoint,
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET,
            "client.region": "us-east-1",
            "s3.path-style-access": "true",
        }
    )


def attempts(storage: Storage, location: str) -> Iterator[Any]:
    """Whatever can be done with a storage."""
    yield lambda: storage.open_input(location).read()
    yield lambda: storage.source(location)
    yield lambda: storage.size(location)
    yield lambda: storage.exists(location)
    yield lambda: storage.put(location, b"x")

    def create() -> None:
        with storage.create(location) as file:
            file.write(b"x")

    yield create


def test_a_storage_that_refuses_is_told_from_one_that_is_away(refusing: str) -> None:
    for call in attempts(with_endpoint(refusing), "s3://bucket/a"):
        with pytest.raises(StorageRefused) as refused:
            call()
        assert SECRET not in str(refused.value)
    away = with_endpoint(f"http://{HOST}:{free_port()}")
    for call in (lambda: away.size("s3://bucket/a"), lambda: away.put("s3://bucket/a", b"x")):
        with pytest.raises(StorageUnavailable):
            call()


def test_a_storage_that_hangs_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icewright_spark.merge.file_systems.REQUEST_TIMEOUT_S", 1.0)
    with closing(socket.socket()) as silent:
        silent.bind((HOST, 0))
        silent.listen()
        with pytest.raises(StorageUnavailable):
            with_endpoint(f"http://{HOST}:{silent.getsockname()[1]}").size("s3://bucket/a")


def test_hdfs_without_its_library_is_said() -> None:
    storage = storage_of({}, "hdfs://127.0.0.1:1/t")
    with pytest.raises((UnsupportedLocation, StorageUnavailable, FileUnreadable), match="hdfs") as refused:
        storage.size("hdfs://127.0.0.1:1/t")
    assert len(str(refused.value)) < 1000


def test_an_unknown_bucket_cannot_be_written_to(s3: S3Server) -> None:
    with pytest.raises(OutputUnwritable, match="NO_SUCH_BUCKET"):
        storage_of(s3.file_io).put("s3://no-such-bucket/a", b"x")


def test_all_of_these_are_worth_another_try() -> None:
    for error in (StorageRefused, StorageUnavailable, FileUnreadable, OutputUnwritable):
        assert issubclass(error, Unavailable)
        assert error.code != Unavailable.code


def test_a_storage_travels_and_says_no_secret(s3: S3Server, bucket: str) -> None:
    storage = storage_of({**s3.file_io, "unrelated.password": SECRET})
    again = pickle.loads(pickle.dumps(storage))  # noqa: S301 - our own
    again.put(f"s3://{bucket}/a", b"content")
    assert content(s3, f"s3://{bucket}/a") == b"content"
    assert SECRET_KEY not in repr(storage) + str(storage)
    assert SECRET.encode() not in pickle.dumps(storage)
    said = f"GET failed: secret {SECRET_KEY}, key {ACCESS_KEY}"
    assert storage.without_secrets(said) == "GET failed: secret ***, key ***"


def test_local_files_need_no_settings(tmp_path: Path) -> None:
    path = f"file:{tmp_path}/a/b"
    with LOCAL.create(path) as file:
        file.write(b"content")
    assert LOCAL.size(path) == 7
    assert LOCAL.exists(path)
    with LOCAL.open_input(path) as file:
        assert file.read() == b"content"


@each_case(
    "properties",
    [
        {"s3.sse.type": "kms"},
        {"s3.sse.type": "custom", "s3.sse.key": "x"},
        {"s3.sse.type": "s3", "s3.endpoint": "http://minio"},
        {"s3.acl": "public-read"},
        {"s3.write.tags.team": "a"},
        {"s3.write.table-tag-enabled": "true"},
        {"s3.write.storage-class": "GLACIER"},
        {"s3.remote-signing-enabled": "true"},
        {"s3.access-grants.enabled": "true"},
        {"s3.access-points.bucket": "arn"},
        {"s3.client-factory-impl": "a.B"},
        {"client.factory": "a.B"},
        {"client.credentials-provider": "a.B"},
        {"client.assume-role.arn": "arn"},
        {"s3.what-comes-with-iceberg-2": "x"},
    ],
    ids=str,
)
def test_settings_that_arrow_cannot_honour_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(UnsupportedLocation) as refused:
        honoured(properties, "s3://bucket/t")
    assert next(iter(properties)) in str(refused.value)


@each_case(
    ("properties", "made"),
    [
        ({}, {}),
        ({"client.region": "eu-west-1", "s3.sse.type": "s3"}, {"region": "eu-west-1"}),
        ({"s3.access-key-id": "a"}, {}),
        (
            {"s3.access-key-id": "a", "s3.secret-access-key": "b", "s3.session-token": "c"},
            {"access_key": "a", "secret_key": "b", "session_token": "c"},
        ),
        ({"s3.endpoint": "http://h:1"}, {"endpoint_override": "http://h:1", "force_virtual_addressing": True}),
        (
            {"s3.endpoint": "http://h:1", "s3.path-style-access": "true"},
            {"endpoint_override": "http://h:1", "force_virtual_addressing": False},
        ),
        ({"s3.retry.num-retries": "9", "s3.delete.tags.a": "b", "s3.remote-signing-enabled": "false"}, {}),
        ({"warehouse": "s3://w", "token": "t", "jdbc.password": "p", "io.tmpdir": "/t"}, {}),
        ({"http-client.proxy-endpoint": "http://p:3128"}, {"proxy_options": "http://p:3128"}),
    ],
    ids=str,
)
def test_settings_of_s3_in_arrows_words(properties: dict[str, str], made: dict[str, Any]) -> None:
    found = arguments(honoured(properties, "s3://bucket/t"), "s3://bucket/t")
    assert {key: found[key] for key in found if not key.endswith("timeout")} == made
    assert found["request_timeout"] == REQUEST_TIMEOUT_S


def test_settings_of_other_clouds_in_arrows_words() -> None:
    gcs = honoured({"gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "1000", "gcs.project-id": "p"}, "gs://b/t")
    made = arguments(gcs, "gs://b/t")
    assert made.pop("credential_token_expiration").timestamp() == 1
    assert made == {"access_token": "t", "project_id": "p"}
    azure = "abfss://box@acct.dfs.core.windows.net/t"
    adls = honoured({"adls.sas-token.acct.dfs.core.windows.net": "s", "adls.read.block-size-bytes": "1"}, azure)
    assert arguments(adls, azure) == {"account_name": "acct", "sas_token": "s"}
    for properties, location in (
        ({"gcs.encryption-key": "k"}, "gs://b/t"),
        ({"adls.token-credential-provider": "a.B"}, azure),
        ({}, "oss://b/t"),
        ({}, "relative/path"),
        ({}, "s3://bucket"),
        ({}, "s3://bucket/a#b"),
        ({}, "s3://bucket/a?b"),
    ):
        with pytest.raises(UnsupportedLocation):
            honoured(properties, location)


@given(
    content=st.binary(max_size=200),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("read"), st.integers(-1, 220)),
            st.tuples(st.just("seek"), st.integers(0, 200)),
            st.tuples(st.just("from_end"), st.integers(0, 200)),
        ),
        max_size=20,
    ),
)
def test_reading_by_blocks_is_reading(content: bytes, steps: list[tuple[str, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage_module, "_BLOCK_BYTES", 16)
        patch.setattr(storage_module, "_BLOCKS_KEPT", 2)
        reader, plain = BlockReader(pa.BufferReader(content)), io.BytesIO(content)
        for step, number in steps:
            match step:
                case "read":
                    assert reader.read(number) == plain.read(number)
                case "seek":
                    assert reader.seek(number) == plain.seek(number)
                case _:
                    offset = -min(number, len(content))
                    assert reader.seek(offset, io.SEEK_END) == plain.seek(offset, io.SEEK_END)
            assert reader.tell() == plain.tell()
