"""``icewright status``: what the server sees and does at this moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icewright.core.codec import from_json
from icewright.model.work.optimizers import SeenSubmitter
from icewright.ports.store import OptimizerRecord
from icewright.terminal import figures as text
from icewright.terminal.invocation import Invocation, api_command
from icewright.work.groups.cli import submitter_said
from icewright.work.halts.cli import say_halts

if TYPE_CHECKING:
    from icewright.api_client.connection import Page
    from icewright.model.iceberg.tables import Json
    from icewright.terminal.cli import Terminal


@api_command
def status(invocation: Invocation) -> None:
    """Say what the server sees and does at this moment."""
    client = invocation.client
    answer = client.status()
    waiting = None if invocation.as_json else client.waiting()
    if waiting is None:
        invocation.terminal.document(answer)
    else:
        _print_status(invocation.terminal, client.url, answer, waiting)


def _print_status(terminal: Terminal, url: str, answer: Json, waiting: Page) -> None:
    from icewright.server.liveness import Doing  # noqa: PLC0415 - `--help` stays quick

    tasks = ", ".join(f"{count:,} {state}" for state, count in sorted(answer.get("tasks", {}).items()) if count)
    terminal.pairs(
        [
            ("server", f"{url} (icewright {answer.get('version', '?')})"),
            ("tasks", tasks or "none"),
            ("catalogs", ", ".join(_catalog_text(catalog) for catalog in answer.get("catalogs", ())) or "none"),
        ]
    )
    say_halts(terminal, answer)
    _print_workers(terminal, answer)
    for doing in (from_json(Doing, item) for item in answer.get("doing", ())):
        step = doing.step.replace("_", " ") or "between two rounds"
        terminal.say(f"{doing.thread}: {step}, since {text.instant(doing.since)}")
        if doing.is_silent:
            heard = text.instant(doing.heard_at)
            said = f"{doing.thread} hangs: no sign of life since {heard}; see the server's log, and restart it"
            terminal.say(said, style="red")
    for server in answer.get("servers", ()):
        part = "leads" if server["leads"] else "follows"
        terminal.say(f"server {server['server_id']}: {part}, {server['url']}, seen {text.instant(server['seen_at'])}")
        if server["is_silent"]:
            terminal.say("  it is silent: it has died, or the store does not answer it", style="red")
    _print_history(terminal, answer.get("history"))
    _print_receivers(terminal, answer)
    if waiting.items:
        said = text.count(len(waiting.items), "plan") + (" and more" if waiting.next_cursor else "")
        terminal.say(f"waiting for approval: {said} (`icewright approve`)")
    for table in answer.get("unreadable", ()):
        terminal.prose(f"unreadable: {table['name']}: {table['reason']['text']}", style="red")


def _print_workers(terminal: Terminal, answer: Json) -> None:
    """Optimizers, and who starts them."""
    optimizers = [from_json(OptimizerRecord, item) for item in answer.get("optimizers", ())]
    for record in optimizers:
        hello, seen = record.hello, text.instant(record.seen_at)
        terminal.prose(
            f"optimizer {hello.optimizer_id}: {hello.slots} at once, Spark {hello.spark_version}, seen {seen}"
        )
        if hello.application_id:
            at = "" if hello.spark_ui_url is None else f", {hello.spark_ui_url}"
            terminal.prose(f"its application: {hello.application_id}{at}", indent=2)
        if hello.workers is not None:
            packages = ", ".join(f"{name} {version}" for name, version in sorted(hello.workers.packages.items()))
            workers = f"its workers: Python {hello.workers.python}, Spark {hello.workers.spark}, {packages}"
            terminal.prose(workers, indent=2)
    submitters = [from_json(SeenSubmitter, item) for item in answer.get("submitters", ())]
    for seen_submitter in submitters:
        terminal.say(f"submitter {submitter_said(seen_submitter)}")
    if not optimizers and not submitters:
        terminal.say("no optimizer yet: `icewright optimizer` starts one")


def _print_history(terminal: Terminal, answer: Json | None) -> None:
    from icewright.retention.history import HistoryStatus  # noqa: PLC0415 - `--help` stays quick

    if answer is None:
        return
    found = from_json(HistoryStatus, answer)
    behind = "it was not asked yet" if found.lag_ms is None else f"{text.about(found.lag_ms)} behind"
    whole = "" if found.through is None else f"; all that ended before {text.instant(found.through)} is in it"
    terminal.say(f"history of tasks: {behind}{whole}", style="red" if found.is_late else "")
    if found.is_waited_for:
        held = f"old tasks stay in the store until they are in it, for {text.duration(found.hold_ms)} at most"
        terminal.say(f"  {held}", style="yellow")


def _print_receivers(terminal: Terminal, answer: Json) -> None:
    for receiver in answer.get("receivers", ()):
        if receiver["trouble"]:
            said = f"receiver {receiver['name']}: {receiver['trouble']} (`icewright notifications list`)"
            terminal.say(said, style="red")


def _catalog_text(catalog: dict[str, Any]) -> str:
    paused = catalog.get("paused_until")
    return str(catalog["name"]) + (
        "" if paused is None else f" (does not answer; left alone until {text.instant(paused)})"
    )
