"""The registries of actions: every kind on every floor, none twice, under the names that are stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from icewright.core.codec import members_of
from icewright.maintenance.registry.cli import ACTION_WORDS
from icewright.maintenance.registry.effects import snapshot_effect
from icewright.maintenance.registry.folders import in_folders
from icewright.maintenance.registry.services import ACTION_TYPES
from icewright.model.actions.actions import Action, ActionFigures, ActionKind, traits_in
from icewright.model.actions.traits import BESIDE, RunsOn, TableSlot
from icewright.model.plans.plans import Prediction
from icewright.model.plans.requests import PlanRequest
from icewright.plans.action_types import ActionType

STORED = {
    "RewriteDataFiles": "rewrite_data_files",
    "ExpireSnapshots": "expire_snapshots",
    "RewriteManifests": "rewrite_manifests",
    "RemoveDanglingDeletes": "remove_dangling_deletes",
    "RewritePositionDeletes": "rewrite_position_delete_files",
    "ExpireData": "expire_data",
    "UndoExpireData": "undo_expire_data",
    "UndoExpiry": "undo_expire_snapshots",
    "ComputeStatistics": "compute_statistics",
    "RemoveOrphanFiles": "remove_orphan_files",
    "RemoveExpiredFiles": "remove_expired_files",
    "RestoreFiles": "restore_files",
    "Rollback": "rollback_to_snapshot",
    "AnalyzeQueries": "analyze_queries",
}
"""The tags of actions in stores and in snapshot summaries of tables: they are data, and do not change."""


def test_the_tags_of_actions_are_those_that_are_stored() -> None:
    assert {action.__name__: action.kind for action in members_of(Action)} == STORED
    assert {kind.value for kind in ActionKind} == set(STORED.values())


def test_each_kind_is_registered_once_on_each_floor() -> None:
    registered: tuple[tuple[Iterable[type[Any]], Any], ...] = (
        ([kind.traits.action for kind in ActionKind], Action),
        ([kind.traits.figures for kind in ActionKind], ActionFigures),
        ([kind.traits.prediction for kind in ActionKind], Prediction),
        ([its.action for its in ACTION_TYPES.values()], Action),
        ([its.plan_asked.asked for its in ACTION_TYPES.values() if its.plan_asked], PlanRequest),
        ([words.prediction for words in ACTION_WORDS], Prediction),
        ([words.figures for words in ACTION_WORDS], ActionFigures),
    )
    for found, union in registered:
        assert Counter(found) == Counter(members_of(union))


def test_figures_predictions_and_what_is_asked_carry_the_tag_of_their_action() -> None:
    for one in ActionKind:
        traits = one.traits
        assert one.value == traits.action.kind == traits.figures.kind == traits.prediction.kind
        assert traits.asked is None or traits.asked.kind == one.value
    for kind, its in ACTION_TYPES.items():
        assert kind == its.action.kind
        assert its.plan_asked is None or its.plan_asked.asked is ActionKind(kind).traits.asked
    for words in ACTION_WORDS:
        assert words.figures.kind == words.prediction.kind


def test_a_kind_holds_the_slot_of_its_table_that_its_commits_need() -> None:
    for kind in ActionKind:
        traits, rules = kind.traits, ACTION_TYPES[kind].rules
        makes_a_snapshot = rules.effect is snapshot_effect
        assert (traits.slot is TableSlot.DATA) == makes_a_snapshot, kind
        if traits.runs_on is not RunsOn.OPTIMIZER or traits.removes_files:
            assert traits.slot is TableSlot.TABLE, kind
    assert [kind.value for kind in ActionKind if kind.traits.slot is TableSlot.METADATA] == [
        "compute_statistics",
        "analyze_queries",
    ]


def test_slots_that_may_be_held_at_once_may_be_so_either_way_and_none_beside_itself() -> None:
    for one in TableSlot:
        assert one not in BESIDE[one]
        assert all(one in BESIDE[other] for other in BESIDE[one])


def test_an_action_is_taken_back_by_kinds_that_there_are() -> None:
    known = {kind.value for kind in ActionKind}
    assert all(undo in known for kind in ActionKind for undo in kind.traits.taken_back_by)


def test_an_action_whose_folder_lacks_something_is_refused() -> None:
    with pytest.raises(ImportError, match="no_such_action"):
        traits_in("no_such_action")
    with pytest.raises(TypeError, match=r"actions\.orphans has no TRAITS"):
        traits_in("orphans")
    here = ACTION_TYPES.keys() - {"analyze_queries"}
    assert in_folders("service", ActionType, here) == (ACTION_TYPES["analyze_queries"],)
    with pytest.raises(ImportError, match=r"expire_data\.no_such_module"):
        in_folders("no_such_module", ActionType, ACTION_TYPES.keys() - {"expire_data"})
    with pytest.raises(TypeError, match=r"analyze_queries\.plan has 0 values of type ActionType"):
        in_folders("plan", ActionType, here)
