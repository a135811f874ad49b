"""The pages in a real browser: what is shown, said and reached, and that nothing in them breaks a rule of its own."""

from __future__ import annotations

import json
import re
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from icewright.catalogs.parallel_catalogs import BoundedLoads
from icewright.model.access.identity import SESSION_MS
from icewright.model.actions.deletion import Cause, DeletionRun, Held, Intent, IntentState, Step
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.objects import ListedObject
from icewright.model.iceberg.tables import RefKind, TableMetadata
from icewright.model.work.jobs import Conflicted
from icewright.tables import details
from tests.browser.conftest import NARROW, PHONE, WIDE, Opened, one_time_link
from tests.browser.lake import HOSTILE, named
from tests.browser.pages import addresses, eventually, settled, task_of, uuid_of, violations
from tests.builders.served import TOKEN, V1, Served, at_a_port
from tests.doubles.lake import MemoryFile
from tests.lakes.house import House
from tests.lakes.overlap import sales, scattered
from tests.lakes.sqlite import table_name
from tests.work.tasks.test_api_tasks import claimed, report

pytestmark = pytest.mark.browser

READ_ANEW_MS = 10_000
"""After so long by its own clock a page has asked for its lists again."""


def new_table(served: Served, name: str) -> None:
    """A table without files, seen at once: no time passes, so that nobody's log-in ends."""
    served.lake.create(named(name), properties={"icewright.mode": "observe"})
    served.control.maintainer.look(named(name))


def quarantined(served: Served, name: str) -> None:
    """A file of a table that was just put into quarantine."""
    store, now = served.control.deletions, served.clock.now()
    record = served.control.tables.record_by_name(named(name))
    assert record is not None
    of_table = record.table_id, record.name, "s3://x", Cause.ORPHAN
    run = DeletionRun("run-1", "plan-1", "hash", *of_table, 10**9, store.epoch(), 1, None, now, now)
    file = ListedObject(CanonicalPath("s3://bucket/events/garbage.parquet"), 10, 5, "etag", "v")
    planned = Intent("run-1", 0, file, 4, IntentState.PLANNED, 0, now)
    store.begin(run, [planned])
    place = Held(CanonicalPath("s3://bucket/quarantine/garbage.parquet"))
    (moving,) = store.change(store.epoch(), [replace(planned, state=IntentState.UNKNOWN, step=Step.QUARANTINE)])
    store.change(store.epoch(), [replace(moving, state=IntentState.QUARANTINED, held=place, held_at=now)])


def row(page: Any, name: str) -> Any:
    tables = page.get_by_role("region", name="Tables", exact=True)
    return tables.get_by_role("row").filter(has=page.get_by_role("link", name=f"lake.db.{name}", exact=True))


def test_a_link_opens_the_pages_once(chromium: Any, shown_at: str) -> None:
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


def test_a_stranger_is_shown_how_to_log_in_and_comes_to_where_they_wanted(chromium: Any, shown_at: str) -> None:
    opened = Opened(chromium)
    opened.page.goto(f"{shown_at}/ui/tasks?state=failed")
    opened.page.get_by_role("heading", name="Log in to icewright").wait_for()
    assert "icewright login" in opened.page.inner_text("main")
    assert opened.page.get_by_role("link", name="Log in").count() == 0  # there is no provider here
    assert violations(opened.page) == []
    opened.page.evaluate("sessionStorage.setItem('icewright-next', '/ui/tasks?state=failed')")  # as its link does
    opened.page.goto(one_time_link(shown_at))
    opened.page.wait_for_url("**/ui/tasks?state=failed")
    opened.page.evaluate("sessionStorage.setItem('icewright-next', '//elsewhere.example/ui/')")
    opened.page.goto(f"{shown_at}/ui/")
    opened.page.wait_for_selector("#connection[data-state=live]")
    assert opened.page.url == f"{shown_at}/ui/"


