"""The page in a real browser: what is shown, said and reached, and that nothing in it breaks a rule of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.browser.conftest import NARROW, WIDE, Opened, one_time_link
from tests.browser.lake import HOSTILE, named
from tests.builders.served import TOKEN, Served, at_a_port

pytestmark = pytest.mark.browser
AXE = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
GONE_AWAY = "Failed to load resource: net::ERR_INTERNET_DISCONNECTED"


def violations(page: Any) -> list[tuple[str, str]]:
    """What axe finds wrong with a page as it stands."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page, options=AXE).response["violations"]
    return [(one["id"], node["html"][:200]) for one in found for node in one["nodes"]]


def eventually(page: Any, ask: Callable[[], Any], wanted: Any) -> None:
    """Wait until that is so. Playwright's own way for it needs a policy that lets text become code."""
    for _ in range(300):
        if ask() == wanted:
            return
        page.wait_for_timeout(100)
    assert ask() == wanted


def new_table(served: Served, name: str) -> None:
    """A table without files, seen at once: no time passes, so that nobody's log-in ends."""
    served.lake.create(named(name), properties={"icewright.mode": "observe"})
    served.control.maintainer.look(named(name))


def row(page: Any, name: str) -> Any:
    return page.locator("#tables tr").filter(has=page.get_by_role("button", name=f"lake.db.{name}", exact=True))


def open_table(page: Any, name: str) -> Any:
    """What stands below a table's row once it is opened."""
    button = row(page, name).get_by_role("button")
    button.click()
    opened = page.locator(f"[id='{button.get_attribute('aria-controls')}']")
    opened.wait_for()
    return opened


def test_a_link_opens_the_page_once(chromium: Any, shown_at: str) -> None:
    link = one_time_link(shown_at)
    first, second = Opened(chromium), Opened(chromium)
    first.page.goto(link)
    first.page.wait_for_selector("#connection[data-state=live]")
    assert "token" not in first.page.url
    second.page.goto(link)
    assert second.page.get_by_role("heading", level=1).inner_text() == "This link does not open the page"
    assert violations(second.page) == []
    assert first.troubles == []
    assert second.troubles == ["Failed to load resource: the server responded with a status of 401 (Unauthorized)"]


