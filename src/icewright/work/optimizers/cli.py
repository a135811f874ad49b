"""``icewright optimizer`` and what belongs to it: running optimizers, and what they need in a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from icewright.core.extras import require_extra
from icewright.model.work.optimizers import LauncherKind
from icewright.terminal.invocation import AsJson, LogFormat, LogLevel, begin

app = typer.Typer(invoke_without_command=True)

SUBMITTER: Final = ("psutil",)
"""What a process needs of the extra ``spark`` that submits applications to a cluster."""


@app.callback()
def optimizer(
    context: typer.Context,
    *,
    launcher: Annotated[
        str | None,
        typer.Option("--launcher", help="resident, or spark-submit: an application for each task; over the setting."),
    ] = None,
    log_format: LogFormat = "console",
    log_level: LogLevel = "info",
) -> None:
    """Run optimizers: Spark sessions that take tasks from the server. Needs Java 17 or 21."""
    if context.invoked_subcommand is not None:
        return
    config = begin(context, as_json=False).config
    _require_spark(resident=(launcher or config.optimizer.launcher) == LauncherKind.RESIDENT)
    from icewright.terminal.logs import FORMAT_VARIABLE, LEVEL_VARIABLE, configure_logs  # noqa: PLC0415 - as above
    from icewright.work.launch.optimizer import run  # noqa: PLC0415 - `--help` stays quick

    configure_logs(log_format, log_level)
    environ = {**os.environ, FORMAT_VARIABLE: log_format, LEVEL_VARIABLE: log_level}
    raise typer.Exit(run(config, environ, launcher=launcher))


def _require_spark(*, resident: bool) -> None:
    """Raise ``InvalidConfiguration`` without the packages of the extra; those who only submit need fewer of them."""
    require_extra("spark", "optimizers", None if resident else SUBMITTER)


@app.command()
def secret(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The name of the Secret, as in optimizer.kubernetes_secret.")],
) -> None:
    """Write the Kubernetes Secret with the settings of drivers, for `kubectl apply -f -`. It has secrets in it."""
    _require_spark(resident=False)
    from icewright.work.launch.optimizer import kubernetes_secret  # noqa: PLC0415 - `--help` stays quick

    invocation = begin(context, as_json=False)
    invocation.terminal.out.file.write(kubernetes_secret(invocation.config, os.environ, name))


@app.command()
def pack(
    context: typer.Context,
    target: Annotated[Path, typer.Argument(help="The file to write.")] = Path("icewright-packages.zip"),
    *,
    as_json: AsJson = False,
) -> None:
    """Make the archive of Python packages that executors of a cluster need, for optimizer.archive."""
    from icewright.core.codec import to_json  # noqa: PLC0415 - see above
    from icewright.work.launch.pack import pack as make  # noqa: PLC0415 - `--help` stays quick

    terminal = begin(context, as_json=as_json).terminal
    manifest = make(target)
    if as_json:
        terminal.document({"file": str(target), "size_bytes": target.stat().st_size, "manifest": to_json(manifest)})
        return
    terminal.say(f"{target}: for Python {manifest.python} on {manifest.platform}")
    terminal.pairs(sorted(manifest.packages.items()))