def test_a_table_says_why_and_its_tasks_say_what_became_of_them(chromium: Any, shown: Served, shown_at: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(shown_at)
    row(page, "clicks").get_by_role("link", name="lake.db.clicks").click()
    page.get_by_role("link", name="Why", exact=True).click()
    why = shown.get(f"/tables/{uuid_of(shown, 'clicks')}/why")
    page.get_by_text(why["answer"]).first.wait_for()
    assert "tab=why" in page.url
    page.get_by_role("link", name="Tasks", exact=True).last.click()
    page.get_by_role("table", name="Tasks of this table").get_by_role("link").first.click()
    page.get_by_role("button", name="Try it again").wait_for()
    assert "no Parquet file" in page.inner_text("main")
    page.go_back()
    page.get_by_role("table", name="Tasks of this table").wait_for()
    page.go_back()
    page.get_by_text(why["answer"]).first.wait_for()
    page.goto(f"{shown_at}/ui/queue")
    (wait, *_) = shown.get(f"/tasks/{task_of(shown, 'logs')['task_id']}")["waits"]
    page.get_by_text(f"Waits: {wait['reason']['text']}").wait_for()
    page.goto(f"{shown_at}/ui/tasks")
    page.locator("dl > div").filter(has_text="Failed").get_by_text("1", exact=True).wait_for()
    states = page.get_by_role("table", name="Tasks").inner_text()
    assert all(state in states for state in ("failed", "in doubt", "running", "queued", "succeeded"))
    assert opened.troubles == []


def test_names_are_text_whatever_they_are(chromium: Any, shown_at: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(shown_at)
    row(page, "clicks").wait_for()
    said = page.get_by_role("region", name="Tables", exact=True).inner_text()
    for name in HOSTILE:
        assert ("\\u{202e}gnp.exe" if name.startswith("\u202e") else name) in said
    page.get_by_role("combobox", name="Find a table").fill("<img")
    page.get_by_role("option").filter(has_text="<img src=x onerror=alert(1)>").click()
    page.get_by_role("heading", level=1).filter(has_text="<img src=x onerror=alert(1)>").wait_for()
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDE[0]
    assert opened.troubles == []


def test_axe_finds_nothing_on_any_page_and_none_is_too_wide(chromium: Any, shown: Served, shown_at: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(shown_at)
    waiting = shown.get("/plans/waiting")["items"][0]
    for path in addresses(shown, "clicks", waiting["plan_id"], ["orders", "logs"]):
        page.goto(shown_at + path)
        page.get_by_role("heading", level=1).first.wait_for()
        for size, scheme in ((WIDE, "light"), (PHONE, "dark")):
            page.set_viewport_size({"width": size[0], "height": size[1]})
            page.emulate_media(color_scheme=scheme)
            settled(page)
            assert violations(page) == [], (path, scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0], (path, size)
        assert page.get_by_role("alert").count() == 0, path
    assert opened.troubles == []


def test_axe_would_find_something(chromium: Any, shown_at: str) -> None:
    page = Opened(chromium).log_in(shown_at)
    page.locator("h2").first.evaluate("element => element.style.setProperty('color', 'var(--line)')")
    page.locator("h1").evaluate("element => element.remove()")
    assert {"color-contrast", "page-has-heading-one"} <= {rule for rule, _ in violations(page)}


def test_nothing_is_asked_of_another_host(chromium: Any, shown: Served, shown_at: str) -> None:
    opened = Opened(chromium)
    asked: list[str] = []
    opened.page.on("request", lambda request: asked.append(request.url))
    page = opened.log_in(shown_at)
    page.goto(f"{shown_at}/ui/tables/{uuid_of(shown, 'clicks')}?tab=layout")
    settled(page)
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith(f"{shown_at}/")] == []


def test_each_picture_has_its_numbers(chromium: Any, shown: Served, shown_at: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(shown_at)
    page.goto(f"{shown_at}/ui/tables/{uuid_of(shown, 'logs')}?catalog=lake&tab=layout")
    sizes = page.get_by_role("region", name="File sizes", exact=True)
    settled(page)
    assert sizes.get_by_role("img").count() == 1
    assert sizes.locator("canvas").evaluate("canvas => canvas.width > 100 && canvas.height > 100")
    sizes.get_by_role("button", name="Show the numbers").click()
    cells = sizes.get_by_role("table").get_by_role("row").last.get_by_role("cell").all_inner_texts()
    # 3 cities, 12 commits of one file of a million bytes each
    assert cells == ["512 KiB to 1 MiB", "36", "34.3 MiB"]
    parts = page.get_by_role("region", name="Partitions", exact=True)
    parts.get_by_role("button", name="Show the numbers").click()
    rows = parts.get_by_role("table").get_by_role("row").all_inner_texts()
    assert [line.split("\t")[:3] for line in rows[1:]] == [[f"city=city-{number}", "12", "12"] for number in range(3)]
    assert opened.troubles == []


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, str]]:
    """Real tables whose overlap is known, behind a port."""
    house = House(tmp_path_factory.mktemp("overlap"))
    for table in (sales(house.entry), scattered(house.entry)):
        house.control.maintainer.look(table_name(table))
    with at_a_port(house.control) as url:
        yield house, url


def layout_of(house: House, name: str) -> str:
    record = house.control.tables.record_by_name(named(name))
    assert record is not None
    return f"/ui/tables/{record.table_id.uuid}?catalog=lake&tab=layout"


def numbers_of(page: Any, title: str) -> list[list[list[str]]]:
    """The rows of each table that stands for a picture."""
    picture = page.get_by_role("region", name=title, exact=True)
    picture.get_by_role("button", name="Show the numbers").click()
    tables = picture.get_by_role("table").all()
    return [[line.split("\t") for line in table.get_by_role("row").all_inner_texts()] for table in tables]


def test_the_overlap_of_real_columns_is_drawn_and_said(chromium: Any, real: tuple[House, str]) -> None:
    house, url = real
    opened = Opened(chromium)
    page = opened.log_in(url)
    page.goto(url + layout_of(house, "scattered"))
    page.get_by_label("By column").select_option("id")
    # 297 files begin at 0 to 296 and end at 2,000 to 2,296; three are alone: (2 * (1 + ... + 297) + 6) / 600
    page.get_by_text("A lookup opens 297 of 300 files at worst, 147.5 on average.").wait_for()
    page.get_by_label("And by").select_option("day")
    page.get_by_text("A lookup by both opens 297 of 300 files at worst").wait_for()
    assert re.search(r"column=", page.url)
    settled(page)
    assert violations(page) == []
    for title in ("Overlap of id", "Overlap of day", "id and day together"):
        canvas = page.get_by_role("region", name=title, exact=True).locator("canvas")
        assert canvas.evaluate("canvas => canvas.width > 100 && canvas.height > 100"), title
    files, depth = numbers_of(page, "Overlap of id")
    assert files[1][2:] == ["0", "2000", "2"]
    assert (len(files), depth[0], depth[297]) == (301, ["Value", "Files"], ["296", "297"])
    (days,) = numbers_of(page, "id and day together")
    assert days[1][1:] == ["0", "2000", "2026-01-01", "2026-01-31", "2"]
    assert violations(page) == []
    assert opened.troubles == []


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
def test_an_overlap_says_what_it_knows_of_texts_nulls_and_columns_without_bounds(
    chromium: Any, real: tuple[House, str], size: tuple[int, int], scheme: str
) -> None:
    house, url = real
    opened = Opened(chromium, size, scheme)
    page = opened.log_in(url)
    page.goto(url + layout_of(house, "sales"))
    page.get_by_label("By column").select_option("id")
    page.get_by_text("A lookup opens 4 of 6 files at worst, 3.1 on average.").wait_for()
    said = page.get_by_role("region", name="Overlap of id", exact=True).inner_text()
    assert "1 file without bounds: every lookup opens them. 1 file with nothing but NULL" in said
    _, depth = numbers_of(page, "Overlap of id")
    assert depth[1:] == [["1", "2"], ["20", "3"], ["30", "4"], ["45", "4"], ["46", "4"], ["50", "3"], ["60", "2"]]
    page.get_by_label("By column").select_option("note")
    page.get_by_text("A lookup opens 6 of 6 files: none has bounds of this column.").wait_for()
    page.get_by_label("By column").select_option("drink")
    page.get_by_text("Values stand in their order, evenly spaced.").wait_for()
    page.get_by_label("And by").select_option("day")
    even = page.get_by_role("region", name="Overlap of day", exact=True).get_by_role("button", name="Space values")
    even.click()
    assert even.get_attribute("aria-pressed") == "true"
    settled(page)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert opened.troubles == []


def test_a_sample_of_the_files_is_said_to_be_one(
    chromium: Any, real: tuple[House, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(details, "FILES_DRAWN_MAX", 100)
    house, url = real
    page = Opened(chromium).log_in(url)
    page.goto(url + layout_of(house, "scattered"))
    page.get_by_label("By column").select_option("id")
    page.get_by_text("A sample: 100 of 300 files with bounds.").wait_for()
    page.get_by_text("A lookup opens 297 of 300 files at worst").wait_for()
    files, depth = numbers_of(page, "Overlap of id")
    assert (len(files), max(int(row[1]) for row in depth[1:])) == (101, 99)


def test_a_task_shows_what_was_before_and_what_is_after(chromium: Any, shown: Served, shown_at: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(shown_at)
    page.goto(f"{shown_at}/ui/tasks/{task_of(shown, 'orders')['task_id']}")
    card = page.get_by_role("region", name="Before and after", exact=True)
    card.get_by_text("Data files: 12 before, 1 afterwards.").wait_for()
    rows = card.get_by_role("table", name="Before and after").get_by_role("row").all_inner_texts()
    assert [line.split("\t")[:4] for line in rows[1:3]] == [
        ["Data files", "12", "1", "1"],
        ["Delete files", "0", "\u2013", "0"],
    ]
    costs = card.get_by_role("table", name="What the work took").get_by_role("row").all_inner_texts()
    assert [line.split("\t")[0] for line in costs[1:]][:2] == ["Files replaced", "Files written"]
    page.goto(f"{shown_at}/ui/tasks/{task_of(shown, 'logs')['task_id']}")
    card.get_by_text("Data files: 36 before, 3 afterwards, as predicted.").wait_for()
    assert opened.troubles == []


def test_commits_stand_on_a_time_axis_with_conflicts_branches_and_tags(chromium: Any) -> None:
    served = Served()
    forked = named("forked")
    uuid = served.table(forked)
    spec = claimed(served)
    head = served.lake.load(forked).current_snapshot_id
    assert head is not None
    served.lake.set_ref(forked, "audit", head)
    aside = served.lake.append(forked, [MemoryFile("aside.parquet", Partition(0, '["x"]'), 1, 1)], branch="audit")
    served.lake.set_ref(forked, "v1", head, kind=RefKind.TAG)
    served.post(f"/tasks/{spec.task_id}/report", report(spec, Conflicted("a writer came first")))
    with at_a_port(served.control) as url:
        opened = Opened(chromium)
        page = opened.log_in(url)
        page.goto(f"{url}/ui/tables/{uuid}?tab=snapshots")
        page.get_by_text("13 snapshots, 0 of them by icewright; 1 conflict of its tasks with writers.").wait_for()
        settled(page)
        canvas = page.get_by_role("region", name="Commits over time", exact=True).locator("canvas")
        for x in range(60, 960, 6):  # the first lane has the appends
            canvas.click(position={"x": x, "y": 56})
            if "snapshot=" in page.url:
                break
        page.get_by_role("heading", name="Snapshot ").wait_for()
        page.get_by_role("button", name="Close").click()
        page.get_by_role("button", name=str(aside.snapshot_id)).click()
        card = page.get_by_role("region", name=f"Snapshot {aside.snapshot_id}")
        assert "In the current history\nno" in card.inner_text()
        assert "added-data-files" in card.inner_text()
        assert f"snapshot={aside.snapshot_id}" in page.url.replace("%22", "")
        page.reload()
        card.wait_for()
        commits, conflicts, refs = numbers_of(page, "Commits over time")
        assert [row[1:5] for row in commits[-1:]] == [["append", "a writer", "no", "audit"]]
        assert (len(commits), len(conflicts), conflicts[1][2]) == (14, 2, spec.task_id)
        assert [row[:3] for row in refs[1:]] == [
            ["branch audit", "1", str(aside.snapshot_id)],
            ["tag v1", "", str(head)],
        ]
        assert violations(page) == []
        assert opened.troubles == []


def test_the_queue_stands_on_a_time_axis_with_what_waits_and_why(chromium: Any, shown: Served, shown_at: str) -> None:
    opened = Opened(chromium, NARROW)
    page = opened.log_in(shown_at)
    page.goto(f"{shown_at}/ui/queue")
    page.get_by_text("1 task at work, 1 task shown waiting.").wait_for()
    page.get_by_label("How far back").select_option("the last 30 days")
    settled(page)
    (wait, *_) = shown.get(f"/tasks/{task_of(shown, 'logs')['task_id']}")["waits"]
    page.get_by_text(f"Waits: {wait['reason']['text']}").wait_for()
    tries, waits, groups = numbers_of(page, "The queue over time")
    assert {(row[2], row[4]) for row in tries[1:]} == {
        ("lake.db.orders", "committed"),
        ("lake.db.clicks", "failed"),
        ("lake.db.payments", "unknown"),
        ("lake.db.events", "running"),
    }
    assert [(row[1], wait["reason"]["text"] in row[5]) for row in waits[1:]] == [("lake.db.logs", True)]
    assert groups[1][0].startswith("default: 1 task, 1 waiting")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    assert opened.troubles == []


def test_the_keyboard_finds_a_table_and_the_focus_stays_while_all_is_read_anew(
    chromium: Any, served: Served, url: str
) -> None:
    opened = Opened(chromium)
    opened.page.clock.install()
    page = opened.log_in(url)
    row(page, "clicks").wait_for()
    link = page.get_by_role("region", name="Tables", exact=True).get_by_role("link", name="lake.db.clicks", exact=True)
    link.focus()
    focused = "document.activeElement.textContent"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    new_table(served, "born_meanwhile")
    page.clock.fast_forward(READ_ANEW_MS)
    row(page, "born_meanwhile").wait_for(timeout=30_000)
    assert page.evaluate(focused) == "lake.db.clicks"
    page.keyboard.press("/")
    page.keyboard.type("clic")
    page.get_by_role("option").filter(has_text="lake.db.clicks").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1).filter(has_text="lake.db.clicks").wait_for()
    assert page.evaluate("document.activeElement.id") == "main"  # whoever hears the page hears the new one
    assert opened.troubles == []


def test_a_plan_is_approved_and_its_task_is_cancelled(chromium: Any, served: Served, url: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(url)
    before = len(served.get("/plans/waiting")["items"])
    page.get_by_role("link", name="Inbox").click()
    page.get_by_role("link", name="Look at it and decide").first.click()
    page.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog", name="Approve this plan")
    assert violations(page) == []
    dialog.get_by_label("Your name").fill("Ada")
    dialog.get_by_role("button", name="Approve", exact=True).click()
    page.wait_for_url("**/ui/tasks/*")
    page.get_by_text("queued").first.wait_for()
    assert len(served.get("/plans/waiting")["items"]) == before - 1
    task = served.get(f"/tasks/{page.url.rpartition('/')[2]}")["task"]
    assert task["state"] == "queued"
    assert "Ada" in json.dumps(served.get("/approvals"))
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("heading", level=1).get_by_text("cancelled").wait_for()
    assert opened.troubles == []


def test_two_who_approve_at_once_queue_one_task(chromium: Any, served: Served, url: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(url)
    waiting = served.get("/plans/waiting")["items"][0]
    page.goto(f"{url}/ui/plans/{waiting['plan_id']}")
    page.get_by_role("button", name="Approve").click()
    served.post(f"/plans/{waiting['plan_id']}/approve", {"approved_by": "Bob"})
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Your name").fill("Ada")
    dialog.get_by_role("button", name="Approve", exact=True).click()
    dialog.wait_for(state="detached")
    assert len([one for one in served.get("/tasks")["items"] if one["plan_id"] == waiting["plan_id"]]) == 1


def test_who_has_a_plan_open_is_told_of_a_newer_one_and_approves_what_they_saw_alone(
    chromium: Any, served: Served, url: str
) -> None:
    opened = Opened(chromium)
    page = opened.log_in(url)
    waiting = served.get("/plans/waiting")["items"][0]
    page.goto(f"{url}/ui/plans/{waiting['plan_id']}")
    page.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog", name="Approve this plan")
    dialog.get_by_label("Your name").fill("Ada")
    name = TableName.parse(waiting["table"])
    served.append(name, "meanwhile")
    served.control.maintainer.look(name)
    (newer,) = [one for one in served.get("/plans/waiting")["items"] if one["uuid"] == waiting["uuid"]]
    assert newer["plan_id"] != waiting["plan_id"]
    dialog.get_by_text("A newer plan replaced this one, which is not approved.").wait_for()
    assert dialog.get_by_label("Your name").input_value() == "Ada"
    assert dialog.get_by_role("button", name="Approve", exact=True).is_disabled()
    dialog.get_by_label("Your name").press("Enter")
    assert violations(page) == []
    dialog.get_by_role("link", name="Look at the newer plan").click()
    page.wait_for_url(f"**/ui/plans/{newer['plan_id']}")
    eventually(page, page.get_by_role("dialog").count, 0)
    assert [one for one in served.get("/tasks")["items"] if one["uuid"] == waiting["uuid"]] == []
    page.get_by_role("button", name="Approve").click()
    dialog.get_by_label("Your name").fill("Ada")
    dialog.get_by_role("button", name="Approve", exact=True).click()
    page.wait_for_url("**/ui/tasks/*")
    (task,) = [one for one in served.get("/tasks")["items"] if one["uuid"] == waiting["uuid"]]
    assert task["plan_id"] == newer["plan_id"]
    assert opened.troubles == []


@pytest.mark.parametrize("where", ["inbox", "plan"])
def test_who_writes_why_they_refuse_a_plan_is_told_of_a_newer_one_and_loses_no_word(
    chromium: Any, served: Served, url: str, where: str
) -> None:
    opened = Opened(chromium)
    page = opened.log_in(url)
    waiting = served.get("/plans/waiting")["items"][0]
    page.goto(f"{url}/ui/inbox" if where == "inbox" else f"{url}/ui/plans/{waiting['plan_id']}")
    page.get_by_role("button", name="Refuse").first.click()
    dialog = page.get_by_role("dialog", name="Refuse this plan")
    dialog.get_by_label("Why").fill("not before Monday")
    name = TableName.parse(waiting["table"])
    served.append(name, "meanwhile")
    served.control.maintainer.look(name)
    (newer,) = [one for one in served.get("/plans/waiting")["items"] if one["uuid"] == waiting["uuid"]]
    assert newer["plan_id"] != waiting["plan_id"]
    dialog.get_by_text("A newer plan replaced this one, which is not approved.").wait_for()
    assert dialog.get_by_label("Why").input_value() == "not before Monday"
    assert dialog.get_by_role("button", name="Refuse", exact=True).is_disabled()
    assert violations(page) == []
    dialog.get_by_role("link", name="Look at the newer plan").click()
    page.wait_for_url(f"**/ui/plans/{newer['plan_id']}")
    assert newer["plan_id"] in [one["plan_id"] for one in served.get("/plans/waiting")["items"]]
    assert opened.troubles == []


def test_who_has_a_plan_open_that_somebody_approves_is_told_of_its_task(
    chromium: Any, served: Served, url: str
) -> None:
    page = Opened(chromium).log_in(url)
    waiting = served.get("/plans/waiting")["items"][0]
    page.goto(f"{url}/ui/plans/{waiting['plan_id']}")
    page.get_by_role("button", name="Approve").click()
    served.post(f"/plans/{waiting['plan_id']}/approve", {"approved_by": "Bob"})
    dialog = page.get_by_role("dialog", name="Approve this plan")
    dialog.get_by_text("This plan has been approved meanwhile").wait_for()
    assert dialog.get_by_role("button", name="Approve", exact=True).is_disabled()
    dialog.get_by_role("link").click()
    page.get_by_text("queued").first.wait_for()


def test_a_plan_is_refused_with_a_reason_that_its_page_shows(chromium: Any, served: Served, url: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(url)
    before = served.get("/plans/waiting")["items"]
    page.goto(f"{url}/ui/inbox")
    page.get_by_role("button", name="Refuse").first.click()
    dialog = page.get_by_role("dialog", name="Refuse this plan")
    assert violations(page) == []
    assert dialog.get_by_role("button", name="Refuse", exact=True).is_disabled()
    dialog.get_by_label("Why").fill("the audit reads <b>these</b> files")
    dialog.get_by_label("Your name").fill("Ada")
    dialog.get_by_role("button", name="Refuse", exact=True).click()
    dialog.wait_for(state="detached")
    left = served.get("/plans/waiting")["items"]
    (refused,) = [one for one in before if one not in left]
    eventually(page, page.get_by_role("button", name="Refuse").count, len(left))
    page.goto(f"{url}/ui/plans/{refused['plan_id']}")
    page.get_by_text("the audit reads <b>these</b> files").wait_for()
    page.get_by_text("owner (Ada)").wait_for()
    assert page.get_by_role("button", name="Approve").count() == 0
    assert violations(page) == []
    assert opened.troubles == []


def test_who_refuses_what_somebody_approved_meanwhile_is_told(chromium: Any, served: Served, url: str) -> None:
    opened = Opened(chromium)
    opened.context.route("**/feed/stream", lambda route: route.abort())  # the page has not heard of it yet
    page = opened.log_in(url)
    waiting = served.get("/plans/waiting")["items"][0]
    page.goto(f"{url}/ui/plans/{waiting['plan_id']}")
    page.get_by_role("button", name="Refuse").click()
    served.post(f"/plans/{waiting['plan_id']}/approve", {"approved_by": "Bob"})
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Why").fill("no")
    dialog.get_by_label("Your name").fill("Ada")
    dialog.get_by_role("button", name="Refuse", exact=True).click()
    dialog.get_by_text("was approved by owner (Bob)").wait_for()
    assert served.get(f"/plans/{waiting['plan_id']}")["refused"] is None


def test_who_approves_what_somebody_refused_meanwhile_is_told(chromium: Any, served: Served, url: str) -> None:
    page = Opened(chromium).log_in(url)
    waiting = served.get("/plans/waiting")["items"][0]
    page.goto(f"{url}/ui/plans/{waiting['plan_id']}")
    page.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Your name").fill("Ada")
    served.post(f"/plans/{waiting['plan_id']}/refuse", {"why": "not on Fridays", "refused_by": "Bob"})
    page.get_by_role("region", name="Refused", exact=True).get_by_text("not on Fridays").wait_for()
    eventually(page, page.get_by_role("button", name="Approve").count, 0)
    assert page.get_by_role("dialog").count() == 0
    assert [one for one in served.get("/tasks")["items"] if one["plan_id"] == waiting["plan_id"]] == []


def test_a_token_is_made_and_shown_once_and_revoked(chromium: Any, url: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(url)
    page.goto(f"{url}/ui/administration?tab=people")
    page.get_by_role("button", name="Make a token").click()
    dialog = page.get_by_role("dialog", name="Make a token")
    dialog.get_by_label("Name: ").fill("ci")
    dialog.get_by_label("Role").select_option("operator")
    dialog.get_by_label("Where").fill("lake.db, lake.sales")
    dialog.get_by_label("Valid for").select_option("7 days")
    assert violations(page) == []
    dialog.get_by_role("button", name="Make it").click()
    dialog.get_by_text("the only time that it is shown").wait_for()
    token = dialog.locator("code").inner_text()
    owner, bearer = {"Authorization": f"Bearer {TOKEN}"}, {"Authorization": f"Bearer {token}"}
    (kept,) = httpx2.get(f"{url}{V1}/tokens", headers=owner).json()["items"]
    assert {(one["role"], *one["scope"]["namespace"]) for one in kept["grants"]} == {
        ("operator", "db"),
        ("operator", "sales"),
    }
    assert kept["expires_at"] - kept["created_at"] == 7 * 24 * 3_600_000
    assert httpx2.get(f"{url}{V1}/me", headers=bearer).json()["name"] == "token:ci"
    assert violations(page) == []
    dialog.get_by_role("button", name="I have kept it").click()
    dialog.wait_for(state="detached")
    assert token not in page.content()
    page.get_by_role("table", name="Tokens").get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog", name="Revoke this token").get_by_role("button", name="Revoke", exact=True).click()
    page.get_by_role("table", name="Tokens").get_by_text("revoked").wait_for()
    assert httpx2.get(f"{url}{V1}/me", headers=bearer).status_code == 401
    page.get_by_role("button", name="Make a token").click()
    dialog.get_by_label("Name: ").fill("ci")
    dialog.get_by_label("Where").fill("*")
    dialog.get_by_role("button", name="Make it").click()
    dialog.get_by_text("is or was a token").wait_for()


def test_files_in_quarantine_are_looked_at_and_not_purged_before_their_time(
    chromium: Any, served: Served, url: str
) -> None:
    quarantined(served, "orders")
    opened = Opened(chromium)
    page = opened.log_in(url)
    page.goto(f"{url}/ui/administration?tab=quarantine")
    found = page.get_by_role("table", name="Quarantine")
    found.get_by_text("lake.db.orders").first.wait_for()
    found.get_by_role("button", name="Files of").click()
    page.get_by_role("dialog").get_by_text("s3://bucket/events/garbage.parquet").wait_for()
    assert violations(page) == []
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    found.get_by_role("button", name="Purge…").click()
    dialog = page.get_by_role("dialog", name="Purge files for good")
    dialog.get_by_text("Not yet, for anybody").wait_for()
    assert dialog.get_by_role("button", name="Purge", exact=True).count() == 0
    assert violations(page) == []
    assert opened.troubles == []


def test_the_reference_of_the_api_is_a_page_of_ours(chromium: Any, shown_at: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(shown_at)
    page.goto(f"{shown_at}/docs")
    page.wait_for_url("**/ui/reference")
    page.get_by_text("/api/v1/plans/{plan_id}/refuse").wait_for()
    page.get_by_label("Find by path").fill("refuse_plan")
    page.wait_for_url("**/ui/reference?q=refuse_plan")
    page.get_by_text("1 request", exact=True).wait_for()
    page.get_by_role("link", name="RefusalView").click()
    page.get_by_role("table", name="Fields").get_by_text("asked_again_at").wait_for()
    assert "schema=RefusalView" in page.url
    assert violations(page) == []
    assert opened.troubles == []


def test_a_catalog_is_asked_and_the_section_for_another_one_is_written(chromium: Any, served: Served, url: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(url)
    page.goto(f"{url}/ui/administration")
    page.get_by_role("button", name="Test lake").click()
    tables = len(served.get("/tables")["items"])
    page.get_by_text(re.compile(f"It answers, in .*: {tables} tables")).wait_for()
    served.lake.available = False
    page.get_by_role("button", name="Test lake").click()
    page.get_by_text("It does not:").wait_for()
    page.get_by_role("button", name="Connect a catalog").click()
    dialog = page.get_by_role("dialog", name="Connect a catalog")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(f"{request.url} {request.post_data}"))
    dialog.get_by_label("Name, as in").fill("prod")
    dialog.get_by_label("Address").fill("https://catalog.example.org/iceberg")
    dialog.get_by_label("Further settings").fill("credential = id:very-secret")
    dialog.get_by_text("credential may be a secret").wait_for()
    assert dialog.locator("pre").count() == 0
    assert violations(page) == []
    dialog.get_by_label("Further settings").fill("credential = env:CATALOG")
    section = tomllib.loads(dialog.locator("pre").inner_text())
    assert section["catalogs"] == [
        {
            "name": "prod",
            "type": "rest",
            "uri": "https://catalog.example.org/iceberg",
            "mode": "observe",
            "properties": {"credential": "env:CATALOG"},
        }
    ]
    assert violations(page) == []
    assert not [one for one in asked if "secret" in one or "example.org" in one], "nothing typed leaves the page"


def test_a_halt_is_shown_and_let_go_on(chromium: Any, served: Served, url: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(url)
    served.post("/queue/stop", {"part": "table", "name": "lake.db.bills", "reason": "a fire"})
    page.get_by_role("heading", name="Halted: nothing is started here").wait_for()
    said = "table lake.db.bills is stopped by owner: a fire"
    eventually(page, lambda: said in row(page, "bills").inner_text(), wanted=True)
    assert page.locator("[aria-live] time, [role=status] time").count() == 0  # ages are not read out
    page.get_by_role("link", name="Queue", exact=True).click()
    page.get_by_role("button", name="Let table lake.db.bills go on").click()
    page.get_by_role("heading", name="Halted: nothing is started here").wait_for(state="detached")
    assert served.get("/queue")["halts"] == []
    page.get_by_role("button", name="Halt…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Why").fill("a flood")
    dialog.get_by_role("button", name="Halt", exact=True).click()
    page.get_by_role("heading", name="Halted: nothing is started here").wait_for()
    assert [(halt["kind"], halt["state"], halt["why"]) for halt in served.get("/queue")["halts"]] == [
        ("all", "paused", "a flood")
    ]
    assert opened.troubles == []


def test_what_happens_is_told_once(chromium: Any, served: Served, url: str) -> None:
    served.table(named("logs"))
    opened = Opened(chromium)
    opened.page.clock.install()
    with opened.page.expect_response("**/feed/stream"):  # the feed is followed from then on
        page = opened.log_in(url)
    task = task_of(served, "logs")
    served.post(f"/tasks/{task['task_id']}/cancel")
    news = page.locator("p[aria-live=polite]")
    eventually(page, lambda: "lake.db.logs: cancelled" in news.text_content(), wanted=True)
    said = news.text_content()
    with page.expect_response("**/api/v1/status*"), page.expect_response("**/api/v1/tasks?*"):
        page.clock.fast_forward(READ_ANEW_MS)  # the feed and the lists are asked again meanwhile
    page.wait_for_timeout(1_000)
    assert news.text_content() == said
    assert said.count("lake.db.logs: cancelled") == 1
    assert opened.troubles == []


def test_what_needs_somebody_stands_at_the_top(chromium: Any, served: Served, url: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(url)
    troubles = page.get_by_role("region", name="Trouble: this needs a person")
    assert troubles.count() == 0
    served.lake.available = False
    served.control.loop.round()
    troubles.wait_for()
    page.reload()  # parts are asked for now and then
    page.get_by_role("link", name="not well: catalog lake").wait_for()
    (until,) = {one["paused_until"] for one in served.get("/status")["catalogs"]} - {None}
    assert "it does not answer, and is left alone until" in troubles.inner_text()
    shown = troubles.locator("time").get_attribute("datetime")
    assert page.evaluate(f"Date.parse('{shown}')") == until
    assert troubles.bounding_box()["y"] < page.get_by_role("heading", level=1).bounding_box()["y"]
    assert page.locator("#connection").inner_text() == "live"
    assert [one for one in opened.troubles if "503" not in one] == []


def test_a_server_that_goes_away_is_told_of_and_what_was_shown_goes_on_when_it_is_back(
    chromium: Any, served: Served, url: str
) -> None:
    opened = Opened(chromium)
    opened.page.clock.install()
    page = opened.log_in(url)
    row(page, "clicks").wait_for()
    page.mouse.wheel(0, 10_000)
    opened.context.set_offline(True)
    page.wait_for_selector("#connection[data-state=away]")
    assert page.get_by_text("The server does not answer; what is shown may be old.").is_visible()
    box = page.locator("#connection").bounding_box()
    assert box["y"] + box["height"] <= WIDE[1]  # where somebody is who has scrolled down
    assert row(page, "clicks").is_visible()
    assert violations(page) == []
    new_table(served, "born_meanwhile")
    opened.context.set_offline(False)
    page.clock.fast_forward(READ_ANEW_MS)
    page.wait_for_selector("#connection[data-state=live]", state="attached")
    row(page, "born_meanwhile").wait_for(timeout=30_000)
    assert {one for one in opened.troubles if "ERR_INTERNET_DISCONNECTED" not in one} == set()


def test_the_end_of_a_log_in_is_said(chromium: Any, shown_at: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(shown_at)
    opened.context.clear_cookies()
    page.get_by_role("heading", name="Log in to icewright").wait_for()
    assert all("401 (Unauthorized)" in one for one in opened.troubles)
    page.reload()
    page.get_by_role("heading", name="Log in to icewright").wait_for()


def test_a_session_that_expires_ends_at_the_log_in(chromium: Any) -> None:
    served = Served()
    with at_a_port(served.control) as url:
        opened = Opened(chromium)
        page = opened.log_in(url)
        served.clock.advance(SESSION_MS)
        page.get_by_role("heading", name="Log in to icewright").wait_for()
        assert all("401 (Unauthorized)" in one for one in opened.troubles)
        page.goto(one_time_link(url))
        page.get_by_text("No tables yet").wait_for()


def test_a_catalog_that_hangs_is_told_of_beside_what_is_stored_and_keeps_no_other_page_waiting(
    chromium: Any, served: Served, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, load = threading.Event(), served.lake.load

    def hang(name: TableName) -> TableMetadata:
        answers.wait(60)
        return load(name)

    monkeypatch.setattr(served.control.observer, "_loads", BoundedLoads(limit_s=0.5))
    opened = Opened(chromium)
    opened.page.clock.install()
    page = opened.log_in(url)
    address = f"{url}/ui/tables/{uuid_of(served, 'clicks')}?catalog=lake"
    said = re.compile(r"^catalog lake does not answer: no metadata of lake\.db\.clicks within ")
    monkeypatch.setattr(served.lake, "load", hang)
    try:
        page.goto(address)
        page.get_by_role("alert").get_by_text(said).wait_for()
        page.get_by_role("heading", level=1).filter(has_text="lake.db.clicks").wait_for()
        page.locator("dl > div").filter(has_text="Data files").get_by_text("12", exact=True).wait_for()
        page.get_by_role("heading", name=re.compile(r"^Health \d+ of 100")).wait_for()
        page.get_by_text("What is stored is shown, as of the last look").wait_for()
        assert page.get_by_role("status").filter(has_text="Loading").count() == 0
        for size, scheme in ((WIDE, "light"), (PHONE, "dark")):
            page.set_viewport_size({"width": size[0], "height": size[1]})
            page.emulate_media(color_scheme=scheme)
            assert violations(page) == [], scheme
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0], size
        page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
        page.get_by_role("link", name="Snapshots", exact=True).click()
        eventually(page, page.get_by_role("alert").filter(has_text="This page keeps asking.").count, 2)
        page.get_by_role("link", name="Fleet").click()
        row(page, "orders").wait_for()
        assert page.locator("#connection").inner_text() == "live"
        page.goto(f"{address}&tab=snapshots")
        page.get_by_role("alert").get_by_text(said).first.wait_for()
    finally:
        answers.set()
    page.clock.fast_forward(READ_ANEW_MS)
    page.get_by_text("12 snapshots").first.wait_for()  # by itself
    eventually(page, page.get_by_role("alert").count, 0)
    assert [one for one in opened.troubles if "503" not in one] == []


def test_of_ten_thousand_partitions_and_too_many_files_some_are_shown_and_it_is_said(
    chromium: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(details, "FILES_READ_MAX", 5_000)  # of a million files, 50,000
    served = Served()
    uuid = served.table(named("wide"), cities=10_000, files=1)
    with at_a_port(served.control) as url:
        opened = Opened(chromium)
        page = opened.log_in(url)
        page.goto(f"{url}/ui/tables/{uuid}?catalog=lake&tab=layout")
        page.get_by_text("The first 5,000; others are not drawn.").wait_for()
        settled(page)
        assert page.evaluate("document.querySelectorAll('*').length") < 2_000
        page.get_by_role("link", name="Files", exact=True).click()
        page.get_by_text("Only 5,000 were read: the order is that of these.").wait_for()
        files = page.get_by_role("table").first
        eventually(page, lambda: files.get_by_role("row").count() > 10, wanted=True)
        assert files.get_by_role("row").count() < 300
        assert opened.troubles == []


def test_nothing_is_said_by_colour_alone(chromium: Any, shown_at: str) -> None:
    page = Opened(chromium).log_in(shown_at)
    page.emulate_media(forced_colors="active")
    badge = row(page, "clicks").get_by_text(re.compile(r"^\d+ (good|fair|poor)$"))
    badge.wait_for()
    page.goto(f"{shown_at}/ui/tasks")
    page.get_by_role("table", name="Tasks").get_by_text("in doubt").wait_for()
    assert violations(page) == []


def test_an_empty_lake_says_what_comes_next(chromium: Any) -> None:
    served = Served()
    with at_a_port(served.control) as url:
        opened = Opened(chromium, NARROW, "dark")
        page = opened.log_in(url)
        page.get_by_text("No tables yet").wait_for()
        assert violations(page) == []
        for path, words in (
            ("inbox", "Nothing waits for you"),
            ("tasks", "No tasks yet"),
            ("benefit", "Nothing was rewritten yet"),
            ("policies", "No rules"),
            ("administration?tab=optimizers", "No optimizer has introduced itself yet"),
        ):
            page.goto(f"{url}/ui/{path}")
            page.get_by_text(words).wait_for()
        served.get("/backlog", resource_group="default", catalog="lake", submitter_id="submitter-1")
        page.reload()
        page.get_by_text("submitter-1 on ").wait_for()
        assert opened.troubles == []


def test_of_many_tables_each_one_is_found_and_every_state_has_an_address(chromium: Any) -> None:
    served = Served()
    for number in range(303):
        new_table(served, f"t{number:03}")
    with at_a_port(served.control) as url:
        opened = Opened(chromium)
        page = opened.log_in(url)
        tables = page.get_by_role("region", name="Tables", exact=True)
        row(page, "t000").wait_for()
        assert page.locator("dl > div").filter(has_text="Tables").get_by_text("303", exact=True).count() == 1
        assert tables.get_by_role("table").get_attribute("aria-rowcount") == "304"
        assert 10 < tables.get_by_role("row").count() < 100  # the others are drawn when somebody comes to them
        page.get_by_label("Name has").fill("T19")
        eventually(page, lambda: tables.get_by_role("row").count(), 11)
        assert "search=T19" in page.url
        tables.get_by_role("button", name="Table").click()
        row(page, "t190").wait_for()
        page.wait_for_url("**sort=name**")
        page.reload()
        eventually(page, lambda: tables.get_by_role("row").count(), 11)
        row(page, "t195").get_by_role("link").first.click()
        page.get_by_role("heading", level=1).filter(has_text="lake.db.t195").wait_for()
        page.go_back()
        eventually(page, lambda: tables.get_by_role("row").count(), 11)
        page.get_by_label("Name has").fill("nothing like this")
        page.get_by_text("No table is like that.").wait_for()
        page.goto(f"{url}/ui/?sort=name")
        row(page, "t000").wait_for()
        for _ in range(60):
            page.mouse.wheel(0, 3_000)
            page.wait_for_timeout(50)
            if row(page, "t302").count():
                break
        row(page, "t302").wait_for()
        assert opened.troubles == []


def test_dark_and_light_are_chosen_and_kept(chromium: Any, shown_at: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(shown_at)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_label("Colours").select_option("dark")
    dark = page.evaluate(paper)
    assert dark != light
    page.reload()
    page.wait_for_selector("#connection[data-state=live]")
    assert page.evaluate(paper) == dark


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
