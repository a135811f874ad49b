"""How a commit ends: every outcome at the catalog against every answer that may come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from icewright.core.errors import Conflict, LeaseLost
from icewright.model.actions.actions import FileGroup, RewriteDataFiles
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat, Partition
from icewright.model.iceberg.layouts import Curve, Layout, Level
from icewright.model.iceberg.tables import (
    ATTEMPT_KEY,
    GROUPS_KEY,
    LAYOUT_KEY,
    LEVEL_KEY,
    PROOF_KEY,
    TASK_ID_KEY,
    SortField,
)
from icewright.model.work.jobs import Committed, CommitUnknown, Conflicted, TaskSpec
from icewright_spark.iceberg.commits.commit import TRIES_MAX, Commit, CommitResult, Rewritten, commit_rewrite
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.manifests import FoundDelete
from tests.builders.specs import BASE_SNAPSHOT_ID, spec_of
from tests.cases import each_case
from tests.narrowing import of_type
from tests.servers.fault_proxy import Answer

FASTER = "org.apache.iceberg.exceptions.CommitFailedException"
CONFLICT = "org.apache.iceberg.exceptions.ValidationException"
UNKNOWN = "org.apache.iceberg.exceptions.CommitStateUnknownException"
UNAVAILABLE = "org.apache.iceberg.exceptions.ServiceUnavailableException"
OUT_OF_MEMORY = "java.lang.OutOfMemoryError"
LEAVING_DOUBT = (UNKNOWN, UNAVAILABLE, OUT_OF_MEMORY, "java.lang.IllegalStateException", "")
SPEC = spec_of(attempt=3)


class JavaError(Exception):
    """An error as py4j brings it; with an empty class, one of Python's own."""

    def __init__(self, java_class: str) -> None:
        super().__init__(f"{java_class}: it went wrong\n\tat java.lang.Thread.run")
        self.java_exception = _Throwable(java_class) if java_class else None


@dataclass
class _Throwable:
    name: str

    def getClass(self) -> _Throwable:  # noqa: N802 - Java's name
        return self

    def getName(self) -> str:  # noqa: N802 - Java's name
        return self.name

    def toString(self) -> str:  # noqa: N802 - Java's name
        return f"{self.name}: it went wrong\n\tat java.lang.Thread.run"


@dataclass
class Snapshot:
    id: int
    properties: dict[str, str] | None
    first_row_id: int | None = None

    def firstRowId(self) -> int | None:  # noqa: N802 - Java's name
        return self.first_row_id

    def snapshotId(self) -> int:  # noqa: N802 - Java's name
        return self.id

    def summary(self) -> dict[str, str] | None:
        return self.properties


@dataclass
class Operation:
    """Iceberg's RewriteFiles, on paper."""

    table: Table
    base_snapshot_id: int | None = None
    deleted: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    deletes_with: str = "what Iceberg deletes with"

    def validateFromSnapshot(self, snapshot_id: int) -> Operation:  # noqa: N802 - Java's name
        self.base_snapshot_id = snapshot_id
        return self

    def deleteWith(self, callback: str) -> Operation:  # noqa: N802 - Java's name
        self.deletes_with = callback
        return self

    def deleteFile(self, file: str) -> None:  # noqa: N802 - Java's name
        self.deleted.append(file)

    def addFile(self, file: str) -> None:  # noqa: N802 - Java's name
        self.added.append(file)

    def set(self, key: str, value: str) -> None:
        self.properties[key] = value

    parent_id: int | None = None

    def apply(self) -> Operation:
        self.parent_id = self.table.currentSnapshot().id
        self.table.between()
        return self

    def parentId(self) -> int | None:  # noqa: N802 - Java's name
        return self.parent_id

    def commit(self) -> None:
        self.table.did.append("commit")
        applies, error = self.table.script.pop(0)
        if applies:
            self.table.history.append(Snapshot(900, dict(self.properties)))
        if error is not None:
            raise error


