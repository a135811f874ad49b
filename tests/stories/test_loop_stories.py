"""Good and bad days of the loop, as a person at the keyboard would see them: stored text, read with each change of it.

``ICEWRIGHT_WRITE_STORIES=1`` writes the texts anew; look at the difference before committing it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from icewright.core import wording
from icewright.core.errors import IcewrightError
from icewright.model.iceberg.files import FileContent, FileFormat
from icewright.model.iceberg.tables import ATTEMPT_KEY, PROOF_KEY, TASK_ID_KEY
from icewright.model.work.breaker import FAILURES_MAX
from icewright.model.work.jobs import Committed, Result, TaskSpec
from icewright.model.work.tasks import TERMINAL_STATES, TaskState
from tests.builders.lakehouse import BONN, HOUR_MS, LEASE_MS, MIB, MINUTE_MS, NAME, SECOND_MS, Lakehouse
from tests.builders.worker import FINAL, STOPPED, Worker
from tests.cases import each_case
from tests.doubles.lake import MemoryFile

STORED = Path(__file__).parent / "loop"


class Story:
    """A lakehouse, and all that is told of it in the order in which it happened."""

    def __init__(self) -> None:
        self.house = Lakehouse()
        self.worker = Worker(self.house)
        self.lines: list[str] = []
        self._began_at = self.house.clock.now()
        self._told: set[tuple[str, int]] = set()

    def begin(self, format_version: int = 2) -> None:
        """Eight small files, old enough; icewright comes to know of them."""
        self.house.ready_table(format_version=format_version)
        self.happens("a table has eight small files, and icewright may act by itself")
        self.rounds()

    def happens(self, text: str) -> None:
        """Something in the world outside."""
        self.lines.append(f"{self._time(self.house.clock.now())}  {text}")

    def deletes(self, records: int) -> None:
        """Rows of the first data file are deleted, by the means of the table's format version."""
        file = next(file for file in self.house.catalog.live_files(NAME) if file.content is FileContent.DATA)
        form = FileFormat.PUFFIN if self.house.metadata().format_version > 2 else FileFormat.PARQUET
        kind = FileContent.POSITION_DELETES
        deletes = MemoryFile("deletes", BONN, 100, records, form, kind, referenced_data_file=file.path)
        self.house.notify(self.house.catalog.overwrite(NAME, add=[deletes], remove=[]))
        self.happens(f"the owner deletes {records} rows of one file")

    def rounds(self, count: int = 1, every_ms: int = SECOND_MS) -> None:
        """The server does what is due; what it did is told."""
        for _ in range(count):
            self.house.control.loop.round()
            self.tell()
            self.house.pass_time(every_ms)

    def tell(self) -> None:
        """All that a person could see and has not been told."""
        self._tell_tasks(queued=False)
        for record in self.house.tables.records(limit=10):
            for plan in reversed(self.house.tables.plans(record.table_id, limit=100)):
                self._tell_once((plan.plan_id, 0), plan.planned_at, f"plan: {plan.reason.text}")
            if record.problem is not None:
                text = record.problem.text
                self._tell_once((f"problem {text}", 0), self.house.clock.now(), f"table: {text}")
        self._tell_tasks(queued=True)

    def claims(self) -> TaskSpec:
        """The optimizer takes the task."""
        spec = self.worker.claimed()
        self.tell()
        return spec

    def commits(self, spec: TaskSpec) -> Result:
        """The optimizer commits, and has not said so yet."""
        result = self.worker.try_commit(spec)
        self.happens("the optimizer commits" if isinstance(result, Committed) else "the table refuses the commit")
        return result

    def finishes(self, spec: TaskSpec) -> None:
        """The optimizer commits and says so, and the server looks."""
        self.worker.report(spec, self.commits(spec))
        self.rounds()

    def rewrites_manifests(self, spec: TaskSpec) -> Result:
        """The optimizer writes the table's manifests anew."""
        signed = {TASK_ID_KEY: spec.task_id, ATTEMPT_KEY: str(spec.attempt), PROOF_KEY: "memory"}
        snapshot = self.house.catalog.rewrite_manifests(NAME, signed)
        self.happens("the optimizer commits")
        return Committed(snapshot.snapshot_id)

    def until_ended(self) -> None:
        """Rounds until no task is under way; at most an hour."""
        for _ in range(3600):
            if all(task.state in TERMINAL_STATES for task in self.house.all_tasks()):
                return
            self.rounds()

    def end(self) -> str:
        """The story, with how the table looks at its end."""
        files = [file for file in self.house.catalog.live_files(NAME) if file.content is FileContent.DATA]
        rows = sum(file.record_count for file in files)
        self.happens(f"the table has {wording.count(len(files), 'data file')} with {wording.count(rows, 'row')}")
        return "\n".join([*self.lines, ""])

    def _tell_tasks(self, *, queued: bool) -> None:
        """New tasks come after the plans that they are of, all else that happens to tasks before."""
        for number, task in enumerate(self.house.all_tasks(), start=1):
            for entry in self.house.tasks.history(task.task_id):
                if (entry.state is TaskState.QUEUED and entry.attempt == 0) == queued:
                    what = f"task {number}: {entry.state.value}, {entry.reason.text}"
                    self._tell_once((task.task_id, entry.version), entry.at, what)

    def _tell_once(self, key: tuple[str, int], at: int, text: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self.lines.append(f"{self._time(at)}    {text}")

    def _time(self, at: int) -> str:
        seconds = (at - self._began_at) // SECOND_MS
        return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def commit_to_verified(story: Story) -> None:
    """A writer commits; some minutes later the table is better."""
    house = story.house
    house.create()
    story.rounds()
    house.append(8)
    house.notify(house.append(4))
    story.happens("a writer appends twelve small files in two commits, and says so")
    story.rounds(70)
    story.finishes(story.claims())


def conflict_with_a_delete(story: Story) -> None:
    """A DELETE commits while the rewrite runs."""
    story.begin()
    spec = story.claims()
    story.deletes(3)
    story.worker.report(spec, story.commits(spec))
    story.rounds(2)
    story.rounds(2, every_ms=31 * MINUTE_MS)
    story.finishes(story.claims())


def vectors_are_folded_in(story: Story) -> None:
    """Format version 3: what was deleted is left out of the new file, and the vectors go with the old ones."""
    story.begin(format_version=3)
    story.finishes(story.claims())
    story.deletes(30)
    story.rounds(2, every_ms=HOUR_MS)
    story.finishes(story.claims())


def upgraded_and_not_committed_to(story: Story) -> None:
    """A table gets format version 3 while its rewrite waits: its rows have no ids before the next commit."""
    story.begin()
    story.house.catalog.upgrade(NAME, 3)
    story.happens("its owner raises the format version to 3")
    story.rounds(2, every_ms=HOUR_MS)
    story.house.append(1)
    story.happens("a writer appends a file")
    story.rounds(2, every_ms=HOUR_MS)
    story.finishes(story.claims())


def append_while_the_rewrite_runs(story: Story) -> None:
    """An append never gets in the way."""
    story.begin()
    spec = story.claims()
    story.house.notify(story.house.append(3))
    story.happens("a writer appends three files")
    story.rounds(2)
    story.finishes(spec)


def optimizer_killed_before_commit(story: Story) -> None:
    """kill -9 in the middle of the work: it is done again, once."""
    story.begin()
    story.claims()
    story.happens("the optimizer is killed before it commits")
    story.house.pass_time(LEASE_MS)
    story.rounds(90)
    story.finishes(story.claims())


def optimizer_killed_after_commit(story: Story) -> None:
    """kill -9 between the commit and the report: it is found, and not done again."""
    story.begin()
    story.commits(story.claims())
    story.happens("the optimizer is killed before it can say so")
    story.house.pass_time(LEASE_MS)
    story.until_ended()


def optimizer_thought_dead_commits_late(story: Story) -> None:
    """A long pause: another optimizer has begun the same task when the first one wakes up and commits."""
    story.begin()
    slow = story.claims()
    story.happens("the optimizer freezes")
    story.house.pass_time(LEASE_MS)
    story.rounds(90)
    other = Worker(story.house, "optimizer-b")
    spec = other.claimed()
    story.tell()
    story.happens("the first optimizer wakes up")
    refused = _refusal(lambda: story.worker.report(slow, story.commits(slow)))
    story.happens(f"its report is refused: {refused}")
    other.report(spec, other.try_commit(spec))
    story.tell()
    story.until_ended()


def commit_that_nobody_knows_of(story: Story) -> None:
    """The connection to the catalog breaks in the middle of a commit, which did not arrive."""
    story.begin()
    story.worker.commit_unknown(story.claims())
    story.tell()
    story.rounds(LEASE_MS // SECOND_MS + 1)
    story.finishes(story.claims())


def server_restarted_in_the_middle(story: Story) -> None:
    """kill -9 of the server while a task runs: the optimizer goes on and reports to the next one."""
    story.begin()
    spec = story.claims()
    story.happens("the server is killed and started again")
    story.house.restart()
    story.rounds()
    story.worker.beat(spec)
    story.finishes(spec)


def dropped_and_created_again_while_queued(story: Story) -> None:
    """The same name is another table now."""
    story.begin()
    story.house.catalog.drop(NAME)
    story.happens("the owner drops the table, and creates it again with two files")
    story.house.create()
    story.house.notify(story.house.append(2))
    story.rounds()


def dropped_and_created_again_while_running(story: Story) -> None:
    """The rewrite finds another table than it was planned for."""
    story.begin()
    spec = story.claims()
    story.house.catalog.drop(NAME)
    story.house.create()
    story.house.append(2)
    story.happens("the owner drops the table, and creates it again with two files")
    story.worker.report(spec, story.commits(spec))
    story.tell()
    story.rounds()


def catalog_away_and_back(story: Story) -> None:
    """While the catalog is away nothing is decided, and afterwards nothing is missing."""
    story.begin()
    spec = story.claims()
    story.worker.report(spec, story.commits(spec))
    story.tell()
    story.house.catalog.available = False
    story.happens("the catalog goes away")
    story.house.notify(story.house.append(8))
    story.rounds(10, every_ms=MINUTE_MS)
    story.happens("the catalog is back")
    story.house.catalog.available = True
    story.rounds(2)


def cancelled_while_running(story: Story) -> None:
    """The optimizer hears of it with its next heartbeat."""
    story.begin()
    spec = story.claims()
    story.happens("a person cancels the task")
    story.house.control.dispatcher.cancel(spec.task_id)
    story.tell()
    story.house.pass_time(10 * SECOND_MS)
    assert story.worker.beat(spec).cancel
    story.worker.report(spec, STOPPED)
    story.tell()
    story.rounds(2)


def owner_changes_their_mind(story: Story) -> None:
    """What waits is taken back as soon as the table may only be observed."""
    story.begin()
    story.house.catalog.set_properties(NAME, {"icewright.mode": "observe"})
    story.happens("the owner sets icewright.mode=observe")
    assert story.worker.claim_if_any() is None
    story.tell()
    story.rounds(2, every_ms=HOUR_MS)


def plan_and_apply(story: Story) -> None:
    """Exactly the plan that a person has looked at."""
    story.house.ready_table(properties={"icewright.mode": "approve"})
    story.happens("a table has eight small files; icewright.mode=approve")
    story.rounds()
    plan_id = story.house.record().plan_id or ""
    story.house.catalog.delete(NAME, [story.house.catalog.live_files(NAME)[0].path])
    story.happens("the owner deletes a file")
    refused = _refusal(lambda: story.house.control.dispatcher.apply(plan_id))
    story.happens(f"a person applies the plan: {refused}")
    story.house.pass_time(HOUR_MS)
    story.rounds()
    story.house.pass_time(HOUR_MS)
    story.rounds()
    story.happens("a person applies the new plan")
    story.house.control.dispatcher.apply(story.house.record().plan_id or "")
    story.finishes(story.claims())


def five_failures_park_the_table(story: Story) -> None:
    """Work that comes to nothing again and again is left for a day."""
    story.begin()
    for _ in range(FAILURES_MAX):
        story.worker.report(story.claims(), FINAL)
        story.tell()
        story.house.append(1)
        story.house.pass_time(HOUR_MS)
        story.rounds()


def rows_that_were_not_kept(story: Story) -> None:
    """What no proof let through and somebody committed nevertheless: an alarm, and nothing more is done."""
    story.begin()
    story.worker.lost_rows = 1
    story.finishes(story.claims())
    story.house.append(8)
    story.happens("a writer appends eight files")
    story.rounds(2, every_ms=HOUR_MS)


def damaged_manifest(story: Story) -> None:
    """A table that cannot be read says so, until it can."""
    story.begin()
    snapshot = story.house.append(1)
    story.house.notify(snapshot)
    story.house.catalog.damage(snapshot.manifest_list)
    story.happens("a writer appends a file, and its manifest list is damaged")
    story.rounds()
    story.house.notify(story.house.append(1))
    story.happens("a writer commits again")
    story.rounds()


def levels_of_a_table_with_a_layout(story: Story) -> None:
    """Small files are merged, then put in order, and at last all of a partition is: each when it is due."""
    house = story.house
    order = {"icewright.layout": "hilbert(id, city)", "icewright.level-2.runs": "2"}
    sizes = {"icewright.level-1.size-bytes": str(16 * MIB), "write.target-file-size-bytes": str(8 * MIB)}
    house.create(properties={**order, **sizes})
    story.happens("a table is to be laid out by hilbert(id, city), from 16 MiB on; twice, and then the whole of it")
    for _ in range(7):
        house.notify(house.append(6))
        story.happens("a writer appends six files of 1 MiB")
        house.pass_time(2 * MINUTE_MS)
        story.rounds(2, every_ms=MINUTE_MS)
        while (spec := story.worker.claim_if_any()) is not None:
            story.tell()
            story.worker.report(spec, story.commits(spec))
            story.rounds(2, every_ms=MINUTE_MS)


def upkeep_in_a_nightly_window(story: Story) -> None:
    """Snapshots expire and manifests are rewritten at night, and by day a person is told what waits."""
    house = story.house
    kept_up = {
        "expire-snapshots.enabled": "true",
        "rewrite-manifests.enabled": "true",
        "maintenance-window.cron": "0 2 * * *",
    }
    house.create(properties={f"icewright.{key}": value for key, value in kept_up.items()})
    expiry = {"history.expire.max-snapshot-age-ms": str(24 * HOUR_MS), "history.expire.min-snapshots-to-keep": "2"}
    house.catalog.set_properties(NAME, {**expiry, "commit.manifest.min-count-to-merge": "4"})
    story.happens("a table is to be kept up by itself, in the four hours from two in the morning on")
    for hour in range(32):
        if hour % 6 == 0:
            house.catalog.append(NAME, house.files(1, BONN, 600 * MIB))
        story.rounds(every_ms=HOUR_MS)
        for waiting in house.tables.waiting(limit=9):
            story.happens(f"somebody lets go what waits: {waiting.reason.text}")
            house.control.dispatcher.approve(waiting.plan_id, "Ada")
        if hour in (15, 27):
            story.happens("somebody asks what is going on")
            for reason in house.control.maintainer.look(NAME, plan_anew=True).upkeep.reasons:
                story.happens(f"  {reason.text}")
        spec = story.worker.claim_if_any()
        if spec is not None:
            story.tell()
            story.worker.report(spec, story.rewrites_manifests(spec))
            story.rounds(2)


STORIES: list[Callable[[Story], None]] = [
    commit_to_verified,
    conflict_with_a_delete,
    vectors_are_folded_in,
    upgraded_and_not_committed_to,
    append_while_the_rewrite_runs,
    optimizer_killed_before_commit,
    optimizer_killed_after_commit,
    optimizer_thought_dead_commits_late,
    commit_that_nobody_knows_of,
    server_restarted_in_the_middle,
    dropped_and_created_again_while_queued,
    dropped_and_created_again_while_running,
    catalog_away_and_back,
    cancelled_while_running,
    owner_changes_their_mind,
    plan_and_apply,
    five_failures_park_the_table,
    rows_that_were_not_kept,
    damaged_manifest,
    levels_of_a_table_with_a_layout,
    upkeep_in_a_nightly_window,
]


@each_case("play", STORIES, ids=lambda play: play.__name__)
def test_what_a_person_sees(play: Callable[[Story], None]) -> None:
    story = Story()
    play(story)
    text = f"{play.__doc__}\n\n{story.end()}"
    stored = STORED / f"{play.__name__}.txt"
    if os.environ.get("ICEWRIGHT_WRITE_STORIES"):
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")


def test_no_loop_story_is_left_over() -> None:
    assert {path.stem for path in STORED.iterdir()} == {play.__name__ for play in STORIES}


def _refusal(request: Callable[[], object]) -> str:
    with pytest.raises(IcewrightError) as refused:
        request()
    return refused.value.message
