"""Which messages facts become: one for all that concerns an owner or a table, the gravest first, the rest counted.

A pure function of facts, so that what is told can be read in tests, and a message is the same on every server.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from icewright.model.events.feed import Fact, FactKind, FeedEntry
from icewright.model.events.notifications import MENTIONS_MAX, GroupBy, Mention, Message, Receiver

MESSAGES_MAX: Final = 10
"""How many messages facts become that are told together; more owners or tables share the last one."""
AT_ONCE: Final = frozenset({FactKind.DATA_AT_RISK})
"""What waits for no other fact to share its message."""
GRAVITY: Final = (
    FactKind.DATA_AT_RISK,
    FactKind.FAILED,
    FactKind.PARKED,
    FactKind.WAITS_FOR_APPROVAL,
    FactKind.REFUSED,
    FactKind.REGRESSED,
    FactKind.CATALOG_AWAY,
    FactKind.CATALOG_BACK,
    FactKind.LEADER_CHANGED,
    FactKind.TUNED,
    FactKind.PAUSED,
    FactKind.RESUMED,
    FactKind.SUCCEEDED,
    FactKind.CANCELLED,
    FactKind.SUPERSEDED,
    FactKind.STARTED,
    FactKind.QUEUED,
)
"""Kinds of facts, the gravest first."""
_ENDS: Final = frozenset({FactKind.SUCCEEDED, FactKind.FAILED, FactKind.CANCELLED, FactKind.SUPERSEDED})
"""How tasks end; that counts also of one that had failed before somebody had it tried again."""
_RANK: Final = {kind: rank for rank, kind in enumerate(GRAVITY)}


@dataclass(frozen=True, slots=True)
class Owned:
    """A fact, and whose table it is about, if that is known."""

    told: FeedEntry
    owner: str | None


def messages(
    receiver: Receiver, facts: Iterable[Owned], through: int, slots: int, *, is_behind: bool = False
) -> Sequence[Message]:
    """What a receiver is told of facts, which are in the order of the feed, in at most ``slots`` messages."""
    groups: dict[str | None, dict[tuple[str, ...], Mention]] = {}
    for one in facts:
        _add(groups.setdefault(_group(receiver, one), {}), one)
    parts = sorted(((group, list(found.values())) for group, found in groups.items()), key=_gravest)
    most = max(1, min(slots, MESSAGES_MAX))
    if len(parts) > most:
        rest = [mention for _, found in parts[most - 1 :] for mention in found]
        parts = [*parts[: most - 1], (None, rest)]
    return [_message(receiver, group, found, through, is_behind=is_behind) for group, found in parts]


def _group(receiver: Receiver, one: Owned) -> str | None:
    fact = one.told.fact
    if fact.table_id is None:
        return None
    return one.owner if receiver.group_by is GroupBy.OWNER else str(fact.table_name or fact.table_id)


def _add(found: dict[tuple[str, ...], Mention], one: Owned) -> None:
    """What is told of a task again replaces what was told before; what is told of the same again is counted."""
    fact = one.told.fact
    key, before = _key(fact), found.get(_key(fact))
    if before is None:
        found[key] = Mention(one.told, one.owner)
    elif fact.task_id is None:
        found[key] = Mention(one.told, one.owner, before.times + 1)
    elif before.told.fact.fact not in AT_ONCE and (
        fact.fact in _ENDS or _rank(fact.fact) <= _rank(before.told.fact.fact)
    ):
        found[key] = Mention(one.told, one.owner)


def _key(fact: Fact) -> tuple[str, ...]:
    if fact.task_id is not None:
        return ("task", fact.task_id)
    return (fact.fact.value, str(fact.table_id or fact.catalog), fact.reason.code, fact.plan_id or "")


def _rank(kind: FactKind) -> int:
    return _RANK.get(kind, len(GRAVITY))


def _order(mention: Mention) -> tuple[int, int]:
    return _rank(mention.told.fact.fact), -mention.told.sequence


def _gravest(part: tuple[str | None, Sequence[Mention]]) -> tuple[int, int]:
    return min(_order(mention) for mention in part[1])


def _message(
    receiver: Receiver, group: str | None, found: Sequence[Mention], through: int, *, is_behind: bool
) -> Message:
    ordered = sorted(found, key=_order)
    return Message(
        message_id=_id(receiver.name, group, through),
        receiver=receiver.name,
        group=group,
        mentions=tuple(ordered[:MENTIONS_MAX]),
        counts=dict(Counter(mention.told.fact.fact.value for mention in ordered)),
        tables=len({mention.told.fact.table_id for mention in ordered} - {None}),
        through=through,
        first_at=min(mention.told.at for mention in ordered),
        is_behind=is_behind,
    )


def _id(receiver: str, group: str | None, through: int) -> str:
    """The same for the same facts: whoever is sent a message twice can tell."""
    said = json.dumps([receiver, group, through]).encode("ascii")
    return f"msg_{hashlib.sha256(said).hexdigest()[:32]}"
