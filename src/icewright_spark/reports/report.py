"""A PySpark job tells icewright what it committed, whether icewright is there or not.

    from icewright_spark import report_commit

    report_commit(spark, "lake.sales.orders", outbox="/var/spool/icewright")

It never raises into the job, unless it is asked to, and never takes longer than its time limit: a report is a hint, and
what is not reported is found by the sweep.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from icewright.core.codec import to_json
from icewright.core.errors import IcewrightError, InvalidConfiguration, Unavailable
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.names import TableName
from icewright_spark.reports.destination import Destination
from icewright_spark.reports.outbox import Outbox

T = TypeVar("T")

URL_KEY: Final = "spark.icewright.url"
TOKEN_KEY: Final = "spark.icewright.token"  # noqa: S105 - the name of a setting, whose value is a reference
OUTBOX_KEY: Final = "spark.icewright.outbox"
TOKEN: Final = "env:ICEWRIGHT_TOKEN"  # noqa: S105 - a reference
_SHARE_FOR_SENDING: Final = 0.7
"""Of the time limit; the rest is for the outbox."""

_log = logging.getLogger("icewright.report")


@dataclass(frozen=True, slots=True)
class Reported:
    """What became of a report. ``kept``: it waits in the outbox. Neither: it is lost, and ``problem`` says why."""

    told: bool
    kept: bool = False
    problem: str = ""


def report_commit(
    spark_or_url: Any,
    table: str,
    snapshot_id: int | None = None,
    *,
    outbox: str | os.PathLike[str] | None = None,
    token: str | None = None,
    timeout_s: float = 5.0,
    must_work: bool = False,
) -> Reported:
    """Tell the server that ``table`` (``catalog.namespace.table``, the catalog as icewright knows it) has changed.

    ``spark_or_url`` is the server's address, or a session whose configuration has it: ``spark.icewright.url``, and
    ``spark.icewright.token`` and ``spark.icewright.outbox`` where they are not given. ``token`` is a reference,
    ``env:ICEWRIGHT_TOKEN`` by default. Where nobody answers, the report waits in the ``outbox``, a local folder, and is
    sent with the next one. ``must_work``: raise what went wrong when the report was neither told nor kept.
    """
    try:
        return _report(spark_or_url, table, snapshot_id, outbox, token, time.monotonic() + timeout_s)
    except Exception as error:
        if must_work:
            raise
        # The job's own work is done by now, and worth more than this report.
        text = error.message if isinstance(error, IcewrightError) else f"{type(error).__name__}: {error}"
        _log.warning("commit to %s not reported: %s", table, text)
        return Reported(told=False, problem=text)


def _report(
    spark_or_url: Any,
    table: str,
    snapshot_id: int | None,
    outbox: str | os.PathLike[str] | None,
    token: str | None,
    until_s: float,
) -> Reported:
    event = to_json(CommitEvent(TableName.parse(table), snapshot_id))
    send_until_s = time.monotonic() + (until_s - time.monotonic()) * _SHARE_FOR_SENDING
    settings = spark_or_url if isinstance(spark_or_url, str) else within(lambda: _settings(spark_or_url), send_until_s)
    url, said_token, said_outbox = (settings, None, None) if isinstance(settings, str) else settings
    folder = outbox or said_outbox
    box = None if folder is None else Outbox(Path(folder))
    try:
        destination = Destination(url or "", token or said_token or TOKEN)
        within(lambda: destination.tell([event], send_until_s, late=False), send_until_s)
    except (Unavailable, InvalidConfiguration) as error:
        if box is None:
            raise
        within(lambda: box.keep(event), until_s)
        _log.info("commit to %s is reported later: %s", table, error.message)
        return Reported(told=False, kept=True, problem=error.message)
    if box is not None:
        _flush(box, destination, until_s)
    return Reported(told=True)


def _flush(box: Outbox, destination: Destination, until_s: float) -> None:
    """Send what waits, as far as there is time; what is not sent waits on."""
    try:
        within(lambda: box.flush(lambda events: destination.tell(events, until_s), until_s), until_s)
    except IcewrightError as error:
        _log.info("outbox not flushed: %s", error.message)


def within(work: Callable[[], T], until_s: float) -> T:
    """What ``work`` returns or raises, or ``Unavailable`` when it takes longer: names, disks and sockets may hang."""
    done: list[T] = []
    failed: list[BaseException] = []

    def carry_out() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            failed.append(error)

    thread = threading.Thread(target=carry_out, daemon=True, name="icewright-report")
    thread.start()
    thread.join(max(0.0, until_s - time.monotonic()))
    if failed:
        raise failed[0]
    if not done:
        raise Unavailable("it takes longer than it may")
    return done[0]


def _settings(spark: Any) -> tuple[str | None, str | None, str | None]:
    url, token, outbox = (spark.conf.get(key, None) for key in (URL_KEY, TOKEN_KEY, OUTBOX_KEY))
    return url, token, outbox
