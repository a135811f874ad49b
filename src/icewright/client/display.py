"""How objects show themselves: text for terminals, HTML for notebooks. Names come from strangers.

Everything is escaped, and characters that would hide or re-order what stands around them are shown by their code.
Nothing but table elements is written: no scripts, no styles, no links.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from icewright.core.wording import safe


def text(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """A title and names with values under it, a line each; what has no value is left out."""
    kept = [(name, value) for name, value in rows if value]
    width = max((len(name) for name, _ in kept), default=0)
    return "\n".join([safe(title), *(f"  {safe(name):<{width}}  {safe(value)}" for name, value in kept)])


def table(title: str, rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """The same as a table in HTML; the first cell of each row is its head."""
    parts = [f"<table><caption>{_cell(title)}</caption>"]
    if head:
        parts.append("<thead><tr>" + "".join(f"<th>{_cell(cell)}</th>" for cell in head) + "</tr></thead>")
    parts.append("<tbody>")
    for first, *rest in rows:
        cells = "".join(f"<td>{_cell(cell)}</td>" for cell in rest)
        parts.append(f"<tr><th>{_cell(first)}</th>{cells}</tr>")
    return "".join([*parts, "</tbody></table>"])


def paragraphs(title: str, lines: Iterable[str]) -> str:
    """A title, and sentences under it, in HTML."""
    return f"<p><strong>{_cell(title)}</strong></p>" + "".join(f"<p>{_cell(line)}</p>" for line in lines)


def _cell(value: str) -> str:
    return escape(safe(value), quote=True)
