"""What is particular to the quarantine of HDFS: a file that is replaced at the last moment, and lost answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from icewright.catalogs.storage.hdfs import HdfsQuarantine
from icewright.core.errors import Conflict, NotAllowed, OutcomeUnknown, StorageUnavailable, Unsupported
from icewright.model.actions.deletion import Held
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import ListedObject
from tests.contracts.storages import HELD, OnHdfs
from tests.narrowing import not_none
from tests.servers.hdfs import Hdfs
from tests.servers.processes import HOST, free_port

RUN, KEY, CONTENT = "run-1", "t/data/x", b"all of it"


class Meddled:
    """A client with something happening around one of its calls."""

    def __init__(self, client: Any, name: str, act: Callable[[Callable[[], Any]], Any]) -> None:
        self._client, self._name, self._act = client, name, act

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        return call if name != self._name else lambda *asked: self._act(lambda: call(*asked))


@pytest.fixture
def store(hdfs_cluster: Hdfs) -> OnHdfs:
    found = OnHdfs(hdfs_cluster)
    found.put(KEY, CONTENT)
    return found


def listed(store: OnHdfs) -> ListedObject:
    return not_none(store.objects.stat(store.at(KEY)))


def meddled(store: OnHdfs, name: str, act: Callable[[Callable[[], Any]], Any]) -> HdfsQuarantine:
    quarantine = HdfsQuarantine([store.at(HELD)])
    client, _ = quarantine._clusters.of(store.at(KEY))
    quarantine._clusters._clients = dict.fromkeys(quarantine._clusters._clients, Meddled(client, name, act))
    return quarantine


def test_a_file_that_is_replaced_at_the_last_moment_is_put_back(store: OnHdfs) -> None:
    expected, replaced = listed(store), [False]

    def replace_first(do: Callable[[], Any]) -> Any:
        if not replaced[0]:
            replaced[0] = True
            store.put(KEY, CONTENT[::-1])
        return do()

    with pytest.raises(Conflict):
        meddled(store, "rename", replace_first).quarantine(RUN, expected)
    assert store.objects.read(expected.path, 100) == CONTENT[::-1]
    assert list(store.objects.list(store.at(HELD))) == []


@pytest.mark.parametrize("happened", [True, False])
def test_c1_whether_a_rename_happened_is_looked_for(store: OnHdfs, *, happened: bool) -> None:
    expected = listed(store)

    def lose(do: Callable[[], Any]) -> Any:
        if happened:
            do()
        raise RuntimeError("the name node went away")

    with pytest.raises(OutcomeUnknown):
        meddled(store, "rename", lose).quarantine(RUN, expected)
    found = store.quarantine.look(RUN, expected)
    assert (found.original is None, found.held is not None) == (happened, happened)
    if found.held is not None:
        store.quarantine.restore(RUN, expected, found.held)
    assert store.objects.read(expected.path, 100) == CONTENT


def test_t8_nothing_outside_of_a_quarantine_is_purged_whatever_an_intent_says(store: OnHdfs) -> None:
    expected = listed(store)
    with pytest.raises(NotAllowed):
        store.quarantine.purge(RUN, expected, Held(expected.path))
    assert store.objects.read(expected.path, 100) == CONTENT


def test_a_cluster_without_a_quarantine_and_one_that_is_away() -> None:
    away = f"hdfs://{HOST}:{free_port()}"
    expected = ListedObject(CanonicalPath(f"{away}/t/x"), 1, 1)
    with pytest.raises(NotAllowed):
        HdfsQuarantine([]).check(expected.path)
    with pytest.raises(StorageUnavailable):
        HdfsQuarantine([CanonicalPath(f"{away}/held")]).quarantine(RUN, expected)
    with pytest.raises(Unsupported):
        HdfsQuarantine([])._clusters.of(CanonicalPath("s3://b/x"))
