"""``icewright doctor`` and ``version``: what is here, what is configured and can be reached, and what is missing."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from icewright import __version__
from icewright.app.cluster import differs_said
from icewright.config.model import Config
from icewright.core.errors import IcewrightError, Unavailable
from icewright.core.extras import EXTRAS, missing_packages
from icewright.core.servers import ZOOKEEPER
from icewright.model.events.notifications import ReceiverKind
from icewright.model.iceberg.object_stores import S3_SCHEMES
from icewright.terminal import figures as text
from icewright.terminal.cli import FINE, FOUND
from icewright.terminal.found_server import found_server
from icewright.terminal.invocation import Invocation, command

if TYPE_CHECKING:
    from icewright.model.iceberg.tables import Json

JAVA_VERSIONS: Final = (17, 21)
_JAVA_TIMEOUT_S: Final = 20
_JAVA_VERSION: Final = re.compile(r'version "(\d+)')
_MARKS: Final = {"ok": ("ok", "green"), "missing": ("--", ""), "failed": ("!!", "red")}


class State(StrEnum):
    """``missing`` is not there, or not the same, and nothing needs it at once; ``failed`` has to be mended."""

    OK = "ok"
    MISSING = "missing"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked. ``hint`` says what to do, if anything."""

    name: str
    state: State
    text: str
    hint: str = ""


@command
def doctor(invocation: Invocation) -> None:
    """Check this machine: configuration, catalogs, server, optimizers, Java and extras. Changes nothing.

    Exit status 1 when something that is configured cannot be used.
    """
    terminal = invocation.terminal
    checks: list[Check] = []
    for check in _checks(invocation):
        checks.append(check)
        if not invocation.as_json:
            mark, style = _MARKS[check.state]
            terminal.prose(f"{mark}  {check.name}: {check.text}", style=style)
            if check.hint:
                terminal.prose(check.hint, indent=4)
    failed = sum(check.state is State.FAILED for check in checks)
    if invocation.as_json:
        terminal.document({"checks": checks, "failed": failed})
    else:
        terminal.say()
        terminal.say(f"{text.count(len(checks), 'check')}, {failed:,} failed.")
    raise typer.Exit(FOUND if failed else FINE)


@command
def version(invocation: Invocation) -> None:
    """Say which version this is."""
    from icewright.model.work.jobs import PROTOCOL_VERSION  # noqa: PLC0415 - it loads all actions

    shown = {"version": __version__, "protocol_version": PROTOCOL_VERSION}
    invocation.print_answer(shown, f"icewright {__version__}")


def _checks(invocation: Invocation) -> Iterator[Check]:
    yield Check("icewright", State.OK, f"{__version__} on Python {platform.python_version()}")
    try:
        config = invocation.config
    except IcewrightError as error:
        yield _failed("configuration", error)
        return
    yield _configuration(config)
    yield from (_catalog(config, entry.name) for entry in config.catalogs)
    yield from _server(invocation)
    yield _java()
    yield from _extras(config)


def _failed(name: str, error: IcewrightError) -> Check:
    return Check(name, State.FAILED, error.message, error.hint)


def _configuration(config: Config) -> Check:
    where = "there is no icewright.toml" if config.path is None else str(config.path)
    named = ", ".join(entry.name for entry in config.catalogs)
    if named:
        return Check("configuration", State.OK, f"{where}; catalogs: {named}")
    hint = "`icewright config init` writes a configuration to start from; `icewright scan --uri URI` needs none"
    return Check("configuration", State.MISSING, f"{where}; no catalogs", hint)


def _catalog(config: Config, name: str) -> Check:
    """Whether a catalog answers; the first of its tables is as many as are asked for."""
    from icewright.ownership.offline import OfflineCatalogs  # noqa: PLC0415 - `--help` stays quick

    subject = f"catalog {name}"
    try:
        first = next(iter(OfflineCatalogs(config).catalog(name).tables()), None)
    except IcewrightError as error:
        return _failed(subject, error)
    entry = config.catalog(name)
    return Check(subject, State.OK, f"{entry.kind} answers; " + ("it has tables" if first else "it has no tables"))


