"""Paths that some program may take for one object are alike; equal paths always are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from icewright.model.iceberg.locations import Aliases, CanonicalPath
from icewright.model.iceberg.path_aliasing import comparison_key
from tests.cases import each_case
from tests.model.iceberg.test_locations import authorities, keys, schemes


@each_case(
    ("one", "other"),
    [
        ("hdfs://nn1:8020/t/f", "hdfs:///t/f"),
        ("s3://b/t/f", "gs://c/t/f"),
        ("s3://b/t/a b", "s3://b/t/a%20b"),
        ("s3://b/t/a b", "s3://b/t/a+b"),
        ("s3://b/t/a%2Fb", "s3://b/t/a%252Fb"),
        ("s3://b/t/a%2Fb", "s3://b/t/a/b"),
        ("s3://b/t//f", "s3://b/t/f"),
        ("s3://b/t/./f", "s3://b/t/f"),
        ("s3://b/t/x/../f", "s3://b/t/f"),
        ("s3://b/../t/f", "s3://b/t/f"),
        ("s3://b/T/F", "s3://b/t/f"),
        ("s3://b/t/\u00e9", "s3://b/t/e\u0301"),
        ("s3://b/t/\u00c9", "s3://b/t/%65%CC%81"),
        ("s3://b/t/stra\u00dfe", "s3://b/t/STRASSE"),
        ("s3://b/t/f/", "s3://b/t/f"),
        ("s3://b/t\\f", "s3://b/t/f"),
        ("s3://b/t/\U0001f9ca", "s3://b/t/%F0%9F%A7%8A"),
    ],
)
def test_o1_o2_other_spellings_are_alike(one: str, other: str) -> None:
    assert comparison_key(CanonicalPath(one)) == comparison_key(CanonicalPath(other))


@each_case(
    ("one", "other"),
    [
        ("s3://b/t/f1", "s3://b/t/f2"),
        ("s3://b/t/a/b", "s3://b/t/ab"),
        ("s3://b/t", "s3://b/t_2"),
        ("s3://b/", "s3://b/a"),
    ],
)
def test_other_files_are_not(one: str, other: str) -> None:
    assert comparison_key(CanonicalPath(one)) != comparison_key(CanonicalPath(other))


@given(schemes, authorities, keys)
def test_it_is_a_name_of_the_key_alone_and_stays_what_it_is(scheme: str, authority: str, key: str) -> None:
    path = Aliases().canonical(f"{scheme}://{authority}{key}")
    like = comparison_key(path)
    assert like == comparison_key(CanonicalPath(f"other://place{key}"))
    assert like == "" or like.startswith("/")


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="%+\\"), max_size=20))
def test_the_short_way_and_the_long_way_lead_to_the_same(name: str) -> None:
    """Plain keys are not taken apart; ``%41`` makes a key that is."""
    plain, long_way = CanonicalPath(f"s3://b/t/{name}/a"), CanonicalPath(f"s3://b/t/{name}/%41")
    assert comparison_key(plain) == comparison_key(long_way)