@dataclass
class JavaRefs:
    """Branches by name, with the snapshots at which they are, as Iceberg's map of refs has them."""

    at: dict[str, int]

    def get(self, name: str) -> Any:
        return SimpleNamespace(isBranch=lambda: True, snapshotId=lambda: self.at[name])

    def keySet(self) -> Any:  # noqa: N802 - Java's name
        left = list(self.at)
        return SimpleNamespace(iterator=lambda: SimpleNamespace(hasNext=lambda: bool(left), next=lambda: left.pop(0)))


class SnapshotList(list[Snapshot]):
    def size(self) -> int:
        return len(self)

    def get(self, position: int) -> Snapshot:
        return self[position]


class Table:
    """A table that meets each commit as its script says: applied or not, and what is answered.

    It is both our ``SparkTable`` and Iceberg's own object below it; the search for a snapshot is the real one.
    """

    def __init__(self, *script: tuple[bool, Exception | None]) -> None:
        self.script = list(script)
        self.history = SnapshotList(
            [Snapshot(1, None), Snapshot(2, {}), Snapshot(BASE_SNAPSHOT_ID, {TASK_ID_KEY: "x"})]
        )
        self.seen = SnapshotList(self.history)
        self.made: list[Operation] = []
        self.branches: dict[str, int] = {}
        self.ancestry: set[tuple[int, int]] = set()
        self.did: list[str] = []
        self.schema_id = SPEC.rewrite.schema_id
        self.format_version = 2
        self.upgraded_to = 2
        self.refresh_errors: dict[int, Exception] = {}
        self.refreshes = 0
        self.blind = False
        self.java = self
        self.between: Callable[[], None] = lambda: None

    @property
    def jvm(self) -> Any:
        builds = SimpleNamespace(TableMetadata=SimpleNamespace(buildFrom=lambda _: self), util=SimpleNamespace())
        builds.util.SnapshotUtil = SimpleNamespace(isAncestorOf=lambda _, ref, head: (ref, head) in self.ancestry)
        return SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(iceberg=builds)))

    def operations(self) -> Any:
        return SimpleNamespace(current=lambda: self, commit=lambda _, updated: updated.commit())

    def setBranchSnapshot(self, operation: Operation, branch: str) -> Any:  # noqa: N802 - Java's name
        assert branch == "main"
        return SimpleNamespace(build=lambda: operation)

    def refs(self) -> Any:
        return JavaRefs(self.branches)

    def refresh(self) -> None:
        self.refreshes += 1
        self.did.append("refresh")
        if self.refreshes in self.refresh_errors:
            raise self.refresh_errors[self.refreshes]
        self.format_version = self.upgraded_to
        self.seen = SnapshotList(s for s in self.history if not (self.blind and s.id == 900))

    def deletes_nothing(self) -> str:
        return "nothing"

    def snapshots(self) -> SnapshotList:
        return self.seen

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        return next((s for s in self.seen if s.id == snapshot_id), None)

    def currentSnapshot(self) -> Snapshot:  # noqa: N802 - Java's name
        return self.seen[-1]

    def newRewrite(self) -> Operation:  # noqa: N802 - Java's name
        self.made.append(Operation(self))
        return self.made[-1]

    def remove_files(self, operation: Operation, groups: Sequence[FileGroup]) -> None:
        for group in groups:
            for file in group.files:
                operation.deleteFile(file.path)

    def remove_delete_files(self, operation: Operation, listed: dict[int, str], places: Sequence[int]) -> None:
        for place in places:
            operation.deleteFile(listed[place])

    has_snapshot = SparkTable.has_snapshot
    gives_row_ids = SparkTable.gives_row_ids
    snapshot_of_task = SparkTable.snapshot_of_task


