"""``icewright table storage``: where the bytes of a table are, and what would free them. Reads only."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from icewright.catalogs.local_spool import open_disk_spool
from icewright.core.codec import from_json
from icewright.core.errors import IcewrightError, Rejected
from icewright.core.reasons import Reason
from icewright.core.system_clock import SystemClock
from icewright.model.actions.expire_snapshots import ExpiryRule
from icewright.model.iceberg.reachable_files import FileClass
from icewright.model.policy.setting_values import duration_ms
from icewright.terminal import figures as text
from icewright.terminal.cli import FINE, FOUND, Terminal
from icewright.terminal.invocation import Invocation, TableArgument, command, table_name
from icewright.terminal.tables import headings

if TYPE_CHECKING:
    from icewright.footprint.storage_views import StorageView
    from icewright.footprint.unneeded_views import UnneededView
    from icewright.inventory.footprint import Amount, ExpiryShare
    from icewright.ownership.reachable import Progress, Step

_CLASSES = headings(
    "what", "#files", "#bytes", "#live", "#other refs", "#old snapshots", drop=("other refs", "live", "old snapshots")
)
_REFS = headings("ref", "type", "#files", "#bytes", "#only here")
_EXPIRIES = headings("expire snapshots", "#snapshots", "#files", "#bytes")
_UNNEEDED = headings("what", "#files", "#bytes", "", below=("",))
_DELETES = frozenset({FileClass.POSITION_DELETES, FileClass.EQUALITY_DELETES, FileClass.DELETION_VECTORS})
_GAPS_SHOWN = 10


@command
def storage(
    invocation: Invocation,
    table: TableArgument,
    *,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="DURATION", help="Ask about one expiry: by this age, such as P5D."),
    ] = None,
    retain_last: Annotated[
        int | None,
        typer.Option("--retain-last", min=1, help="Ask about one expiry: of all but so many snapshots of each branch."),
    ] = None,
) -> None:
    """Show where the bytes are: live, kept for branches and tags, in old snapshots alone; and what expiry would free.

    Reads all metadata of the table, each manifest once. Exit status 1 when not all of it could be read or understood:
    all figures are then lower bounds. Orphan files seen so far and what is in quarantine are the server's to know;
    where none answers, they are said to be not known.
    """
    from icewright.footprint.storage_views import storage_view  # noqa: PLC0415 - see above
    from icewright.ownership.offline import OfflineCatalogs  # noqa: PLC0415 - see above

    rules = _rules(older_than, retain_last)
    name = table_name(invocation.config, table)
    with _progress(invocation) as progress:
        offline = OfflineCatalogs(invocation.config)
        view = storage_view(
            offline.table_files(name.catalog),
            name,
            rules,
            open_disk_spool,
            aliases=offline.aliases(name.catalog),
            progress=progress,
            now=SystemClock().now,
        )
    view = view.with_unneeded(_unneeded(invocation, name.catalog, view.uuid))
    invocation.print_answer(view, _print)
    raise typer.Exit(FINE if view.complete else FOUND)


def _unneeded(invocation: Invocation, catalog: str, uuid: str) -> UnneededView | Reason:
    """What the server knows of files that the table does not need; or why it could not be asked."""
    from icewright.footprint.unneeded_views import UnneededView  # noqa: PLC0415 - see above

    try:
        return from_json(UnneededView, invocation.client.unneeded(uuid, catalog))
    except IcewrightError as error:
        return Reason(error.code, error.message)


def _rules(older_than: str | None, retain_last: int | None) -> tuple[ExpiryRule, ...]:
    """The one expiry that is asked about, or those that everybody may want to know of."""
    from icewright.footprint.storage_views import EXPIRY_RULES  # noqa: PLC0415 - see above

    if older_than is None and retain_last is None:
        return EXPIRY_RULES
    try:
        return (ExpiryRule(0 if older_than is None else duration_ms(older_than), retain_last),)
    except ValueError as error:
        raise Rejected(f"--older-than: {older_than!r} is no duration", hint="write P5D, PT12H or P1DT12H") from error


@contextmanager
def _progress(invocation: Invocation) -> Iterator[Progress]:
    """A bar per step on a terminal, and nothing elsewhere."""
    terminal = invocation.terminal
    if terminal.as_json or not terminal.err.is_terminal:
        yield lambda _step, _done, _total: None
        return
    from rich.progress import Progress as Bars  # noqa: PLC0415 - only on a terminal

    with Bars(console=terminal.err, transient=True) as bars:
        shown: dict[Step, int] = {}

        def follow(step: Step, done: int, total: int) -> None:
            if step not in shown:
                shown[step] = int(bars.add_task(f"reading {step.value}"))
            bars.update(shown[step], completed=done, total=total)  # type: ignore[arg-type]  # a task's id is an int

        yield follow


def _print(terminal: Terminal, view: StorageView) -> None:
    terminal.pairs(
        [
            ("table", view.name),
            ("snapshot", str(view.current_snapshot_id or "none yet")),
            ("snapshots", text.number(view.snapshots)),
            ("files", f"{text.number(view.total.files)} ({_size(view.total)})"),
            ("known", "all of it" if view.complete else "NOT all of it; every figure is a lower bound"),
        ]
    )
    rows = [
        (
            share.file_class.value,
            text.number((share.live + share.by_refs + share.by_history).files),
            *(_size(amount) for amount in (share.live + share.by_refs + share.by_history, share.live)),
            *(_size(amount) for amount in (share.by_refs, share.by_history)),
        )
        for share in view.classes
    ]
    refs = [
        (ref.name, ref.type, text.number(ref.reachable.files), _size(ref.reachable), _size(ref.only_here))
        for ref in view.refs
    ]
    expiries = [
        (_rule(one), text.number(one.snapshots), text.number(one.freed.files), _size(one.freed))
        for one in view.expiries
    ]
    gaps = [(gap.what, gap.reason.text) for gap in view.gaps[:_GAPS_SHOWN]]
    for title, columns, cells in (
        ("Where the bytes are", _CLASSES, rows),
        ("Refs", _REFS, refs),
        ("What expiring snapshots would free", _EXPIRIES, expiries),
        ("What could not be read or understood", headings("what", "why", below=("why",)), gaps),
    ):
        if cells:
            terminal.say()
            terminal.say(title, style="bold")
            terminal.table(columns, cells)
    _print_unneeded(terminal, view)
    if view.refs_left_out:
        terminal.aside(f"{text.count(view.refs_left_out, 'further ref')} not shown")
    if view.gaps_count > len(gaps):
        terminal.aside(f"{view.gaps_count - len(gaps):,} more; --json has the first {len(view.gaps)}")


def _print_unneeded(terminal: Terminal, view: StorageView) -> None:
    """Orphans and quarantine, where the server answers; and by which command each kind of bytes is freed."""
    terminal.say()
    terminal.say("What the table does not need", style="bold")
    if (found := view.unneeded) is not None:
        terminal.table(_UNNEEDED, _unneeded_cells(found))
    else:
        why = "" if view.not_asked is None else f": {view.not_asked.text}"
        terminal.say(f"orphan files and quarantine: not known{why}")
    if freeing := _freeing(view):
        terminal.say()
        terminal.say("What frees it", style="bold")
        terminal.table(headings("what", "how", below=("how",)), freeing)


def _unneeded_cells(found: UnneededView) -> Iterator[tuple[str, ...]]:
    """One row for each state of an orphan, and one for the quarantine."""

    def row(what: str, files: int, size_bytes: int, said: str) -> tuple[str, ...]:
        return what, text.number(files), text.size(size_bytes) if files else "-", said

    orphans, held = found.orphans, found.quarantine
    if orphans is None:
        yield "orphans", "-", "-", "not known: no search for them is complete"
    else:
        asof = f"as of {text.instant(orphans.finished_at)}"
        asof += "" if orphans.listing_is_complete else ", when not all could be listed"
        if (seen := orphans.seen) is None:
            yield row("orphans seen", orphans.files, orphans.size_bytes, asof)
        else:
            since = "" if seen.first_seen_at is None else f", the first one since {text.instant(seen.first_seen_at)}"
            yield row("orphans seen once", seen.once.files, seen.once.size_bytes, asof + since)
            yield row("orphans seen again", seen.waiting.files, seen.waiting.size_bytes, "not for long enough yet")
            yield row("removable orphans", seen.removable.files, seen.removable.size_bytes, "seen for long enough")
        if orphans.moved_since.files:
            yield row("of them moved since", orphans.moved_since.files, orphans.moved_since.size_bytes, "in quarantine")
    when = "" if held.purged_from is None else f"purged from {text.instant(held.purged_from)} on"
    lost = f"{text.number(held.unknown_files)} more at unknown places" if held.unknown_files else ""
    yield row("in quarantine", held.files, held.size_bytes, "; ".join(one for one in (when, lost) if one))


def _freeing(view: StorageView) -> list[tuple[str, str]]:
    """For each kind of bytes that there is: what frees it, as the command to begin with. All of them show first."""
    table = shlex.quote(view.name)
    found: list[tuple[str, str]] = []
    if any(share.by_history.files for share in view.classes):
        found.append(("old snapshots", f"icewright expire-snapshots {table}"))
    if any(share.by_refs.files for share in view.classes):
        found.append(("other refs", "drop the branch or tag, then expire snapshots"))
    if any(share.file_class in _DELETES and share.live.files for share in view.classes):
        found.append(("delete files", f"icewright plan {table} --action remove-dangling-deletes"))
    if view.unneeded is not None:
        if view.unneeded.orphans is None or view.unneeded.orphans.files:
            found.append(("orphans", f"icewright remove-orphan-files {table}"))
        if view.unneeded.quarantine.files:
            found.append(("quarantine", "automatically after its window; icewright quarantine list shows the tables"))
    return found


def _rule(share: ExpiryShare) -> str:
    """``older than 5 d``, or ``all but the last 10``, of each branch."""
    rule = share.rule
    kept = "" if rule.retain_last is None else f"all but the last {rule.retain_last:,}"
    older = f"older than {text.duration(rule.older_than_ms)}" if rule.older_than_ms else ""
    return ", ".join(part for part in (older, kept) if part) or "all that may be"


def _size(amount: Amount) -> str:
    """The bytes, and of how many files they are not known."""
    unsized = f" + {text.number(amount.unsized)} of unknown size" if amount.unsized else ""
    return f"{text.size(amount.size_bytes)}{unsized}" if amount.files else "-"
