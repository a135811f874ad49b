"""Which partitions expire, what is said of the others, and what a checker finds in plans that were made wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.actions.expire_data.age import end_of
from icewright.actions.expire_data.check import data_violations
from icewright.actions.expire_data.column import column_moved
from icewright.core.times import Instant
from icewright.maintenance.registry.planning import obstacle_of, still_applies
from icewright.model.actions.expire_data import FILES_MAX, ExpireData, ExpireDataPrediction, IntegerTime
from icewright.model.iceberg.files import FileFormat, Partition
from icewright.model.iceberg.tables import Operation, Schema, Snapshot
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy, PolicyProblem
from tests.builders.aging import COLUMNS, NOW, SPECS, aging, day, days, decide, expiring, planned, rules
from tests.builders.observations import DAY_MS, HOUR_MS, MINUTE_MS, data_file, snapshot
from tests.cases import each_case
from tests.narrowing import not_none

FILES = [*days(range(29), each=2), *days([40, 50], each=2)]
OBSERVATION = aging(FILES)
DECISION = decide(FILES)
ACTION, PREDICTION = planned(DECISION)


def codes(
    action: ExpireData = ACTION,
    prediction: ExpireDataPrediction = PREDICTION,
    rules_: Policy | None = None,
    now: Instant = NOW,
    **changes: Any,
) -> set[str]:
    """What the checker finds."""
    files = changes.pop("files", FILES)
    observation = replace(OBSERVATION, metadata=replace(OBSERVATION.metadata, **changes))
    return {code for code, _ in data_violations(action, prediction, observation, rules_ or rules(), files, now)}


class TestWhatExpires:
    def test_whole_partitions_that_are_older_and_no_others(self) -> None:
        assert expiring(DECISION) == {day(40), day(50)}
        assert [each.partition for each in ACTION.partitions] == [day(50), day(40)]
        assert (len(ACTION.files), ACTION.records) == (4, sum(file.record_count for file in FILES[58:]))
        assert DECISION.reason.text.startswith(
            "2 partitions with 4 files and 41,940 rows would expire, older than 30 d"
        )
        assert codes() == set()

    def test_x2_a_day_stays_until_its_last_row_is_older(self) -> None:
        """Of days of UTC in a zone that is two hours ahead of it, and none earlier than it would be in UTC."""
        late = days([31, 0])
        end = NOW - 12 * HOUR_MS - 30 * DAY_MS  # when day(31) is over
        assert expiring(decide(late, now=end + 30 * DAY_MS - 1)) == set()
        assert expiring(decide(late, now=end + 30 * DAY_MS)) == {day(31)}

    def test_a_partition_has_the_end_of_its_narrowest_field(self) -> None:
        both = replace(SPECS[0], spec_id=5, fields=(*SPECS[0].fields, *SPECS[2].fields))
        partition = Partition(5, '["2024-05-10",652,"Bonn"]')
        files = [data_file(partition, 0)]
        assert expiring(decide(files, aging(files, specs=(*SPECS, both)))) == {partition}

    def test_all_live_specs_are_looked_at(self) -> None:
        old, young = Partition(2, '[651,"Bonn"]'), Partition(2, '[652,"Bonn"]')  # April, and May that is not over
        files = [*days([50]), data_file(old, 0), data_file(young, 0)]
        assert expiring(decide(files)) == {day(50), old}

    def test_columns_in_structs(self) -> None:
        partition = Partition(4, '["2024-05-01"]')
        files = [data_file(partition, 0)]
        decision = decide(files, rules_=rules(expire_data_field="event.day"))
        assert expiring(decision) == {partition}
        assert planned(decision)[0].field == "event.day"

    @each_case(
        ("integers", "old", "young"),
        [
            (IntegerTime.YYYYMMDD, 20240515, 20240516),
            (IntegerTime.EPOCH_DAYS, 19858, 19859),
            (IntegerTime.EPOCH_SECONDS, 1_715_860_799 - 1, 1_715_860_800),
        ],
    )
    def test_integers_are_what_the_owner_says(self, integers: IntegerTime, old: int, young: int) -> None:
        files = [data_file(Partition(3, f"[{value}]"), 0) for value in (old, young)]
        wanted = rules(expire_data_field="number", expire_data_integers=integers)
        assert expiring(decide(files, rules_=wanted)) == {Partition(3, f"[{old}]")}

    @each_case(("integers", "old"), [*zip(IntegerTime, (20200101, 18262, 1577836800, 1577836800000), strict=True)])
    def test_x2_a_number_that_stands_for_no_value_stays(self, integers: IntegerTime, old: int) -> None:
        """And keeps nothing else from expiring."""
        fields = tuple({**each, "type": "long"} if each["id"] == 3 else each for each in COLUMNS)
        wanted = rules(expire_data_field="number", expire_data_integers=integers)
        for values, gone in (([-(2**63)], set()), ([-(2**63), old], {old})):
            files = [data_file(Partition(3, f"[{value}]"), 0) for value in values]
            decision = decide(files, aging(files, fields=fields), wanted)
            assert expiring(decision) == {Partition(3, f"[{value}]") for value in gone}
            assert "kept-unreadable" in {note.code for note in decision.notes}

    @each_case(
        ("integers", "before", "since"),
        [
            (IntegerTime.EPOCH_DAYS, 3_651, 3_652),
            (IntegerTime.EPOCH_SECONDS, 315_532_799, 315_532_800),
            (IntegerTime.EPOCH_MILLISECONDS, 315_532_799_999, 315_532_800_000),
        ],
    )
    def test_x2_numbers_that_would_be_of_before_1980_stay(self, integers: IntegerTime, before: int, since: int) -> None:
        fields = tuple({**each, "type": "long"} if each["id"] == 3 else each for each in COLUMNS)
        wanted = rules(expire_data_field="number", expire_data_integers=integers)
        early, late = Partition(3, f"[{before}]"), Partition(3, f"[{since}]")
        files = [data_file(early, 0), data_file(late, 0)]
        observation = aging(files, fields=fields)
        decision = decide(files, observation, wanted)
        assert expiring(decision) == {late}
        assert "kept-implausible" in {note.code for note in decision.notes}
        action, prediction = planned(decision)
        assert "no-age" not in {one for one, _ in data_violations(action, prediction, observation, wanted, files, NOW)}
        wrong = replace(action, partitions=(replace(action.partitions[0], partition=early),))
        assert "no-age" in {one for one, _ in data_violations(wrong, prediction, observation, wanted, files, NOW)}

    def test_x2_a_column_of_seconds_that_is_said_to_be_of_milliseconds_loses_nothing(self) -> None:
        files = [data_file(Partition(3, f"[{NOW // 1000 - 86_400 * back}]"), 0) for back in (1, 100, 5_000)]
        wanted = rules(expire_data_field="number", expire_data_integers=IntegerTime.EPOCH_MILLISECONDS)
        decision = decide(files, rules_=wanted)
        assert (decision.reason.code, decision.action) == ("nothing-expires", None)
        assert "kept-implausible" in {note.code for note in decision.notes}

    def test_as_many_as_one_action_takes_the_oldest_first(self) -> None:
        counts = replace(OBSERVATION.inventory.partitions[0].counts, data_files=FILES_MAX // 2 + 1)
        inventory = replace(
            OBSERVATION.inventory,
            partitions=tuple(replace(each, counts=counts) for each in OBSERVATION.inventory.partitions),
        )
        action, prediction = planned(decide(FILES, replace(OBSERVATION, inventory=inventory)))
        assert [each.partition for each in action.partitions] == [day(50)]
        assert prediction.left_for_later == 1
        assert action.expiring_records == 2 * counts.records, "what is left for later counts for approval"

    def test_an_age_that_is_asked_for_comes_before_the_owners(self) -> None:
        assert expiring(decide(FILES, older_than_ms=45 * DAY_MS)) == {day(50)}
        assert expiring(decide(FILES, rules_=rules(expire_data_older_than_ms=None), older_than_ms=45 * DAY_MS)) == {
            day(50)
        }


class TestWhatStays:
    def test_what_cannot_be_told_to_be_old_and_it_is_said(self) -> None:
        files = [
            *days([0, 50]),
            data_file(Partition(0, "[null]"), 0),
            data_file(Partition(1, '["Bonn"]'), 0),
            data_file(Partition(2, '[null,"Bonn"]'), 0),
            data_file(Partition(0, "[99999999]"), 0),
        ]
        decision = decide(files)
        assert expiring(decision) == {day(50)}
        assert [note.text for note in decision.notes] == [
            (
                "older is what is from before 2024-05-16 12:00:00 UTC, and by a clock of Europe/Berlin from before "
                "2024-05-16 14:00:00"
            ),
            "1 partition stays: not old enough as a whole",
            "2 partitions stay: no value of at",
            "1 partition stays: of a spec that is not by at, its year, month, day or hour",
            "1 partition stays: a value of at, or of another field, cannot be read or written",
        ]

    def test_partitions_with_nothing_but_deletes(self) -> None:
        observation = aging(FILES)
        counts = replace(observation.inventory.partitions[0].counts, data_files=0)
        partitions = tuple(replace(each, counts=counts) for each in observation.inventory.partitions)
        empty = replace(observation, inventory=replace(observation.inventory, partitions=partitions))
        assert decide([], empty).reason.code == "nothing-expires"

    @each_case(
        ("wanted", "code"),
        [
            ({"expire_data_field": None}, "expire-data-off"),
            ({"expire_data_older_than_ms": None}, "expire-data-off"),
            ({"expire_data_field": "nowhere"}, "expire-data-column"),
            ({"expire_data_field": "event.nowhere"}, "expire-data-column"),
            ({"expire_data_field": "city"}, "expire-data-type"),
            ({"expire_data_field": "event"}, "expire-data-type"),
            ({"expire_data_field": "number"}, "expire-data-type"),
            ({"expire_data_older_than_ms": 9999 * 365 * DAY_MS}, "expire-data-age"),
            ({"problems": (PolicyProblem("key", "value", "origin", "problem"),)}, "policy-problem"),
        ],
    )
    def test_everything_while_the_policy_does_not_say_what_is_old(self, wanted: Mapping[str, Any], code: str) -> None:
        assert decide(FILES, rules_=rules(**wanted)).reason.code == code

    def test_everything_where_the_column_was_of_another_kind(self) -> None:
        was = ({**COLUMNS[0], "type": "date"}, *COLUMNS[1:])
        observation = aging(FILES, schemas=(Schema(0, COLUMNS), Schema(1, tuple(was))))
        decision = decide(FILES, observation)
        assert decision.reason.code == "expire-data-type"
        assert decision.reason.text == "at has been date and timestamptz, and old values may be either"

    @each_case(
        ("changes", "code"),
        [
            ({"has_uuid": False}, "no-uuid"),
            ({"format_version": 4}, "format-version"),
            ({"properties": {"encryption.key-id": "k"}}, "encryption"),
            ({"properties": {"self-optimizing.enabled": "true"}}, "other-optimizer"),
            ({"current_snapshot_id": None}, "no-snapshots"),
        ],
    )
    def test_everything_of_a_table_that_is_left_alone(self, changes: Mapping[str, Any], code: str) -> None:
        assert decide(FILES, aging(FILES, **changes)).reason.code == code


class TestClock:
    @given(ages=st.lists(st.integers(0, 4000 * DAY_MS), max_size=8), ours=st.booleans())
    @settings(max_examples=60, deadline=None)
    def test_x1_nothing_that_is_in_the_table_moves_the_clock(self, ages: list[int], *, ours: bool) -> None:
        """Commits of anybody, ours above all, at any time before now: the same expires as without them."""
        summary = {"icewright.task-id": "task-1"} if ours else {}
        commits: list[Snapshot] = [
            snapshot(number, NOW - age, Operation.DELETE if ours else Operation.APPEND, summary)
            for number, age in enumerate(sorted([*ages, DAY_MS], reverse=True), 1)
        ]
        decision = decide(FILES, aging(FILES, commits, updated_at=NOW - min([*ages, DAY_MS])))
        assert planned(decision)[0].partitions == ACTION.partitions
        assert planned(decision)[0].as_of == NOW

    @pytest.mark.parametrize("guarded", [True, False])
    def test_x1_a_clock_of_the_last_commit_is_noticed(self, *, guarded: bool) -> None:
        """As it was once: ages from the newest snapshot, which was the tool's own."""
        moved = []
        for age in (0, DAY_MS, 20 * DAY_MS):
            commits = (snapshot(1, NOW - 21 * DAY_MS), snapshot(2, NOW - age, Operation.DELETE))
            observation = aging(FILES, commits, updated_at=NOW - age)
            now = NOW if guarded else observation.metadata.snapshots[-1].committed_at
            moved.append(expiring(decide(FILES, observation, now=now)))
        assert (moved[0] == moved[1] == moved[2]) is guarded

    def test_x1_a_table_that_nobody_writes_grows_old_by_the_clock_alone(self) -> None:
        """And not at once: what expires later needs a person."""
        decision = decide(FILES, now=NOW + 400 * DAY_MS)
        action, prediction = planned(decision)
        assert len(action.partitions) == 31
        assert action.needs_approval
        assert prediction.needs_approval

    @pytest.mark.parametrize("where", ["snapshot", "metadata"])
    def test_x1_a_clock_that_is_behind_the_table_decides_nothing(self, where: str) -> None:
        late = NOW + 2 * MINUTE_MS
        changes: dict[str, Any] = {"updated_at": late} if where == "metadata" else {}
        commits = (snapshot(1, late if where == "snapshot" else NOW),)
        decision = decide(FILES, aging(FILES, commits, **changes))
        assert decision.reason.code == "clock-behind"
        assert decision.action is None

    def test_x1_a_minute_is_no_matter(self) -> None:
        assert decide(FILES, aging(FILES, (snapshot(1, NOW + MINUTE_MS),))).action is not None


