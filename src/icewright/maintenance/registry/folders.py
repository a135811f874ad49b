"""Actions whose folder has all of them, found by the name of their kind: they are registered as ``ActionKind`` alone.

The folder of a kind is ``icewright.actions.<kind>``: its ``service`` has one
:class:`~icewright.plans.action_types.ActionType`, its ``cli`` one :class:`~icewright.plans.action_types.ActionWords`.
Each registry asks for its own module, so that commands load no planner. ``tests/test_action_types.py`` asks for all.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import TypeVar

from icewright.model.actions.actions import ActionKind

T = TypeVar("T")


def in_folders(module: str, shape: type[T], listed: Collection[str]) -> tuple[T, ...]:
    """What the folders of all kinds but the ``listed`` ones have in a module, in the order of the kinds."""
    return tuple(_in_folder(kind, module, shape) for kind in ActionKind if kind.value not in listed)


def _in_folder(kind: ActionKind, module: str, shape: type[T]) -> T:
    name = f"icewright.actions.{kind.value}.{module}"
    found = [one for one in vars(import_module(name)).values() if isinstance(one, shape)]
    if len(found) != 1:
        raise TypeError(f"{name} has {len(found)} values of type {shape.__name__}, not one")
    return found[0]
