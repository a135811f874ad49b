"""What a spool must do: give back what it was given, and all mentions of a path in one part."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.catalogs import local_spool as on_disk
from icewright.catalogs.local_spool import DiskSpool, open_disk_spool
from icewright.core.errors import Unavailable
from icewright.model.actions.orphans import FoundFile, Mention, Sighting
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import ListedObject
from icewright.model.iceberg.path_aliasing import comparison_key
from icewright.model.iceberg.reachable_files import FileClass, ReachableFile

SPELLINGS = ("s3://b/a", "s3a://c/a", "s3://b/A", "s3://b/%61", "s3://b//a", "s3://b/a\n", "s3://b/\udc80")
paths = st.one_of(st.sampled_from(SPELLINGS), st.text(max_size=20)).map(CanonicalPath)
sizes = st.integers(0, 2**62)
texts = st.one_of(st.none(), st.text(max_size=9))
instants = st.integers(-(2**80), 2**80)
times = st.one_of(st.none(), instants)
needed = st.builds(
    ReachableFile,
    paths,
    st.sampled_from(FileClass),
    st.one_of(st.none(), sizes),
    st.one_of(st.integers(0, 9), st.integers(0, 2**600)),
    st.one_of(st.none(), st.integers(1 - 2**63, 2**63 - 1)),
)
listed = st.builds(ListedObject, paths, sizes, times, texts, texts)
found = st.one_of(st.builds(FoundFile, paths, listed), listed.map(lambda one: FoundFile(one.path, one)))
seen = st.builds(Sighting, paths, sizes, times, texts, texts, instants, instants, st.integers(0, 9))
mentions = st.one_of(needed, found, seen)


@given(st.lists(mentions, max_size=30), st.sampled_from([0, 1, 10_000_000]))
def test_what_goes_in_comes_out_and_again(given_files: list[Mention], expected: int) -> None:
    with open_disk_spool(expected) as spool:
        for file in given_files:
            spool.add(file)
        for _ in range(2):
            parts = [list(part) for part in spool.parts()]
            order = sorted(given_files, key=repr)
            assert sorted((file for part in parts for file in part), key=repr) == order
            of_path = [{comparison_key(file.path) for file in part} for part in parts]
            assert sum(map(len, of_path)) == len({comparison_key(file.path) for file in given_files})
            for part in parts:
                assert part == [
                    file for file in given_files if comparison_key(file.path) in {comparison_key(p.path) for p in part}
                ]
            if expected == 0:
                assert len(parts) == 1


def test_a_large_spool_goes_to_disk_in_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_disk, "_IN_MEMORY_BYTES", 1000)
    files = [ReachableFile(CanonicalPath(f"s3://b/{number}"), FileClass.DATA, number, 1) for number in range(5000)]
    with open_disk_spool(20 * on_disk.PER_PART) as spool:
        for file in files:
            spool.add(file)
        parts = [list(part) for part in spool.parts()]
        assert all(part.file._rolled for part in spool._parts)  # type: ignore[attr-defined]  # the library's own word
    assert len(parts) == 20
    assert max(map(len, parts)) < 2 * 5000 / 20
    assert sorted((file for part in parts for file in part), key=lambda file: str(file.path)) == sorted(
        files, key=lambda file: str(file.path)
    )


class FullDisk(BytesIO):
    """Takes some bytes, and says only when they have to be written that there is no room."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def write(self, content: Any) -> int:
        self.room -= len(content)
        if self.room < -100:
            raise OSError(28, "No space left on device")
        return super().write(content)

    def seek(self, place: int, whence: int = 0) -> int:
        if self.room < 0:
            raise OSError(28, "No space left on device")
        return super().seek(place, whence)


@pytest.mark.parametrize("room", [50, 500])
def test_a_disk_that_is_full_is_said_and_nothing_is_lost_quietly(room: int) -> None:
    spool = DiskSpool([FullDisk(room)])

    def fill() -> None:
        for number in range(100):
            spool.add(ReachableFile(CanonicalPath(f"s3://b/{number}"), FileClass.DATA, 1, 1))
            if room < 100:
                next(spool.parts())

    with pytest.raises(Unavailable, match="temporary folder"):
        fill()


def test_there_are_never_more_parts_than_files_may_be_open() -> None:
    with open_disk_spool(10**12) as spool:
        assert len(spool._parts) == on_disk.PARTS_MAX
