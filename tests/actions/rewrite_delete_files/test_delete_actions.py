"""Work on delete files as values: what lists show of it, and that it comes back from JSON as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from icewright.core.codec import from_json, to_json
from icewright.model.actions.actions import Action, ActionFigures, names_in
from icewright.model.actions.rewrite_delete_files import (
    DeleteGroup,
    RemoveDanglingDeletes,
    RemoveDanglingDeletesFigures,
    RemoveDanglingDeletesPrediction,
    RemoveDanglingDeletesRequest,
    RewritePositionDeletes,
    RewritePositionDeletesFigures,
    RewritePositionDeletesPrediction,
    RewritePositionDeletesRequest,
    Target,
    own_bytes,
)
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat, Partition
from icewright.model.iceberg.inventory import DeleteCosts
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Prediction
from icewright.model.plans.requests import PlanRequest
from icewright.model.work.jobs import PROTOCOL_VERSION, TaskSpec
from tests.cases import each_case

HERE = Partition(0, '["Ulm"]')
POSITION = DeleteFile("a", FileContent.POSITION_DELETES, FileFormat.PARQUET, HERE, 100, 3, 7, 5, path_lower="x")
VECTOR = replace(
    POSITION, path="v", file_format=FileFormat.PUFFIN, referenced_data_file="x", content_offset=4, content_size_bytes=40
)
EQUALITY = replace(POSITION, path="e", content=FileContent.EQUALITY_DELETES, equality_ids=(1, 2), path_lower=None)
DANGLING = RemoveDanglingDeletes(7, (POSITION, VECTOR, EQUALITY))
GROUP = DeleteGroup(
    0, HERE, "city=Ulm", None, (POSITION, replace(POSITION, path="b")), (Target("x", 4, 9), Target("y", 5, 9)), 5
)
REWRITE = RewritePositionDeletes(7, (GROUP, replace(GROUP, group_id=1, data_file="x", targets=GROUP.targets[:1])))
COSTS = DeleteCosts(3, 9, 900), DeleteCosts(1, 3, 300)


def test_figures_say_everything_but_the_names() -> None:
    assert DANGLING.figures == RemoveDanglingDeletesFigures(7, 1, 1, 1, records=9, size_bytes=240)
    assert REWRITE.figures == RewritePositionDeletesFigures(
        7, groups=2, input_files=4, input_bytes=400, records=12, data_files=2
    )
    assert (names_in(DANGLING), names_in(REWRITE)) == (3, 7)
    assert (own_bytes(POSITION), own_bytes(VECTOR)) == (100, 40)


@each_case(
    ("kind", "value"),
    [
        (Action, DANGLING),
        (Action, REWRITE),
        (ActionFigures, DANGLING.figures),
        (ActionFigures, REWRITE.figures),
        (Prediction, RemoveDanglingDeletesPrediction(*COSTS, "CALL")),
        (Prediction, RewritePositionDeletesPrediction(*COSTS, "CALL")),
        (PlanRequest, RemoveDanglingDeletesRequest()),
        (PlanRequest, RewritePositionDeletesRequest()),
        (
            TaskSpec,
            TaskSpec(
                PROTOCOL_VERSION, "task-1", 1, 1, TableId("l", "u"), TableName("l", ("db",), "t"), REWRITE, 30_000, 1
            ),
        ),
    ],
)
def test_they_travel_as_json_and_come_back_the_same(kind: Any, value: object) -> None:
    assert from_json(kind, to_json(value)) == value