def outputs() -> list[Rewritten]:
    return [
        Rewritten(group.group_id, path := f"file:/t/out-{group.group_id}", 20, data_file=path)
        for group in SPEC.rewrite.groups
    ]


Lost = Callable[[Any, RewriteDataFiles], Mapping[int, str]]


def nothing_lost(_table: Any, _action: RewriteDataFiles) -> Mapping[int, str]:
    return {}


def committed(
    table: Table,
    may_commit: Any = lambda: None,
    pauses: list[float] | None = None,
    *,
    version: int = 2,
    spec: TaskSpec = SPEC,
    lost_since: Lost = nothing_lost,
    written: list[Rewritten] | None = None,
) -> Commit:
    def leave() -> None:
        table.did.append("may_commit")
        may_commit()

    waits = [] if pauses is None else pauses
    return commit_rewrite(
        table,  # type: ignore[arg-type]  # stands in for SparkTable
        spec,
        outputs() if written is None else written,
        proof=lambda group_ids: f"p{sorted(group_ids)}",
        format_version=version,
        may_commit=leave,
        vectors=[vector("file:/t/0-0.parquet"), vector("file:/t/1-1.parquet")] if version > 2 else [],
        pause=waits.append,
        lost_since=lost_since,
    )


def commit(
    table: Table, may_commit: Any = lambda: None, pauses: list[float] | None = None, *, version: int = 2
) -> CommitResult:
    end = committed(table, may_commit, pauses, version=version)
    assert end.lost == {}
    return end.result


def vector(path: str) -> FoundDelete:
    position, puffin = FileContent.POSITION_DELETES, FileFormat.PUFFIN
    delete = DeleteFile("dv", position, puffin, Partition(0, "[]"), 1, 3, 1, 1, referenced_data_file=path)
    return FoundDelete(delete, {7: f"vector of {path}"}, 7)


@pytest.fixture
def table() -> Table:
    return Table((True, None))


def test_w2_w6_a_commit_replaces_the_inputs_by_the_outputs_from_the_planned_snapshot_and_is_signed(
    table: Table,
) -> None:

    assert commit(table) == Committed(900)

    (operation,) = table.made
    assert operation.base_snapshot_id == BASE_SNAPSHOT_ID
    assert operation.deletes_with == "nothing"
    assert operation.deleted == [file.path for group in SPEC.rewrite.groups for file in group.files]
    assert operation.added == ["file:/t/out-0", "file:/t/out-1"]
    signature = {TASK_ID_KEY: "task-1", ATTEMPT_KEY: "3", PROOF_KEY: "p[0, 1]", LEVEL_KEY: "level-0"}
    assert operation.properties == signature


def test_the_summary_says_in_which_order_the_new_files_are() -> None:
    layout = Layout(Curve.SORT, (SortField(3, "identity", "asc", "nulls-first"),))
    table = Table((True, None))
    committed(table, spec=replace(SPEC, action=replace(SPEC.rewrite, level=Level.LEVEL_1, layout=layout)))
    (operation,) = table.made
    assert (operation.properties[LEVEL_KEY], operation.properties[LAYOUT_KEY]) == ("level-1", "sort(3)")


def test_leave_is_asked_for_after_all_preparation_right_before_the_commit() -> None:
    table = Table((False, JavaError(FASTER)), (True, None))
    commit(table)
    assert [did for did in table.did if did != "refresh"] == ["may_commit", "commit", "may_commit", "commit"]
    assert table.did.index("commit") == table.did.index("may_commit") + 1


def test_w2_a_table_that_is_loaded_again_between_check_and_commit_is_a_conflict(table: Table) -> None:

    def append() -> None:
        table.history.append(Snapshot(899, {}))
        table.refresh()

    table.between = append
    with pytest.raises(Conflict, match="main moved on"):
        commit(table)
    assert "commit" not in table.did


