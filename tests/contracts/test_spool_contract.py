"""What every spool must do: give back what it was given, and all mentions of a path in one part."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.adapters import spool as on_disk
from icewright.adapters.memory.spool import open_memory_spool
from icewright.adapters.spool import DiskSpool, open_disk_spool
from icewright.domain.errors import Unavailable
from icewright.domain.locations import CanonicalPath
from icewright.domain.reachable import FileClass, ReachableFile
from icewright.ports.spool import OpenSpool

OPENERS = {"memory": open_memory_spool, "disk": open_disk_spool}
each_spool = pytest.mark.parametrize("open_spool", OPENERS.values(), ids=list(OPENERS))
mentions = st.builds(
    ReachableFile,
    st.one_of(st.sampled_from(["s3://b/a", "s3://b/a\n", "s3://b/\udc80"]), st.text(max_size=20)).map(CanonicalPath),
    st.sampled_from(FileClass),
    st.one_of(st.none(), st.integers(0, 2**62)),
    st.one_of(st.integers(0, 9), st.integers(0, 2**600)),
)


@each_spool
@given(st.lists(mentions, max_size=30), st.sampled_from([0, 1, 10_000_000]))
def test_what_goes_in_comes_out_and_again(
    open_spool: OpenSpool, given_files: list[ReachableFile], expected: int
) -> None:
    with open_spool(expected) as spool:
        for file in given_files:
            spool.add(file)
        for _ in range(2):
            parts = [list(part) for part in spool.parts()]
            order = sorted(given_files, key=repr)
            assert sorted((file for part in parts for file in part), key=repr) == order
            of_path = [{file.path for file in part} for part in parts]
            assert sum(map(len, of_path)) == len({file.path for file in given_files})


def test_a_large_spool_goes_to_disk_in_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_disk, "_IN_MEMORY_BYTES", 1000)
    files = [ReachableFile(CanonicalPath(f"s3://b/{number}"), FileClass.DATA, number, 1) for number in range(5000)]
    with open_disk_spool(20 * on_disk.PER_PART) as spool:
        for file in files:
            spool.add(file)
        parts = [list(part) for part in spool.parts()]
        assert all(part._rolled for part in spool._files)  # type: ignore[attr-defined]  # the library's own word
    assert len(parts) == 20
    assert max(map(len, parts)) < 2 * 5000 / 20
    assert sorted((file for part in parts for file in part), key=lambda file: file.size_bytes or 0) == files


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
        assert len(spool._files) == on_disk.PARTS_MAX