class TestApproval:
    def test_x1_beyond_a_tenth_of_the_rows_a_person_has_to_approve(self) -> None:
        tenth = [*days(range(9)), *days([50])]
        assert not planned(decide(tenth))[0].needs_approval
        action, prediction = planned(decide(tenth[1:]))
        assert action.needs_approval
        assert prediction.needs_approval
        assert decide(tenth[1:]).reason.text.endswith(
            "but 10,485 of 94,365 rows would expire, and without approval it is 10 % at most"
        )


class TestWhatIsSaid:
    def test_the_statement_that_comes_nearest(self) -> None:
        assert PREDICTION.call == "DELETE FROM `lake`.`sales`.`flights` WHERE `at` < TIMESTAMP '2024-05-07 00:00:00Z'"
        files = [data_file(Partition(3, "[20240131]"), 0)]
        wanted = rules(expire_data_field="number", expire_data_integers=IntegerTime.YYYYMMDD)
        assert planned(decide(files, rules_=wanted))[1].call.endswith("WHERE `number` < 20240201")

    def test_names_of_strangers_are_quoted(self) -> None:
        hostile = "at` < 1; DROP TABLE x --"
        fields = ({**COLUMNS[0], "name": hostile}, *COLUMNS[1:])
        decision = decide(FILES, aging(FILES, fields=fields), rules(expire_data_field=hostile))
        assert "WHERE `at`` < 1; DROP TABLE x --` < TIMESTAMP" in planned(decision)[1].call