def test_a_table_says_why_and_its_tasks_say_what_became_of_them(chromium: Any, shown: Served, shown_at: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(shown_at)
    tasks = {task["table"]: task for task in shown.get("/tasks")["items"]}
    for name, state in (("clicks", "failed"), ("payments", "in doubt"), ("events", "running"), ("logs", "queued")):
        said = row(page, name).inner_text()
        assert state in said
        assert tasks[f"lake.db.{name}"]["task_id"] in said
    (uuid,) = {table["uuid"] for table in shown.get("/tables")["items"] if table["name"] == "lake.db.clicks"}
    why = shown.get(f"/tables/{uuid}/why")
    below = open_table(page, "clicks").inner_text()
    assert why["answer"] in below
    assert "city=city-0" in below
    failed = page.locator("#tasks > li").filter(has_text="clicks").inner_text()
    assert "no Parquet file" in failed
    assert f"icewright tasks retry {tasks['lake.db.clicks']['task_id']}" in failed
    waiting = page.locator("#tasks > li").filter(has_text="lake.db.logs").inner_text()
    (wait, *_) = shown.get(f"/tasks/{tasks['lake.db.logs']['task_id']}")["waits"]
    assert f"Waits: {wait['reason']['text']}" in waiting
    assert page.locator("#totals > div").filter(has_text="Failed").locator("dd").inner_text() == "1"
    assert opened.troubles == []


def test_names_are_text_whatever_they_are(chromium: Any, shown_at: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(shown_at)
    said = page.locator("#tables").inner_text()
    for name in HOSTILE:
        shown = "\\u{202e}gnp.exe" if name.startswith("\u202e") else name
        assert shown in said
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDE[0]
    assert opened.troubles == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_axe_finds_nothing(chromium: Any, shown_at: str, size: tuple[int, int], scheme: str) -> None:
    opened = Opened(chromium, size, scheme)
    page = opened.log_in(shown_at)
    open_table(page, "clicks")
    assert violations(page) == []
    assert opened.troubles == []


def test_axe_would_find_something(chromium: Any, shown_at: str) -> None:
    page = Opened(chromium).log_in(shown_at)
    page.locator("#about").evaluate("element => element.style.setProperty('color', 'Canvas')")
    page.locator("h1").evaluate("element => element.remove()")
    assert {"color-contrast", "page-has-heading-one"} <= {rule for rule, _ in violations(page)}


def test_a_narrow_page_has_all_of_a_table_in_its_width_and_is_a_table_still(chromium: Any, shown_at: str) -> None:
    opened = Opened(chromium, NARROW)
    page = opened.log_in(shown_at)
    open_table(page, "clicks")
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    frame = page.locator("#tables-frame")
    assert frame.evaluate("element => element.scrollWidth <= element.clientWidth")
    cells = page.get_by_role("table").get_by_role("row", name="lake.db.logs").get_by_role("cell")
    assert [cells.nth(index).get_attribute("data-label") for index in range(2)] == ["Mode", "Files"]
    assert opened.troubles == []


def test_the_keyboard_reaches_a_table_and_its_focus_stays_while_all_is_read_anew(
    chromium: Any, served: Served, url: str
) -> None:
    opened = Opened(chromium)
    page = opened.log_in(url)
    focused = "document.activeElement.textContent"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate(focused) == "lake.db.clicks":
            break
    assert page.evaluate(focused) == "lake.db.clicks"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Why").wait_for()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.answer'))")
    chosen = page.evaluate("getSelection().toString()")
    new_table(served, "born_meanwhile")
    page.get_by_role("button", name="lake.db.born_meanwhile").wait_for()
    assert page.evaluate(focused) == "lake.db.clicks"
    assert chosen
    assert page.evaluate("getSelection().toString()") == chosen
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Why").wait_for(state="detached")
    assert opened.troubles == []


def test_a_halt_is_shown_and_told_once(chromium: Any, served: Served, url: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(url)
    news = page.locator("[aria-live=polite]")
    served.post("/queue/stop", {"part": "table", "name": "lake.db.logs", "reason": "a fire"})
    page.get_by_role("heading", name="Halted: nothing is started here").wait_for()
    said = "table lake.db.logs is stopped by owner: a fire"
    assert said in row(page, "logs").inner_text()
    eventually(page, news.text_content, said)
    served.clock.advance(30_000)  # it is said anew how long ago that was, outside of what is read out
    page.get_by_text("30 s ago").first.wait_for()
    assert news.inner_text() == said
    assert page.locator("[aria-live] time, [role=status] time").count() == 0
    served.post("/queue/resume", {"part": "table", "name": "lake.db.logs"})
    eventually(page, news.text_content, f"No longer: {said}")
    assert opened.troubles == []


def test_what_needs_somebody_stands_at_the_top(chromium: Any, served: Served, url: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(url)
    troubles = page.get_by_role("region", name="Trouble: this needs somebody")
    assert troubles.count() == 0
    served.lake.available = False
    served.control.loop.round()
    troubles.wait_for()
    (until,) = {one["paused_until"] for one in served.get("/status")["catalogs"]} - {None}
    at = datetime.fromtimestamp(until // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    assert f"It does not answer, and is left alone until {at}." in troubles.inner_text()
    assert troubles.bounding_box()["y"] < page.locator("#totals").bounding_box()["y"]
    below = open_table(page, "clicks")
    assert "lake" in below.inner_text()
    assert page.locator("#connection").inner_text() == "live"
    assert [one for one in opened.troubles if "503" not in one] == []


def test_a_server_that_goes_away_is_told_of_and_what_was_shown_goes_on_when_it_is_back(
    chromium: Any, served: Served, url: str
) -> None:
    opened = Opened(chromium)
    page = opened.log_in(url)
    page.mouse.wheel(0, 10_000)
    opened.context.set_offline(True)
    page.wait_for_selector("#connection[data-state=away]")
    assert page.get_by_text("the server does not answer; what is shown may be old").is_visible()
    box = page.locator("#connection").bounding_box()
    assert box["y"] + box["height"] <= WIDE[1]  # where somebody is who has scrolled down
    assert row(page, "clicks").is_visible()
    assert violations(page) == []
    new_table(served, "born_meanwhile")
    opened.context.set_offline(False)
    page.wait_for_selector("#connection[data-state=live]")
    assert row(page, "born_meanwhile").is_visible()
    assert set(opened.troubles) == {GONE_AWAY}


def test_the_end_of_a_log_in_is_said(chromium: Any, shown_at: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(shown_at)
    opened.context.clear_cookies()
    page.get_by_text("your log-in has ended").wait_for()
    assert all("401 (Unauthorized)" in one for one in opened.troubles)
    page.reload()
    assert page.get_by_role("heading", level=1).inner_text() == "This link does not open the page"


def test_an_empty_lake_says_what_comes_next(chromium: Any) -> None:
    served = Served()
    with at_a_port(served.control) as url:
        opened = Opened(chromium, NARROW, "dark")
        page = opened.log_in(url)
        for section in ("Tables", "Tasks", "Optimizers"):
            assert page.get_by_role("region", name=section).locator("code").count() >= 1
        assert not page.get_by_label("Find a table by its name").is_visible()
        assert violations(page) == []
        served.get("/backlog", resource_group="default", catalog="lake", submitter_id="submitter-1")
        optimizers = page.get_by_role("region", name="Optimizers")
        optimizers.get_by_text("submitter-1 on ").wait_for()
        assert "No optimizer" not in optimizers.inner_text()
        assert opened.troubles == []


def test_of_many_tables_each_one_is_found(chromium: Any) -> None:
    served = Served()
    for number in range(203):
        new_table(served, f"t{number:03}")
    with at_a_port(served.control) as url:
        opened = Opened(chromium)
        page = opened.log_in(url)
        assert page.locator("#totals dd").first.inner_text() == "200 +"
        rows = page.locator("#tables tr")
        assert rows.count() == 200
        find = page.get_by_label("Find a table by its name")
        find.fill("T19")
        eventually(page, rows.count, 10)
        find.fill("lake.db.t202")
        page.get_by_role("button", name="lake.db.t202").wait_for()
        assert rows.count() == 1
        find.fill("lake.db.nothing")
        page.get_by_text(re.compile("^0 of 200 tables")).wait_for()
        find.fill("not a `name")
        eventually(page, rows.count, 0)
        find.fill("")
        eventually(page, rows.count, 200)
        assert [one for one in opened.troubles if "404" not in one] == []


def test_its_policy_keeps_foreign_script_and_style_out_and_we_would_hear_of_it(chromium: Any, shown_at: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(shown_at)
    page.evaluate(
        "for (const [tag, text] of [['script', 'globalThis.ran = 1'], ['style', 'body { display: none }']]) {"
        " const foreign = document.createElement(tag); foreign.textContent = text; document.body.append(foreign); }"
    )
    assert page.evaluate("globalThis.ran") is None
    assert page.locator("main").is_visible()
    assert sum("Content Security Policy" in one for one in opened.troubles) == 2
    assert TOKEN not in page.content()
