"""How well commits are reported, look by look."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from icewright.events.reporting import GRACE_MS, UNTOLD_MAX, counted, new_commits, unreported_snapshots
from icewright.model.events.events import Channel, ReportedCommits, Reporting, Untold
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.doubles.lake import MemoryFile

NAME = TableName("lake", ("db",), "t")
NOBODY = ReportedCommits({})


def table(commits: int) -> TableMetadata:
    """A table with so many commits."""
    clock = ManualClock()
    catalog = MemoryCatalog("lake", clock)
    catalog.create(NAME)
    for number in range(commits):
        clock.advance(1_000)
        catalog.append(NAME, [MemoryFile(f"{number}.parquet", Partition(0, "[]"), 1, 1)])
    return catalog.load(NAME)


def ids(metadata: TableMetadata) -> list[int]:
    return [snapshot.snapshot_id for snapshot in reversed(metadata.ancestors())]


def test_what_was_there_before_the_first_look_is_not_counted() -> None:
    metadata = table(3)
    first = counted(None, (), NOBODY, 50)
    assert first == Reporting(since=50, counted_at=50)
    assert counted(first, new_commits(metadata, ids(metadata)[-1], 50), NOBODY, 60).untold == ()


def test_new_are_the_commits_of_others_since_the_snapshot_that_was_seen() -> None:
    metadata = table(4)
    own = metadata.snapshots[2]
    ours = replace(own, summary={**own.summary, "icewright.task-id": "t1"})
    with_ours = replace(metadata, snapshots=(*metadata.snapshots[:2], ours, metadata.snapshots[3]))
    assert [s.snapshot_id for s in new_commits(metadata, ids(metadata)[1], 0)] == ids(metadata)[2:]
    assert [s.snapshot_id for s in new_commits(with_ours, ids(metadata)[1], 0)] == ids(metadata)[3:]
    assert [s.snapshot_id for s in new_commits(metadata, None, 0)] == ids(metadata)
    gone_at = metadata.snapshots[2].committed_at
    assert [s.snapshot_id for s in new_commits(metadata, 12345, gone_at)] == ids(metadata)[3:]


def test_an_event_that_is_late_still_counts_and_one_that_never_comes_is_the_sweeps() -> None:
    metadata = table(2)
    first, second = ids(metadata)
    begun = counted(None, (), NOBODY, 0)
    seen = counted(begun, new_commits(metadata, None, 0), ReportedCommits({first: Channel.KAFKA}), 10)
    assert (seen.told, seen.untold) == ({Channel.KAFKA: 1}, (Untold(second, 10),))
    assert unreported_snapshots(seen, ()) == (second,)
    later = counted(seen, (), ReportedCommits({second: Channel.HTTP}), 9 + GRACE_MS)
    assert (later.told, later.untold, later.sweep_only) == ({Channel.KAFKA: 1, Channel.HTTP: 1}, (), 0)
    never = counted(seen, (), NOBODY, 10 + GRACE_MS)
    assert (never.untold, never.sweep_only) == ((), 1)


def test_an_event_without_a_snapshot_tells_of_what_is_new_and_of_nothing_before() -> None:
    metadata = table(2)
    first, second = ids(metadata)
    begun = replace(counted(None, (), NOBODY, 0), untold=(Untold(first, 0),))
    seen = counted(begun, new_commits(metadata, first, 0), ReportedCommits({}, Channel.HIVE), 10)
    assert (seen.told, seen.untold) == ({Channel.HIVE: 1}, (Untold(first, 0),))
    assert second not in {one.snapshot_id for one in seen.untold}


def test_t13_a_table_that_nobody_reports_keeps_a_bounded_list() -> None:
    many = tuple(Untold(number, 0) for number in range(UNTOLD_MAX + 5))
    kept = counted(Reporting(0, 0, untold=many), (), NOBODY, 1)
    assert (len(kept.untold), kept.sweep_only) == (UNTOLD_MAX, 5)


@given(st.lists(st.tuples(st.integers(1, 3), st.sets(st.integers(0, 20)), st.integers(0, GRACE_MS)), max_size=8))
def test_every_commit_is_counted_once(looks: list[tuple[int, set[int], int]]) -> None:
    metadata = table(0)
    whole = table(24)
    reporting, now, seen = counted(None, (), NOBODY, 0), 0, 0
    for more, told, pause in looks:
        now, upto = now + pause, seen + more
        metadata = replace(whole, current_snapshot_id=ids(whole)[upto - 1])
        before = ids(whole)[seen - 1] if seen else None
        events = ReportedCommits({ids(whole)[number]: Channel.HTTP for number in told})
        reporting = counted(reporting, new_commits(metadata, before, now), events, now)
        seen = upto
    assert sum(reporting.told.values()) + len(reporting.untold) + reporting.sweep_only == seen
