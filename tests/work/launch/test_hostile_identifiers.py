"""G12: hostile identifiers through what renders SQL and what makes command lines: one name each, and no word more."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any, Final

from icewright.core.errors import InvalidConfiguration, InvalidName
from icewright.model.iceberg.names import PART_LENGTH_MAX, TableName, identifier, split_parts
from icewright.plans.procedure_call import literal, procedure_call
from icewright.work.launch.submission import submission
from tests.conftest import CAMPAIGN
from tests.plans.test_procedure_call import read_literal
from tests.work.launch.test_submission import CASES, HOME, given_settings, read_back

IDENTIFIERS: Final = 50_000 if CAMPAIGN else 5_000
PIECES: Final = (
    *"`'\"\\;#-/*%$&|<>(){}[]=,.:!?~^@ \t\n\r\x0b\x0c\x1a\x1b\x7f\x85",
    "``",
    "''",
    "--",
    "/*",
    "*/",
    "\\'",
    "\\\\",
    "\\u0027",
    "\\n",
    "${",
    "$(id)",
    "`id`",
    "{{",
    "--conf",
    "-D",
    "' OR 1=1 --",
    "', older_than => TIMESTAMP '2100-01-01 00:00:00') --",
    "`; DROP TABLE t; --",
    "\u2018",
    "\u2019",
    "\uff07",
    "\u02bc",
    "\uff40",
    "\u2028",
    "\u2029",
    "\u202e",
    "\u200b",
    "\ufeff",
    "\u0301",
    "\U0001f980",
    "\U000e0041",
    "a",
    "Z",
    "0",
    "_",
    "table",
    "select",
    "lake",
)
QUOTED: Final = r"'((?:[^'\\]|\\.)*)'"
CALL: Final = re.compile(
    rf"CALL `((?:[^`]|``)+)`\.system\.expire_snapshots\(table => {QUOTED}, x => {QUOTED}\)", re.DOTALL
)


def identifiers(count: int) -> Iterator[str]:
    """Names that are made to get out of their quotes, the same in each run; some of them very long."""
    chance = random.Random(12)  # noqa: S311 - the same in each run
    for number in range(count):
        most = 5_000 if number % 1_000 == 999 else 12
        yield "".join(chance.choice(PIECES) for _ in range(chance.randint(1, most)))


def test_g12_t3_whatever_a_table_is_called_its_statement_is_one_and_names_it() -> None:
    read = 0
    for name in identifiers(IDENTIFIERS):
        part = name[:PART_LENGTH_MAX]
        table = TableName(part, (part, "db"), part)
        said = procedure_call(table, "expire_snapshots", f"x => {literal(name)}")
        found = CALL.fullmatch(said)
        assert found is not None, ascii(name)
        assert found[1].replace("``", "`") == part
        assert split_parts(read_literal(found[2])) == [part, "db", part]
        assert read_literal(found[3]) == name
        assert split_parts(identifier(part)) == [part]
        assert not re.search(r"[\x00-\x1f\x7f\x85\u2028\u2029\u202e]", said.replace(identifier(part), "", 1))
        read += 1
    print(f"G12, names in SQL: {read:,} read back as they were, none out of its quotes")  # noqa: T201 - the figure of docs/security.md
    assert read == IDENTIFIERS


def test_g12_a_name_as_people_write_it_is_that_name_or_is_refused() -> None:
    for name in identifiers(IDENTIFIERS):
        try:
            parsed = TableName.parse(name, default_catalog="lake")
        except InvalidName:
            continue
        assert TableName.parse(str(parsed)) == parsed, ascii(name)


def test_g12_t4_whatever_is_configured_the_command_has_no_word_more() -> None:
    plain = submission(given_settings(**CASES["standalone"]), HOME, "/f", {})
    known = read_back(plain.files["spark.conf"]).keys() | {"spark.jars", "spark.a.b"}
    carried_out = 0
    for number, name in enumerate(identifiers(IDENTIFIERS)):
        ways: tuple[dict[str, Any], ...] = (
            {"spark_conf": {"spark.executor.cores": name}},
            {"spark_conf": {"spark.a.b": name}, "spark_conf_keys": ("spark.a.b",)},
            {"spark_conf": {f"spark.{name}": "1"}},
            {"spark_conf_keys": (name,)},
            {"jars": (name,)},
            {"packages": (name,)},
            {"driver_memory": name},
            {"resource_group": name},
        )
        try:
            found = submission(given_settings(**{**CASES["standalone"], **ways[number % len(ways)]}), HOME, "/f", {})
        except InvalidConfiguration:
            continue
        carried_out += 1
        assert found.argv == plain.argv, ascii(name)
        assert read_back(found.files["spark.conf"]).keys() <= known, ascii(name)
    print(f"G12, commands: {IDENTIFIERS:,} names, {carried_out:,} of them taken, no word more")  # noqa: T201 - the figure of docs/security.md
    assert carried_out
