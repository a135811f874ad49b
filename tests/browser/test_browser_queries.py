"""The queries of a table in a real browser, and what they recommend: seen, accepted, rejected."""

from __future__ import annotations

from typing import Any

import pytest

from icewright.model.iceberg.names import TableId
from icewright.model.queries.templates import TemplateWeek, sums_of, template_of, week_of
from tests.browser.conftest import NARROW, Opened
from tests.browser.lake import named
from tests.browser.pages import uuid_of, violations
from tests.builders.queries import equal, query, read_of, recommendation
from tests.builders.served import Served

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=alert(1)>"


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
