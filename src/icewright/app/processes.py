"""``icewright serve`` and ``demo``: long-running processes, built by the composition root."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from icewright.config.layers import Given
from icewright.core.extras import without_collection
from icewright.terminal.invocation import Invocation, LogFormat, LogLevel, plain_command


@plain_command
def serve(
    invocation: Invocation,
    *,
    host: Annotated[str | None, typer.Option("--host", help="Where to listen; over server.host.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="The port; over server.port.")] = None,
    processes: Annotated[
        int | None, typer.Option("--processes", help="How many look at tables; over server.processes.")
    ] = None,
    opens: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    log_format: LogFormat = "console",
    log_level: LogLevel = "info",
) -> None:
    """Run the server: it observes, plans, and hands out tasks. Ctrl-C ends it."""
    with without_collection():
        from icewright.server.server import serve as run  # noqa: PLC0415 - `--help` stays quick
    from icewright.server.tracing import export_spans  # noqa: PLC0415 - `--help` stays quick
    from icewright.terminal.logs import FORMAT_VARIABLE, LEVEL_VARIABLE, configure_logs  # noqa: PLC0415 - as above

    for name, value in (("host", host), ("port", port), ("processes", processes)):
        if value is not None:
            invocation.flags["server", name] = Given(value, f"--{name}")
    configure_logs(log_format, log_level)
    export_spans(os.environ)
    terminal = invocation.terminal

    def announce(url: str, link: str | None) -> None:
        terminal.say(f"icewright listens at {url}")
        terminal.say("`icewright login` gives links to it" if link is None else f"Open once in a browser: {link}")
        terminal.out.file.flush()
        if opens and not webbrowser.open(link or url):
            terminal.note("no browser could be opened")

    environ = {**os.environ, FORMAT_VARIABLE: log_format, LEVEL_VARIABLE: log_level}
    run(invocation.config, environ, announce=announce)


@plain_command
def demo(
    invocation: Invocation,
    *,
    once: Annotated[bool, typer.Option("--once", help="Play it to its end and verify every step.")] = False,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    clean: Annotated[bool, typer.Option("--clean", help="Only remove what an earlier demo made.")] = False,
    folder: Annotated[Path, typer.Option("--folder", help="Where the demo's lake is.")] = Path("icewright-demo"),
    days: Annotated[int, typer.Option("--days", min=1, max=365, help="Days of flights that the writer commits.")] = 365,
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="The server's port.")] = 7077,
) -> None:
    """Show the whole loop on a lake of its own: a writer, a server, an optimizer. Ctrl-C leaves nothing running."""
    from icewright.demo import run as play  # noqa: PLC0415 - `--help` stays quick

    console = invocation.terminal.out
    if clean:
        raise typer.Exit(play.clean(folder, console))
    raise typer.Exit(play.run(play.DemoOptions(folder, once, browser, days, port), console))
