"""Each page over a large fleet, and lists over fleets of three sizes: by pages, drawn in part, right in any order.

``ICEWRIGHT_CAMPAIGN=1`` has 100,000 tables, and all pages over each fleet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from icewright.core.server_urls import trusted
from icewright.model.work.figures import FAIR_HEALTH_MIN
from tests.browser.conftest import Opened
from tests.browser.lake import named, three_tables
from tests.browser.pages import addresses, eventually, settled
from tests.builders.fleet import WAITING_EACH, MadeUp, add_tables
from tests.builders.served import TOKEN, Served, at_a_port
from tests.conftest import CAMPAIGN
from tests.lakes.stores import open_without_sync, sqlite_store

pytestmark = pytest.mark.browser
SIZES = (3, 300, 100_000 if CAMPAIGN else 12_000)
"""Fewer and more than are drawn, and so many that a thousand plans wait and no list is in one answer."""
ELEMENTS_MAX = 5_000
"""Of a page: what is drawn does not grow with the fleet."""
ANSWER_BYTES_MAX = 1_000_000
DRAWN_MAX = 500
"""Tables in the map."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """A server of so many tables: three that were really looked at, and those that were made up."""

    served: Served
    url: str
    made: Sequence[MadeUp]


@pytest.fixture(scope="module", params=SIZES)
def fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder: Path = tmp_path_factory.mktemp("fleet")
    engine = open_without_sync(sqlite_store(folder / "store.db"))  # one of its own: emptying it would take as long
    served = three_tables(Served(engine=engine))
    record = served.control.tables.record_by_name(named("bills"))
    assert record is not None
    made = add_tables(engine, record, request.param - 3)
    with at_a_port(served.control) as url:
        yield Fleet(served, url, made)
    engine.dispose()


def plan_that_waits(served: Served) -> str:
    (table,) = served.get("/tables", name="lake.db.bills")["items"]
    return str(table["plan"]["plan_id"])


def first_names(page: Any, count: int) -> list[str]:
    rows = page.get_by_role("region", name="Tables", exact=True).get_by_role("row").all()[1 : count + 1]
    return [row.get_by_role("link").first.inner_text().removeprefix("lake.") for row in rows]


@pytest.mark.parametrize("fleet", SIZES if CAMPAIGN else SIZES[-1:], indirect=True)
def test_no_page_grows_with_the_fleet(chromium: Any, fleet: Fleet) -> None:
    opened = Opened(chromium)
    asked: set[str] = set()
    opened.page.on("request", lambda request: asked.add(request.url) if request.method == "GET" else None)
    page = opened.log_in(fleet.url)
    for path in addresses(fleet.served, "orders", plan_that_waits(fleet.served), ["orders", "clicks"]):
        page.goto(fleet.url + path)
        settled(page)
        if "/reference" not in path:  # as long as the API, and of no table
            assert page.evaluate("document.querySelectorAll('*').length") < ELEMENTS_MAX, path
    assert opened.troubles == []
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answers = [url for url in asked if "/api/v1/" in url and not url.endswith(("/stream", "/openapi.json"))]
    assert len(answers) > 30
    for url in answers:
        found = httpx2.get(url, headers=headers, timeout=60, verify=trusted(url))
        assert found.is_success, url
        assert len(found.content) < ANSWER_BYTES_MAX, url
        assert len(json.loads(found.content).get("items", [])) <= 1_000, url


def test_the_fleet_is_summed_sorted_filtered_and_found_as_it_is(chromium: Any, fleet: Fleet) -> None:
    opened = Opened(chromium)
    page = opened.log_in(fleet.url)
    tables = page.get_by_role("region", name="Tables", exact=True)
    total = len(fleet.made) + 3
    sums = page.locator("dl > div").filter(has_text="Tables")
    sums.get_by_text(f"{total:,}", exact=True).wait_for()
    settled(page)
    assert tables.get_by_role("table").get_attribute("aria-rowcount") == str(total + 1)
    assert tables.get_by_role("row").count() <= 100, "the others are drawn when somebody comes to them"
    waiting = len(fleet.made[::WAITING_EACH]) + 1
    badge = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Inbox")
    more = "+" if waiting > 100 else ""
    eventually(page, lambda: "".join(badge.inner_text().split()), f"Inbox{min(100, waiting)}{more}waiting")
    left = total - DRAWN_MAX
    said = page.get_by_role("region", name="Where the bytes are", exact=False).inner_text()
    assert (f"The {DRAWN_MAX} largest; {left:,} tables more, the smaller ones, are in the list below." in said) is (
        left > 0
    )
    if not fleet.made:
        return
    page.goto(f"{fleet.url}/ui/?sort=-bytes&namespace=lake.ns01")
    expected = [one for one in fleet.made if one.name.namespace == ("ns01",)]
    expected.sort(key=lambda one: (one.bytes, one.table_id.uuid), reverse=True)
    shown = min(10, len(expected))
    wanted = [f"{one.name.namespace[0]}.{one.name.name}" for one in expected[:shown]]
    eventually(page, lambda: first_names(page, shown), wanted)
    page.goto(f"{fleet.url}/ui/?sort=name&poor=true&mode=approve&search=.T0")
    expected = [one for one in fleet.made if one.health < FAIR_HEALTH_MIN and one.mode.value == "approve"]
    expected.sort(key=lambda one: str(one.name))
    sums.get_by_text(f"{len(expected):,}", exact=True).first.wait_for()
    wanted = [f"{one.name.namespace[0]}.{one.name.name}" for one in expected[:10]]
    eventually(page, lambda: first_names(page, len(wanted)), wanted)
    last = fleet.made[-1]
    page.get_by_role("combobox", name="Find a table").fill(last.name.name.upper())
    page.get_by_role("option").filter(has_text=str(last.name)).wait_for()
    found = page.get_by_role("listbox").get_by_role("option").all_inner_texts()
    assert len(found) == 2, "it alone, and what shows it in the fleet"
    page.goto(f"{fleet.url}/ui/?sort=name")
    eventually(page, lambda: len(first_names(page, 5)), 5)
    if len(fleet.made) > 1_000:
        for _ in range(40):
            page.mouse.wheel(0, 6_000)
            page.wait_for_timeout(50)
        assert tables.get_by_role("row").count() <= 100, "also of who has scrolled past several pages"
        assert int(tables.get_by_role("row").last.get_attribute("aria-rowindex")) > 200
    assert opened.troubles == []


@pytest.mark.parametrize("fleet", [SIZES[-1]], indirect=True)
def test_a_plan_that_waits_behind_a_thousand_others_is_approved(chromium: Any, fleet: Fleet) -> None:
    opened = Opened(chromium)
    page = opened.log_in(fleet.url)
    page.goto(f"{fleet.url}/ui/inbox")
    page.get_by_text("The first 100, the oldest.").wait_for()
    page.get_by_role("button", name="Show more").click()
    page.get_by_text("The first 200, the oldest.").wait_for()
    page.goto(f"{fleet.url}/ui/plans/{plan_that_waits(fleet.served)}")
    page.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog", name="Approve this plan")
    dialog.get_by_label("Your name").fill("Ada")
    dialog.get_by_role("button", name="Approve", exact=True).click()
    page.wait_for_url("**/ui/tasks/*")
    page.get_by_text("queued").first.wait_for()
    assert opened.troubles == []
