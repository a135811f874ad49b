"""Which rows of an expiry are inserted again, into what, and why they are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from icewright.actions.undo.data_undo_plan import DataUndoDecision, data_undo_obstacle, frame_of, plan_data_undo
from icewright.core.codec import from_json, to_json
from icewright.core.reasons import Reason
from icewright.maintenance.registry.planning import still_applies
from icewright.model.actions.actions import Action, ActionFigures, UndoExpireData, names_in, traits_of
from icewright.model.actions.expire_data import tag_of
from icewright.model.actions.traits import RunsOn
from icewright.model.actions.undo import MOVED_FILES_MAX, SOURCE_KEY
from icewright.model.iceberg.files import DataFile, DeleteFile
from icewright.model.iceberg.tables import (
    MAIN_BRANCH,
    TASK_ID_KEY,
    UNDONE_KEY,
    Json,
    Operation,
    Ref,
    RefKind,
    Schema,
    Snapshot,
)
from icewright.model.plans.plans import Prediction
from tests.builders.aging import COLUMNS, SPECS, aging, day, days, decide, planned, rules
from tests.builders.observations import (
    MIB,
    deletion_vector,
    equality_deletes,
    policy,
    position_deletes,
    snapshot,
    table,
)
from tests.cases import each_case
from tests.narrowing import not_none, of_type

FILES = days([40, 50], each=2)
EXPIRY, _ = planned(decide(FILES, aging([*days(range(29), each=2), *FILES])))
MADE = snapshot(2, operation=Operation.DELETE)
SINCE = snapshot(3)
TAG = Ref(tag_of("task-1"), RefKind.TAG, 1)
MAIN = Ref(MAIN_BRANCH, RefKind.BRANCH, 3)


def now(snapshots: Sequence[Snapshot] = (snapshot(1), MADE, SINCE), tag: Ref | None = TAG, **changes: Any) -> Any:
    """The table after another commit."""
    refs = (MAIN,) if tag is None else (MAIN, tag)
    return table(snapshots, **{"fields": COLUMNS, "specs": SPECS, "refs": refs, **changes})


def frame(**changes: Any) -> UndoExpireData:
    return of_type(UndoExpireData, frame_of("task-1", EXPIRY, MADE, now(**changes)))


def undone(
    files: Sequence[DataFile] = FILES, deletes: Sequence[DeleteFile] = (), rules_: Any = None, **changes: Any
) -> DataUndoDecision:
    metadata = now(**changes)
    return plan_data_undo(frame(**changes), EXPIRY, files, deletes, metadata, rules_ or rules())


def action(decision: DataUndoDecision) -> UndoExpireData:
    assert decision.action is not None, decision.reason
    return decision.action


def obstacle(**changes: Any) -> str:
    """The code of what stands in the way, by the table alone."""
    found = data_undo_obstacle(frame(), now(**changes), rules())
    return "" if found is None else found.code


class TestWhatComesBack:
    def test_i2_exactly_the_files_that_expired_with_the_deletes_of_then(self) -> None:
        one, two, *_ = FILES
        deletes = [deletion_vector(one, 3), position_deletes(two.partition, 0, 5, of=two)]
        others = [*days([1, 2]), replace(one, path="file:/lake/t/data/late.parquet")]
        decision = undone([*others, *FILES], deletes)
        found = action(decision)
        inputs = {
            file.path: [group.delete_files[n] for n in file.deletes] for group in found.groups for file in group.files
        }
        assert inputs == {
            FILES[0].path: [deletes[0]],
            FILES[1].path: [deletes[1]],
            FILES[2].path: [],
            FILES[3].path: [],
        }
        assert (found.base_snapshot_id, found.expiry_snapshot_id, found.tagged_snapshot_id) == (1, 2, 1)
        assert {(group.output_files, group.output_spec_id) for group in found.groups} == {(1, None)}
        assert decision.prediction is not None
        assert (decision.prediction.records, decision.prediction.deleted_records) == (4 * (MIB // 100), 8)
        rows = f"what 2 delete files left of {4 * (MIB // 100):,} rows in 4 files of 2 partitions"
        assert decision.reason.text.startswith(f"{rows} would be inserted again from the tag {TAG.name}, as new files")
        assert still_applies(found, now().table_id, now()) is None

    def test_it_comes_back_from_json_and_weighs_what_it_names(self) -> None:
        decision = undone(deletes=[deletion_vector(FILES[0], 3)])
        found = action(decision)
        values: list[tuple[Any, Any]] = [
            (Action, found),
            (ActionFigures, found.figures),
            (Prediction, decision.prediction),
        ]
        for kind, value in values:
            assert from_json(kind, to_json(value)) == value
        assert names_in(found) == 5
        assert traits_of(found.kind).runs_on is RunsOn.OPTIMIZER

    def test_equality_deletes_say_of_no_row_that_it_is_left(self) -> None:
        decision = undone(deletes=[equality_deletes(day(40), 0)])
        assert not_none(decision.prediction).deleted_records == 2 * (MIB // 100)

    def test_a_partition_becomes_as_many_files_as_its_bytes_ask_for(self) -> None:
        assert len(action(undone()).groups) == 2
        assert len(action(undone(rules_=policy(target_file_size_bytes=MIB))).groups) == 4

    def test_rows_go_by_the_spec_of_now(self) -> None:
        decision = undone(default_spec_id=2)
        assert {(g.output_files, g.output_spec_id) for g in action(decision).groups} == {(MOVED_FILES_MAX, 2)}
        assert "spec-changed" in {note.code for note in decision.notes}

    def test_columns_that_came_are_named(self) -> None:
        came: tuple[Json, ...] = (*COLUMNS, {"id": 9, "name": "note", "type": "string", "required": False})
        more: dict[str, Any] = {"schemas": (Schema(0, COLUMNS), Schema(1, came)), "current_schema_id": 1}
        assert obstacle_of_schema(came) == ""
        decision = undone(**more)
        assert not_none(decision.prediction).added_columns == ("note",)
        assert action(decision).schema_id == 1

    @each_case(
        ("operation", "summary", "said"),
        [
            (Operation.DELETE, {}, True),
            (Operation.OVERWRITE, {}, True),
            (None, {}, True),
            (Operation.APPEND, {}, False),
            (Operation.REPLACE, {}, False),
            (Operation.DELETE, {TASK_ID_KEY: "task-2"}, False),  # by age, and not by what is in a row
        ],
    )
    def test_i5_what_could_not_reach_the_expired_rows_is_said(
        self, operation: Operation | None, summary: dict[str, str], *, said: bool
    ) -> None:
        since = [snapshot(3, operation=operation, summary=summary), snapshot(4)]
        notes = {note.code: note.figures for note in undone(snapshots=(snapshot(1), MADE, *since)).notes}
        assert notes == ({"changed-since": {"commits": 1}, "by-hand": {}} if said else {"by-hand": {}})

    @each_case("change", [{"size_bytes": 1}, {"data_sequence_number": 9}, {"record_count": 1}, {"partition": day(39)}])
    def test_w2_a_file_that_is_another_by_then_is_no_source(self, change: dict[str, Any]) -> None:
        decision = undone([replace(FILES[0], **change), *FILES[1:]])
        assert (decision.action, decision.reason.code) == (None, "files-changed")


class TestRefusals:
    def test_nothing_stands_in_the_way(self) -> None:
        assert obstacle() == ""

    @each_case(
        ("changes", "code"),
        [
            ({"tag": None}, "tag-gone"),
            ({"tag": replace(TAG, snapshot_id=3)}, "tag-moved"),
            ({"tag": replace(TAG, kind=RefKind.BRANCH)}, "tag-moved"),
            ({"snapshots": (snapshot(1), MADE, SINCE), "current_snapshot_id": 1}, "base-gone"),
            ({"snapshots": (snapshot(1), SINCE)}, "base-gone"),
            ({"snapshots": (MADE, SINCE)}, "base-gone"),
            ({"snapshots": (snapshot(1), MADE, snapshot(3, summary={UNDONE_KEY: "task-1"}))}, "there-already"),
            ({"default_spec_id": 2}, "spec-changed"),
            ({"schemas": (Schema(1, COLUMNS),), "current_schema_id": 1}, "schema-changed"),
            ({"properties": {"encryption.key-id": "k"}}, "encryption"),
        ],
    )
    def test_i5_w11_what_would_double_rows_or_lose_some(self, changes: dict[str, Any], code: str) -> None:
        assert obstacle(**changes) == code

    def test_the_undo_of_another_expiry_is_none_of_this(self) -> None:
        assert obstacle(snapshots=(snapshot(1), MADE, snapshot(3, summary={UNDONE_KEY: "task-2"}))) == ""

    @each_case(
        ("source", "picked", "code"),
        [
            ({UNDONE_KEY: "task-1"}, "3", "there-already"),
            ({SOURCE_KEY: "9"}, "3", "source-gone"),
            ({}, "9", "source-gone"),
            ({}, str(2**63), "source-gone"),
            ({}, "three", "source-gone"),
            ({UNDONE_KEY: "task-2"}, "3", ""),
            ({SOURCE_KEY: "4"}, "3", ""),
            ({}, "3", ""),
        ],
    )
    def test_w11_i5_an_insertion_that_was_set_back_and_cherry_picked(
        self, source: dict[str, str], picked: str, code: str
    ) -> None:
        """Iceberg says whose files a cherry-pick has, and copies nothing else of the summary."""
        aside = snapshot(3, summary=source)
        came = replace(snapshot(4, summary={SOURCE_KEY: picked}), parent_id=2)
        assert obstacle(snapshots=(snapshot(1), MADE, aside, came)) == code

    def test_what_was_inserted_and_set_back_may_be_inserted_again(self) -> None:
        undo = snapshot(3, summary={UNDONE_KEY: "task-1"})
        after = replace(snapshot(4), parent_id=2)
        assert obstacle(snapshots=(snapshot(1), MADE, undo, after)) == ""

    def test_i5_without_the_snapshot_right_before_nobody_knows_what_was_deleted(self) -> None:
        assert of_type(Reason, frame_of("task-1", EXPIRY, MADE, now((MADE, SINCE)))).code == "base-gone"


def obstacle_of_schema(fields: tuple[Json, ...]) -> str:
    """The code and text of what stands in the way where these are the columns by now."""
    metadata = now(schemas=(Schema(0, COLUMNS), Schema(1, fields)), current_schema_id=1)
    frame = of_type(UndoExpireData, frame_of("task-1", EXPIRY, MADE, metadata))
    found = data_undo_obstacle(frame, metadata, rules())
    return "" if found is None else f"{found.code}: {found.text}"


@each_case(
    ("fields", "said"),
    [
        (COLUMNS[:3], "column-dropped: column event, "),
        ((*COLUMNS[:3], {**COLUMNS[3], "type": {"type": "struct", "fields": []}}), "column-type: "),
        ((*COLUMNS[:2], {**COLUMNS[2], "type": "string"}, COLUMNS[3]), "column-type: column number was of another"),
        ((*COLUMNS[:2], {**COLUMNS[2], "type": "long"}, COLUMNS[3]), ""),
        ((*COLUMNS[:2], {**COLUMNS[2], "id": 8}, COLUMNS[3]), "column-dropped: column number, "),
        ((*COLUMNS[:2], {**COLUMNS[2], "name": "renamed"}, COLUMNS[3]), ""),
        ((*COLUMNS[:2], {**COLUMNS[2], "required": True}, COLUMNS[3]), "column-required: column number was optional"),
        ((*COLUMNS, {"id": 9, "name": "new", "type": "int", "required": True}), "column-required: column new is"),
        ((*COLUMNS, {"id": 9, "name": "new", "type": "int", "required": True, "initial-default": 1}), ""),
        ((*COLUMNS, {"id": 9, "name": "clock", "type": "time", "required": False}), "column-type: Spark cannot read"),
        (
            (
                *COLUMNS[:3],
                {**COLUMNS[3], "type": {"type": "struct", "fields": [{**COLUMNS[3]["type"]["fields"][0], "id": 11}]}},
            ),
            "column-dropped: column event.day, ",
        ),
    ],
)
def test_i2_columns_that_rows_would_lose_are_named(fields: tuple[Json, ...], said: str) -> None:
    found = obstacle_of_schema(fields)
    assert found.startswith(said)
    assert bool(found) == bool(said)
