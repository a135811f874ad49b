from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.tables import Json, Schema, SortField, SortOrder, TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import PolicyRule
from icewright.plans.layouts import resolve
from icewright.policy.effective import effective_policy
from icewright.policy.settings import LAYOUT_KEY
from tests.builders.observations import table
from tests.cases import each_case
from tests.narrowing import of_type

PLACE: Json = {
    "type": "struct",
    "fields": [
        {"id": 11, "name": "country", "type": "string", "required": False},
        {"id": 12, "name": "tags", "type": {"type": "list", "element-id": 13, "element": "string"}, "required": False},
    ],
}
FIELDS: tuple[Json, ...] = (
    {"id": 1, "name": "ts", "type": "timestamptz", "required": False},
    {"id": 2, "name": "userId", "type": "long", "required": False},
    {"id": 3, "name": "place", "type": PLACE, "required": False},
    {"id": 4, "name": "a.b", "type": "decimal(10, 2)", "required": False},
    {"id": 5, "name": "extra", "type": "variant", "required": False},
)
TS = SortField(1, "identity", "asc", "nulls-first")
USER_DOWN = SortField(2, "identity", "desc", "nulls-last")


def events(layout: str | None, *order: SortField, fields: tuple[Json, ...] = FIELDS) -> TableMetadata:
    properties = {} if layout is None else {LAYOUT_KEY: layout}
    return table(properties=properties, fields=fields, sort_order=SortOrder(1 if order else 0, order))


def resolved(layout: str | None, *order: SortField, fields: tuple[Json, ...] = FIELDS) -> Layout | Reason | None:
    metadata = events(layout, *order, fields=fields)
    policy = effective_policy(metadata, ())
    assert policy.problems == ()
    return resolve(metadata, policy)


def refused(layout: str | None, *order: SortField, fields: tuple[Json, ...] = FIELDS) -> tuple[str, str]:
    reason = of_type(Reason, resolved(layout, *order, fields=fields))
    return reason.code, reason.text


def test_nobody_asks_for_a_layout() -> None:
    assert resolved(None) is None


def test_names_become_fields() -> None:
    assert resolved("hilbert(userId, ts)") == Layout(
        Curve.HILBERT, (SortField(2, "identity", "asc", "nulls-first"), TS)
    )
    assert resolved("sort(`a.b` desc, place.country)") == Layout(
        Curve.SORT,
        (SortField(4, "identity", "desc", "nulls-last"), SortField(11, "identity", "asc", "nulls-first")),
    )


def test_the_tables_sort_order_is_its_layout_unless_the_owner_says_otherwise() -> None:
    assert resolved(None, TS, USER_DOWN) == Layout(Curve.SORT, (TS, USER_DOWN), 1)
    assert resolved("none", TS, USER_DOWN) is None
    assert resolved("zorder(ts, userId)", TS, USER_DOWN) == Layout(
        Curve.ZORDER, (TS, SortField(2, "identity", "asc", "nulls-first"))
    )


def test_a_file_is_said_to_be_sorted_by_the_tables_order_only_where_it_is_that_order() -> None:
    def order_id(layout: str) -> int | None:
        return of_type(Layout, resolved(layout, TS, USER_DOWN)).sort_order_id

    assert order_id("sort(ts, userId desc)") == 1
    assert order_id("sort(ts, userId desc nulls first)") is None
    assert order_id("sort(ts)") is None
    assert order_id("sort(userId desc, ts)") is None
    assert resolved("sort(ts)") == Layout(Curve.SORT, (TS,), None)


@each_case(
    ("transform", "source"), [("day", 1), ("hour", 1), ("truncate[10]", 2), ("truncate[5]", 11), ("truncate[100]", 4)]
)
def test_transforms_that_keep_the_order_of_their_column_are_kept(transform: str, source: int) -> None:
    field = SortField(source, transform, "asc", "nulls-first")
    assert resolved(None, field, USER_DOWN) == Layout(Curve.SORT, (field, USER_DOWN), 1)


@each_case(("transform", "source"), [("bucket[16]", 2), ("void", 2), ("day", 2), ("truncate[3]", 1), ("wat\n", 1)])
def test_transforms_that_do_not_are_a_reason(transform: str, source: int) -> None:
    code, text = refused(None, TS, SortField(source, transform, "asc", "nulls-first"))
    assert code == "layout-transform"
    assert "\n" not in text


