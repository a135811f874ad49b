"""Level 2 in parts of a partition under a curve: which files, how often, and what lookups gain by it.

The play has rows: Level 1 makes runs of them, Level 2 puts in order what is planned, and lookups count the files whose
bounds hold a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from icewright.actions.rewrite_data_files.check.plan import check_plan
from icewright.actions.rewrite_data_files.layouts.ordering import Ordering
from icewright.actions.rewrite_data_files.layouts.pieces import PieceBounds
from icewright.actions.rewrite_data_files.layouts.regions import OLDER_BYTES_MAX, region
from icewright.model.actions.actions import FileGroup
from icewright.model.iceberg.files import DataFile, FileFormat
from icewright.model.iceberg.layouts import Level, hilbert_table
from icewright.model.iceberg.tables import Snapshot
from icewright.model.plans.plans import Verdict
from icewright.model.policy.policy import Policy
from tests.actions.rewrite_data_files.layouts.test_levels import CURVED, LOW, planned, run_files, runs
from tests.actions.rewrite_data_files.test_level_laws import ours
from tests.builders.observations import DAY_MS, MIB, NOW, data_file, month, observe, policy, snapshot, table
from tests.cases import each_case
from tests.predictions import estimated

FILE_BYTES = 100
ROWS_OF_A_FILE = 20
DUE_RUNS = 10
BY = policy(level_2_runs=DUE_RUNS, target_file_size_bytes=FILE_BYTES)
SIDE_BITS = 10

Row = tuple[float, float]


def place(x: int, y: int) -> int:
    """The place on the Hilbert curve."""
    outputs, states = hilbert_table(2)
    key = state = 0
    for bit in range(SIDE_BITS - 1, -1, -1):
        digits = (x >> bit & 1) << 1 | y >> bit & 1
        key, state = key << 2 | outputs[state][digits], states[state][digits]
    return key


@dataclass
class Play:
    """A partition of equal files, of which a task may read so many."""

    task_files: int
    files: dict[str, DataFile] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    levels: dict[int, Level] = field(default_factory=dict)
    dice: Random = field(default_factory=lambda: Random(4))  # noqa: S311 - rows, no secret
    written: dict[Level, int] = field(default_factory=lambda: dict.fromkeys(Level, 0))
    taken: list[tuple[DataFile, ...]] = field(default_factory=list)

    def write(self, rows: Sequence[Row], level: Level) -> None:
        """Put rows in order, as a run of its own."""
        run = len(self.levels) + 1
        self.levels[run] = level
        ranks = [{value: rank for rank, value in enumerate(sorted(column))} for column in zip(*rows, strict=True)]
        side = (1 << SIDE_BITS) / len(rows)
        ordered = sorted(rows, key=lambda row: place(int(ranks[0][row[0]] * side), int(ranks[1][row[1]] * side)))
        count = len(rows) // ROWS_OF_A_FILE
        for number in range(count):
            part = ordered[number * len(rows) // count : (number + 1) * len(rows) // count]
            spans = tuple(((1, min(column)), (1, max(column))) for column in zip(*part, strict=True))
            path = f"{run}-{number}"
            self.files[path] = DataFile(
                path, FileFormat.PARQUET, month(1), FILE_BYTES, len(part), run, run, spans=spans
            )
            self.rows[path] = part
        self.written[level] += count

    def come(self, files: int, since: float = 0) -> None:
        """What has gathered becomes a run of Level 1."""
        rows = [(since + self.dice.random(), self.dice.random()) for _ in range(files * ROWS_OF_A_FILE)]
        self.write(rows, Level.LEVEL_1)

    @property
    def ordering(self) -> Ordering:
        live = frozenset(file.snapshot_id for file in self.files.values())
        first = frozenset(run for run in live if self.levels[run] is Level.LEVEL_1)
        return Ordering(CURVED, "hilbert(carrier, month)", live, first, {run: run for run in live})

    def level_2(self) -> None:
        """Part by part, as long as it is due and something is gained."""
        bounds = PieceBounds(self.task_files, 10**9, 10**9, lambda _: 0)
        while len(self.ordering.level_1) >= DUE_RUNS:
            piece = region(list(self.files.values()), self.ordering, bounds, BY)
            if not piece:
                return
            self.check(piece)
            self.taken.append(piece)
            for file in piece:
                del self.files[file.path]
            self.write([row for file in piece for row in self.rows[file.path]], Level.LEVEL_2)

    def check(self, piece: Sequence[DataFile]) -> None:
        """What must be true of every part: within a task, new, little that is old, nothing that is young."""
        assert len(piece) <= self.task_files
        new = [file for file in piece if self.levels[file.snapshot_id] is Level.LEVEL_1]
        assert new
        assert len(piece) - len(new) <= OLDER_BYTES_MAX * len(new)
        for file in piece:
            if file not in new:
                assert sum(run > file.snapshot_id for run in self.ordering.level_1) >= DUE_RUNS

    def opened(self, column: int) -> float:
        """How many files hold a value, on the mean over some of those that there are."""
        rows = [row for path in self.files for row in self.rows[path]]
        spans = [span for file in self.files.values() if (span := file.spans[column]) is not None]
        values = [self.dice.choice(rows)[column] for _ in range(200)]
        opened: int = sum(span[0][1] <= value <= span[1][1] for span in spans for value in values)
        return opened / len(values)

    def as_a_whole(self) -> Play:
        """The same rows as one run."""
        whole = Play(0)
        whole.write([row for path in self.files for row in self.rows[path]], Level.LEVEL_2)
        return whole


def played(task_files: int, count: int = 60, *, by_time: bool = False) -> Play:
    play = Play(task_files)
    for number in range(count):
        play.come(4, since=number if by_time else 0)
        play.level_2()
    return play


@each_case(("task_files", "of_the_files", "of_a_whole"), [(8, 0.5, 4.5), (20, 0.45, 3.5), (40, 0.35, 3)])
def test_lookups_open_fewer_files_the_larger_a_task_the_fewer(
    task_files: int, of_the_files: float, of_a_whole: float
) -> None:
    """Sixty runs of four files, which a lookup opens half of; as a whole partition it would open 17."""
    play, never = played(task_files), Play(0)
    for _ in range(60):
        never.come(4)
    whole = play.as_a_whole()
    for column in (0, 1):
        print(task_files, column, never.opened(column), play.opened(column), whole.opened(column), play.written)  # noqa: T201 - the figures of the decision record
        assert play.opened(column) <= of_the_files * never.opened(column)
        assert play.opened(column) <= of_a_whole * whole.opened(column)
    assert play.written[Level.LEVEL_2] <= (1 + OLDER_BYTES_MAX) * play.written[Level.LEVEL_1]
    assert sum(len(rows) for path, rows in play.rows.items() if path in play.files) == 60 * 4 * ROWS_OF_A_FILE


def test_nothing_is_done_again_before_as_many_new_runs_have_come() -> None:
    play = played(20, DUE_RUNS)
    done = len(play.taken)
    assert done >= 2
    assert not play.ordering.level_1
    for _ in range(DUE_RUNS - 1):
        play.come(4)
        play.level_2()
    assert len(play.taken) == done
    play.come(4)
    play.level_2()
    again = {file.snapshot_id for piece in play.taken[done:] for file in piece}
    assert {play.levels[run] for run in again} == {Level.LEVEL_1, Level.LEVEL_2}


def test_runs_that_lie_beside_each_other_are_left_where_a_task_would_gain_little() -> None:
    assert played(8, 30, by_time=True).taken == []
    assert played(40, 30, by_time=True).opened(1) < 30


def test_files_without_bounds_are_taken_as_well() -> None:
    play = Play(20)
    for _ in range(DUE_RUNS):
        play.come(4)
    play.files = {path: replace(file, spans=(None, None)) for path, file in play.files.items()}
    play.level_2()
    assert [len(piece) for piece in play.taken] == [20]


def test_parts_of_very_many_files_are_found_in_time() -> None:
    dice = Random(1)  # noqa: S311 - places of files
    files = []
    for number in range(20_000):
        x, y = dice.random(), dice.random()
        spans = (((1, x), (1, x + 0.1)), ((1, y), (1, y + 0.1)))
        files.append(replace(data_file(month(1), number, 100, snapshot_id=number % 12), spans=spans))
    every = frozenset(range(12))
    ordering = Ordering(CURVED, "hilbert(carrier, month)", every, every, {run: run for run in every})
    assert len(region(files, ordering, PieceBounds(1_000, 10**9, 10**9, lambda _: 0), BY)) > 500


def boxed(files: Iterable[DataFile], *spans: tuple[int, int]) -> list[DataFile]:
    """The files with these spans in both columns."""
    listed = list(files)
    return [
        replace(f, spans=tuple(((1, (s := spans[i % len(spans)])[0]), (1, s[1])) for _ in range(2)))
        for i, f in enumerate(listed)
    ]


class TestPlans:
    by = replace(LOW, max_task_size_bytes=60 * MIB)

    def test_a_partition_larger_than_a_task_is_done_in_parts(self) -> None:
        files = boxed(run_files(8), (0, 9), (5, 19))
        plan = planned(files, runs(8, CURVED), CURVED, self.by)
        (action,) = plan.rewrites
        assert (action.level, action.input_files, action.input_bytes) == (Level.LEVEL_2, 6, 48 * MIB)
        assert plan.verdicts[0].reason.figures["files_following"] == 10
        assert plan.prediction is not None
        assert len(estimated(plan).lookups) == 2

    def test_what_fits_is_done_as_a_whole(self) -> None:
        files = boxed(run_files(8), (0, 9), (5, 19))
        (action,) = planned(files, runs(8, CURVED), CURVED, replace(self.by, max_task_size_bytes=128 * MIB)).rewrites
        assert action.input_files == 16

    def test_what_lies_apart_is_left(self) -> None:
        files = boxed(run_files(8), *((number, number) for number in range(16)))
        plan = planned(files, runs(8, CURVED), CURVED, self.by)
        assert [(v.verdict, v.reason.code) for v in plan.verdicts] == [(Verdict.LEAVE, "in-order")]

    def test_files_larger_than_a_task_are_refused(self) -> None:
        files = boxed(run_files(8, 61 * MIB), (0, 9))
        plan = planned(files, runs(8, CURVED), CURVED, self.by)
        assert [(v.verdict, v.reason.code) for v in plan.verdicts] == [(Verdict.REFUSE, "partition-too-large")]


class TestSecondOpinion:
    """The checker says the rules of parts by itself."""

    by = replace(LOW, max_task_size_bytes=60 * MIB)
    files = boxed(run_files(8), (0, 9), (5, 19))

    def found(
        self, snapshots: Sequence[Snapshot], files: Sequence[DataFile] | None = None, by: Policy = by
    ) -> set[str]:
        """What is wrong with the plan, should the table be another one."""
        plan = planned(self.files, runs(8, CURVED), CURVED, self.by)
        listed = self.files if files is None else files
        observation = observe(listed, table(snapshots))
        by_path = {file.path: file for file in listed}
        return {code for code, _ in check_plan(plan, observation, by, by_path, (), CURVED)}

    def run(self, number: int, level: Level, ago_ms: int) -> Snapshot:
        return ours(snapshot(number, NOW - ago_ms), level, CURVED.key)

    def snapshots(self, *levels: Level, ago_ms: int = DAY_MS) -> list[Snapshot]:
        """Eight runs, those of Level 2 so old."""
        of_level = {Level.LEVEL_1: DAY_MS, Level.LEVEL_2: ago_ms}
        return [snapshot(1), *(self.run(n, level, of_level[level]) for n, level in enumerate(levels, 2))]

    def test_the_plan_itself_is_accepted(self) -> None:
        assert self.found(runs(8, CURVED)) == set()

    def planned_runs(self) -> list[int]:
        return [file.snapshot_id for file in self.files if file.path in self.planned_paths()]

    def planned_paths(self) -> list[str]:
        group: FileGroup = planned(self.files, runs(8, CURVED), CURVED, self.by).rewrites[0].groups[0]
        return [file.path for file in group.files]

    def levels(self, new: int) -> list[Any]:
        """The first so many planned runs are of Level 1, as are all that are not planned."""
        of_plan = sorted(set(self.planned_runs()))
        return [Level.LEVEL_2 if run in of_plan[new:] else Level.LEVEL_1 for run in range(2, 10)]

    def test_what_was_done_is_not_taken_before_enough_runs_have_come(self) -> None:
        assert len(set(self.planned_runs())) == 6
        old, young = (self.snapshots(*self.levels(2), ago_ms=days * DAY_MS) for days in (2, 1))
        assert self.found(old) == set()
        assert self.found(young) == {"too-soon-again"}

    def test_no_more_of_it_is_taken_than_what_is_new_is_worth(self) -> None:
        by = replace(self.by, level_2_runs=2)
        assert self.found(self.snapshots(*self.levels(1), ago_ms=2 * DAY_MS), by=by) == {"too-much-again"}

    def test_what_is_in_no_order_is_left_to_level_1(self) -> None:
        path = self.planned_paths()[0]
        files = [replace(file, snapshot_id=1) if file.path == path else file for file in self.files]
        assert self.found(runs(8, CURVED), files) == {"not-in-order"}
