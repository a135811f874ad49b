"""Files of another format than the table's own: brought into it when touched, or, where the owner asks, at once."""

from __future__ import annotations

from dataclasses import replace

from icewright.actions.rewrite_data_files.check.plan import check_plan
from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.files import DataFile, FileFormat
from icewright.model.plans.plans import Plan, Verdict
from icewright.model.policy.policy import Policy
from tests.builders.observations import MIB, NOW, data_files, month, observe, policy, snapshot, table
from tests.cases import each_case

ASKED, NOT_ASKED = policy(migrate_formats=True), policy()
WRITE_FORMAT = "write.format.default"
AVRO, ORC, PARQUET = FileFormat.AVRO, FileFormat.ORC, FileFormat.PARQUET


def files_of(file_format: FileFormat, number: int, size_bytes: int = 180 * MIB) -> list[DataFile]:
    made = data_files(month(1), number, size_bytes, file_format=file_format)
    return [replace(file, path=f"{file.path}.{file_format}") for file in made]


def planned(files: list[DataFile], by: Policy = ASKED, properties: dict[str, str] | None = None) -> Plan:
    observation = observe(files, table((snapshot(1),), properties))
    plan = plan_table(observation, by, shortlist(observation, by, NOW), files, plan_id="p", now=NOW)
    assert check_plan(plan, observation, by, {file.path: file for file in files}, ()) == ()
    return plan


def test_large_files_of_other_formats_are_left_unless_the_owner_asks() -> None:
    assert planned([*files_of(AVRO, 2), *files_of(PARQUET, 2)], NOT_ASKED).actions == ()


def test_where_the_owner_asks_they_are_rewritten_each_and_the_others_are_not() -> None:
    plan = planned([*files_of(AVRO, 2), *files_of(ORC, 1), *files_of(PARQUET, 2)])
    (action,) = plan.rewrites
    assert sorted(file.file_format for group in action.groups for file in group.files) == [AVRO, AVRO, ORC]
    assert {group.executor for group in action.groups} == {Executor.STAGED}
    assert plan.reason.code == "other-format"
    assert plan.reason.text.startswith("rewrite 3 files (540.0 MiB) in 1 partition into 3")
    (verdict,) = plan.verdicts
    assert "3 files of format avro, orc" in verdict.reason.text


def test_small_files_of_other_formats_are_brought_along_whoever_asks() -> None:
    (action,) = planned(files_of(AVRO, 6, MIB), NOT_ASKED).rewrites
    assert [len(group.files) for group in action.groups] == [6]


def test_few_small_ones_are_rewritten_where_the_owner_asks() -> None:
    assert planned(files_of(AVRO, 1, MIB), NOT_ASKED).actions == ()
    (action,) = planned(files_of(AVRO, 1, MIB)).rewrites
    assert action.input_files == 1


def test_the_tables_own_format_counts() -> None:
    (action,) = planned([*files_of(AVRO, 2), *files_of(PARQUET, 1)], properties={WRITE_FORMAT: "AVRO"}).rewrites
    assert [file.file_format for group in action.groups for file in group.files] == [PARQUET]


@each_case("own", ["", "csv", "puffin", "parquet\n"])
def test_a_property_that_names_no_format_says_nothing(own: str) -> None:
    assert planned(files_of(AVRO, 2), properties={WRITE_FORMAT: own}).actions == ()


def test_what_nobody_can_write_is_refused_with_the_reason() -> None:
    fields = (
        {"id": 1, "name": "month", "type": "int", "required": False},
        {"id": 2, "name": "t", "type": "time", "required": False},
    )
    observation = observe(files_of(ORC, 1), table(fields=fields))
    verdicts = shortlist(observation, ASKED, NOW)
    plan = plan_table(observation, ASKED, verdicts, files_of(ORC, 1), plan_id="p", now=NOW)
    assert plan.rewrites == ()
    assert [verdict.verdict for verdict in plan.verdicts] == [Verdict.REFUSE]


def test_a_checker_that_did_not_know_would_refuse() -> None:
    """What the plan does is not for the size of the files: the second opinion asks the policy for itself."""
    files = files_of(AVRO, 1)
    observation = observe(files)
    plan = plan_table(observation, ASKED, shortlist(observation, ASKED, NOW), files, plan_id="p", now=NOW)
    codes = {code for code, _ in check_plan(plan, observation, NOT_ASKED, {f.path: f for f in files}, ())}
    assert {"not-small", "group-too-few", "no-gain"} <= codes
