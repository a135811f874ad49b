"""What is around a move of a SQL catalog's pointer, as a test decides: lost answers, and others who come first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from icewright.catalogs.pointers.sql_pointers import SqlCommits

Move = Callable[..., bool]


def moving(monkeypatch: pytest.MonkeyPatch, around: Callable[[Move], bool]) -> None:
    """Let ``around`` decide about each move of the pointer."""
    move = SqlCommits.move

    def instead(self: SqlCommits, *arguments: Any) -> bool:
        return around(lambda: move(self, *arguments))

    monkeypatch.setattr(SqlCommits, "move", instead)
