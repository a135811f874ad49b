"""Nothing is collected while modules are imported, and what they define is not looked at again."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from icewright.app import processes
from icewright.app.main import _Loaded as Loaded
from icewright.core.extras import without_collection


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    yield
    gc.enable()


def test_within_it_nothing_is_collected_and_afterwards_everything_but_what_was_made_there() -> None:
    frozen = gc.get_freeze_count()
    with pytest.raises(ImportError), without_collection():  # noqa: PT012 - what it does also for an import that fails
        made = [[number] for number in range(1_000)]
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled()
    assert gc.get_freeze_count() >= frozen + len(made)


def test_who_collects_nothing_goes_on_so() -> None:
    gc.disable()
    with without_collection():
        pass
    assert not gc.isenabled()


class Said(ModuleType):
    """A module that notes how it is imported, and goes no further."""

    def __getattr__(self, name: str) -> object:
        raise ImportError(f"{name}, collecting: {gc.isenabled()}")


def test_a_server_is_imported_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "icewright.server.server", Said("icewright.server.server"))
    with pytest.raises(ImportError, match="collecting: False"):
        processes.serve.__wrapped__(None)  # type: ignore[attr-defined]  # the command itself


def test_a_command_that_is_there_already_freezes_nothing_more() -> None:
    """Else whoever calls commands many times would keep all garbage that there is at each of them."""
    assert Loaded()["config"]
    frozen = gc.get_freeze_count()
    made = [[number] for number in range(1_000)]
    assert Loaded()["config"]
    assert gc.get_freeze_count() < frozen + len(made)
