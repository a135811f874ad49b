"""What every quarantine must do: take exactly what was meant, give it back byte for byte, and never over anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from icewright.actions.remove_files.adapters.opened import CatalogQuarantine
from icewright.core.errors import Conflict, NotAllowed, Unsupported
from icewright.model.actions.deletion import same_object
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import ListedObject
from tests.cases import each_case
from tests.contracts.storages import HELD, KINDS, InMemory, Local, OnS3, Storage, make_storage
from tests.doubles.quarantine import MemoryQuarantine

RUN = "run-1"
KEY = "t/data/a b%20c/x+y.parquet"
CONTENT = b"all of it"


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    found = make_storage(request.param, request, tmp_path)
    found.put(KEY, CONTENT)
    found.put("t/other", b"nobody's business")
    return found


def listed(store: Storage, key: str = KEY) -> ListedObject:
    (found,) = (one for one in store.objects.list(store.at("t")) if one.path == store.at(key))
    assert isinstance(found, ListedObject)
    return found


def content(store: Storage, key: str = KEY) -> bytes:
    return store.objects.read(store.at(key), 100)


def test_a_file_goes_and_comes_back_byte_for_byte(store: Storage) -> None:
    expected = listed(store)
    store.quarantine.check(expected.path)
    held = store.quarantine.quarantine(RUN, expected)
    assert store.objects.stat(expected.path) is None
    assert {one.path for one in store.objects.list(store.at("t"))} == {store.at("t/other")}
    assert store.quarantine.look(RUN, expected).held == held
    store.quarantine.restore(RUN, expected, held)
    assert content(store) == CONTENT
    assert content(store, "t/other") == b"nobody's business"
    found = store.quarantine.look(RUN, expected)
    assert found.held is None
    assert found.original is not None
    assert list(store.objects.list(store.at(HELD))) == []


def test_a_file_can_go_again_after_it_came_back(store: Storage) -> None:
    for run in ("run-1", "run-2"):
        expected = listed(store)
        held = store.quarantine.quarantine(run, expected)
        store.quarantine.restore(run, expected, held)
        assert content(store) == CONTENT


def test_only_the_very_object_that_was_meant_goes(store: Storage) -> None:
    expected = listed(store)
    store.put(KEY, CONTENT[::-1])  # as long as it was
    for wrong in (expected, replace(listed(store), etag="another"), replace(listed(store), size_bytes=1)):
        with pytest.raises(Conflict):
            store.quarantine.quarantine(RUN, wrong)
    with pytest.raises(Conflict):
        store.quarantine.quarantine(RUN, replace(listed(store), modified_at=1_000))
    with pytest.raises(Conflict):
        store.quarantine.quarantine(RUN, replace(listed(store), version_id="another"))
    assert content(store) == CONTENT[::-1]
    assert store.quarantine.look(RUN, expected).held is None


def test_what_is_gone_is_a_conflict(store: Storage) -> None:
    expected = listed(store)
    store.remove(KEY)
    with pytest.raises(Conflict):
        store.quarantine.quarantine(RUN, expected)


def test_nothing_comes_back_over_what_is_there_now(store: Storage) -> None:
    expected = listed(store)
    held = store.quarantine.quarantine(RUN, expected)
    store.put(KEY, b"somebody's")
    with pytest.raises(Conflict):
        store.quarantine.restore(RUN, expected, held)
    assert content(store) == b"somebody's"
    store.remove(KEY)
    if not (isinstance(store, OnS3) and held.marker_id):
        store.quarantine.restore(RUN, expected, held)
        assert content(store) == CONTENT


def test_what_was_purged_is_gone_for_good_and_purging_again_is_no_error(store: Storage) -> None:
    expected = listed(store)
    held = store.quarantine.quarantine(RUN, expected)
    store.quarantine.purge(RUN, expected, held)
    store.quarantine.purge(RUN, expected, held)
    with pytest.raises(Conflict):
        store.quarantine.restore(RUN, expected, held)
    found = store.quarantine.look(RUN, expected)
    assert (found.original, found.held) == (None, None)
    assert list(store.objects.list(store.at(HELD))) == []
    assert content(store, "t/other") == b"nobody's business"


def test_purging_spares_what_is_at_the_files_place_by_now(store: Storage) -> None:
    expected = listed(store)
    held = store.quarantine.quarantine(RUN, expected)
    store.put(KEY, b"somebody's")
    store.quarantine.purge(RUN, expected, held)
    assert content(store) == b"somebody's"


def test_where_a_file_is_can_be_told_at_any_time(store: Storage) -> None:
    expected = listed(store)
    found = store.quarantine.look(RUN, expected)
    assert found.held is None
    assert found.original is not None
    assert same_object(expected, found.original)
    held = store.quarantine.quarantine(RUN, expected)
    found = store.quarantine.look(RUN, expected)
    assert (found.original, found.held) == (None, held)
    assert store.quarantine.look("run-2", expected).held == (held if held.marker_id else None)


@each_case("name", ["a%2Fb", "é", "e\u0301", "🧊", "a\\b", "a#b?c", "...", "'", "$(a)"])
def test_o2_keys_are_opaque_on_both_ways(store: Storage, name: str) -> None:
    store.put(f"t/{name}", name.encode())
    expected = listed(store, f"t/{name}")
    held = store.quarantine.quarantine(RUN, expected)
    assert store.objects.stat(expected.path) is None
    store.quarantine.restore(RUN, expected, held)
    assert content(store, f"t/{name}") == name.encode()


def test_a_storage_without_a_quarantine_loses_nothing(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    for kind in ("memory", "local", "s3"):
        store = make_storage(kind, request, tmp_path)
        store.put(KEY, CONTENT)
        match store:
            case InMemory():
                store.quarantine = MemoryQuarantine(store.storage, None)
            case Local():
                store.quarantine = CatalogQuarantine(store.entry, [])
            case OnS3():
                store.quarantine = CatalogQuarantine(store.entry, [CanonicalPath("s3://other/held")])
        with pytest.raises(NotAllowed):
            store.quarantine.check(store.at(KEY))
        with pytest.raises(NotAllowed):
            store.quarantine.quarantine(RUN, listed(store))
        assert content(store) == CONTENT


@each_case("path", ["gs://b/t/x", "abfss://c@a.dfs.core.windows.net/t/x", "oss://b/x"])
def test_nothing_is_deleted_on_other_storages(path: str, tmp_path: Path) -> None:
    quarantine = Local(tmp_path.resolve()).quarantine
    with pytest.raises(Unsupported):
        quarantine.check(CanonicalPath(path))
    with pytest.raises(Unsupported):
        quarantine.quarantine(RUN, ListedObject(CanonicalPath(path), 1, 1, "etag"))
