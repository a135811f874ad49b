"""Sentences for who may not read all tables: no name of another table is left, and nothing else is changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from icewright.core import wording
from icewright.model.access.permissions import EVERYTHING, Scope, covers
from icewright.model.access.redacted_text import Words
from icewright.model.iceberg.names import TableName
from icewright.ownership.location_redaction import OTHER_TABLE
from tests.cases import each_case

WORDS = Words(["lake", "lake2", "od`d one"])


def shown(sentence: str, *scopes: str) -> str:
    own = tuple(Scope.parse(scope) for scope in scopes)
    return WORDS.of(sentence, lambda resource: covers(own, resource))


@each_case(
    ("sentence", "told"),
    [
        ("as lake.db.t is", "as lake.db.t is"),
        ("as lake.secret.t is", "as another table is"),
        ("`lake.secret.t` and `icewright plan lake.secret.t`", "`another table` and `icewright plan another table`"),
        ("of lake.secret.t, lake.db.t.", "of another table, lake.db.t."),
        ("of lake.secret.a.b: it", "of another table: it"),
        ("of lake2.db.t", "of another table"),
        ("of `od``d one`.`se.cr``et`.t (is)", "of another table (is)"),
        ("of lake.db.sub.t", "of lake.db.sub.t"),
        ("of lake.dbx.t", "of another table"),
        ("of lake.`db`.t", "of lake.`db`.t"),
        ("of lake.secre... and more", "of another table and more"),
        ("of lake.`secre... and more", "of another table"),
        ("s3://lake/secret/t and my-lake.secret.t", "s3://lake/secret/t and my-lake.secret.t"),
        ("catalog lake and lake.secret", "catalog lake and lake.secret"),
        ("other.db.t of no catalog", "other.db.t of no catalog"),
    ],
)
def test_t2_other_tables_are_not_named(sentence: str, told: str) -> None:
    assert shown(sentence, "lake.db") == told


@given(
    parts=st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=300), min_size=2, max_size=4
    )
)
def test_t2_whatever_it_is_called(parts: list[str]) -> None:
    name = TableName("lake", ("secret-7f3a", *parts[:-1]), parts[-1])
    for said in (str(name), wording.cut(str(name))):
        assert "secret-7f3a" not in shown(f"of {said} is", "lake.db")
        assert shown(f"of {said} is", "lake") == f"of {said} is" or wording.cut(said) != str(name)
        assert shown(f"of {said} is", "*") == f"of {said} is" or wording.cut(said) != str(name)


def test_t2_only_sentences_are_changed() -> None:
    document = {
        "table": "lake.secret.t",
        "reason": {"code": "x", "text": "lake.secret.t", "figures": {"a": 1}},
        "explanation": ["lake.secret.t", {"text": "lake.secret.t"}],
        "items": [{"detail": "lake.secret.t", "hint": "", "path": "s3://lake.secret.t/x", "n": None}],
    }
    assert WORDS.within(document, lambda _: False) == {
        "table": "lake.secret.t",
        "reason": {"code": "x", "text": OTHER_TABLE, "figures": {"a": 1}},
        "explanation": [OTHER_TABLE, {"text": OTHER_TABLE}],
        "items": [{"detail": OTHER_TABLE, "hint": "", "path": "s3://lake.secret.t/x", "n": None}],
    }
    assert WORDS.within(document, EVERYTHING.covers) == document


def test_t2_without_catalogs_there_is_nothing_to_name() -> None:
    assert Words(()).of("lake.secret.t", lambda _: False) == "lake.secret.t"