MISSING = [
    ("sort(user_id)", "perhaps userId is meant"),
    ("sort(USERID)", "perhaps userId is meant"),
    ("sort(place.Country)", "perhaps place.country is meant"),
    ("sort(zzz)", "the layout sort(zzz) names zzz, which the table does not have"),
    ("sort(ts.day)", "which the table does not have"),
    ("sort(a.b)", "perhaps '`a.b`' is meant"),
    ("sort(place.tags.element)", "perhaps place.tags is meant"),
]


@each_case(("layout", "said"), MISSING)
def test_a_column_that_is_not_there_is_a_reason_and_names_what_may_be_meant(layout: str, said: str) -> None:
    code, text = refused(layout)
    assert code == "layout-column-missing"
    assert text.endswith(said)


@each_case(("layout", "kind"), [("sort(place)", "struct"), ("sort(place.tags)", "list"), ("sort(extra)", "variant")])
def test_a_column_without_an_order_is_a_reason(layout: str, kind: str) -> None:
    code, text = refused(layout)
    assert code == "layout-column-type"
    assert f"whose type {kind} has no order" in text


def changed(**by_id: Any) -> tuple[Json, ...]:
    """The fields with changes: ``_2=None`` drops field 2, ``_2={"name": "x"}`` renames it."""
    kept = []
    for field in FIELDS:
        change = by_id.get(f"_{field['id']}", {})
        if change is not None:
            kept.append({**field, **change})
    return tuple(kept)


def test_dropped_renamed_and_retyped_columns() -> None:
    by_user = SortField(2, "identity", "asc", "nulls-first")
    renamed = changed(_2={"name": "user"})
    assert resolved(None, by_user, fields=renamed) == Layout(Curve.SORT, (by_user,), 1)
    assert refused("sort(userId)", fields=renamed)[0] == "layout-column-missing"
    dropped = changed(_2=None)
    assert refused(None, by_user, fields=dropped)[0] == "layout-column-missing"
    assert refused("sort(userId)", fields=dropped)[0] == "layout-column-missing"
    promoted = changed(_2={"type": "double"})
    assert resolved("sort(userId)", fields=promoted) == Layout(Curve.SORT, (by_user,))
    nested = changed(_2={"type": PLACE})
    assert refused(None, by_user, fields=nested)[0] == "layout-column-type"


def test_dropped_and_added_again_is_another_column() -> None:
    again = (*changed(_2=None), {"id": 20, "name": "userId", "type": "long", "required": False})
    assert resolved("sort(userId)", fields=again) == Layout(
        Curve.SORT, (SortField(20, "identity", "asc", "nulls-first"),)
    )


def test_the_current_schema_counts() -> None:
    old, new = Schema(0, FIELDS), Schema(1, changed(_1={"name": "at"}))
    metadata = table(properties={LAYOUT_KEY: "sort(at)"}, schemas=(new, old), current_schema_id=1)
    assert resolve(metadata, effective_policy(metadata, ())) == Layout(Curve.SORT, (TS,))


def test_a_rule_for_many_tables_is_no_problem_of_one_that_lacks_the_column() -> None:
    rule = PolicyRule("lake", ("sales",), {LAYOUT_KEY: "sort(booked_at)"})
    metadata = table(fields=FIELDS)
    policy = effective_policy(metadata, (rule,))
    assert policy.problems == ()
    assert policy.origins[LAYOUT_KEY] == "namespace lake.sales"
    assert of_type(Reason, resolve(metadata, policy)).code == "layout-column-missing"


@given(st.text(min_size=1, max_size=300), st.text(max_size=300))
def test_hostile_names_give_reasons_of_one_line(asked: str, known: str) -> None:
    fields = ({"id": 1, "name": known, "type": "int", "required": False},)
    quoted = asked.replace("`", "``")
    found = resolved(f"sort(`{quoted}`)", fields=fields)
    if asked == known:
        assert found == Layout(Curve.SORT, (TS,))
    else:
        assert isinstance(found, Reason)
        assert found.text.isprintable()
        assert len(found.text) < 1_000
