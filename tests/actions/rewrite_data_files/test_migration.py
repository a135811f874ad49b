"""Plans on demand: what a person asks to be migrated, all of it, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from icewright.actions.rewrite_data_files.check.plan import check_plan
from icewright.actions.rewrite_data_files.migration import only_to_migrate, to_migrate
from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.maintenance.explain import explain
from icewright.model.iceberg.files import DataFile, FileFormat, Partition
from icewright.model.plans.plans import Migration, Plan, Verdict
from icewright.model.policy.policy import MigrateSpec, Mode, Policy
from tests.builders.observations import MIB, NOW, data_files, observe, policy
from tests.cases import each_case
from tests.inventory.test_specs import OLD, evolved, groups_of

NEW = Partition(1, "[473352]")
AVRO = data_files(NEW, 3, 600 * MIB, file_format=FileFormat.AVRO)
LARGE = data_files(OLD, 2, 600 * MIB)
SMALL = data_files(Partition(1, "[473353]"), 9)


def demanded(
    migration: Migration, files: Sequence[DataFile] = (), rules: Policy | None = None, new: str = "hour ts"
) -> Plan:
    owners = policy(mode=Mode.AUTO) if rules is None else rules
    listed = files or [*AVRO, *LARGE, *SMALL]
    observation = observe(listed, evolved("day ts", new))
    wanted = to_migrate(owners, migration)
    verdicts = only_to_migrate(shortlist(observation, wanted, NOW), observation, wanted, migration)
    plan = plan_table(observation, wanted, verdicts, listed, plan_id="p", now=NOW, migration=migration)
    assert check_plan(plan, observation, wanted, {file.path: file for file in listed}) == ()
    return plan


@each_case(("migration", "files", "remain"), [(Migration.SPEC, 2, 0), (Migration.FORMATS, 3, 0), (Migration.ALL, 5, 0)])
def test_what_is_asked_for_is_planned_and_nothing_else(migration: Migration, files: int, remain: int) -> None:
    plan = demanded(migration)
    assert sum(len(group.files) for group in groups_of(plan)) == files
    assert plan.migration is migration
    assert (plan.reason.figures["files_to_migrate"], plan.reason.figures["files_remaining"]) == (files, remain)
    assert plan.reason.text.endswith(f"; of {files} files to be migrated 0 remain")
    codes = {verdict.path: verdict.reason.code for verdict in plan.verdicts}
    assert codes["month=473353"] == "nothing-to-migrate"
    assert "It was asked for, and runs when a person applies it." in explain(plan)


def test_what_a_task_cannot_have_remains_and_is_told() -> None:
    plan = demanded(Migration.SPEC, rules=policy(max_task_size_bytes=700 * MIB))
    assert sum(len(group.files) for group in groups_of(plan)) == 1
    assert plan.reason.text.endswith("; of 2 files to be migrated 1 remain")


@each_case(
    ("migration", "said"),
    [
        (Migration.SPEC, "nothing to do: all files are of the current partition spec"),
        (Migration.FORMATS, "nothing to do: all files are of the table's own format"),
        (Migration.ALL, "nothing to do: all files are of the current partition spec and of the table's own format"),
    ],
)
def test_where_there_is_nothing_to_migrate_it_says_so(migration: Migration, said: str) -> None:
    plan = demanded(migration, SMALL)
    assert plan.rewrites == ()
    assert (plan.reason.code, plan.reason.text) == ("nothing-to-migrate", said)


@pytest.mark.parametrize("migration", [Migration.SPEC, Migration.ALL])
def test_what_cannot_be_moved_is_refused_and_not_merged_instead(migration: Migration) -> None:
    plan = demanded(migration, data_files(OLD, 9), new="identity price")
    assert plan.rewrites == ()
    assert {verdict.verdict for verdict in plan.verdicts} <= {Verdict.REFUSE, Verdict.LEAVE}
    assert plan.reason.figures["files_remaining"] == 9


def test_the_policy_stays_where_it_says_more() -> None:
    owners = policy(migrate_spec=MigrateSpec.NEVER, migrate_formats=True)
    assert to_migrate(owners, Migration.FORMATS).migrate_spec is MigrateSpec.NEVER
    assert to_migrate(owners, Migration.SPEC) == policy(migrate_spec=MigrateSpec.ALL, migrate_formats=True)