def test_a_schema_that_changed_during_the_merge_is_a_conflict(table: Table) -> None:
    table.schema_id += 1
    with pytest.raises(Conflict, match="the schema changed"):
        commit(table)
    assert table.did == ["refresh"]


def test_v3_deletion_vectors_go_with_their_data_files(table: Table) -> None:
    table.upgraded_to = 3
    assert commit(table, version=3) == Committed(900)
    inputs = [file.path for group in SPEC.rewrite.groups for file in group.files]
    assert table.made[0].deleted == [*inputs, "vector of file:/t/0-0.parquet", "vector of file:/t/1-1.parquet"]


@each_case(("base", "current"), [(None, 20), (None, None), (10, 20)])
def test_rows_that_were_given_ids_meanwhile_do_not_lose_them(base: int | None, current: int | None) -> None:
    """Right after an upgrade rows have no ids; the next commit, whoever's it is, gives them theirs."""
    table = Table((True, None))
    table.upgraded_to = 3
    table.history[-1].first_row_id = base
    table.history.append(Snapshot(899, {}, current))
    if (base, current) == (None, 20):
        with pytest.raises(Conflict, match="given ids"):
            commit(table, version=3)
        assert "commit" not in table.did
    else:
        assert commit(table, version=3) == Committed(900)


def test_a_table_upgraded_meanwhile_to_a_version_with_row_lineage_is_not_touched(table: Table) -> None:
    table.upgraded_to = 3
    with pytest.raises(Conflict, match="version 3"):
        commit(table)
    assert "commit" not in table.did


@pytest.mark.parametrize("version", [1, 2])
def test_a_base_that_expired_during_the_merge_is_a_conflict(table: Table, version: int) -> None:
    table.upgraded_to = version
    table.history.pop()
    with pytest.raises(Conflict, match="expired"):
        commit(table, version=version)
    assert "commit" not in table.did


@each_case("error", [None, *(JavaError(kind) for kind in (FASTER, CONFLICT, *LEAVING_DOUBT))])
def test_a_commit_that_was_made_is_found_whatever_the_answer_was(error: Exception | None) -> None:
    table = Table((True, error))
    assert commit(table) == Committed(900)
    assert table.did.count("commit") == 1


@each_case("kind", LEAVING_DOUBT)
def test_a_commit_that_left_doubt_and_is_not_found_stays_unknown_and_is_never_repeated(kind: str) -> None:
    table = Table((False, JavaError(kind)), (True, None))
    result = of_type(CommitUnknown, commit(table))
    assert table.did.count("commit") == 1
    assert "it went wrong" in result.detail
    assert "\n" not in result.detail


def test_a_commit_reported_as_done_that_is_not_in_the_table_is_unknown(table: Table) -> None:
    table.blind = True
    assert isinstance(commit(table), CommitUnknown)


@each_case("error", [None, *(JavaError(kind) for kind in (FASTER, CONFLICT, *LEAVING_DOUBT))])
@each_case("applied", [True, False])
@each_case("looking", [JavaError(UNAVAILABLE), ConnectionResetError("the JVM is gone")])
def test_without_a_look_at_the_table_nothing_is_known(
    error: Exception | None, looking: Exception, *, applied: bool
) -> None:
    table = Table((applied, error), (True, None))
    table.refresh_errors[2] = looking
    assert isinstance(commit(table), CommitUnknown)
    assert table.did.count("commit") == 1


def test_a_conflict_is_not_tried_again() -> None:
    table = Table((False, JavaError(CONFLICT)), (True, None))
    assert "it went wrong" in of_type(Conflicted, commit(table)).detail
    assert table.did.count("commit") == 1


def test_writers_that_are_faster_are_outlasted_with_growing_pauses_validating_anew() -> None:
    table, pauses = Table(*[(False, JavaError(FASTER))] * 3, (True, None)), list[float]()
    assert commit(table, pauses=pauses) == Committed(900)
    assert pauses == sorted(set(pauses))
    assert len(pauses) == 3
    assert {operation.base_snapshot_id for operation in table.made} == {BASE_SNAPSHOT_ID}
    assert len(table.made) == 4


