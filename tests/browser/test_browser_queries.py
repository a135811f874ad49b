"""The queries of a table in a real browser, and what they recommend: seen, accepted, rejected."""

from __future__ import annotations

from typing import Any

import pytest

from icewright.model.iceberg.names import TableId
from icewright.model.queries.templates import WEEK_MS, Sums, TemplateWeek, sums_of, template_of, week_of
from tests.browser.conftest import NARROW, Opened
from tests.browser.lake import named
from tests.browser.pages import uuid_of, violations
from tests.builders.queries import equal, measurement, query, read_of, recommendation
from tests.builders.served import Served

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def served(served: Served) -> Served:
    served.table(named("logs"), cities=3)
    return served


def queried(served: Served, name: str) -> str:
    """A table with queries and a recommendation; its address behind the server's."""
    uuid, at = uuid_of(served, name), served.clock.now()
    one = query(1, read_of(named(name), equal("city", "x"), equal(HOSTILE, "y")), user=HOSTILE, at=at)
    week = TemplateWeek(TableId("lake", uuid), week_of(at), template_of(one.tables[0]), sums_of(one, one.tables[0]))
    served.control.queries.sums.add("a-spool", 0, 1, [week])
    store = served.control.recommendations.store
    store.keep(TableId("lake", uuid), f"task-{uuid}", at, recommendation(named(name), "city"))
    return f"/ui/tables/{uuid}?tab=queries"


def test_queries_are_shown_and_a_recommendation_is_accepted(chromium: Any, served: Served, url: str) -> None:
    address = queried(served, "logs")
    for size in (NARROW, (1280, 900)):
        opened = Opened(chromium, size)
        page = opened.log_in(url)
        page.goto(url + address)
        page.get_by_role("table", name="Columns of filters").wait_for()
        page.get_by_text("sort(city)", exact=True).first.wait_for()
        assert violations(page) == []
    page.get_by_text(HOSTILE).first.wait_for()
    page.get_by_role("button", name="Show the evidence").click()
    page.get_by_text("40.0 now, 2.0 (1.0 to 3.0) then").wait_for()
    assert violations(page) == []
    page.get_by_role("button", name="Accept").click()
    page.get_by_text("accepted by owner").wait_for()
    assert served.lake.load(named("logs")).properties["icewright.layout"] == "sort(city)"
    assert page.get_by_role("button", name="Accept").count() == 0
    assert opened.troubles == []


def test_a_recommendation_in_the_inbox_is_rejected_with_a_reason(chromium: Any, served: Served, url: str) -> None:
    address = queried(served, "logs")
    opened = Opened(chromium)
    page = opened.log_in(url)
    page.goto(f"{url}/ui/inbox")
    page.get_by_role("button", name="Reject").click()
    dialog = page.get_by_role("dialog", name="Reject this recommendation")
    dialog.get_by_label("Why").fill(f"the table moves {HOSTILE}")
    dialog.get_by_role("button", name="Reject", exact=True).click()
    dialog.wait_for(state="detached")
    page.goto(url + address)
    page.get_by_text("rejected by owner").wait_for()
    page.get_by_text(f"the table moves {HOSTILE}").wait_for()
    assert "icewright.layout" not in served.lake.load(named("logs")).properties
    assert opened.troubles == []


def test_what_was_saved_and_spent_is_shown_by_week_and_what_harms_is_taken_back(
    chromium: Any, served: Served, url: str
) -> None:
    uuid, now, store = uuid_of(served, "logs"), served.clock.now(), served.control.recommendations.store
    table_id, one = TableId("lake", uuid), query(1, read_of(named("logs"), equal("city", "x")), at=now)
    read = one.tables[0]
    weeks = [
        TemplateWeek(
            table_id, week_of(now) - ago * WEEK_MS, template_of(read), Sums(10, with_bytes=10, bytes_read=size)
        )
        for ago, size in ((4, 40_960), (1, 10_240), (0, 61_440))
    ]
    served.control.queries.sums.add("a-spool", 0, 1, weeks)
    served.lake.change(served.lake.load(named("logs")), {"icewright.mode": "approve"})
    found = store.keep(table_id, f"task-{uuid}", now, recommendation(named("logs"), "city"))
    served.control.recommendations.accept(found, "ann")
    store.measurements.keep(measurement(table_id, found, "task-m", now - 2 * WEEK_MS))
    served.control.ledger.keep_ledger()
    for size in (NARROW, (1280, 900)):
        opened = Opened(chromium, size)
        page = opened.log_in(url)
        page.goto(f"{url}/ui/benefit")
        page.get_by_text("10 KiB less than the same queries read before").wait_for()  # 30 saved, 20 lost
        table = page.get_by_role("table", name="Tables, with what was saved and spent")
        table.get_by_text("worse").wait_for()
        assert violations(page) == []
        page.get_by_role("button", name="Show the numbers").first.click()
        numbers = page.get_by_role("region", name="Numbers of: Bytes that queries did not read")
        numbers.get_by_text("-20 KiB", exact=True).wait_for()
        numbers.get_by_text("30 KiB", exact=True).wait_for()
        assert numbers.get_by_text("not known", exact=True).count() >= 1
        assert violations(page) == []
    page.goto(f"{url}/ui/inbox")
    page.get_by_text("go back: unset icewright.layout").first.wait_for()
    page.get_by_role("button", name="Accept").click()
    page.get_by_role("button", name="Accept").wait_for(state="detached")
    assert "icewright.layout" not in served.lake.load(named("logs")).properties
    assert opened.troubles == []
