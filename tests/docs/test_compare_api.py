"""What would break callers of the API is found, and what would not is not."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from scripts.compare_api import breaking, main
from scripts.write_reference import OPENAPI
from tests.cases import each_case

OLD = json.loads(OPENAPI.read_text(encoding="utf-8"))
TABLES, APPROVE = "/api/v1/tables", "/api/v1/plans/{plan_id}/approve"


def changed(change: Callable[[Any], object]) -> list[str]:
    new = copy.deepcopy(OLD)
    change(new)
    return breaking(OLD, new)


def schemas(document: Any) -> Any:
    return document["components"]["schemas"]


def parameter(document: Any, name: str) -> Any:
    return next(one for one in document["paths"][TABLES]["get"]["parameters"] if one.get("name") == name)


def test_nothing_is_broken_by_the_same() -> None:
    assert changed(lambda _: None) == []


@each_case(
    "change",
    [
        lambda new: new["paths"].__setitem__("/api/v1/more", {"get": new["paths"][TABLES]["get"]}),
        lambda new: schemas(new)["TableSummary"]["properties"].__setitem__("more", {"type": "string"}),
        lambda new: schemas(new)["ApprovalGiven"]["properties"].__setitem__("note", {"type": "string"}),
        lambda new: new["paths"][TABLES]["get"]["parameters"].append({"name": "owner", "in": "query"}),
        lambda new: new["info"].__setitem__("description", "in other words"),
    ],
)
def test_more_breaks_nobody(change: Callable[[Any], object]) -> None:
    assert changed(change) == []


@each_case(
    ("change", "said"),
    [
        (lambda new: new["paths"].pop(TABLES), f"GET {TABLES} is gone"),
        (lambda new: new["paths"][APPROVE].pop("post"), f"POST {APPROVE} is gone"),
        (lambda new: new["paths"][TABLES]["get"].__setitem__("operationId", "x"), "is called x, and was list_tables"),
        (lambda new: schemas(new)["TableSummary"]["properties"].pop("uuid"), "the answer.items[].uuid is gone"),
        (
            lambda new: schemas(new)["TableSummary"]["properties"].__setitem__("uuid", {"type": "integer"}),
            "the answer.items[].uuid is of type integer, and was of type string",
        ),
        (lambda new: schemas(new)["TableSummary"]["required"].remove("uuid"), "uuid is not always there any more"),
        (
            lambda new: schemas(new)["ApprovalGiven"].update(
                properties={**schemas(new)["ApprovalGiven"]["properties"], "why": {"type": "string"}},
                required=["approved_by", "why"],
            ),
            "the body.why is required",
        ),
        (lambda new: schemas(new)["ApprovalGiven"]["properties"].pop("approved_by"), "approved_by is not taken"),
        (lambda new: parameter(new, "catalog").__setitem__("required", True), "the parameter catalog is required"),
        (
            lambda new: new["paths"][TABLES]["get"]["parameters"].remove(parameter(new, "name")),
            "the parameter name is gone",
        ),
        (
            lambda new: new["paths"][TABLES]["get"]["responses"].__setitem__(
                "202", new["paths"][TABLES]["get"]["responses"].pop("200")
            ),
            "not answered with 200 any more",
        ),
    ],
)
def test_what_callers_rely_on_is_named(change: Callable[[Any], object], said: str) -> None:
    found = changed(change)
    assert any(said in line for line in found), found


def test_as_a_command(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    new = copy.deepcopy(OLD)
    del new["paths"][TABLES]
    (tmp_path / "new.json").write_text(json.dumps(new))
    assert main([str(OPENAPI), str(tmp_path / "new.json")]) == 1
    assert capsys.readouterr().out == f"GET {TABLES} is gone\n"
    assert main([str(OPENAPI), str(OPENAPI)]) == 0
    assert main([]) == 2
