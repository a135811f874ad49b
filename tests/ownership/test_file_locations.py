"""The folders of a manifest's files: all of them, however many there are."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from icewright.inventory.manifest_summary import PLACES_MAX, FilePlaces
from icewright.model.iceberg.locations import Aliases

folders = st.lists(
    st.lists(st.sampled_from(["a", "a_2", "b", "x=1", ".."]), min_size=1, max_size=5).map("/".join), max_size=60
)


def places(location: str | None, *paths: str) -> tuple[str, ...]:
    found = FilePlaces(location)
    for path in paths:
        found.add(path)
    return found.places()


def test_most_files_are_in_the_tables_own_location() -> None:
    assert places("s3://b/t", "s3://b/t/data/1", "s3://b/t/data/x=1/2") == ("s3://b/t/",)
    assert places("s3://b/t/", "s3://b/t/data/1") == ("s3://b/t/",)
    assert places("s3://b/t") == ()


def test_o6_a_sibling_is_elsewhere() -> None:
    assert places("s3://b/t", "s3://b/t_2/data/1", "s3://b/t/1") == ("s3://b/t/", "s3://b/t_2/data/")


def test_t6_a_path_that_only_begins_in_the_location_is_elsewhere() -> None:
    assert places("file:///w/t", "file:///w/t/../u/1") == ("file:///w/t/../u/",)


def test_what_is_no_folder_is_told_as_it_is() -> None:
    assert places("s3://b/t", "relative/1", "alone") == ("", "relative")


@given(folders, st.integers(0, 1_000))
def test_l5_no_file_is_left_out(names: list[str], seed: int) -> None:
    heads = ("s3://b", "s3a://b", "s3://c", "hdfs://n", "", "file:")
    chance = random.Random(seed)  # noqa: S311 - a spelling, not a secret
    paths = [f"{chance.choice(heads)}/{name}/f{number}" for number, name in enumerate(names)]
    found = places("s3://b/a", *paths)
    assert len(found) <= PLACES_MAX + 1
    kept = tuple(Aliases().folder(place) for place in found)
    for path in paths:
        assert Aliases().canonical(path).startswith(kept), path
