"""What a commit that may be tried several times is made anew from, and when it is tried no more."""

from __future__ import annotations

from typing import Any, cast

from icewright.model.iceberg.tables import ATTEMPT_KEY, PROOF_KEY, TASK_ID_KEY
from icewright.model.work.jobs import Committed, CommitUnknown, Conflicted
from icewright_spark.iceberg.commits.commit import TRIES_MAX, CommitResult, several_tries, sign
from icewright_spark.iceberg.java_api import SparkTable
from tests.spark_side.iceberg.commits.test_commit import CONFLICT, FASTER, SPEC, UNKNOWN, JavaError, Operation, Table


class Tries:
    """Tries on a table that meets each as its script says; ``left`` answers in place of an operation."""

    def __init__(self, *script: tuple[bool, Exception | None], left: Conflicted | None = None) -> None:
        self.table, self._left, self.pauses = Table(*script), left, list[float]()

    def run(self, *, checks_all: bool = False) -> CommitResult:
        return several_tries(
            cast("SparkTable", self.table),
            SPEC,
            self._prepare,
            lambda: self.table.did.append("asked"),
            self.pauses.append,
            checks_all=checks_all,
        )

    def _prepare(self) -> Any:
        self.table.did.append("prepared")
        if self._left is not None:
            return self._left
        self.table.made.append(Operation(self.table))
        sign(self.table.made[-1], SPEC, "proof")
        return self.table.made[-1]


def test_each_try_is_made_of_the_table_as_it_is_then() -> None:
    tries = Tries((False, JavaError(FASTER)), (True, None))
    assert tries.run() == Committed(900)
    assert tries.table.did.count("prepared") == 2
    assert tries.table.did[:4] == ["refresh", "prepared", "asked", "commit"]
    assert tries.table.history[-1].properties == {TASK_ID_KEY: SPEC.task_id, ATTEMPT_KEY: "3", PROOF_KEY: "proof"}
    assert len(tries.pauses) == 1


def test_what_iceberg_refuses_is_tried_again_only_where_all_is_checked_by_us() -> None:
    refused = (False, JavaError(CONFLICT))
    assert isinstance(Tries(refused).run(), Conflicted)
    assert Tries(refused, (True, None)).run(checks_all=True) == Committed(900)


def test_where_nothing_is_left_to_commit_nothing_is_tried() -> None:
    tries = Tries(left=Conflicted("another commit removed it"))
    assert tries.run() == Conflicted("another commit removed it")
    assert "commit" not in tries.table.did


def test_it_ends_with_doubt_and_with_the_last_try() -> None:
    assert isinstance(Tries((False, JavaError(UNKNOWN))).run(), CommitUnknown)
    always = Tries(*[(False, JavaError(FASTER))] * TRIES_MAX)
    assert isinstance(always.run(), Conflicted)
    assert len(always.pauses) == TRIES_MAX
