"""Which statistics are computed, when they are due, and what the second opinion says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.compute_statistics.check import statistics_violations
from icewright.actions.compute_statistics.commit import computed, problem_of_statistics, statistics_conflict
from icewright.actions.compute_statistics.due import changed_since_statistics, due_because
from icewright.actions.compute_statistics.plan import StatisticsDecision, decide_statistics
from icewright.actions.compute_statistics.settings import column_list
from icewright.inventory.commit_search import commit_in_log
from icewright.model.actions.compute_statistics import ComputeStatistics, PartitionTotals, StatisticsColumn
from icewright.model.iceberg.tables import (
    NDV_KEY,
    THETA_SKETCH,
    Operation,
    PartitionField,
    PartitionSpec,
    PartitionStatisticsFile,
    Snapshot,
    StatisticsBlob,
    StatisticsFile,
    TableMetadata,
)
from icewright.model.plans.observation import Observation
from tests.builders.observations import NO_FIELDS, data_file, month, observe, policy, snapshot, table
from tests.cases import each_case
from tests.narrowing import not_none

FIELDS = (
    {"id": 1, "name": "month", "type": "int", "required": False},
    {"id": 2, "name": "carrier", "type": "string", "required": False},
    {"id": 3, "name": "weight", "type": "double", "required": False},
    {"id": 4, "name": "at", "type": "timestamptz", "required": False},
    {"id": 5, "name": "key", "type": "decimal(9, 2)", "required": True},
    {"id": 6, "name": "two words", "type": "long", "required": False},
    {"id": 7, "name": "Twice", "type": "long", "required": False},
    {"id": 8, "name": "twice", "type": "long", "required": False},
    {"id": 9, "name": "place", "type": {"type": "struct", "fields": []}, "required": False},
)
NESTED_WITHOUT = FIELDS[:-1]
COUNTED = {"total-records": "1000", "total-data-files": "2", "total-delete-files": "0", "total-files-size": "9"}


def observation(metadata: TableMetadata | None = None, **table_is: Any) -> Observation:
    """A table of two files of a month each."""
    is_so = {"fields": NESTED_WITHOUT, **table_is}
    files = [data_file(month(number), number, 1 << 20) for number in (1, 2)]
    return observe(files, metadata=metadata or table(**is_so))


def decide(its: Observation, *arguments: Any) -> StatisticsDecision:
    decision = decide_statistics(its, policy(), *arguments)
    if decision.action is not None and decision.prediction is not None:
        assert list(statistics_violations(decision.action, decision.prediction, its, policy())) == []
    return decision


def planned(its: Observation, *arguments: Any) -> ComputeStatistics:
    return not_none(decide(its, *arguments).action)


def names(decision: StatisticsDecision) -> list[str]:
    return [] if decision.action is None else [column.name for column in decision.action.columns]


def blob(field_id: int, ndv: str = "7", kind: str = THETA_SKETCH, of: int = 1) -> StatisticsBlob:
    return StatisticsBlob(kind, of, of, (field_id,), {NDV_KEY: ndv})


def with_statistics(metadata: TableMetadata, *blobs: StatisticsBlob, of: int = 1, path: str = "s1") -> TableMetadata:
    return replace(metadata, statistics=(*metadata.statistics, StatisticsFile(of, path, 9, 1, blobs)))


class TestColumns:
    def test_own_columns_come_first_and_measures_are_left_out(self) -> None:
        decision = decide(observation())
        assert names(decision) == ["month", "carrier", "key"]
        assert "weight, at, 'two words', Twice, twice" in decision.notes[0].text
        assert decision.prediction is not None
        assert decision.prediction.read_records == 20_970
        assert 0 < decision.prediction.read_bytes < decision.prediction.data_bytes
        assert "compute_table_stats(table => '`sales`.`flights`', snapshot_id => 1" in decision.prediction.call

    def test_an_instant_that_the_table_is_partitioned_by_is_taken(self) -> None:
        by_hour = PartitionSpec(0, (PartitionField(4, 1000, "at_hour", "hour"),))
        assert names(decide(observation(specs=(by_hour, NO_FIELDS))))[0] == "at"

    def test_what_somebody_names_is_taken_and_what_is_not_there_is_said(self) -> None:
        decision = decide(observation(), ("weight", "colour"))
        assert names(decision) == ["weight"]
        assert "colour" in decision.notes[0].text

    def test_a_column_that_spark_cannot_read_leaves_the_partitions(self) -> None:
        fields = (*NESTED_WITHOUT, {"id": 10, "name": "t", "type": "time", "required": False})
        decision = decide(observation(fields=fields))
        assert names(decision) == []
        assert not_none(decision.action).partition_totals is not None
        assert decision.notes[0].code == "columns-unreadable"

    def test_at_most_32_are_chosen(self) -> None:
        fields = tuple({"id": n, "name": f"c{n}", "type": "long", "required": False} for n in range(1, 50))
        decision = decide(observation(fields=fields))
        assert len(names(decision)) == 32
        assert "32 columns are chosen at most" in decision.notes[-1].text

    @each_case("text", ["", "a,,b", "a,a", "a b", "a.b", "`a`", "a,", "é", ",".join("abcdefg") + ";x"])
    def test_lists_that_are_none(self, text: str) -> None:
        with pytest.raises(ValueError, match=r".*"):
            column_list(text)


class TestWhatIsThere:
    def test_columns_that_have_a_sketch_keep_it(self) -> None:
        its = with_statistics(table(fields=NESTED_WITHOUT), blob(3))
        action = planned(observation(its))
        assert [column.field_id for column in action.columns] == [1, 2, 5, 3]
        assert action.statistics_before == "s1"

    def test_where_all_are_there_nothing_is_computed(self) -> None:
        its = with_statistics(table(fields=NESTED_WITHOUT), blob(1), blob(2), blob(5))
        its = replace(its, partition_statistics=(PartitionStatisticsFile(1, "p1", 9),))
        assert decide(observation(its)).reason.code == "statistics-there"

    def test_blobs_of_others_are_not_lost(self) -> None:
        its = with_statistics(table(fields=NESTED_WITHOUT), blob(1), blob(2, kind="histogram-v1"))
        decision = decide(observation(its))
        assert names(decision) == []
        assert "statistics-of-others" in {note.code for note in decision.notes}

    def test_an_older_snapshot_is_told_by_its_summary(self) -> None:
        its = table((snapshot(1, summary=COUNTED), snapshot(2)), fields=NESTED_WITHOUT)
        action = planned(observation(its), None, 1)
        assert (action.base_snapshot_id, action.partition_totals) == (1, PartitionTotals(2, 1000, 0))
        assert decide(observation(its), None, 3).reason.code == "snapshot-missing"
        silent = table((snapshot(1), snapshot(2)), fields=NESTED_WITHOUT)
        assert decide(observation(silent), None, 1).reason.code == "snapshot-uncounted"

    @each_case(
        ("changes", "code"),
        [
            ({"statistics_problem": "its entries are damaged"}, "statistics-damaged"),
            ({"has_uuid": False}, "no-uuid"),
            ({"properties": {"encryption.key-id": "k"}}, "encryption"),
        ],
    )
    def test_tables_that_are_left_alone(self, changes: dict[str, Any], code: str) -> None:
        assert decide(observation(**changes)).reason.code == code

    def test_partitions_are_left_where_nobody_reads_them_back(self) -> None:
        action = planned(observation(properties={"write.format.default": "avro"}))
        assert action.partition_totals is None
        unpartitioned = observation(specs=(replace(NO_FIELDS, spec_id=0), NO_FIELDS))
        assert planned(unpartitioned).partition_totals is None


class TestSecondOpinion:
    @each_case(
        ("changes", "code"),
        [
            ({"columns": (StatisticsColumn(2, "month"),)}, "wrong-column"),
            ({"columns": (StatisticsColumn(7, "Twice"),)}, "wrong-column"),
            ({"columns": (StatisticsColumn(6, "two words"),)}, "wrong-column"),
            ({"columns": (StatisticsColumn(1, "month"),) * 2}, "twice"),
            ({"columns": (), "partition_totals": None}, "empty"),
            ({"base_snapshot_id": 9}, "snapshot-missing"),
            ({"base_metadata_location": "other"}, "wrong-base"),
            ({"schema_id": 5}, "wrong-schema"),
            ({"records": 5}, "wrong-count"),
            ({"partition_totals": PartitionTotals(3, 20970, 0, 2 << 20)}, "wrong-count"),
            ({"partition_totals": PartitionTotals(2, 20970, 0, 2 << 20, "other")}, "wrong-count"),
            ({"statistics_before": "s0"}, "statistics-changed"),
        ],
    )
    def test_wrong_plans_are_noticed(self, changes: dict[str, Any], code: str) -> None:
        its = observation()
        decision = decide(its)
        assert decision.action is not None
        assert decision.prediction is not None
        wrong = replace(decision.action, **changes)
        found = {found for found, _ in statistics_violations(wrong, decision.prediction, its, policy())}
        assert code in found

    def test_a_plan_that_would_lose_a_sketch_is_noticed(self) -> None:
        its = observation(with_statistics(table(fields=NESTED_WITHOUT), blob(3)))
        decision = decide(its)
        assert decision.action is not None
        assert decision.prediction is not None
        wrong = replace(decision.action, columns=decision.action.columns[:3])
        assert "statistics-lost" in {
            found for found, _ in statistics_violations(wrong, decision.prediction, its, policy())
        }


def appended(number: int, rows: int, operation: Operation = Operation.APPEND) -> Snapshot:
    return snapshot(number, operation=operation, summary={"added-records": str(rows), "total-records": "1000"})


class TestDue:
    def test_they_are_due_where_there_are_none(self) -> None:
        assert not_none(due_because(table(), 0.1)).code == "statistics-missing"
        assert due_because(replace(table(), statistics_problem="damaged"), 0.1) is None

    @each_case(("rows", "due"), [((99,), False), ((100,), True), ((60, 40), True), ((60, 39), False)])
    def test_a_share_of_the_rows_changed(self, rows: tuple[int, ...], *, due: bool) -> None:
        later = [appended(number + 2, each) for number, each in enumerate(rows)]
        its = with_statistics(table((snapshot(1), *later)), blob(1))
        assert (due_because(its, 0.1) is not None) is due

    def test_rewrites_change_no_rows_and_those_who_count_nothing_may_have(self) -> None:
        its = with_statistics(table((snapshot(1), appended(2, 900, Operation.REPLACE))), blob(1))
        assert due_because(its, 0.1) is None
        silent = with_statistics(table((snapshot(1), snapshot(2))), blob(1))
        assert "the changes are unknown" in not_none(due_because(silent, 0.1)).text

    def test_statistics_of_a_snapshot_that_was_rolled_back_count_for_nothing(self) -> None:
        aside = replace(snapshot(3), parent_id=1)
        its = with_statistics(table((snapshot(1), aside, replace(snapshot(2), parent_id=1))), blob(1, of=3), of=3)
        assert changed_since_statistics(its) is None

    @given(st.lists(st.integers(0, 500), max_size=6), st.floats(0.01, 1))
    def test_after_they_were_computed_they_are_not_due(self, rows: list[int], share: float) -> None:
        later = [appended(number + 2, each) for number, each in enumerate(rows)]
        its = table((snapshot(1), *later))
        current = not_none(its.current_snapshot_id)
        assert due_because(with_statistics(its, blob(1, of=current), of=current), share) is None


class TestCommit:
    @property
    def action(self) -> ComputeStatistics:
        return planned(observation())

    def after(self, ndv: str = "7") -> TableMetadata:
        its = with_statistics(table(fields=NESTED_WITHOUT), *(blob(field, ndv) for field in (1, 2, 5)))
        return replace(its, partition_statistics=(PartitionStatisticsFile(1, "p1", 9),), updated_at=its.updated_at + 1)

    def test_it_has_taken_effect_when_all_is_there(self) -> None:
        before = table(fields=NESTED_WITHOUT)
        assert computed(self.action, before) is None
        assert computed(self.action, with_statistics(before, blob(1), blob(2))) is None
        assert computed(self.action, replace(self.after(), partition_statistics=())) is None
        assert computed(self.action, self.after()) is not None
        assert computed(replace(self.action, statistics_before="s1"), self.after()) is None

    def test_c1_it_is_never_committed_twice_nor_over_those_of_others(self) -> None:
        assert statistics_conflict(self.action, table(fields=NESTED_WITHOUT)) is None
        assert not_none(statistics_conflict(self.action, self.after())).code == "statistics-changed"
        gone = not_none(statistics_conflict(self.action, table((snapshot(2),), fields=NESTED_WITHOUT)))
        assert gone.code == "base-gone"

    @each_case(
        "changes",
        [
            {"current_snapshot_id": None},
            {"refs": ()},
            {"properties": {"a": "b"}},
            {"snapshots": ()},
            {"schemas": ()},
            {"statistics": ()},
        ],
    )
    def test_whatever_else_changes_is_an_alarm(self, changes: dict[str, Any]) -> None:
        before = with_statistics(table(fields=NESTED_WITHOUT), blob(1, of=8), of=8)
        after = replace(before, statistics=(*before.statistics, *self.after().statistics), partition_statistics=())
        assert problem_of_statistics(before, after, self.action) is None
        assert problem_of_statistics(before, replace(after, **changes), self.action) is not None

    @each_case("ndv", ["30000", "", "-1", "9" * 30])
    def test_more_values_than_rows_are_an_alarm(self, ndv: str) -> None:
        problem = not_none(problem_of_statistics(table(fields=NESTED_WITHOUT), self.after(ndv), self.action))
        assert problem.code == "ndv-implausible"

    def test_without_the_state_before_nobody_can_tell(self) -> None:
        problem = not_none(problem_of_statistics(None, self.after(), self.action))
        assert problem.code == "statistics-unseen"

    @given(st.integers(0, 40), st.data())
    def test_the_commit_is_found_by_halving(self, length: int, data: st.DataObject) -> None:
        places = [f"v{number}" for number in range(length)]
        done_from = data.draw(st.integers(1, length) if length else st.just(0))
        base = data.draw(st.sampled_from(places[:done_from])) if length else "gone"
        before, after = commit_in_log(
            places, base, length, lambda place: int(place[1:]), lambda state: state >= done_from
        )
        assert (before, after) == ((done_from - 1, done_from) if length else (None, length))