def _server(invocation: Invocation) -> Iterator[Check]:
    """The server that commands ask, and its optimizers."""
    from icewright.api_client.client import Client  # noqa: PLC0415 - `--help` stays quick

    try:
        found = found_server(invocation.config, os.environ)
    except Unavailable as error:
        yield Check("server", State.MISSING, error.message, "`icewright serve` starts one")
        return
    except IcewrightError as error:
        yield _failed("server", error)
        return
    try:
        with Client(found.url, found.token) as client:
            answer = client.status()
            shares = client.cluster()["servers"] if len(answer.get("servers", ())) > 1 else ()
    except IcewrightError as error:
        yield _failed("server", error)
        return
    version = answer.get("version", "?")
    yield Check("server", State.OK, f"icewright {version} answers at {found.url}")
    yield from _alike(shares)
    optimizers = len(answer.get("optimizers", ())) + len(answer.get("submitters", ()))
    if optimizers:
        yield Check("optimizers", State.OK, f"{text.count(optimizers, 'optimizer')} connected")
    else:
        yield Check("optimizers", State.MISSING, "none is connected", "`icewright optimizer` starts one")


def _alike(shares: Sequence[Json]) -> Iterator[Check]:
    """Whether the servers of the store have the leader's configuration: it is no failure while it is rolled out."""
    for server in shares:
        if server.get("differs"):
            hint = "give all servers of the store the same configuration, and restart them one by one"
            yield Check(f"server {server['server_id']}", State.MISSING, differs_said(server["differs"]), hint)


def _java() -> Check:
    """The Java that Spark would take: that of JAVA_HOME, or the one on the path."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    versions = " or ".join(str(version) for version in JAVA_VERSIONS)
    hint = f"optimizers on this machine need Java {versions}, such as that of apt-get install openjdk-17-jre-headless"
    if java is None:
        return Check("java", State.MISSING, f"not in JAVA_HOME {home}" if home else "not on the path", hint)
    try:
        done = subprocess.run(  # noqa: S603 - java as found on the path
            [java, "-version"], capture_output=True, text=True, check=False, timeout=_JAVA_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("java", State.FAILED, f"{java} cannot be run: {error}", hint)
    version = _JAVA_VERSION.search(done.stderr)
    if version is None or int(version[1]) not in JAVA_VERSIONS:
        said = "of an unknown version" if version is None else version[1]
        return Check("java", State.MISSING, f"{java} is Java {said}", hint)
    return Check("java", State.OK, f"{java} is Java {version[1]}")


def _extras(config: Config) -> Iterator[Check]:
    missing = {extra: packages for extra in EXTRAS if (packages := missing_packages(extra))}
    installed = ", ".join(extra for extra in EXTRAS if extra not in missing)
    absent = f"; not installed: {', '.join(missing)}" if missing else ""
    yield Check("extras", State.OK, f"installed: {installed or 'none'}{absent}")
    for extra, reason in _needed_extras(config).items():
        if extra in missing:
            said = f"not installed, but {reason} needs it ({', '.join(missing[extra])})"
            yield Check(f"extra {extra}", State.FAILED, said, f"pip install 'icewright[{extra}]'")


def _needed_extras(config: Config) -> dict[str, str]:
    """The extras without which something that is configured does not work, and what that is."""
    found: dict[str, str] = {}
    if config.server.store_url.startswith("postgresql"):
        found["postgresql"] = "server.store_url"
    if config.oidc.issuer is not None:
        found["oidc"] = "[oidc]"
    if config.events.kafka:
        found["kafka"] = "[events.kafka]"
    if config.cluster.coordinator == ZOOKEEPER:
        found["zookeeper"] = "cluster.coordinator"
    if any(one.receiver.kind is ReceiverKind.APPRISE for one in config.receivers):
        found["notify"] = "a receiver of kind apprise"
    for entry in config.catalogs:
        if entry.uri.startswith("postgresql"):
            found.setdefault("postgresql", f"catalog {entry.name}")
        scheme = entry.warehouse.partition(":")[0]
        extra = "s3" if scheme in S3_SCHEMES else "hdfs" if scheme in {"hdfs", "viewfs"} else None
        if extra is not None:
            found.setdefault(extra, f"the warehouse of catalog {entry.name}")
    return found
