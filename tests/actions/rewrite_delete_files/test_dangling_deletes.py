"""Which delete files dangle, against a table of a few rows to which deletes are applied by the spec's rules."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from icewright.actions.rewrite_delete_files import dangling_deletes
from icewright.actions.rewrite_delete_files.check_dangling import dangling_violations
from icewright.actions.rewrite_delete_files.dangling_deletes import DanglingDecision, Oldest, plan_dangling
from icewright.inventory.applied_deletes import DeleteIndex
from icewright.model.actions.rewrite_delete_files import (
    DANGLING_MAX,
    RemoveDanglingDeletes,
    RemoveDanglingDeletesPrediction,
    own_bytes,
)
from icewright.model.iceberg.files import DeleteFile, FileContent, Partition
from icewright.model.iceberg.inventory import DeleteCosts
from icewright.model.iceberg.tables import PartitionField, PartitionSpec
from tests.builders.little_tables import READERS, LittleTable, Reader, little_tables, visible
from tests.builders.observations import (
    BY_MONTH,
    NO_FIELDS,
    WHOLE,
    data_file,
    deletion_vector,
    equality_deletes,
    month,
    observe,
    policy,
    position_deletes,
    table,
)
from tests.cases import each_case
from tests.conftest import CAMPAIGN
from tests.narrowing import not_none

OTHER = PartitionSpec(2, BY_MONTH.fields)
METADATA = table(specs=(BY_MONTH, NO_FIELDS, OTHER))
ALL = settings(max_examples=2_000 if CAMPAIGN else 100, deadline=None)


def decide(lake: LittleTable) -> DanglingDecision:
    observation = observe(lake.data_files, METADATA, deletes=lake.delete_files)
    return plan_dangling(observation, policy(), lake.delete_files, lambda: lake.data_files)


def planned(lake: LittleTable) -> tuple[DeleteFile, ...]:
    action = decide(lake).action
    return () if action is None else action.deletes


@ALL
@given(little_tables(), st.sampled_from(READERS))
def test_w5_without_them_every_reader_sees_the_same_rows(lake: LittleTable, reader: Reader) -> None:
    assert visible(lake.without(planned(lake)), reader) == visible(lake, reader)


@ALL
@given(little_tables())
def test_every_other_one_applies_to_a_live_data_file(lake: LittleTable) -> None:
    """Safety is not bought by leaving everything: what stays has a data file that it is for."""
    gone = planned(lake)
    for one in lake.delete_files:
        if one in gone:
            continue
        by_partition = DeleteIndex(METADATA, [one])
        at_its_path = {one.referenced_data_file, one.path_lower}
        assert any(
            by_partition.of(file)
            or (file.path in at_its_path and file.data_sequence_number <= one.data_sequence_number)
            for file in lake.data_files
        )


@ALL
@given(little_tables())
def test_a_plan_holds_before_its_checker_and_says_what_readers_open(lake: LittleTable) -> None:
    observation = observe(lake.data_files, METADATA, deletes=lake.delete_files)
    decision = decide(lake)
    if decision.action is None or decision.prediction is None:
        return
    files = (lake.delete_files, lake.data_files)
    assert not list(dangling_violations(decision.action, decision.prediction, observation, policy(), *files))
    index = DeleteIndex(METADATA, lake.delete_files)
    opened = [one for file in lake.data_files for one in index.of(file)]
    before = DeleteCosts(len(lake.deletes), len(opened), sum(own_bytes(one) for one in opened))
    assert decision.prediction.before == before
    assert decision.prediction.after == replace(before, listed=before.listed - len(decision.action.deletes))


@ALL
@given(little_tables(), st.data())
def test_w5_the_checker_finds_a_delete_file_that_any_reader_needs(lake: LittleTable, data: st.DataObject) -> None:
    if not lake.deletes:
        return
    one = data.draw(st.sampled_from(lake.delete_files))
    lost = any(visible(lake.without([one]), reader) != visible(lake, reader) for reader in READERS)
    observation = observe(lake.data_files, METADATA, deletes=lake.delete_files)
    decision = decide(lake)
    prediction = decision.prediction or RemoveDanglingDeletesPrediction(DeleteCosts(), DeleteCosts())
    action = RemoveDanglingDeletes(1, (one,))
    wrong = dangling_violations(action, prediction, observation, policy(), lake.delete_files, lake.data_files)
    assert not lost or "applies" in {code for code, _ in wrong}


FILE = data_file(month(1), 0, sequence_number=5)


@each_case(
    ("delete", "dangles"),
    [
        (position_deletes(month(1), 1, sequence_number=5), False),
        (position_deletes(month(1), 1, sequence_number=4), True),
        (position_deletes(month(2), 1, sequence_number=9), True),
        (position_deletes(month(1), 1, of=FILE, sequence_number=5), False),
        (position_deletes(month(1), 1, of=FILE, sequence_number=4), True),
        (position_deletes(month(2), 1, of=FILE, sequence_number=5), False),
        (replace(position_deletes(month(1), 1, sequence_number=9), path_lower="b", path_upper="c"), False),
        (replace(position_deletes(month(1), 1, sequence_number=9), path_lower="b", path_upper="b"), True),
        (
            replace(
                position_deletes(month(1), 1, sequence_number=9),
                referenced_data_file="b",
                path_lower="c",
                path_upper="c",
            ),
            False,
        ),
        (deletion_vector(FILE, 1, sequence_number=5), False),
        (deletion_vector(data_file(month(1), 1), 1, sequence_number=9), True),
        (replace(deletion_vector(FILE, 1), referenced_data_file=None), False),
        (equality_deletes(month(1), 1, sequence_number=6), False),
        (equality_deletes(month(1), 1, sequence_number=5), True),
        (equality_deletes(month(1, spec_id=2), 1, sequence_number=9), True),
        (equality_deletes(WHOLE, 1, sequence_number=6), False),
        (equality_deletes(WHOLE, 1, sequence_number=5), True),
        (position_deletes(WHOLE, 1, sequence_number=9), True),
        (equality_deletes(Partition(7, "[1]"), 1, sequence_number=9), False),
    ],
)
def test_w5_sentence_by_sentence(delete: DeleteFile, *, dangles: bool) -> None:
    oldest = Oldest(METADATA, [delete])
    oldest.add(FILE)
    assert oldest.dangles(delete) is dangles


def test_partitions_that_iceberg_cannot_be_told_of_keep_theirs() -> None:
    void = PartitionSpec(3, (PartitionField(1, 1001, "month", "void"),))
    dropped = PartitionSpec(4, (PartitionField(99, 1002, "gone", "identity"),))
    metadata = table(specs=(BY_MONTH, void, dropped))
    for partition in (Partition(3, "[]"), Partition(4, "[1]")):
        one = position_deletes(partition, 1)
        assert not Oldest(metadata, [one]).dangles(one)


def test_a_plan_says_how_many_of_which_kind() -> None:
    lake = LittleTable()
    deletes = [position_deletes(month(2), 1), equality_deletes(month(2), 2), deletion_vector(data_file(month(2), 9), 1)]
    observation = observe([FILE], METADATA, deletes=deletes)
    decision = plan_dangling(observation, policy(), deletes, lambda: [FILE])
    assert decision.reason.text == (
        "1 file of position deletes and 1 deletion vector and 1 file of equality deletes of 3 delete files apply to no "
        "live data file"
    )
    assert "'remove-dangling-deletes', 'true'" in not_none(decision.prediction).call
    assert decide(lake).reason.code == "no-delete-files"
    applying = [position_deletes(month(1), 1, sequence_number=5)]
    assert plan_dangling(observation, policy(), applying, lambda: [FILE]).reason.code == "none-dangling"


def test_an_action_has_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DANGLING_MAX == 20_000
    monkeypatch.setattr(dangling_deletes, "DANGLING_MAX", 2)
    deletes = [position_deletes(month(2), number) for number in range(3)]
    decision = plan_dangling(observe([FILE], METADATA, deletes=deletes), policy(), deletes, lambda: [FILE])
    assert len(not_none(decision.action).deletes) == 2
    assert "the other 1 that do not are for the next plan" in decision.reason.text


WRONG: dict[str, Callable[[Oldest, DeleteFile], bool]] = {
    "spec ids are mixed up": lambda oldest, one: (
        one.content is FileContent.EQUALITY_DELETES
        and oldest._of_partition.get(Partition(0, one.partition.values), 1 << 63) >= one.data_sequence_number
    ),
    "global deletes are taken for those of a partition": lambda oldest, one: (
        one.content is FileContent.EQUALITY_DELETES
        and oldest._of_partition.get(one.partition, 1 << 63) >= one.data_sequence_number
    ),
    "equality deletes of the same number": lambda oldest, one: (
        one.content is not FileContent.EQUALITY_DELETES
        and oldest._of_partition.get(one.partition, 1 << 63) >= one.data_sequence_number
    ),
    "position deletes by their own partition alone": lambda oldest, one: (
        one.content is not FileContent.EQUALITY_DELETES
        and oldest._of_partition.get(one.partition, 1 << 63) > one.data_sequence_number
    ),
    "whatever is older than the newest file": lambda oldest, one: (
        max(oldest._of_partition.values(), default=0) > one.data_sequence_number
    ),
}


class Noticed(Exception):
    """What was looked for has been found."""


@each_case("wrong", sorted(WRONG))
def test_w5_wrong_variants_are_noticed(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows come back to some reader, and the checker says so. In CI the first table that shows it is enough."""
    monkeypatch.setattr(Oldest, "dangles", WRONG[wrong])
    noticed: set[str] = set()

    @settings(max_examples=600, deadline=None, database=None, derandomize=True, phases=[Phase.generate])
    @given(little_tables())
    def look(lake: LittleTable) -> None:
        observation = observe(lake.data_files, METADATA, deletes=lake.delete_files)
        decision = decide(lake)
        if decision.action is None or decision.prediction is None:
            return
        left = lake.without(decision.action.deletes)
        if any(visible(left, reader) != visible(lake, reader) for reader in READERS):
            files = (lake.delete_files, lake.data_files)
            found = dangling_violations(decision.action, decision.prediction, observation, policy(), *files)
            assert "applies" in {code for code, _ in found}
            noticed.add("rows came back")
            if not CAMPAIGN:
                raise Noticed

    with nullcontext() if CAMPAIGN else pytest.raises(Noticed):
        look()
    assert noticed