class TestApplies:
    def test_a_plan_applies_while_its_snapshot_is_in_the_history(self) -> None:
        metadata = OBSERVATION.metadata
        assert still_applies(ACTION, metadata.table_id, metadata) is None
        later = replace(metadata, snapshots=(*metadata.snapshots, snapshot(2, NOW)), current_snapshot_id=2)
        assert still_applies(ACTION, metadata.table_id, later) is None
        rolled_back = replace(metadata, snapshots=(snapshot(7, NOW),), current_snapshot_id=7)
        assert not_none(still_applies(ACTION, metadata.table_id, rolled_back)).code == "base-gone"
        without = not_none(still_applies(ACTION, metadata.table_id, replace(metadata, specs=SPECS[1:])))
        assert without.code == "spec-removed"

    @each_case(
        "changes",
        [
            {"expire_data_field": "event.day"},
            {"expire_data_field": None},
            {"expire_data_time_zone": "UTC"},
        ],
    )
    def test_x3_an_owner_who_says_otherwise_by_now_is_heard(self, changes: Mapping[str, Any]) -> None:
        metadata = OBSERVATION.metadata
        assert column_moved(ACTION, metadata, rules()) is None
        assert isinstance(column_moved(ACTION, metadata, rules(**changes)), Reason)
        assert obstacle_of(ACTION, metadata, rules(), NOW) is None
        assert obstacle_of(ACTION, metadata, rules(**changes), NOW) is not None


