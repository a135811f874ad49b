"""What ``icewright status`` says of the history of tasks."""

import pytest

from icewright.app.status import _print_history
from icewright.core.codec import to_json
from icewright.retention.history import HistoryProgress
from icewright.terminal.cli import Terminal
from tests.cases import each_case

DAY_MS = 86_400_000
NOW, KEPT_MS = 20_000 * DAY_MS, 90 * DAY_MS


@each_case(
    ("through", "told"),
    [
        (None, ["history of tasks: it was not asked yet", "old tasks stay", "for 30 d at most"]),
        (NOW - 420_000, ["history of tasks: 7.0 min behind; all that ended before 2024-10-03 23:53:00 UTC is in it"]),
        (
            NOW - 91 * DAY_MS,
            ["history of tasks: 91.0 days behind;", "old tasks stay in the store until they are in it"],
        ),
    ],
)
def test_how_far_it_is_and_what_waits_for_it(
    through: int | None, told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    history = HistoryProgress()
    if through is not None:
        history.copied(through)
    _print_history(Terminal(as_json=False), to_json(history.status(NOW, KEPT_MS)))
    out = capsys.readouterr().out
    assert [said in out for said in told] == [True] * len(told)
    assert ("old tasks" in out) is (len(told) > 1)


def test_where_nobody_wants_one_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    _print_history(Terminal(as_json=False), None)
    assert capsys.readouterr().out == ""