def test_writers_that_are_always_faster_win() -> None:
    table, pauses = Table(*[(False, JavaError(FASTER))] * 100), list[float]()
    assert isinstance(commit(table, pauses=pauses), Conflicted)
    assert max(pauses) <= 5


def test_a_conflict_after_faster_writers_ends_it() -> None:
    assert isinstance(commit(Table((False, JavaError(FASTER)), (False, JavaError(CONFLICT)))), Conflicted)


def test_a_commit_of_an_earlier_attempt_is_not_taken_for_ours() -> None:
    """It is a conflict to this attempt; the server, which knows of both, finds the task in the table."""
    table = Table((False, JavaError(CONFLICT)))
    table.history.append(Snapshot(800, {TASK_ID_KEY: "task-1", ATTEMPT_KEY: "2"}))
    assert isinstance(commit(table), Conflicted)


def test_in_doubt_a_commit_of_any_attempt_answers_for_the_task() -> None:
    table = Table((False, JavaError(UNKNOWN)))
    table.history.append(Snapshot(800, {TASK_ID_KEY: "task-1", ATTEMPT_KEY: "2"}))
    assert commit(table) == Committed(800)


@each_case("tries", [0, 1, 2])
def test_a_lease_lost_between_two_tries_ends_them(tries: int) -> None:
    table = Table(*[(False, JavaError(FASTER))] * tries, (True, None))
    asked = []

    def may_commit() -> None:
        asked.append(1)
        if len(asked) > tries:
            raise LeaseLost("gone")

    with pytest.raises(LeaseLost):
        commit(table, may_commit)
    assert table.did.count("commit") == tries


# Commits in part.


def lost_from(lost: dict[int, str], look: int) -> Lost:
    """These groups are found to be lost at the look of that number, and at each one after it."""
    looks: list[int] = []

    def lost_since(_table: Any, action: RewriteDataFiles) -> Mapping[int, str]:
        looks.append(1)
        present = {group.group_id for group in action.groups}
        return {group: why for group, why in lost.items() if group in present} if len(looks) >= look else {}

    return lost_since


@pytest.mark.parametrize("lost", [0, 1])
def test_a_group_that_met_another_commit_is_left_out_and_the_other_is_committed(lost: int) -> None:
    table, kept = Table((True, None)), 1 - lost
    table.upgraded_to = 3
    end = committed(table, version=3, lost_since=lost_from({lost: "a delete"}, 1))
    assert end == Commit(Committed(900), {lost: "a delete"})
    (operation,) = table.made
    inputs = [file.path for file in SPEC.rewrite.groups[kept].files]
    assert operation.deleted == [*inputs, f"vector of {inputs[kept]}"]
    assert operation.added == [f"file:/t/out-{kept}"]
    assert operation.properties[GROUPS_KEY] == str(kept)
    assert operation.properties[PROOF_KEY] == f"p[{kept}]"


def test_what_is_committed_in_part_is_validated_like_the_whole(table: Table) -> None:
    committed(table, lost_since=lost_from({0: "a delete"}, 1))
    assert table.made[0].base_snapshot_id == BASE_SNAPSHOT_ID
    assert table.made[0].deletes_with == "nothing"


@pytest.mark.parametrize("refusal", [CONFLICT, FASTER])
def test_a_group_that_is_lost_between_two_tries_is_left_out_of_the_next(refusal: str) -> None:
    table = Table((False, JavaError(refusal)), (True, None))
    end = committed(table, lost_since=lost_from({1: "a delete"}, 2))
    assert end == Commit(Committed(900), {1: "a delete"})
    assert [GROUPS_KEY in operation.properties for operation in table.made] == [False, True]
    assert [did for did in table.did if did != "refresh"] == ["may_commit", "commit", "may_commit", "commit"]


