"""What a worker does first: archives are read once and still imported from, and modules are no garbage."""

from __future__ import annotations

import gc
import importlib
import sys
from itertools import count
from pathlib import Path
from zipfile import ZipFile
from zipimport import zipimporter

import pytest

from icewright_spark.session import worker
from icewright_spark.session.worker import settle_in


@pytest.mark.parametrize("settled", [True, False])
def test_modules_of_an_archive_are_found_and_its_contents_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, settled: bool
) -> None:
    archive = tmp_path / "modules.zip"
    with ZipFile(archive, "w") as written:
        for name in ("first", "second"):
            written.writestr(f"of_archive_{name}_{settled}.py", "here = __file__")
    asked: list[str] = []
    honest = zipimporter.invalidate_caches

    def counted(finder: zipimporter) -> None:
        asked.append(finder.archive)
        honest(finder)

    class Counted(zipimporter):
        invalidate_caches = counted

    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(sys, "path", [*sys.path, str(archive)])
    monkeypatch.setitem(sys.path_importer_cache, str(archive), Counted(str(archive)))
    for name in ("first", "second"):
        assert importlib.import_module(f"of_archive_{name}_{settled}").here.startswith(str(archive))
        if settled:
            settle_in()
        importlib.invalidate_caches()
    assert asked == ([] if settled else [str(archive)] * 2)


def test_what_is_loaded_by_the_second_task_is_collected_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[int] = []
    monkeypatch.setattr(worker, "_times", count())
    for task in range(4):
        monkeypatch.setattr(gc, "freeze", lambda task=task: frozen.append(task))
        settle_in()
    assert frozen == [1]
