"""Hostile names stay names in the statement that is shown."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.domain.actions import RewriteDataFiles
from icewright.domain.names import TableName, identifier, split_parts
from icewright.planning.call import literal, nearest_call

ACTION = RewriteDataFiles(base_snapshot_id=1, schema_id=0, groups=(), target_file_size_bytes=1000)
ANY = st.text(st.characters(), min_size=1, max_size=30)
_STATEMENT = re.compile(
    r"CALL `(?P<catalog>(?:[^`]|``)+)`\.system\.rewrite_data_files\("
    r"table => '(?P<table>(?:[^'\\]|\\.)*)', strategy => 'binpack', options => map\([a-z0-9', -]*\)\)",
)


def read_literal(text: str) -> str:
    """What Spark's parser makes of the inside of a literal (``SparkParserUtils.unescapeSQLString``)."""
    named = {"n": "\n", "r": "\r", "t": "\t"}

    def one(match: re.Match[str]) -> str:
        code = match["code"] or match["long"]
        return chr(int(code, 16)) if code else named.get(match["plain"], match["plain"])

    return re.sub(r"\\(?:u(?P<code>[0-9a-f]{4})|U(?P<long>[0-9a-f]{8})|(?P<plain>.))", one, text, flags=re.DOTALL)


def test_the_plain_case() -> None:
    assert nearest_call(TableName("lake", ("db",), "events"), ACTION.figures) == (
        "CALL `lake`.system.rewrite_data_files(table => '`db`.`events`', strategy => 'binpack', "
        "options => map('target-file-size-bytes', '1000', 'use-starting-sequence-number', 'true'))"
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("it's", r"'it\'s'"),
        ("a\\b", r"'a\\b'"),
        ("\\'", r"'\\\''"),
        ("a\nb\tc\r", r"'a\nb\tc\r'"),
        ("\x1b[2J", r"'\u001b[2J'"),
        ("\u202edb", r"'\u202edb'"),
        ("\U000e0001", r"'\U000e0001'"),
        ("\ud800", r"'\ud800'"),
        ("ünï 🧊", "'ünï 🧊'"),
    ],
)
def test_string_literals(text: str, written: str) -> None:
    assert literal(text) == written


def test_identifiers() -> None:
    assert identifier("a`b") == "`a``b`"


@given(ANY, st.lists(ANY, min_size=1, max_size=3), ANY)
def test_no_name_ends_its_quotes(catalog: str, namespace: list[str], table: str) -> None:
    name = TableName("lake", tuple(namespace), table)
    statement = _STATEMENT.fullmatch(nearest_call(name, ACTION.figures))
    assert statement is not None
    assert split_parts(read_literal(statement["table"])) == [*namespace, table]
    assert split_parts(identifier(catalog)) == [catalog]


@given(ANY)
def test_a_literal_prints_and_is_read_back(text: str) -> None:
    written = literal(text)
    assert read_literal(written[1:-1]) == text
    assert not {unicodedata.category(character) for character in written} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