def test_a_refusal_that_no_lost_group_explains_is_not_tried_again() -> None:
    table = Table((False, JavaError(CONFLICT)), (False, JavaError(CONFLICT)), (True, None))
    end = committed(table, lost_since=lost_from({1: "a delete"}, 2))
    assert isinstance(end.result, Conflicted)
    assert "it went wrong" in end.result.detail
    assert end.lost == {1: "a delete"}
    assert table.did.count("commit") == 2


def test_nothing_is_committed_when_no_group_is_whole(table: Table) -> None:
    end = committed(table, lost_since=lost_from({0: "a delete", 1: "an update"}, 1))
    assert end.result == Conflicted("group 0 (and 1 more) met another commit: a delete")
    assert end.lost == {0: "a delete", 1: "an update"}
    assert "commit" not in table.did


def test_a_group_without_an_output_is_no_part_of_the_commit(table: Table) -> None:
    assert committed(table, written=outputs()[1:]).result == Committed(900)
    assert table.made[0].properties[GROUPS_KEY] == "1"
    assert table.made[0].deleted == [file.path for file in SPEC.rewrite.groups[1].files]


def test_w11_two_attempts_never_commit_two_parts(table: Table) -> None:
    """Iceberg would see nothing wrong with it: they replace different files."""
    table.history.append(Snapshot(800, {TASK_ID_KEY: "task-1", ATTEMPT_KEY: "2"}))
    with pytest.raises(Conflict, match="another attempt at task-1 has committed, as snapshot 800"):
        committed(table, lost_since=lost_from({0: "a delete"}, 1))
    assert "commit" not in table.did


# The commit outcome matrix, with what Iceberg's client makes of each answer.

_CLIENT_RAISES = {
    Answer.OK: "",
    Answer.CONFLICT: FASTER,
    Answer.BAD_REQUEST: "org.apache.iceberg.exceptions.BadRequestException",
    **dict.fromkeys(
        (
            Answer.INTERNAL,
            Answer.BAD_GATEWAY,
            Answer.UNAVAILABLE,
            Answer.UNAVAILABLE_RETRY_AFTER,
            Answer.GATEWAY_TIMEOUT,
        ),
        UNKNOWN,
    ),
    **dict.fromkeys(
        (Answer.RESET_BEFORE_SEND, Answer.RESET_AFTER_SEND, Answer.TIMEOUT, Answer.TRUNCATED, Answer.MALFORMED),
        "org.apache.iceberg.exceptions.RESTException",
    ),
    Answer.KILLED: "",
}


@each_case("answer", Answer)
@each_case("applied", [True, False])
@each_case("lost", [{}, {1: "a delete"}], ids=["whole", "in part"])
def test_c1_c2_the_result_is_true_of_the_table_in_every_cell(
    answer: Answer, lost: dict[int, str], *, applied: bool
) -> None:
    """As ``tests/spark/test_commit_outcomes.py`` has it on real Spark, in no time."""
    died = ConnectionResetError("the JVM is gone") if answer is Answer.KILLED else None
    error = died or (JavaError(_CLIENT_RAISES[answer]) if _CLIENT_RAISES[answer] or not applied else None)
    table = Table(*[(applied, error)] * TRIES_MAX)
    if died is not None:
        table.refresh_errors = {2: died}  # it does not come back
    result = committed(table, lost_since=lost_from(lost, 1)).result
    assert all((GROUPS_KEY in operation.properties) == bool(lost) for operation in table.made)
    match answer:
        case Answer.KILLED:
            assert isinstance(result, CommitUnknown)
        case _ if applied:
            assert result == Committed(900)
            assert table.did.count("commit") == 1
        case Answer.CONFLICT:
            assert isinstance(result, Conflicted)
        case _:
            assert isinstance(result, CommitUnknown)
            assert table.did.count("commit") == 1
