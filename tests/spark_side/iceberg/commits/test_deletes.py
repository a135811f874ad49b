"""How a commit of delete files alone ends: looked at before each try, and bound to the snapshot that was looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from icewright.core.errors import Conflict
from icewright.model.iceberg.tables import ATTEMPT_KEY, PROOF_KEY, TASK_ID_KEY
from icewright.model.work.jobs import Committed, CommitUnknown, Conflicted
from icewright_spark.iceberg.commits.commit import TRIES_MAX, CommitResult
from icewright_spark.iceberg.commits.deletes import commit_deletes
from icewright_spark.iceberg.java_api import SparkTable
from tests.cases import each_case
from tests.spark_side.iceberg.commits.test_commit import (
    CONFLICT,
    FASTER,
    SPEC,
    UNAVAILABLE,
    UNKNOWN,
    JavaError,
    Operation,
    Table,
)


class BoundOperation(Operation):
    """Iceberg's RewriteFiles, on paper, with the validator that it was given."""

    def validateWith(self, validator: str) -> BoundOperation:  # noqa: N802 - Java's name
        cast("DeletesTable", self.table).bound.append(validator)
        return self


class DeletesTable(Table):
    """A table that knows which snapshot is the current one."""

    def __init__(self, *script: tuple[bool, Exception | None]) -> None:
        super().__init__(*script)
        self.bound: list[str] = []

    def newRewrite(self) -> BoundOperation:  # noqa: N802 - Java's name
        self.made.append(BoundOperation(self))
        return cast("BoundOperation", self.made[-1])

    def currentSnapshot(self) -> Any:  # noqa: N802 - Java's name
        return self.seen[-1] if self.seen else None

    def is_still_current(self) -> str:
        return f"still {self.seen[-1].id}"


def commit(
    table: DeletesTable, fill: Callable[[Any], str] = lambda _: "proof", pauses: list[float] | None = None
) -> CommitResult:
    waited = [] if pauses is None else pauses
    return commit_deletes(
        cast("SparkTable", table),
        SPEC,
        fill=fill,
        format_version=2,
        may_commit=lambda: table.did.append("asked"),
        pause=waited.append,
    )


def test_w5_a_commit_is_signed_looked_at_and_bound_to_what_was_looked_at() -> None:
    table = DeletesTable((True, None))

    def look(operation: Any) -> str:
        table.did.append("looked")
        operation.deleteFile("d")
        return "proof"

    assert commit(table, look) == Committed(900)
    assert table.did[:4] == ["refresh", "looked", "asked", "commit"]
    (operation,) = table.made
    assert table.bound == [f"still {table.history[-2].id}"]
    assert operation.deletes_with == "nothing"
    assert (operation.deleted, operation.added) == (["d"], [])
    assert operation.properties == {TASK_ID_KEY: SPEC.task_id, ATTEMPT_KEY: "3", PROOF_KEY: "proof"}


@pytest.mark.parametrize("refusal", [CONFLICT, FASTER])
def test_w5_whatever_came_first_it_is_looked_at_again(refusal: str) -> None:
    looks: list[Any] = []

    def look(operation: Any) -> str:
        looks.append(operation)
        return "proof"

    table = DeletesTable((False, JavaError(refusal)), (False, JavaError(refusal)), (True, None))
    assert commit(table, look) == Committed(900)
    assert len(looks) == len(table.bound) == 3


def test_w5_what_does_not_hold_at_the_second_look_is_not_committed() -> None:
    answers = ["proof"]

    def look(_: Any) -> str:
        if not answers:
            raise Conflict("it applies to a file that came back")
        return answers.pop()

    table = DeletesTable((False, JavaError(CONFLICT)))
    with pytest.raises(Conflict, match="came back"):
        commit(table, look)
    assert table.did.count("commit") == 1


def test_others_who_are_always_first_make_it_a_conflict() -> None:
    pauses: list[float] = []
    table = DeletesTable(*[(False, JavaError(FASTER))] * TRIES_MAX)
    result = commit(table, pauses=pauses)
    assert isinstance(result, Conflicted)
    assert len(pauses) == TRIES_MAX


@each_case("error", [UNKNOWN, UNAVAILABLE, CONFLICT, FASTER])
@each_case("applied", [True, False])
def test_c1_what_the_table_says_counts(error: str, *, applied: bool) -> None:
    script = [(applied, JavaError(error))] + [(False, JavaError(error))] * (TRIES_MAX - 1)
    result = commit(DeletesTable(*script))
    if applied:
        assert result == Committed(900)
    else:
        assert isinstance(result, CommitUnknown if error in (UNKNOWN, UNAVAILABLE) else Conflicted)


def test_an_upgrade_or_an_emptied_table_is_a_conflict() -> None:
    table = DeletesTable()
    table.upgraded_to = 3
    with pytest.raises(Conflict, match="upgraded"):
        commit(table)
    empty = DeletesTable()
    empty.history.clear()
    with pytest.raises(Conflict, match="no snapshot"):
        commit(empty)
