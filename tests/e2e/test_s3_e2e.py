"""The loop on an object store with real processes: the optimizer proves access, merges, and no secret gets out.

Server and optimizer are started by the command line as people start them: in most other tests they are forked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pyarrow.fs import FileSelector

from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.tables import Json
from tests.e2e.processes import Processes, wait_for
from tests.lakes.sqlite import append, make_table, with_tables, writer
from tests.servers.s3 import ACCESS_KEY, SECRET_KEY, S3Server

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(600)]

_PROPERTIES = """
[catalogs.properties]
"s3.endpoint" = "{endpoint}"
"s3.path-style-access" = "true"
"s3.access-key-id" = "env:ICEWRIGHT_TEST_S3_KEY"
"s3.secret-access-key" = "file:{secret}"
"""
COMMITS = 8


@pytest.fixture
def processes(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    secret = tmp_path / "secret"
    secret.write_text(SECRET_KEY)
    secret.chmod(0o600)
    monkeypatch.setenv("ICEWRIGHT_TEST_S3_KEY", ACCESS_KEY)
    warehouse = f"s3://{s3.new_bucket()}/wh"
    entry = CatalogEntry("lake", CatalogKind.SQL, f"sqlite:///{tmp_path}/lake.db", warehouse, s3.file_io)
    found = Processes(tmp_path, with_tables(entry), forked=False)
    with found.configuration.open("a") as file:
        file.write(_PROPERTIES.format(endpoint=s3.endpoint, secret=secret))
    try:
        yield found
    finally:
        found.end()


def command_lines(processes: Processes) -> str:
    """What everybody on this machine can read of our processes and all below them."""
    found = []
    for process in processes.running.values():
        for member in (psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)):
            with suppress(psutil.NoSuchProcess):  # a worker that has ended
                found.append(" ".join(member.cmdline()))
                found.append(repr(member.environ()))
    return "\n".join(found)


def rows(processes: Processes) -> Counter[int]:
    """Read from bytes, by a reader that is not ours."""
    return Counter(writer(processes.entry).load_table("db.events").scan().to_arrow()["id"].to_pylist())


def test_access_is_proved_and_the_table_merged(processes: Processes, s3: S3Server) -> None:
    table = make_table(processes.entry)
    for number in range(COMMITS):
        append(table, range(number * 10, number * 10 + 10))
    before = rows(processes)
    processes.start("serve")
    processes.start("optimizer")
    with processes.client() as client:

        def ended() -> Json | None:
            return next((t for t in client.tasks().items if t["state"] in ("succeeded", "failed")), None)

        task = wait_for(ended, "a task ends", processes)
        assert task["state"] == "succeeded"
        log = json.dumps(client.log(task["task_id"]))
        seen = command_lines(processes)

    assert "phase begins phase=committing" in log
    assert "task ended result=committed" in log
    assert SECRET_KEY not in log

    assert rows(processes) == before
    table = writer(processes.entry).load_table("db.events")
    assert len(table.inspect.data_files()) == 1
    files = table.inspect.all_files()["file_path"].to_pylist()
    assert all(info.is_file for info in s3.files().get_file_info([path.removeprefix("s3://") for path in files]))
    bucket = processes.entry.warehouse.removeprefix("s3://").partition("/")[0]
    objects = [info.path for info in s3.files().get_file_info(FileSelector(bucket, recursive=True))]
    assert len([path for path in objects if path.endswith("/icewright-probe")]) == 1

    processes.end()
    state = (processes.folder / "state").rglob("*")
    kept = b"".join(path.read_bytes() for path in state if path.is_file())
    for where in (seen, processes.log("serve"), processes.log("optimizer"), kept.decode(errors="replace")):
        assert SECRET_KEY not in where
