"""The removal of orphans as a value: it travels as JSON and says by itself whether a person has to approve."""

from __future__ import annotations

from dataclasses import replace

from icewright.core.codec import dumps, loads
from icewright.model.actions.remove_files import (
    OrphanBudget,
    OrphanFile,
    RemoveOrphanFiles,
    RemoveOrphanFilesFigures,
    RemoveOrphanFilesPrediction,
)
from tests.cases import each_case

FILE = OrphanFile("s3://b/t/data/\udc80 %2F\n", 5, 7, None, "v", 8, 2)
ACTION = RemoveOrphanFiles("s3://b/t/m.json", None, ("s3://b/t/",), (FILE,), 10, 11, 12, 1, 5, 1, 5)


def test_it_is_the_same_after_a_journey() -> None:
    assert loads(RemoveOrphanFiles, dumps(ACTION)) == ACTION
    assert loads(RemoveOrphanFilesFigures, dumps(ACTION.figures)) == ACTION.figures
    said = RemoveOrphanFilesPrediction(1, 5, 9, 50, 8, 45, {"young": 3}, True, 0, False, "CALL ...")
    assert loads(RemoveOrphanFilesPrediction, dumps(said)) == said
    kinds = {ACTION.kind, ACTION.figures.kind, said.kind}
    assert kinds == {"remove_orphan_files"}


@each_case(
    ("change", "needs"),
    [({}, False), ({"orphan_files": 2}, True), ({"orphan_bytes": 6}, True), ({"budget_files": 0}, True)],
)
def test_i11_beyond_either_budget_a_person_approves(change: dict[str, int], *, needs: bool) -> None:
    assert replace(ACTION, **change).needs_approval is needs  # type: ignore[arg-type]  # numbers alone


@each_case(
    ("share", "table_bytes", "allowed"), [(0.01, 10**15, 10**13), (0.005, 1_000, 5), (2.0, 799, 7), (-1.0, 700, 0)]
)
def test_i11_a_share_is_between_nothing_and_what_the_deleter_takes(
    share: float, table_bytes: int, allowed: int
) -> None:
    assert OrphanBudget(share).bytes_of(table_bytes) == allowed


@each_case(("files", "allowed"), [(-1, 0), (5, 5), (10_000, 10_000), (10**9, 10_000)])
def test_i11_files_are_between_none_and_what_the_deleter_takes(files: int, allowed: int) -> None:
    assert OrphanBudget(files=files).files_max == allowed
