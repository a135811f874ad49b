"""Files of cases: what is expected of policies, for ``icewright policy test --expect``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from icewright.core.errors import InvalidName
from icewright.model.iceberg.names import TableName
from icewright.policy.rules.cases import PolicyCase, expectation_problem
from icewright.policy.rules.files import check_version, fields_of, text_of, texts_of
from icewright.policy.rules.yaml_tree import Fields, Items, Node, read_yaml

_FILE_KEYS: Final = ("version", "cases")
_CASE_KEYS: Final = ("table", "properties", "expect")


def read_cases(file: Path) -> tuple[PolicyCase, ...]:
    """The cases of a file. Raises ``InvalidConfiguration`` with file, line and column."""
    found = fields_of(read_yaml(file), _FILE_KEYS, _FILE_KEYS, "a file of cases")
    check_version(found)
    cases = found.fields["cases"]
    if not isinstance(cases, Items):
        raise cases.place.error("expected a list of cases", "each begins with `- table: ...`")
    return tuple(_cases(cases))


def _cases(found: Items) -> Iterator[PolicyCase]:
    for node in found.items:
        case = fields_of(node, _CASE_KEYS, ("table", "expect"), "a case")
        properties = case.fields.get("properties")
        yield PolicyCase(
            str(case.place),
            _table(case.fields["table"]),
            {} if properties is None else texts_of(properties, "properties"),
            _expect(case.fields["expect"]),
        )


def _table(node: Node) -> TableName:
    try:
        return TableName.parse(text_of(node, "the name of a table"))
    except InvalidName as error:
        raise node.place.error(error.message, error.hint) from error


def _expect(node: Node) -> dict[str, str]:
    expected = texts_of(node, "settings")
    for key, value in expected.items():
        problem = expectation_problem(key, value)
        if problem is not None and isinstance(node, Fields):
            raise node.fields[key].place.error(problem, "`icewright policy schema` lists all settings")
    return expected
