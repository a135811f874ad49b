"""A lake in memory that has a bit of everything which the page shows."""

from __future__ import annotations

from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import Committed, CommitUnknown, Failed, Heartbeat
from icewright.model.work.tasks import Progress
from tests.builders.served import HOUR_MS, V1, Served
from tests.work.tasks.test_api_tasks import carry_out, claimed, report

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "\u202egnp.exe",
    "</td><script>alert(1)</script>",
    "${7*7}{{7*7}}",
    "a" * 300,
)
"""Names that want to be markup, to stand in another order, to be computed, or to push all else aside."""


def named(name: str) -> TableName:
    return TableName("lake", ("db",), name)


def three_tables(served: Served) -> Served:
    """One that was rewritten, one whose task failed, and one whose plan waits for a person."""
    _two_tables(served)
    served.table(named("bills"), mode="approve")
    return served


def _two_tables(served: Served) -> None:
    served.table(named("orders"))
    spec = claimed(served)
    served.post(f"/tasks/{spec.task_id}/report", report(spec, Committed(carry_out(served, spec))))
    served.control.loop.round()
    served.clock.advance(HOUR_MS)
    served.table(named("clicks"))
    spec = claimed(served)
    unreadable = Failed("file-unreadable", "no Parquet file", retryable=False)
    served.post(f"/tasks/{spec.task_id}/report", report(spec, unreadable))


def full_lake() -> Served:
    """Tasks of every state that lasts, tables of every mode, hostile names."""
    served = Served()
    _two_tables(served)
    served.table(named("payments"))
    spec = claimed(served)
    served.post(f"/tasks/{spec.task_id}/report", report(spec, CommitUnknown("the connection broke")))
    served.table(named("events"))
    spec = claimed(served)
    served.post(f"/tasks/{spec.task_id}/heartbeat", Heartbeat(spec.fencing_token, Progress("merging", 0, 1)))
    for number, name in enumerate(HOSTILE):
        served.table(named(name), mode="approve", files=12 if number % 2 else 3)
    served.table(named("invoices"), mode="observe")
    served.table(named("logs"), cities=3)
    assert served.http.get(f"{V1}/status").json()["tasks"]["queued"] == 1
    return served
