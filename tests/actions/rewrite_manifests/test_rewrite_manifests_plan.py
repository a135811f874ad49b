"""Which manifests are rewritten, and into which."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.rewrite_manifests.check import manifest_violations
from icewright.actions.rewrite_manifests.plan import ManifestsDecision, plan_manifests
from icewright.model.actions.rewrite_manifests import ManifestCause, ManifestContent, RewriteManifests
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary
from icewright.model.iceberg.tables import PartitionField, PartitionSpec
from icewright.model.plans.observation import Removals
from icewright.model.policy.policy import Policy
from tests.builders.manifest_lakes import KIB, lakes, manifest, of_manifests
from tests.builders.observations import HOUR_MS, MINUTE_MS, NOW, WHOLE, month, policy, table
from tests.narrowing import not_none

MIB = 1024 * KIB


def decide(summaries: list[ManifestSummary], its_policy: Policy | None = None, **table_is: Any) -> ManifestsDecision:
    observation = of_manifests(summaries, table(**table_is))
    decision = plan_manifests(observation, its_policy or policy(), summaries, NOW)
    if decision.action is not None and decision.prediction is not None:
        found = manifest_violations(
            decision.action, decision.prediction, observation, its_policy or policy(), summaries
        )
        assert not list(found)
    return decision


def planned(summaries: list[ManifestSummary], its_policy: Policy | None = None, **table_is: Any) -> RewriteManifests:
    decision = decide(summaries, its_policy, **table_is)
    assert decision.action is not None, decision.reason
    return decision.action


def shares(action: RewriteManifests) -> list[list[tuple[str, int]]]:
    return [[(share.values, share.entries) for share in output.shares] for output in action.outputs]


class TestCauses:
    def test_many_small_ones_from_frequent_writes_become_one(self) -> None:
        decision = decide([manifest(number, {month(number % 3): 1}) for number in range(1, 121)])
        action = not_none(decision.action)
        assert action.causes == (ManifestCause.MANY_SMALL,)
        assert len(action.manifests) == 120
        assert shares(action) == [[("[0]", 40), ("[1]", 40), ("[2]", 40)]]
        assert decision.reason.text == (
            "120 manifests become 1 (small from frequent writes): a query for one partition opens 1.0 instead of 40.0, "
            "at worst 1 instead of 40"
        )

    def test_fewer_small_ones_than_writers_merge_at_are_left_to_pile_up(self) -> None:
        decision = decide([manifest(number, {month(number): 1}) for number in range(1, 100)])
        assert decision.action is None
        assert decision.reason.code == "manifests-in-order"
        assert "99 are small (merged from 100 on, commit.manifest.min-count-to-merge)" in decision.reason.text

    def test_one_oversized_manifest_from_one_commit_is_cut_along_partitions(self) -> None:
        one = manifest(1, {month(number): 10 for number in range(1, 13)}, 24 * MIB)
        action = planned([one])
        assert action.causes == (ManifestCause.OVERSIZED,)
        assert [len(output.shares) for output in action.outputs] == [4, 4, 4]
        assert shares(action)[0] == [("[1]", 10), ("[2]", 10), ("[3]", 10), ("[4]", 10)]

    def test_files_of_one_partition_spread_over_manifests_come_together(self) -> None:
        spread = [manifest(number, {month(m): 100 for m in range(1, 13)}, 6 * MIB) for number in range(1, 13)]
        decision = decide(spread)
        action, prediction = decision.action, decision.prediction
        assert action is not None
        assert prediction is not None
        assert action.causes == (ManifestCause.SPREAD,)
        opened = prediction.opened[0]
        assert (opened.mean_before, opened.worst_before) == (12.0, 12)
        assert opened.mean_after <= 2
        assert opened.worst_after <= 2

    def test_manifests_that_queries_hardly_open_in_vain_stay(self) -> None:
        by_month = [manifest(number, {month(number): 100}, 6 * MIB) for number in range(1, 13)]
        assert decide(by_month).action is None

    def test_only_spread_ones_are_taken_from_among_those_in_order(self) -> None:
        in_order = [manifest(number, {month(number): 100}, 7 * MIB) for number in range(1, 13)]
        spread = [manifest(20 + n, {month(m): 5 for m in range(1, 13)}, MIB) for n in range(8)]
        action = planned([*in_order, *spread])
        assert {each.path for each in action.manifests} == {each.key.path for each in spread}

    def test_what_gains_too_little_is_left_alone(self) -> None:
        spread = [manifest(number, {month(m): 100 for m in range(1, 13)}, 6 * MIB) for number in range(1, 4)]
        assert decide(spread).action is None

    def test_the_gain_is_the_owners_to_say(self) -> None:
        spread = [manifest(number, {month(m): 100 for m in range(1, 5)}, 7 * MIB) for number in range(1, 9)]
        assert decide(spread, policy(rewrite_manifests_min_gain=0.5)).action is not None
        assert decide(spread, policy(rewrite_manifests_min_gain=0.9)).action is None

    def test_the_owner_says_how_large_and_how_many(self) -> None:
        few = [manifest(number, {month(1): 1}) for number in range(1, 11)]
        assert planned(few, policy(manifest_min_count=10)).causes == (ManifestCause.MANY_SMALL,)
        one = manifest(1, {month(number): 10 for number in range(1, 13)}, 300 * KIB)
        assert len(planned([one], policy(manifest_target_size_bytes=100 * KIB)).outputs) == 3


class TestPlaces:
    def test_w8_delete_manifests_and_specs_never_mix(self) -> None:
        summaries = [
            *(manifest(n, {month(1): 2}) for n in range(1, 101)),
            *(manifest(n, {WHOLE: 3}) for n in range(101, 201)),
            *(manifest(n, {month(1): 1}, deletes=True) for n in range(201, 301)),
        ]
        action = planned(summaries)
        found = {(o.belongs_to.spec_id, o.belongs_to.content): o.entries for o in action.outputs}
        assert found == {
            (0, ManifestContent.DATA): 200,
            (1, ManifestContent.DATA): 300,
            (0, ManifestContent.DELETES): 100,
        }

    def test_w8_manifests_of_removed_entries_alone_are_replaced_by_nothing(self) -> None:
        gone = [manifest(number, {}, removed={month(1): 2}) for number in range(1, 101)]
        action = planned([*gone, manifest(200, {month(1): 1}, 5 * MIB)])
        assert action.outputs == ()
        assert action.figures.removed_entries == 200

    def test_partitions_are_in_the_order_of_their_values_not_of_their_text(self) -> None:
        values = ["[null]", "[-5]", "[2]", "[10]"]
        summaries = [manifest(n, {Partition(0, values[n % 4]): 1}) for n in range(1, 121)]
        assert [one for one, _ in shares(planned(summaries))[0]] == values

    def test_decimals_are_in_the_order_of_their_values(self) -> None:
        fields = ({"id": 1, "name": "price", "type": "decimal(9,2)", "required": False},)
        spec = PartitionSpec(0, (PartitionField(1, 1000, "price", "identity"),))
        values = ['["-2.00"]', '["9.50"]', '["10.00"]']
        summaries = [manifest(n, {Partition(0, values[n % 3]): 1}) for n in range(1, 121)]
        action = planned(summaries, fields=fields, specs=(spec,))
        assert [one for one, _ in shares(action)[0]] == values

    def test_a_partition_is_cut_in_two_only_where_it_has_to(self) -> None:
        large = manifest(1, {month(1): 10, month(2): 500, month(3): 10}, 40 * MIB)
        its = shares(planned([large]))
        assert sum(("[2]" in dict(each)) for each in its) > 1
        assert all("[1]" not in dict(each) for each in its[1:])
        assert all("[3]" not in dict(each) for each in its[:-1])

    def test_a_partition_that_cannot_be_handed_to_iceberg_keeps_its_manifests(self) -> None:
        fields = ({"id": 1, "name": "x", "type": "double", "required": False},)
        spec = PartitionSpec(0, (PartitionField(1, 1000, "x", "identity"),))
        summaries = [manifest(n, {Partition(0, "[1.5]"): 1}) for n in range(1, 101)]
        strange = manifest(200, {Partition(0, '["NaN"]'): 1})
        action = planned([*summaries, strange], fields=fields, specs=(spec,))
        assert strange.key.path not in {each.path for each in action.manifests}

    def test_a_spec_of_void_alone_keeps_its_manifests_and_is_in_nobodys_way(self) -> None:
        specs = tuple(
            PartitionSpec(n, (PartitionField(1, 1000 + n, "x", how),)) for n, how in enumerate(("identity", "void"))
        )
        fields = ({"id": 1, "name": "x", "type": "long", "required": False},)
        others = [manifest(n, {Partition(0, "[1]"): 1}) for n in range(1, 121)]
        void = [manifest(n, {Partition(1, "[]"): 1}) for n in range(200, 320)]
        action = planned([*others, *void], fields=fields, specs=specs)
        assert {each.belongs_to.spec_id for each in action.manifests} == {0}
        assert decide(void, fields=fields, specs=specs).reason.figures["fixed"] == 120


class TestLeftAlone:
    def test_a_table_that_is_only_observed_for_its_state(self) -> None:
        small = [manifest(number, {month(1): 1}) for number in range(1, 121)]
        assert decide(small, properties={"encryption.key-id": "k"}).reason.code == "encryption"
        assert decide(small, has_uuid=False).reason.code == "no-uuid"
        assert decide(small, format_version=4).reason.code == "format-version"
        assert decide(small, snapshots=()).reason.code == "no-snapshots"

    def test_columns_that_no_merge_can_write_do_not_matter(self) -> None:
        fields = (
            {"id": 1, "name": "month", "type": "int", "required": False},
            {"id": 2, "name": "where", "type": "geometry", "required": False},
        )
        assert planned([manifest(number, {month(1): 1}) for number in range(1, 121)], fields=fields)

    def test_an_inventory_that_is_behind(self) -> None:
        small = [manifest(number, {month(1): 1}) for number in range(1, 121)]
        observation = of_manifests(small)
        assert plan_manifests(observation, policy(), small[1:], NOW).reason.code == "inventory-behind"

    def test_tasks_are_small_where_rows_are_removed_often(self) -> None:
        small = [manifest(number, {month(1): 500}) for number in range(1, 201)]
        observation = of_manifests(small)
        removals = Removals({month(1): NOW - MINUTE_MS}, every_ms={month(1): 2 * MINUTE_MS})
        busy = plan_manifests(replace(observation, removals=removals), policy(), small, NOW).action
        removals = Removals({month(1): NOW - MINUTE_MS}, every_ms={month(1): 48 * HOUR_MS})
        calm = not_none(plan_manifests(replace(observation, removals=removals), policy(), small, NOW).action)
        assert len(calm.manifests) == 200
        assert busy is None or busy.entries < calm.entries


class TestChecker:
    """Each guard of the checker is noticed when it is missing."""

    SUMMARIES = tuple(manifest(n, {month(n % 3): 2}, removed={month(0): 1}) for n in range(1, 121))

    def violations(self, action: RewriteManifests, **changes: Any) -> set[str]:
        decision = decide(list(self.SUMMARIES))
        prediction = replace(not_none(decision.prediction), **changes)
        observation = of_manifests(self.SUMMARIES)
        return {code for code, _ in manifest_violations(action, prediction, observation, policy(), self.SUMMARIES)}

    def test_what_the_planner_says_holds(self) -> None:
        assert self.violations(planned(list(self.SUMMARIES))) == set()

    def test_w8_what_is_not_in_the_snapshot_is_never_replaced(self) -> None:
        action = planned(list(self.SUMMARIES))
        first, *others = action.manifests
        for strange in (
            replace(first, path="file:/lake/other/metadata/m.avro"),
            replace(first, size_bytes=first.size_bytes + 1),
            replace(first, added_snapshot_id=77),
        ):
            assert "not-a-manifest" in self.violations(replace(action, manifests=(strange, *others)))
        assert "wrong-base" in self.violations(replace(action, base_snapshot_id=9))

    @pytest.mark.parametrize("entries", [1, 3])
    def test_w8_each_entry_has_one_place(self, entries: int) -> None:
        action = planned(list(self.SUMMARIES))
        output = action.outputs[0]
        share = replace(output.shares[0], entries=output.shares[0].entries + entries - 2)
        wrong = replace(output, shares=(share, *output.shares[1:]))
        assert "no-place" in self.violations(replace(action, outputs=(wrong,)))
        assert "no-place" in self.violations(replace(action, outputs=()))
        assert "no-place" in self.violations(replace(action, outputs=(output, output)))

    def test_w8_entries_stay_in_their_spec_and_content(self) -> None:
        action = planned(list(self.SUMMARIES))
        output = action.outputs[0]
        for other in (
            replace(output.belongs_to, spec_id=1),
            replace(output.belongs_to, content=ManifestContent.DELETES),
        ):
            assert "no-place" in self.violations(replace(action, outputs=(replace(output, belongs_to=other),)))
            moved = tuple(replace(each, belongs_to=other) for each in action.manifests)
            assert self.violations(replace(action, manifests=moved)) & {"wrong-spec", "wrong-content"}

    def test_what_would_mislead(self) -> None:
        action = planned(list(self.SUMMARIES))
        assert self.violations(action, manifests_after=7) == {"wrong-prediction"}
        assert self.violations(action, entries=7) == {"wrong-prediction"}
        assert self.violations(action, opened=()) == {"wrong-prediction"}
        first, *others = action.manifests
        assert "wrong-count" in self.violations(replace(action, manifests=(replace(first, removed_entries=5), *others)))
        assert "twice" in self.violations(replace(action, manifests=(first, *action.manifests)))


def carried_out(summaries: list[ManifestSummary], action: RewriteManifests, number: int) -> list[ManifestSummary]:
    """The manifests after the action; a new one is as large as its entries were on average."""
    gone = {each.path for each in action.manifests}
    each = sum(m.size_bytes for m in action.manifests) / max(
        1, sum(m.entries + m.removed_entries for m in action.manifests)
    )
    made = []
    for place, output in enumerate(action.outputs):
        spec_id, deletes = output.belongs_to.spec_id, output.belongs_to.content is ManifestContent.DELETES
        live = {Partition(spec_id, share.values): share.entries for share in output.shares}
        made.append(manifest(number + place, live, max(1, int(each * output.entries)), deletes=deletes))
    return [*(summary for summary in summaries if summary.key.path not in gone), *made]


def live_entries(summaries: list[ManifestSummary]) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for summary in summaries:
        for partition, said in summary.partitions.items():
            found[summary.content, partition] += said.counts.data_files + said.counts.delete_files
    return +found


@given(summaries=lakes(), min_count=st.integers(2, 30), gain=st.sampled_from([0.1, 0.5, 0.9]))
def test_w8_plans_keep_every_entry_and_planning_comes_to_an_end(
    summaries: tuple[ManifestSummary, ...], min_count: int, gain: float
) -> None:
    its_policy = policy(manifest_target_size_bytes=MIB, manifest_min_count=min_count, rewrite_manifests_min_gain=gain)
    lake, number = list(summaries), 1_000
    before = live_entries(lake)
    for _ in range(12):
        action = decide(lake, its_policy).action
        if action is None:
            return
        lake, number = carried_out(lake, action, number), number + 1_000
        assert live_entries(lake) == before
    raise AssertionError("the manifests are rewritten again and again")


def test_a_manifest_is_known_by_path_length_and_snapshot() -> None:
    """Paths have been reused by writers (W8): another manifest under a planned path is another one."""
    small = [manifest(number, {month(1): 1}) for number in range(1, 121)]
    other = replace(small[0], key=ManifestKey(small[0].key.path, 5, 999))
    assert plan_manifests(of_manifests(small), policy(), [other, *small[1:]], NOW).reason.code == "inventory-behind"
