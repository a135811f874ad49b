"""A server whose configuration names a table for the history keeps it; any other one keeps none."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from icewright.configuration.load import load_config
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.retention.history import SETTLED_MS
from icewright.retention.history_wiring import history_progress, keeping_history
from tests.builders.command_line import write_configuration
from tests.lakes.sqlite import make_lake, writer
from tests.retention.test_history_writer import World

_PATIENCE_S = 60.0


def has_rows(entry: CatalogEntry) -> bool:
    catalog, name = writer(entry), ("icewright", "tasks")
    return catalog.table_exists(name) and catalog.load_table(name).current_snapshot() is not None


@pytest.mark.parametrize("wanted", ['\n[history]\ncatalog = "lake"\n', ""])
def test_the_history_is_kept_where_it_is_wanted(tmp_path: Path, wanted: str) -> None:
    entry, world = make_lake(tmp_path), World()
    world.end(3)
    world.clock.advance(SETTLED_MS)
    write_configuration(tmp_path, entry, wanted)
    config = load_config(tmp_path / "icewright.toml", {"HOME": str(tmp_path)}, tmp_path)
    progress = history_progress(config)
    with keeping_history(config, {}, world.tasks, progress):
        if not wanted:
            assert (writer(entry).list_namespaces(), progress) == ([], None)
            return
        deadline = time.monotonic() + _PATIENCE_S
        while not has_rows(entry):
            assert time.monotonic() < deadline, "nothing is copied"
            time.sleep(0.1)
    rows = writer(entry).load_table(("icewright", "tasks")).scan().to_arrow()
    assert sorted(rows["task_id"].to_pylist()) == ["task-001", "task-002", "task-003"]
    assert progress is not None
    assert progress.through == world.clock.now() - SETTLED_MS
