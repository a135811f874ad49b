"""A layout by cuts as properties say it: its id and its tree, and why it cannot be used where it cannot."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from icewright.actions.analyze_queries.check import impossible
from icewright.core.errors import InvalidConfiguration
from icewright.model.iceberg.layouts import Curve, Layout, LayoutExpression
from icewright.model.iceberg.predicates.comparisons import Literal, LiteralKind, Operator
from icewright.model.iceberg.predicates.cuts import Cut, CutTree
from icewright.model.iceberg.tables import Json, SortField, TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import PolicyRule
from icewright.model.queries.recommendations import LayoutChange
from icewright.plans.layouts import in_names, resolve
from icewright.policy.effective import effective_policy
from icewright.policy.property_changes import with_changes
from icewright.policy.settings import LAYOUT_CUTS_KEY, LAYOUT_KEY
from icewright.recommendations.service import properties_of
from tests.builders.observations import table
from tests.builders.queries import recommendation
from tests.cases import each_case
from tests.narrowing import of_type

PLACE: Json = {
    "type": "struct",
    "fields": [{"id": 11, "name": "zip code", "type": "string", "required": False}],
}
FIELDS: tuple[Json, ...] = (
    {"id": 1, "name": "ts", "type": "timestamptz", "required": False},
    {"id": 2, "name": "user", "type": "int", "required": False},
    {"id": 3, "name": "place", "type": PLACE, "required": False},
)
TREE = CutTree(
    (("user",), ("place", "zip code")),
    (
        Cut(0, Operator.LT, Literal(LiteralKind.NUMBER, "5")),
        Cut(1, Operator.LT_EQ, Literal(LiteralKind.STRING, "12\0'")),
        None,
        None,
        None,
    ),
)
BOTH = {LAYOUT_KEY: f"cuts({TREE.id})", LAYOUT_CUTS_KEY: TREE.text}


def events(properties: dict[str, str], fields: tuple[Json, ...] = FIELDS) -> TableMetadata:
    return table(properties=properties, fields=fields)


def with_type(name: str, kind: Any) -> tuple[Json, ...]:
    return tuple({**field, "type": kind} if field["name"] == name else field for field in FIELDS)


def resolved(properties: dict[str, str], fields: tuple[Json, ...] = FIELDS) -> Layout | Reason | None:
    metadata = events(properties, fields)
    policy = effective_policy(metadata, ())
    assert policy.problems == ()
    return resolve(metadata, policy)


def test_both_properties_are_one_layout() -> None:
    layout = resolved(BOTH)
    fields = tuple(SortField(number, "identity", "asc", "nulls-first") for number in (2, 11))
    assert layout == Layout(Curve.CUTS, fields, None, TREE)
    assert layout.key == BOTH[LAYOUT_KEY]
    assert in_names(events(BOTH), layout) == f"{BOTH[LAYOUT_KEY]} of user, place.`zip code`"


def test_a_tree_alone_asks_for_no_layout() -> None:
    assert resolved({LAYOUT_CUTS_KEY: TREE.text}) is None
    assert resolved({LAYOUT_CUTS_KEY: TREE.text, LAYOUT_KEY: "none"}) is None
    assert resolved({LAYOUT_CUTS_KEY: TREE.text, LAYOUT_KEY: "sort(user)"}) == Layout(
        Curve.SORT, (SortField(2, "identity", "asc", "nulls-first"),)
    )


def test_an_id_and_a_tree_of_two_places_are_one_layout() -> None:
    metadata = events({LAYOUT_CUTS_KEY: TREE.text})
    policy = effective_policy(metadata, [PolicyRule("lake", ("sales",), {LAYOUT_KEY: BOTH[LAYOUT_KEY]})])
    assert isinstance(resolve(metadata, policy), Layout)
    assert policy.origins[LAYOUT_KEY] == "namespace lake.sales"


OTHER = replace(TREE, cuts=(TREE.cuts[0], None, *TREE.cuts[1:4]))
UNUSABLE = [
    ({LAYOUT_KEY: BOTH[LAYOUT_KEY]}, FIELDS, "layout-cuts-missing", "does not have: it is set to another one"),
    ({**BOTH, LAYOUT_CUTS_KEY: OTHER.text}, FIELDS, "layout-cuts-missing", "another one, or not at all"),
    (BOTH, FIELDS[:1] + FIELDS[2:], "layout-column-missing", "names user, which the table does not have"),
    (BOTH, with_type("user", "string"), "layout-cuts-type", "cuts user by values of another type than string"),
    (BOTH, with_type("user", "date"), "layout-cuts-type", "another type than date"),
    (BOTH, with_type("user", PLACE), "layout-column-type", "whose type struct has no order"),
    (BOTH, with_type("place", "string"), "layout-column-missing", "place.`zip code`"),
]


@each_case(("properties", "fields", "code", "text"), UNUSABLE)
def test_what_the_table_cannot_have_is_said_and_nothing_is_put_in_order(
    properties: dict[str, str], fields: tuple[Json, ...], code: str, text: str
) -> None:
    reason = of_type(Reason, resolved(properties, fields))
    assert reason.code == code
    assert text in reason.text


@pytest.mark.parametrize("kind", ["long", "decimal(9, 0)"])
def test_a_type_whose_values_the_literals_are_keeps_the_layout(kind: str) -> None:
    assert of_type(Layout, resolved(BOTH, with_type("user", kind))).key == BOTH[LAYOUT_KEY]


def test_a_text_that_is_no_tree_is_a_problem_of_the_policy() -> None:
    """Nothing at all is done to such a table until it is corrected."""
    policy = effective_policy(events({**BOTH, LAYOUT_CUTS_KEY: '{"version":2}'}), ())
    (problem,) = policy.problems
    assert problem.key == LAYOUT_CUTS_KEY
    assert "not an object of version, columns and cuts" in problem.problem
    bomb = {**BOTH, LAYOUT_CUTS_KEY: "[" * 1_000_000}
    (problem,) = effective_policy(events(bomb), ()).problems
    assert "more than 16,384 characters" in problem.problem
    assert len(problem.problem) < 1_000


def test_what_is_set_is_tried_with_what_it_is_set_with() -> None:
    changed = with_changes(events({}), BOTH)
    assert effective_policy(changed, ()).layout == LayoutExpression.by_cuts(TREE)
    assert with_changes(events({LAYOUT_CUTS_KEY: TREE.text}), {LAYOUT_KEY: BOTH[LAYOUT_KEY]}) == changed
    for changes in (
        {LAYOUT_KEY: BOTH[LAYOUT_KEY]},
        {LAYOUT_KEY: BOTH[LAYOUT_KEY], LAYOUT_CUTS_KEY: OTHER.text},
        {**BOTH, LAYOUT_CUTS_KEY: "{}"},
        {**BOTH, LAYOUT_CUTS_KEY: None},
    ):
        with pytest.raises(InvalidConfiguration):
            with_changes(events({}), changes)
    with pytest.raises(InvalidConfiguration):
        with_changes(events({}, FIELDS[:1]), BOTH)


def test_accepting_sets_the_id_and_the_tree() -> None:
    said = replace(recommendation(), candidate=LayoutChange(LayoutExpression.by_cuts(TREE)))
    found = properties_of(said)
    assert {key: found[key] for key in BOTH} == BOTH
    assert json.loads(found[LAYOUT_CUTS_KEY] or "")["version"] == 1
    assert LAYOUT_CUTS_KEY not in properties_of(recommendation())


GOOD = LayoutExpression.by_cuts(TREE)
HOSTILE = [
    (replace(GOOD, cuts=None), "not those of their tree"),
    (replace(GOOD, columns=GOOD.columns[:1]), "not those of their tree"),
    (replace(GOOD, curve=Curve.ZORDER), "not those of their tree"),
    (replace(GOOD, cuts_id="0123456789abcdef"), "not those of their tree"),
    (LayoutExpression.by_cuts(replace(TREE, cuts=TREE.cuts[:-1])), "cannot be set"),
    (LayoutExpression.by_cuts(replace(TREE, cuts=TREE.cuts * 200)), "cannot be set"),
    (LayoutExpression.by_cuts(replace(TREE, columns=(("place", "zip code"), ("user",)))), "values of another type"),
    (LayoutExpression.by_cuts(replace(TREE, columns=(("user",), ("gone",)))), "no column gone"),
]


@each_case(("layout", "problem"), HOSTILE)
def test_what_a_report_recommends_is_checked_before_anybody_sees_it(layout: LayoutExpression, problem: str) -> None:
    metadata = events({})
    assert list(impossible(LayoutChange(GOOD), metadata)) == []
    assert any(problem in said for said in impossible(LayoutChange(layout), metadata))
