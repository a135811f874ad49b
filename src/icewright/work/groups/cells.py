"""The resource group of a table as `icewright policy test` shows it: which definition counts, and its caps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icewright.core import wording
from icewright.terminal.cli import Terminal

if TYPE_CHECKING:
    from icewright.model.policy.resource_groups import ResourceGroup
    from icewright.policy.groups.precedence import GroupWin
    from icewright.policy.rules.cases import TestedGroup


def say_group(terminal: Terminal, tested: TestedGroup) -> None:
    """The group that counts for a table, and what was before where that is another one."""
    win = tested.win
    terminal.say()
    pairs = [("resource group", f"{win.name}, from {win.named_by}"), *_definition(win)]
    if tested.differs:
        pairs += [("before", f"{tested.before.name}, from {tested.before.named_by}"), *_definition(tested.before)]
    terminal.pairs(pairs)
    if win.group is None:
        terminal.say(f"cannot be used: resource group {win.name}: {win.because}", style="red")


def _definition(win: GroupWin) -> list[tuple[str, str]]:
    from icewright.policy.groups.precedence import caps_said  # noqa: PLC0415 - `--help` stays quick

    if win.group is None:
        return [("defined", "nowhere")]
    over = "; ".join(f"not {other.origin}: {other.why}" for other in win.over)
    own = "without caps of its own"
    if win.tenant_caps is not None:
        own = f"of these at most: {caps_said(win.tenant_caps)}"
    return [
        ("defined", f"{win.defined_by} ({over or win.because})"),
        ("caps", caps_said(win.group)),
        ("large queue", wording.ratio(win.group.large_share)),
        ("windows", _windows(win.group)),
        ("owner", f"{win.tenant}, {own}" if win.tenant else "nobody"),
    ]


def _windows(group: ResourceGroup) -> str:
    said = [f"{one.cron} ({one.time_zone}) for {wording.duration(one.duration_ms)}" for one in group.windows]
    return "; ".join(said) or "none: tasks start at any time"
