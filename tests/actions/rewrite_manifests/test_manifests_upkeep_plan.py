"""What the keys of a table's manifests tell, before anything is read of what is in them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.rewrite_manifests.due import DANGER_OPENED, in_danger, in_order, may_be_in_danger
from icewright.actions.rewrite_manifests.plan import FEWER_MIN, plan_manifests
from icewright.model.iceberg.inventory import ManifestSummary
from tests.builders.manifest_lakes import KIB, lakes, manifest, of_manifests
from tests.builders.observations import NOW, month, policy

MIB = 1024 * KIB
POLICY = replace(policy(), manifest_target_size_bytes=MIB)


@given(lakes(), st.integers(2, 8), st.integers(0, 60))
def test_where_the_keys_tell_that_nothing_is_due_nothing_is_planned(
    summaries: tuple[ManifestSummary, ...], min_count: int, most: int
) -> None:
    its_policy = replace(POLICY, manifest_min_count=min_count, rewrite_manifests_min_gain=0.01)
    observation = of_manifests(summaries[:most])
    reason = in_order(observation.inventory.manifests, its_policy)
    if reason is not None:
        assert plan_manifests(observation, its_policy, summaries[:most], NOW).action is None
        assert reason.code == "few-manifests"


def test_it_is_no_excuse_for_looking_at_nothing() -> None:
    few = [manifest(number, {month(1): 1}, 700 * KIB) for number in range(FEWER_MIN)]
    for summaries, has_to_be_looked_at in (
        (few, False),
        ([*few, manifest(9, {month(1): 1}, 700 * KIB)], True),
        ([*few[1:], manifest(9, {month(1): 1}, 3 * MIB)], True),
    ):
        keys = of_manifests(summaries).inventory.manifests
        assert (in_order(keys, POLICY) is None) is has_to_be_looked_at
    small = of_manifests([manifest(number, {month(1): 1}) for number in range(3)]).inventory.manifests
    assert in_order(small, replace(POLICY, manifest_min_count=3)) is None


def test_planning_is_in_danger_by_what_queries_open_and_not_by_what_there_is() -> None:
    for each_has_all, danger in ((True, True), (False, False)):
        many = [
            manifest(number, {month(m): 1 for m in (range(2) if each_has_all else (number,))})
            for number in range(DANGER_OPENED)
        ]
        observation = of_manifests(many)
        prediction = plan_manifests(observation, policy(), many, NOW).prediction
        assert prediction is not None
        assert in_danger(prediction) is danger
        assert may_be_in_danger(observation.inventory.manifests)
        assert not may_be_in_danger(observation.inventory.manifests[1:])
