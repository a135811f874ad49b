"""Messages in words: for people as plain text, Markdown and HTML, for programs as a document.

Names and reasons are written by strangers, and chats make links and mentions out of text. So nothing of a stranger
goes into a message for people that could be one: signs that could be part of an address, a mention or markup stand in
braces (``{.}``), and so does what is not a letter, a digit or plain punctuation. Parts of a name are put apart by
slashes and spaces, since dots between them would make a host's name of them. Documents have everything as it is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Final

from icewright.core import wording
from icewright.core.codec import to_json
from icewright.feed.views import fact_view
from icewright.model.events.feed import Fact, FactKind
from icewright.model.events.notifications import Mention, Message
from icewright.model.iceberg.tables import Json
from icewright.notifications.port import Outgoing

DOCUMENT_TYPE: Final = "icewright.facts"
TEST_TYPE: Final = "icewright.test"
NAME_LENGTH_MAX: Final = 80
"""Of one part of a name."""
TEXT_LENGTH_MAX: Final = 300
_FIGURES_MAX: Final = 4
_HARMLESS: Final = frozenset(" ,;()'\"%+=-_?")
_STOP_BEFORE_SPACE: Final = re.compile(r"[.:!/](?=\s|$)")
_NUMBER: Final = re.compile(r"(?<![\w.])\d[\d,]*\.\d+(?![\w.])")
_KINDS: Final[Mapping[FactKind, str]] = {
    FactKind.QUEUED: "waits",
    FactKind.STARTED: "started",
    FactKind.SUCCEEDED: "succeeded",
    FactKind.FAILED: "failed permanently",
    FactKind.SUPERSEDED: "superseded",
    FactKind.CANCELLED: "cancelled",
    FactKind.DATA_AT_RISK: "DATA AT RISK",
    FactKind.PARKED: "parked",
    FactKind.WAITS_FOR_APPROVAL: "waits for approval",
    FactKind.REFUSED: "refused",
    FactKind.REGRESSED: "reads more than before",
    FactKind.CATALOG_AWAY: "catalog away",
    FactKind.CATALOG_BACK: "catalog back",
    FactKind.LEADER_CHANGED: "another server leads",
    FactKind.TUNED: "optimizers or their memory",
}


def neutralize_text(text: str, most: int = TEXT_LENGTH_MAX) -> str:
    """A stranger's text in which nothing is an address, a mention or markup, whatever shows it; on one line, cut."""
    shown = text if len(text) <= most else text[:most] + "..."
    flat = " ".join(shown.split())
    kept = {found.start() for found in _STOP_BEFORE_SPACE.finditer(flat)}
    kept |= {found.start() + found[0].index(".") for found in _NUMBER.finditer(flat)}
    return "".join(
        sign if sign.isalnum() or sign in _HARMLESS or place in kept else _braced(sign)
        for place, sign in enumerate(flat)
    )


def _braced(sign: str) -> str:
    return "{at}" if sign == "@" else f"{{{sign}}}" if sign in ".:/" else f"{{{ord(sign):X}}}"


def shown_name(fact: Fact) -> str:
    """What a fact is about, for people: ``lake / sales / orders``."""
    return " / ".join(neutralize_text(part, NAME_LENGTH_MAX) for part in fact.parts) or "everything"


def outgoing(message: Message) -> Outgoing:
    """A message in all its forms."""
    title, lines, more = _title(message), [_line(mention) for mention in message.mentions], _more(message)
    return Outgoing(
        message_id=message.message_id,
        title=title,
        plain="\n".join([*(f"- {what} {name}: {rest}" for what, name, rest in lines), *more]),
        markdown="\n".join([*(f"- **{what}** `{name}`: {_code(rest)}" for what, name, rest in lines), "", *more]),
        html=_html(lines, more),
        document=_document(message, title),
    )


def trial(receiver: str, message_id: str) -> Outgoing:
    """A message that says nothing but that messages arrive."""
    title = "icewright: a test"
    text = f"This is a test of the receiver {receiver}. Nothing has happened."
    document = {"type": TEST_TYPE, "id": message_id, "data": {"receiver": receiver, "title": title, "text": text}}
    return Outgoing(message_id, title, text, text, f"<p>{html.escape(text)}</p>", document)


def _title(message: Message) -> str:
    counts = [f"{count:,} {_of_kind(kind)}" for kind, count in message.counts.items()]
    about = "" if message.group is None else f" ({_shown_group(message)})"
    return f"icewright: {', '.join(counts)}{about}"


def _shown_group(message: Message) -> str:
    """The owner, or the table in the form of names."""
    first = message.mentions[0].told.fact
    is_table = message.group == str(first.table_name)
    return shown_name(first) if is_table else neutralize_text(message.group or "", NAME_LENGTH_MAX)


def _of_kind(kind: str) -> str:
    return _KINDS[FactKind(kind)] if kind in _KINDS else neutralize_text(kind.replace("-", " "))


def _line(mention: Mention) -> tuple[str, str, str]:
    """What happened, to what, and how."""
    fact = mention.told.fact
    action = "" if fact.action is None else f"{fact.action.value}, "
    times = "" if mention.times == 1 else f" ({mention.times:,} times)"
    at, do = wording.instant(mention.told.at), fact_view(mention.told).do
    how = f"{action}{neutralize_text(fact.reason.text)}{_benefit(fact)}{times}; {at}; see: {do}"
    return _of_kind(fact.fact.value), shown_name(fact), how


def _benefit(fact: Fact) -> str:
    """What a task brought, in figures; their names are our own."""
    if fact.fact is not FactKind.SUCCEEDED:
        return ""
    figures = fact.reason.figures
    said = []
    before, after = figures.get("input_bytes"), figures.get("output_bytes")
    if isinstance(before, int) and isinstance(after, int):
        said.append(f"{wording.size(before)} became {wording.size(after)}")
    for name, value in figures.items():
        if len(said) < _FIGURES_MAX and isinstance(value, int | float) and name.endswith(("_fewer", "_removed")):
            shown = wording.size(int(value)) if name.endswith("bytes_removed") else f"{value:,}"
            said.append(f"{name.replace('_', ' ')} {shown}")
    return f" ({'; '.join(said)})" if said else ""


def _more(message: Message) -> list[str]:
    said = []
    if message.more:
        what = "table" if message.tables == 1 else "tables"
        said.append(f"and {message.more:,} more, of {message.tables:,} {what} in all: `icewright feed`")
    if message.is_behind:
        said.append("Earlier facts are no longer kept, and were not sent.")
    return [line.replace("`", "") for line in said]


def _code(text: str) -> str:
    """In Markdown, as code: neither mentions nor links are made of that, and there is no backtick in it."""
    return f"`{text}`"


def _html(lines: list[tuple[str, str, str]], more: list[str]) -> str:
    items = "".join(
        f"<li><strong>{html.escape(what)}</strong> <code>{html.escape(name)}</code>: {html.escape(rest)}</li>"
        for what, name, rest in lines
    )
    return f"<ul>{items}</ul>" + "".join(f"<p>{html.escape(line)}</p>" for line in more)


def _document(message: Message, title: str) -> Json:
    facts = [
        {**to_json(fact_view(mention.told)), "owner": mention.owner, "times": mention.times}
        for mention in message.mentions
    ]
    return {
        "type": DOCUMENT_TYPE,
        "id": message.message_id,
        "data": {
            "receiver": message.receiver,
            "group": message.group,
            "title": title,
            "counts": dict(message.counts),
            "tables": message.tables,
            "more": message.more,
            "is_behind": message.is_behind,
            "facts": facts,
        },
    }