def first(**changes: Any) -> ExpireData:
    """The action with another first partition."""
    one, *others = ACTION.partitions
    return replace(ACTION, partitions=(replace(one, **changes), *others))


def with_file(**changes: Any) -> ExpireData:
    one, *others = ACTION.partitions[0].files
    return first(files=(replace(one, **changes), *others))


class TestChecker:
    """Each thing that a plan must not be is built into a sound plan, and found."""

    @each_case(
        ("action", "code"),
        [
            (replace(ACTION, base_snapshot_id=7), "wrong-base"),
            (replace(ACTION, time_zone="UTC"), "wrong-zone"),
            (replace(ACTION, integers=IntegerTime.YYYYMMDD), "wrong-integers"),
            (replace(ACTION, older_than_ms=HOUR_MS), "age-too-low"),
            (replace(ACTION, older_than_ms=45 * DAY_MS), "too-young"),
            (replace(ACTION, field_id=2), "no-age"),
            (replace(ACTION, as_of=NOW + 1), "wrong-clock"),
            (replace(ACTION, as_of=NOW - 40 * DAY_MS), "clock-behind"),
            (replace(ACTION, partitions=()), "twice"),
            (replace(ACTION, partitions=ACTION.partitions[:1] * 2), "twice"),
            (replace(ACTION, partitions=ACTION.partitions[:1]), "wrong-prediction"),
            (replace(ACTION, table_records=ACTION.table_records + 1), "wrong-total"),
            (replace(ACTION, expiring_records=1), "wrong-count"),
            (replace(ACTION, expiring_records=ACTION.table_records), "wrong-budget"),
            (first(partition=day(1)), "too-young"),
            (first(partition=Partition(0, "[null]")), "no-age"),
            (first(partition=Partition(1, '["Bonn"]')), "no-age"),
            (first(partition=Partition(0, "[19000]")), "partition-value"),
            (first(files=ACTION.partitions[0].files[:1]), "file-missing"),
            (first(files=()), "empty"),
            (first(files=ACTION.partitions[1].files), "not-a-file"),
            (with_file(path="elsewhere"), "not-a-file"),
            (with_file(size_bytes=1), "wrong-file"),
            (with_file(record_count=1), "wrong-file"),
            (with_file(data_sequence_number=7), "wrong-file"),
            (with_file(file_format=FileFormat.ORC), "wrong-file"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_an_action_that_is_wrong(self, action: ExpireData, code: str) -> None:
        assert code in codes(action)

    @each_case(
        ("changes", "code"),
        [
            ({"has_uuid": False}, "no-uuid"),
            ({"format_version": 4}, "format-version"),
            ({"properties": {"encryption.key-id": "k"}}, "encryption"),
            ({"files": FILES[:-1]}, "not-a-file"),
            ({"files": [*FILES, FILES[-1]]}, "twice"),
            ({"files": [*FILES, data_file(day(50), 7)]}, "file-missing"),
        ],
    )
    def test_a_table_that_is_another(self, changes: Mapping[str, Any], code: str) -> None:
        assert code in codes(**changes)

    @pytest.mark.parametrize(
        ("changes", "code"),
        [
            ({"expire_data_field": None}, "expire-data-off"),
            ({"problems": (PolicyProblem("key", "value", "origin", "problem"),)}, "policy-problem"),
        ],
    )
    def test_a_policy_that_is_another(self, changes: Mapping[str, Any], code: str) -> None:
        assert code in codes(rules_=rules(**changes))

    def test_a_prediction_that_is_wrong(self) -> None:
        assert codes(prediction=replace(PREDICTION, records=1)) == {"wrong-prediction"}
        assert codes(prediction=replace(PREDICTION, needs_approval=True)) == {"wrong-budget"}

    def test_it_shares_nothing_with_the_planner(self) -> None:
        import icewright.actions.expire_data.check as checker  # noqa: PLC0415 - looked at as a module

        assert end_of not in vars(checker).values()
        assert not any(
            getattr(value, "__module__", "").startswith("icewright.actions.expire_data.")
            and value.__module__ != checker.__name__
            for value in vars(checker).values()
        )
