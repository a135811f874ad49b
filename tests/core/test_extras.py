"""Extras: what they install is what is looked for, and the error says which one is missing."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from icewright.actions.remove_files.adapters.opened import CatalogObjects, CatalogQuarantine
from icewright.catalogs.pointers.file_io import open_files
from icewright.core.errors import InvalidConfiguration
from icewright.core.extras import EXTRAS, missing_packages, require_extra
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from tests.cases import each_case


def test_what_an_extra_installs_is_what_is_looked_for() -> None:
    declared = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(declared) == set(EXTRAS)
    brought_by = packages_distributions()
    for extra, packages in EXTRAS.items():
        names = {re.split(r"[-=<>\[]", one.replace("-", "_"))[0] for one in declared[extra]}
        found = {
            package: {one.lower().replace("-", "_") for one in brought_by[package.split(".")[0]]}
            for package in packages
        }
        assert all(names & distributions for distributions in found.values()), extra
    assert set(EXTRAS["spark"]) >= {re.split(r"[-=<>]", one)[0] for one in declared["spark"]} - {"arro3"}


@each_case("extra", EXTRAS)
def test_an_extra_that_is_missing_is_named(extra: str) -> None:
    require_extra(extra, "tests")
    with pytest.MonkeyPatch.context() as patch:
        for package in EXTRAS[extra]:
            patch.setitem(sys.modules, package, None)
        assert missing_packages(extra) == list(EXTRAS[extra])
        with pytest.raises(InvalidConfiguration, match=f"tests need .*{EXTRAS[extra][0]}") as refused:
            require_extra(extra, "tests")
        assert refused.value.hint == f"pip install 'icewright[{extra}]'"


@each_case("scheme, package, extra", [("s3", "boto3", "s3"), ("hdfs", "hdfs_native", "hdfs")])
def test_only_tables_there_need_the_library_of_a_storage(scheme: str, package: str, extra: str, tmp_path: Path) -> None:
    there = tmp_path / "a"
    there.write_bytes(b"a")
    entry = CatalogEntry(name="lake", kind=CatalogKind.REST, uri="http://127.0.0.1:1", warehouse="w")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, package, None)
        objects = CatalogObjects(entry)
        found = objects.stat(f"file://{there}")  # type: ignore[arg-type]  # one word of text
        assert found is not None
        with pytest.raises(InvalidConfiguration) as refused:
            objects.stat(f"{scheme}://bucket/a")  # type: ignore[arg-type]  # as above
        assert f"icewright[{extra}]" in refused.value.hint
        with pytest.raises(InvalidConfiguration):
            CatalogQuarantine(entry, ()).check(f"{scheme}://bucket/a")  # type: ignore[arg-type]  # as above


def test_files_on_hdfs_are_not_read_without_its_extra() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "hdfs_native", None)
        with pytest.raises(InvalidConfiguration, match="hdfs_native") as refused:
            open_files({}, "hdfs://nn/a").new_input("hdfs://nn/a").open()
        assert "icewright[hdfs]" in refused.value.hint
