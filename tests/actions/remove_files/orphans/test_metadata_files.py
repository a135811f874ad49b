"""Whose a metadata file is, by as little of it as tells."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.remove_files.orphans.metadata_files import SCANNED_MAX, is_metadata_file, uuid_of
from icewright.core.errors import Unreadable
from icewright.model.iceberg.locations import CanonicalPath
from tests.cases import each_case

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10) | st.just("table-uuid"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("table-uuid") | st.text(max_size=5), inner),
    max_leaves=10,
)


@each_case(
    ("name", "is_one"),
    [
        ("00001-a.metadata.json", True),
        ("v3.gz.metadata.json", True),
        ("v3.metadata.json.gz", True),
        ("v3.metadata.json.zst", True),
        ("V3.METADATA.JSON", True),
        (".metadata.json", True),
        ("snap-1.avro", False),
        ("metadata.json", False),
        ("x.metadata.json/data.parquet", False),
        ("x.metadata.json.crc.tmp", False),
        ("x.stats", False),
    ],
)
def test_o5_metadata_files_are_known_by_their_names(name: str, *, is_one: bool) -> None:
    assert is_metadata_file(CanonicalPath(f"s3://b/t/metadata/{name}")) is is_one


@given(st.dictionaries(st.text(max_size=8).filter(lambda key: key != "table-uuid"), values), values, st.booleans())
def test_o5_the_uuid_is_that_of_the_whole_document_and_of_nothing_in_it(
    before: dict[str, object],
    after: object,
    packed: bool,  # noqa: FBT001 - a case
) -> None:
    text = json.dumps({**before, "table-uuid": "AB-c", "after": after}).encode()
    assert uuid_of(gzip.compress(text) if packed else text) == "ab-c"
    without = json.dumps({**before, "after": after}).encode()
    with pytest.raises(Unreadable):
        uuid_of(without)


def test_t13_the_rest_of_the_file_need_not_be_there() -> None:
    head = b'{"format-version": 2, "table-uuid" : "abc", "snapshots": [{"'
    assert uuid_of(head) == "abc"
    packed = gzip.compress(head + bytes(range(256)) * 10_000)
    assert uuid_of(packed[: len(packed) // 2]) == "abc"


@each_case(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'"table-uuid": "x"',
        b'["table-uuid", "x"]',
        b'{"table-uuid": null}',
        b'{"table-uuid": 7, "x": "y"}',
        b'{"table-uuid": ["x"]}',
        b'{"table-uuid": ""}',
        b'{"table-uuid": "' + b"x" * 101 + b'"}',
        b'{"properties": {"table-uuid": "x"}}',
        b'{"table-uuid": "x',
        b"\x1f\x8b",
        b"\x1f\x8bnonsense",
        b"PAR1",
        b"\xff\xfe{",
        b"{" * 100_000,
        b'{"\\',
    ],
)
def test_o5_what_cannot_be_told_is_not_guessed(content: bytes) -> None:
    with pytest.raises(Unreadable):
        uuid_of(content)


@each_case(
    "content",
    [
        gzip.compress(b" " * (200 << 20)),
        b" " * SCANNED_MAX + b'{"table-uuid": "x"}',
        b'{"' + b'\\"' * (1 << 20),
        b'{"a":' * (1 << 18),
        b"{" + b'"":"",' * (1 << 17),
    ],
    ids=["bomb", "far", "quotes", "deep", "many"],
)
def test_t13_a_hostile_file_costs_little(content: bytes) -> None:
    with pytest.raises(Unreadable):
        uuid_of(content)
