"""Hostile names stay names in the statement that is shown."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.rewrite_data_files.plan import nearest_call
from icewright.model.actions.actions import FileGroup, RewriteDataFiles
from icewright.model.iceberg.layouts import Curve, Layout, Level
from icewright.model.iceberg.names import TableName, identifier, split_parts
from icewright.model.iceberg.tables import Json, SortField, SortOrder
from icewright.plans.procedure_call import literal
from icewright.policy.effective import effective_policy
from tests.builders.observations import month, position_deletes, table
from tests.cases import each_case

NAME = TableName("lake", ("db",), "events")
ACTION = RewriteDataFiles(base_snapshot_id=1, schema_id=0, groups=(), target_file_size_bytes=1000)
ANY = st.text(st.characters(), min_size=1, max_size=30)
PARTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30)
_STATEMENT = re.compile(
    r"CALL `(?P<catalog>(?:[^`]|``)+)`\.system\.rewrite_data_files\("
    r"table => '(?P<table>(?:[^'\\]|\\.)*)', strategy => 'binpack', options => map\([a-z0-9', -]*\)\)"
)


def read_literal(text: str) -> str:
    """What Spark's parser makes of the inside of a literal (``SparkParserUtils.unescapeSQLString``)."""
    named = {"n": "\n", "r": "\r", "t": "\t"}

    def one(match: re.Match[str]) -> str:
        code = match["code"] or match["long"]
        return chr(int(code, 16)) if code else named.get(match["plain"], match["plain"])

    return re.sub(r"\\(?:u(?P<code>[0-9a-f]{4})|U(?P<long>[0-9a-f]{8})|(?P<plain>.))", one, text, flags=re.DOTALL)


FIELDS: tuple[Json, ...] = (
    {"id": 1, "name": "ts", "type": "timestamptz", "required": False},
    {"id": 2, "name": "it's", "type": "long", "required": False},
    {
        "id": 3,
        "name": "place",
        "type": {"type": "struct", "fields": [{"id": 4, "name": "a`b", "type": "string", "required": False}]},
        "required": False,
    },
)


def called(name: TableName = NAME, action: RewriteDataFiles = ACTION, order: tuple[SortField, ...] = ()) -> str:
    metadata = table(name=name, fields=FIELDS, sort_order=SortOrder(1 if order else 0, order))
    return nearest_call(metadata, effective_policy(metadata, ()), action)


def test_the_plain_case() -> None:
    assert called() == (
        "CALL `lake`.system.rewrite_data_files(table => '`db`.`events`', strategy => 'binpack', options => map("
        "'target-file-size-bytes', '1000', 'use-starting-sequence-number', 'true', 'min-input-files', '5'))"
    )


def field(source_id: int, direction: str = "asc", null_order: str = "nulls-first") -> SortField:
    return SortField(source_id, "identity", direction, null_order)


ORDERED = [
    (Layout(Curve.SORT, (field(1),)), "sort_order => '`ts` ASC NULLS FIRST'"),
    (
        Layout(Curve.SORT, (field(2, "desc", "nulls-last"), field(4))),
        r"sort_order => '`it\'s` DESC NULLS LAST, `place`.`a``b` ASC NULLS FIRST'",
    ),
    (Layout(Curve.ZORDER, (field(1), field(2))), r"sort_order => 'zorder(`ts`, `it\'s`)'"),
    (Layout(Curve.HILBERT, (field(1), field(4))), "sort_order => 'hilbert(`ts`, `place`.`a``b`)'"),
    (Layout(Curve.CUTS, (field(1), field(4))), "sort_order => 'zorder(`ts`, `place`.`a``b`)'"),
    (Layout(Curve.CUTS, (field(1),)), "sort_order => '`ts` ASC NULLS FIRST'"),
]


@each_case(("layout", "said"), ORDERED)
def test_layouts(layout: Layout, said: str) -> None:
    statement = called(action=replace(ACTION, layout=layout, level=Level.LEVEL_1))
    assert f"strategy => 'sort', {said}, options => " in statement
    assert "'rewrite-all'" not in statement


def test_the_tables_own_order_need_not_be_said() -> None:
    action = replace(ACTION, layout=Layout(Curve.SORT, (field(1),), 1), level=Level.LEVEL_2)
    statement = called(action=action, order=(field(1),))
    assert "strategy => 'sort', options => " in statement
    assert "'rewrite-all', 'true'" in statement


def test_thresholds_of_deletes_are_said_where_deletes_are_folded_in() -> None:
    deletes = position_deletes(month(1), 1)
    group = FileGroup(0, month(1), "month=1", (), delete_files=(deletes,))
    statement = called(action=replace(ACTION, groups=(group,)))
    assert "'delete-ratio-threshold', '0.3', 'delete-file-threshold', '10'" in statement


@each_case(
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


@given(PARTS, st.lists(PARTS, min_size=1, max_size=3), PARTS)
def test_no_name_ends_its_quotes(catalog: str, namespace: list[str], table: str) -> None:
    name = TableName("lake", tuple(namespace), table)
    statement = _STATEMENT.fullmatch(called(name))
    assert statement is not None
    assert split_parts(read_literal(statement["table"])) == [*namespace, table]
    assert split_parts(identifier(catalog)) == [catalog]


@given(ANY)
def test_a_literal_prints_and_is_read_back(text: str) -> None:
    written = literal(text)
    assert read_literal(written[1:-1]) == text
    assert not {unicodedata.category(character) for character in written} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
