"""Write the pictures of the web pages in ``docs/images``: ``python -m scripts.write_screenshots``.

Of made-up tables behind a real server, in the system's Chromium. What they show is checked by ``tests/browser``, and
``tests/browser/test_screenshots.py`` compares them with what the pages draw.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from icewright.core.codec import to_json
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import RefKind
from icewright.model.policy.policies import NewRevision, Policies
from icewright.model.policy.resource_groups import ResourceGroup
from icewright.model.work.jobs import Committed, Conflicted, Failed, GroupFigures, Heartbeat, Receipt, TaskSpec
from icewright.model.work.tasks import Progress
from tests.browser.conftest import WIDE, Opened, system_chromium
from tests.browser.pages import settled
from tests.builders.served import HOUR_MS, V1, Served, answer, at_a_port, hello
from tests.doubles.lake import MemoryFile
from tests.lakes.house import House
from tests.lakes.overlap import written
from tests.lakes.sqlite import table_name
from tests.work.tasks.test_api_tasks import carry_out, claimed, report

IMAGES: Final = Path(__file__).parent.parent / "docs" / "images"


def main() -> None:
    """Take them all."""
    with system_chromium() as chromium:
        for name, picture in pictures(chromium):
            (IMAGES / f"{name}.png").write_bytes(picture)


def pictures(chromium: Any) -> Iterator[tuple[str, bytes]]:
    """Each picture with its name, as the pages draw it now: of the same tables, at the same time of the server."""
    with TemporaryDirectory() as folder:
        served = a_fleet()
        with at_a_port(served.control) as url:
            page = Opened(chromium, WIDE).log_in(url)
            yield "web-ui-fleet", whole(page, f"{url}/ui/")
            sessions = f"{url}/ui/tables/{uuid_of(served, 'sessions')}?catalog=lake&tab=layout"
            yield "web-ui-layout", whole(page, sessions)
            orders = next(one for one in served.get("/tasks")["items"] if one["table"] == "lake.db.orders")
            yield "web-ui-task", card(page, f"{url}/ui/tasks/{orders['task_id']}", "Before and after")
            commits = f"{url}/ui/tables/{uuid_of(served, 'orders')}?catalog=lake&tab=snapshots"
            yield "web-ui-commits", card(page, commits, "Commits over time")
            page.goto(f"{url}/ui/queue")
            page.get_by_label("How far back").select_option("the last hour")
            yield "web-ui-queue", part(page, "The queue over time")
        house, uuid = an_overlap(Path(folder))
        with at_a_port(house.control) as url:
            page = Opened(chromium, WIDE).log_in(url)
            address = f"{url}/ui/tables/{uuid}?catalog=lake&tab=layout"
            page.goto(address)
            page.get_by_label("By column").select_option("id")
            page.get_by_label("And by").select_option("day")
            yield "web-ui-overlap", card(page, page.url, "Overlap of id")


def whole(page: Any, url: str) -> bytes:
    """A picture of a page as it is opened."""
    page.goto(url)
    settled(page)
    return bytes(page.screenshot())


def card(page: Any, url: str, title: str) -> bytes:
    """A picture of one part of a page, opened again."""
    page.goto(url)
    return part(page, title)


def part(page: Any, title: str) -> bytes:
    """A picture of one part of the page as it stands."""
    found = page.get_by_role("region", name=title, exact=True)
    found.wait_for()
    settled(page)
    return bytes(found.screenshot())


def named(name: str) -> TableName:
    """A table of the fleet."""
    return TableName("lake", ("db",), name)


def uuid_of(served: Served, name: str) -> str:
    """Where pages have it."""
    return served.lake.load(named(name)).table_id.uuid


def a_fleet() -> Served:
    """Tables of all conditions, tasks of all outcomes, two that wait."""
    served = Served()
    served.table(named("sessions"), mode="approve", cities=8, files=20)
    served.table(named("invoices"), mode="observe")
    an_orders_table(served)
    of_two = ResourceGroup("default", tasks_max=2)
    tag = served.http.get(f"{V1}/policies").headers["etag"]
    revision = to_json(NewRevision(Policies((), groups=(of_two,)), "Ada"))
    answer(served.http.post(f"{V1}/policies", json=revision, headers={"If-Match": tag}))
    for name in ("clicks", "payments", "returns", "customers", "refunds", "logs"):
        served.table(named(name), files=12 if name != "customers" else 20)
    clicks, payments = claimed(served), claimed(served, "optimizer-2")
    work(served, 7, clicks, payments)
    unreadable = Failed("file-unreadable", "no Parquet file", retryable=False)
    served.post(f"/tasks/{clicks.task_id}/report", report(clicks, unreadable))
    returns = claimed(served)
    work(served, 6, returns, payments)
    served.post(f"/tasks/{returns.task_id}/report", report(returns, Committed(carry_out(served, returns))))
    served.control.loop.round()
    customers = claimed(served)
    work(served, 9, customers, payments)
    for optimizer in ("optimizer-1", "optimizer-2"):
        served.post("/optimizers", hello(optimizer))
    return served


def work(served: Served, minutes: int, *specs: TaskSpec) -> None:
    """Let optimizers be at tasks for so long."""
    for _ in range(minutes * 3):
        served.clock.advance(20_000)
        for spec in specs:
            beat = Heartbeat(spec.fencing_token, Progress("merging", 0, 1))
            served.post(f"/tasks/{spec.task_id}/heartbeat", beat)


def an_orders_table(served: Served) -> None:
    """Two writers, a conflict and then a commit of ours, a branch and a tag."""
    orders = named("orders")
    served.table(orders)
    served.lake.set_properties(orders, {"write.target-file-size-bytes": str(16 * 2**20)})
    served.control.maintainer.look(orders)
    spec = claimed(served)
    work(served, 5, spec)
    served.post(f"/tasks/{spec.task_id}/report", report(spec, Conflicted("a writer came first")))
    for number in range(4):
        served.clock.advance(3 * HOUR_MS)
        files = [MemoryFile(f"orders-s-{number}.parquet", Partition(0, '["city-0"]'), 1_000_000, 100)]
        head = served.lake.append(orders, files, summary={"engine-name": "flink" if number % 2 else "spark"})
    served.clock.advance(4 * HOUR_MS)
    served.control.maintainer.look(orders)
    spec = claimed(served)
    work(served, 2, spec)
    snapshot_id = carry_out(served, spec)
    (group,) = spec.rewrite.groups
    figures = GroupFigures(
        group.group_id,
        len(group.files),
        group.size_bytes,
        (f"{spec.task_id}.parquet",),
        group.size_bytes,
        group.record_count,
        cpu_ms=1_150,
        wall_ms=2_300,
        peak_memory_bytes=300_000_000,
        proof_cpu_ms=240,
    )
    receipt = Receipt(group.group_id, "made-up", "0", "0", group.record_count)
    done = report(spec, Committed(snapshot_id))
    served.post(
        f"/tasks/{spec.task_id}/report",
        replace(done, receipts=(receipt,), groups=(figures,), wall_ms=2_400, cpu_ms=1_150),
    )
    served.control.loop.round()
    served.lake.set_ref(orders, "audit", snapshot_id)
    served.lake.set_ref(orders, "end-of-month", head.snapshot_id, kind=RefKind.TAG)
    for number in range(2):
        served.clock.advance(2 * HOUR_MS)
        files = [MemoryFile(f"orders-a-{number}.parquet", Partition(0, '["city-9"]'), 1_000, 1)]
        served.lake.append(orders, files, branch="audit", summary={"engine-name": "spark"})
    served.clock.advance(HOUR_MS)
    served.control.maintainer.look(orders)


def an_overlap(folder: Path) -> tuple[House, str]:
    """A real table, half of it in order by ``id`` and half of it as it was written; its uuid."""
    house = House(folder)
    chance = random.Random(7)  # noqa: S311 - a picture
    ranges = [(10 * number, 10 * number + 11) for number in range(100)]
    for _ in range(60):
        begin = chance.randrange(0, 700)
        ranges.append((begin, begin + chance.randrange(80, 300)))
    days = [(1 + number % 28, min(31, 4 + number % 28)) for number in range(len(ranges))]
    name = table_name(written(house.entry, "trips", [(ids, day) for ids, day in zip(ranges, days, strict=True)]))
    house.control.maintainer.look(name)
    record = house.control.tables.record_by_name(name)
    if record is None:
        raise LookupError(f"{name} was not seen")
    return house, record.table_id.uuid


if __name__ == "__main__":
    main()
