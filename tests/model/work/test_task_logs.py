"""The last lines of an attempt, as they are told and told again: the newest are kept, and none is there twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import InvalidMessage
from icewright.model.work.tasks import LINE_LENGTH_MAX, LINES_MAX, LOG_BYTES_MAX, LogLevel, LogLine, LogLines
from icewright_spark.optimizer.attempt_log import BEAT_BYTES_MAX, BEAT_LINES_MAX, AttemptLog


def lines(first: int, last: int, size: int = 1) -> list[LogLine]:
    """A line for each number, of so many characters of four bytes behind it."""
    return [LogLine(1, LogLevel.INFO, f"{number} " + "\N{ICE CUBE}" * size) for number in range(first, last + 1)]


steps = st.lists(
    st.tuples(st.just("log"), st.integers(1, 2 * LINES_MAX), st.sampled_from([0, 5, 120]))
    | st.tuples(st.sampled_from(["sent", "answer lost", "report"])),
    max_size=12,
)


@given(steps=steps)
def test_whatever_is_lost_on_the_way_the_newest_lines_arrive_once_each(steps: list[tuple[object, ...]]) -> None:
    log, all_lines, kept = AttemptLog(), list[LogLine](), None
    for what, *how in [*steps, ("log", 1, 0), ("report",)]:
        if what == "log":
            count, size = int(str(how[0])), int(str(how[1]))
            more = lines(len(all_lines) + 1, len(all_lines) + count, size)
            all_lines += more
            log.add(more)
            continue
        sent = log.unsent() if what == "report" else log.unsent(BEAT_LINES_MAX, BEAT_BYTES_MAX)
        if sent is None:
            continue
        kept = sent if kept is None else kept.followed_by(sent)
        if what != "answer lost":
            log.was_sent(sent)
        assert list(kept.lines) == all_lines[kept.left_out : kept.last]
    assert kept is not None
    assert kept.last == len(all_lines)
    size_bytes = sum(line.size_bytes for line in kept.lines)
    more_bytes = 0 if kept.left_out == 0 else all_lines[kept.left_out - 1].size_bytes
    is_full = len(kept.lines) == LINES_MAX or size_bytes + more_bytes > LOG_BYTES_MAX
    assert size_bytes <= LOG_BYTES_MAX
    assert is_full or kept.left_out == 0


def test_lines_behind_a_gap_stand_for_themselves() -> None:
    before = LogLines(1, tuple(lines(1, 3)))
    behind = LogLines(9, tuple(lines(9, 10)))
    assert before.followed_by(behind) == behind
    assert behind.left_out == 8
    assert behind.followed_by(before) is behind


def test_a_log_of_more_than_is_kept_is_none() -> None:
    with pytest.raises(InvalidMessage):
        LogLines(1, tuple(lines(1, LINES_MAX + 1)))
    with pytest.raises(InvalidMessage):
        LogLines(1, tuple(lines(1, 40, LINE_LENGTH_MAX - 10)))
    for first in (0, -1, 2**31 - 1):
        with pytest.raises(InvalidMessage):
            LogLines(first, tuple(lines(1, 2)))
    with pytest.raises(InvalidMessage):
        LogLines(1, ())


def test_what_a_terminal_or_a_page_would_act_on_is_no_line() -> None:
    for text in ("x" * (LINE_LENGTH_MAX + 1), "a\nb", "\x1b[31m", "\x00", "\u202e", "\ud800", "\u2028", "\t"):
        with pytest.raises(InvalidMessage):
            LogLine(1, LogLevel.INFO, text)
    for at in (-1, 2**62):
        with pytest.raises(InvalidMessage):
            LogLine(at, LogLevel.INFO, "x")
