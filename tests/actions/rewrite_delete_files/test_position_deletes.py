"""Which position delete files become one, against a table of a few rows to which deletes are applied by the spec."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.actions.rewrite_delete_files import position_deletes as planner
from icewright.actions.rewrite_delete_files.check_position_deletes import position_deletes_violations
from icewright.actions.rewrite_delete_files.position_deletes import PositionDeletesDecision, plan_position_deletes
from icewright.inventory.applied_deletes import DeleteIndex
from icewright.model.actions.rewrite_delete_files import DeleteGroup, RewritePositionDeletes
from icewright.model.iceberg.files import DataFile, DeleteFile, FileFormat
from icewright.model.iceberg.inventory import DeleteCosts
from icewright.model.iceberg.tables import PartitionSpec
from icewright.model.plans.observation import WorkerAccess
from tests.builders.little_tables import READERS, Deleting, LittleTable, Reader, little_tables, visible
from tests.builders.observations import (
    BY_MONTH,
    NO_FIELDS,
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

METADATA = table(specs=(BY_MONTH, NO_FIELDS, PartitionSpec(2, BY_MONTH.fields)))
ALL = settings(max_examples=200, deadline=None)


def in_version_2(lake: LittleTable) -> LittleTable:
    """The table without deletion vectors, which format version 2 has none of."""
    deletes = [each for each in lake.deletes if each.delete.file_format is not FileFormat.PUFFIN]
    live: dict[str, object] = {}
    for rows in lake.rows:
        live.setdefault(rows.file.path, rows)
    return replace(lake, deletes=deletes)


def decide(lake: LittleTable) -> PositionDeletesDecision:
    observation = observe(lake.data_files, METADATA, deletes=lake.delete_files)
    return plan_position_deletes(observation, policy(), lake.delete_files, lambda: lake.data_files)


def wrong_with(lake: LittleTable, decision: PositionDeletesDecision) -> set[str]:
    assert decision.action is not None
    assert decision.prediction is not None
    observation = observe(lake.data_files, METADATA, deletes=lake.delete_files)
    files = (lake.delete_files, lake.data_files)
    found = position_deletes_violations(decision.action, decision.prediction, observation, policy(), *files)
    return {code for code, _ in found}


def carried_out(lake: LittleTable, action: RewritePositionDeletes) -> LittleTable:
    """As an executor does it: by what the action says, and by nothing else."""
    contents = {each.delete.path: each for each in lake.deletes}
    left = lake.without(action.deletes)
    return replace(left, deletes=[*left.deletes, *(merged(group, contents) for group in action.groups)])


def merged(group: DeleteGroup, contents: dict[str, Deleting]) -> Deleting:
    numbers = {target.path: target.data_sequence_number for target in group.targets}
    positions = {
        (path, position)
        for delete in group.deletes
        for path, position in contents[delete.path].positions
        if path in numbers and numbers[path] <= delete.data_sequence_number
    }
    new = position_deletes(group.partition, 9_000 + group.group_id, sequence_number=group.sequence_number)
    new = replace(new, path_lower=group.data_file, path_upper=group.data_file)
    return Deleting(new, positions=tuple(sorted(positions)))


@st.composite
def many_deletes(draw: st.DrawFn) -> LittleTable:
    """A little table with more position deletes, so that there is something to be merged."""
    lake = in_version_2(draw(little_tables()))
    for number in range(draw(st.integers(0, 5))):
        if not lake.rows:
            break
        of = draw(st.sampled_from(lake.rows)).file
        age = draw(st.integers(of.data_sequence_number, lake.number + 1))
        one = position_deletes(of.partition, 50_000 + number, sequence_number=age)
        others = [draw(st.sampled_from(lake.rows)).file.path] if draw(st.booleans()) else []
        if not others:
            one = replace(one, path_lower=of.path, path_upper=of.path)
        its = tuple((path, draw(st.integers(0, 2))) for path in (of.path, *others))
        lake.deletes.append(Deleting(one, positions=its))
    return lake


@ALL
@given(many_deletes(), st.sampled_from(READERS))
def test_w5_every_reader_sees_the_same_rows(lake: LittleTable, reader: Reader) -> None:
    action = decide(lake).action
    if action is not None:
        assert visible(carried_out(lake, action), reader) == visible(lake, reader)


@ALL
@given(many_deletes())
def test_a_plan_holds_before_its_checker_and_readers_open_what_it_says(lake: LittleTable) -> None:
    decision = decide(lake)
    if decision.action is None or decision.prediction is None:
        return
    assert wrong_with(lake, decision) == set()
    after = carried_out(lake, decision.action)
    for said, found in ((decision.prediction.before, lake), (decision.prediction.after, after)):
        index = DeleteIndex(METADATA, found.delete_files)
        opened = sum(len(index.of(file)) for file in found.data_files)
        assert (said.listed, said.opened) == (len(found.deletes), opened)
    assert decision.prediction.after.opened < decision.prediction.before.opened
    assert decision.prediction.after.opened_bytes <= decision.prediction.before.opened_bytes


@ALL
@given(many_deletes())
def test_equality_deletes_and_what_dangles_stay_and_planning_comes_to_an_end(lake: LittleTable) -> None:
    for _ in range(2):
        action = decide(lake).action
        if action is None:
            return
        assert not any(delete.equality_ids for delete in action.deletes)
        index = DeleteIndex(METADATA, action.deletes)
        applying = {delete for file in lake.data_files for delete in index.of(file)}
        assert applying == set(action.deletes)
        lake = carried_out(lake, action)
    assert decide(lake).action is None


Change = Callable[[DeleteGroup], DeleteGroup]
WRONG: dict[str, tuple[Change, str]] = {
    "the number of the next commit": (
        lambda one: replace(one, sequence_number=one.sequence_number + 9),
        "sequence-number",
    ),
    "the lowest number": (
        lambda one: replace(one, sequence_number=min(each.data_sequence_number for each in one.deletes)),
        "sequence-number",
    ),
    "a target is missing": (lambda one: replace(one, targets=one.targets[1:]), "targets"),
    "targets are as old as can be": (
        lambda one: replace(one, targets=tuple(replace(t, data_sequence_number=0) for t in one.targets)),
        "targets",
    ),
    "another partition": (lambda one: replace(one, partition=month(7)), "partition"),
    "for any data file": (lambda one: replace(one, data_file=None), "data-file"),
    "for one data file": (lambda one: replace(one, data_file=one.targets[0].path), "data-file"),
    "an equality delete": (
        lambda one: replace(one, deletes=(*one.deletes, equality_deletes(one.partition, 77))),
        "content",
    ),
    "one file alone": (lambda one: replace(one, deletes=one.deletes[-1:]), "alone"),
    "a file twice": (lambda one: replace(one, deletes=(*one.deletes, one.deletes[0])), "twice"),
}


@each_case("wrong", sorted(WRONG))
def test_w5_the_checker_finds_wrong_groups(wrong: str) -> None:
    change, code = WRONG[wrong]
    noticed = 0

    @settings(max_examples=150 if CAMPAIGN else 40, deadline=None, database=None, derandomize=True)
    @given(many_deletes())
    def look(lake: LittleTable) -> None:
        nonlocal noticed
        decision = decide(lake)
        if decision.action is None:
            return
        groups = tuple(change(group) for group in decision.action.groups)
        if groups == decision.action.groups:
            return
        found = wrong_with(lake, replace(decision, action=replace(decision.action, groups=groups)))
        changed = [new != old for new, old in zip(groups, decision.action.groups, strict=True)]
        assert found or not any(changed)
        noticed += code in found

    look()
    assert noticed


def test_w5_without_targets_a_path_that_was_used_again_would_lose_rows() -> None:
    """Hazard E3: the new file has a higher number than one of those that it takes the place of."""
    old, new = data_file(month(1), 0, sequence_number=1), data_file(month(1), 1, sequence_number=3)
    lake = LittleTable(number=5)
    from tests.builders.little_tables import Rows  # noqa: PLC0415 - read where it is used

    lake.rows += [Rows(old, (0, 1, 2)), Rows(new, (0, 1, 2))]
    for number, (age, path) in enumerate(((2, new.path), (4, old.path))):
        one = position_deletes(month(1), number, sequence_number=age)
        lake.deletes.append(Deleting(one, positions=((path, 0), (old.path, 1))))
    action = decide(lake).action
    assert action is not None
    (group,) = action.groups
    careless = replace(group, targets=tuple(replace(t, data_sequence_number=0) for t in group.targets))
    for reader in READERS:
        assert visible(carried_out(lake, action), reader) == visible(lake, reader)
        lost = carried_out(lake, replace(action, groups=(careless,)))
        assert visible(lost, reader).total() == visible(lake, reader).total() - 1


FILES = [data_file(month(1), number, sequence_number=1) for number in range(3)]


def planned(deletes: list[DeleteFile], files: Iterable[DataFile] = FILES, **changes: object) -> PositionDeletesDecision:
    metadata = replace(METADATA, **changes)  # type: ignore[arg-type]  # fields of it
    return plan_position_deletes(observe(files, metadata, deletes=deletes), policy(), deletes, lambda: files)


def test_a_plan_says_what_readers_open() -> None:
    around = [replace(position_deletes(month(1), number, 5, sequence_number=2), size_bytes=1000) for number in range(4)]
    own = [position_deletes(month(1), 10 + number, of=FILES[0], sequence_number=2) for number in range(2)]
    decision = planned([*around, *own])
    assert decision.reason.text == (
        "6 position delete files would become 2, so that a scan of the table opens 4 instead of 14"
    )
    assert decision.prediction is not None
    assert decision.prediction.before == DeleteCosts(6, 14, 12_200)
    assert decision.prediction.after == DeleteCosts(2, 4, 3_100)
    assert "system.rewrite_position_delete_files" in decision.prediction.call
    assert [group.data_file for group in decision.action.groups] == [None, FILES[0].path]  # type: ignore[union-attr]  # planned


def test_what_is_in_order_stays() -> None:
    for deletes in (
        [],
        [position_deletes(month(1), 1, of=each, sequence_number=2) for each in FILES],
        [position_deletes(month(1), 1, sequence_number=2), position_deletes(month(2), 1, sequence_number=2)],
        [equality_deletes(month(1), number) for number in range(3)],
        [replace(position_deletes(month(1), n, sequence_number=2), size_bytes=60 << 20) for n in range(3)],
        [replace(position_deletes(month(1), n, sequence_number=2), file_format=FileFormat.AVRO) for n in range(3)],
    ):
        assert planned(deletes).reason.code == "position-deletes-in-order"


def test_deletion_vectors_are_refused_by_name() -> None:
    decision = planned([deletion_vector(FILES[0], 1)], format_version=3)
    assert decision.reason.code == "deletion-vectors"
    assert "of format version 3 are deletion vectors" in decision.reason.text


def test_workers_have_to_reach_the_files() -> None:
    observation = replace(observe(FILES, METADATA), worker_access=WorkerAccess.REFUSED, access_detail="no key")
    assert plan_position_deletes(observation, policy(), [], lambda: FILES).reason.text.endswith("table's files: no key")


def test_an_action_has_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "INPUTS_MAX", 4)
    own = [position_deletes(month(1), 10 * f + n, of=FILES[f], sequence_number=2) for f in range(2) for n in range(3)]
    decision = planned([*own, position_deletes(month(1), 99, of=FILES[1], sequence_number=2)])
    assert decision.action is not None
    assert [group.data_file for group in decision.action.groups] == [FILES[1].path]
    assert "1 more group is for the next plan" in decision.reason.text
    monkeypatch.setattr(planner, "GROUP_RECORDS_MAX", 4)
    deletes = [position_deletes(month(1), number, 2, sequence_number=2) for number in range(4)]
    decision = planned(deletes)
    assert decision.action is not None
    assert [len(group.deletes) for group in decision.action.groups] == [2, 2]
