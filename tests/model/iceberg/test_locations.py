"""One object has one name, and two objects never share one, whatever their keys are made of."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import InvalidConfiguration, InvalidLocation
from icewright.model.iceberg.locations import Aliases, declared, is_ambiguous
from tests.cases import each_case

PLAIN = Aliases()
HOSTILE = ("%2F", "%20", " ", "+", "#", "?", "//", "/./", "/../", "..", "\u00e9", "e\u0301", "🧊", "\n", "\\", "A", "a")
segments = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"]), max_size=5))
keys = st.lists(segments, max_size=6).map(lambda parts: "/" + "".join(parts))
authorities = st.from_regex(r"[A-Za-z0-9@:._-]{1,12}", fullmatch=True)
schemes = st.sampled_from(["s3", "s3a", "s3n", "hdfs", "file", "gs", "abfss", "S3A"])


def of_s3(scheme: str) -> str:
    return "s3" if scheme.lower() in {"s3", "s3a", "s3n"} else scheme.lower()


@given(schemes, authorities, keys, schemes, authorities, keys)
def test_o1_e8_two_locations_are_one_if_and_only_if_storage_and_key_are(
    scheme: str, authority: str, key: str, other_scheme: str, other_authority: str, other_key: str
) -> None:
    one, other = f"{scheme}://{authority}{key}", f"{other_scheme}://{other_authority}{other_key}"
    same = (of_s3(scheme), authority, key) == (of_s3(other_scheme), other_authority, other_key)
    assert (PLAIN.canonical(one) == PLAIN.canonical(other)) is same


@given(st.sampled_from(["s3", "s3a", "s3n", "S3"]), authorities, keys)
def test_o2_nothing_behind_the_authority_is_touched(scheme: str, authority: str, key: str) -> None:
    assert PLAIN.canonical(f"{scheme}://{authority}{key}") == f"s3://{authority}{key}"


@given(schemes, st.one_of(st.just(""), authorities), keys)
def test_a_canonical_path_is_its_own(scheme: str, authority: str, key: str) -> None:
    path = PLAIN.canonical(f"{scheme}://{authority}{key}")
    assert PLAIN.canonical(path) == path


@given(keys)
def test_a_path_without_a_scheme_is_local(key: str) -> None:
    assert PLAIN.canonical(key) == PLAIN.canonical(f"file://{key}") == f"file://{key}"
    if not key.startswith("//"):  # what follows two slashes is an authority
        assert PLAIN.canonical(f"file:{key}") == f"file://{key}"


@each_case(
    ("one", "other"),
    [
        ("s3://b/a b", "s3://b/a%20b"),
        ("s3://b/a+b", "s3://b/a b"),
        ("s3://b/a//b", "s3://b/a/b"),
        ("s3://b/a/../b", "s3://b/b"),
        ("s3://b/a", "s3://b/a/"),
        ("s3://b/a", "s3://b/A"),
        ("s3://b/a", "s3://B/a"),
        ("s3://b/a?v=1", "s3://b/a"),
        ("s3://b/a#1", "s3://b/a"),
        ("s3://b/a\n", "s3://b/a"),
        ("hdfs://one:8020/a", "hdfs://two:8020/a"),
        ("hdfs:/a", "hdfs://one:8020/a"),
        ("gs://b/a", "s3://b/a"),
        (unicodedata.normalize("NFC", "s3://b/\u00e9"), unicodedata.normalize("NFD", "s3://b/\u00e9")),
    ],
)
def test_o1_o2_what_is_not_declared_to_be_one_is_two(one: str, other: str) -> None:
    assert PLAIN.canonical(one) != PLAIN.canonical(other)


@each_case("location", ["", "a/b", "data.parquet", "file:a", "s3:b/a", ":/a", "1s://a", "../a"])
def test_what_names_no_object_is_refused(location: str) -> None:
    with pytest.raises(InvalidLocation):
        PLAIN.canonical(location)


def test_o1_authorities_are_one_where_that_is_declared() -> None:
    aliases = declared(
        {
            "hdfs://nn1:8020": "hdfs://cluster",
            "hdfs://nn2:8020": "hdfs://cluster",
            "hdfs://": "hdfs://cluster",
            "wasbs://c@account.blob.example": "abfss://c@account.dfs.example",
            "s3a://old": "s3://new",
        }
    )
    assert {aliases.canonical(f"hdfs:{rest}") for rest in ("//nn1:8020/a", "//nn2:8020/a", "///a", "/a")} == {
        "hdfs://cluster/a"
    }
    assert aliases.canonical("wasbs://c@account.blob.example/a") == "abfss://c@account.dfs.example/a"
    assert aliases.canonical("s3n://old/a") == "s3://new/a"
    assert aliases.canonical("s3://older/a") == "s3://older/a"
    assert aliases.canonical("hdfs://nn1/a") == "hdfs://nn1/a"


@each_case(
    "authorities",
    [
        {"hdfs://a": "hdfs://b", "hdfs://b": "hdfs://c"},
        {"hdfs://a": "hdfs://a"},
        {"s3a://a": "s3://a"},
        {"s3a://a": "s3://b", "s3n://a": "s3://c"},
        {"hdfs://a/path": "hdfs://b"},
        {"hdfs://a": "hdfs://b/"},
        {"hdfs:": "hdfs://b"},
        {"a": "hdfs://b"},
        {"/a": "hdfs://b"},
    ],
)
def test_aliases_that_lead_nowhere_or_in_a_circle_are_refused(authorities: dict[str, str]) -> None:
    with pytest.raises(InvalidConfiguration):
        declared(authorities)


@each_case(
    ("location", "ambiguous"),
    [
        ("s3://b/a//b", False),  # another object than a/b
        ("s3a://b/a//b", True),  # which Hadoop's client writes to a/b
        ("gs://b/a/../b", False),
        ("file:///a//b", True),
        ("/a/./b", True),
        ("/a/../b", True),
        ("//a", True),
        ("/x://y/../b", True),
        ("hdfs://n/a/..", True),
        ("hdfs://n/a/b..", False),
        ("hdfs://n/a/..b", False),
        ("hdfs://n/a/", False),
        ("/a/b.c", False),
        ("/a/...", False),
    ],
)
def test_o2_keys_that_a_file_system_would_tidy_up_are_known(location: str, *, ambiguous: bool) -> None:
    assert is_ambiguous(location) is ambiguous
