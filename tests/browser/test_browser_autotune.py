"""Optimizers on the pages: decisions about them and their memory, and the way to Spark's UI."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.browser.conftest import NARROW, Opened
from tests.browser.lake import named
from tests.browser.pages import violations
from tests.builders.served import Served, hello
from tests.contracts.test_decisions_contract import decision
from tests.work.tasks.test_api_tasks import claimed


def test_a_decision_shows_its_evidence_and_is_held_and_released(chromium: Any, served: Served, url: str) -> None:
    store = served.control.autotune
    assert store.make(decision(1, served.clock))
    opened = Opened(chromium, NARROW)
    page = opened.log_in(url)
    page.goto(f"{url}/ui/queue")
    card = page.get_by_role("region", name="Optimizers, their memory, and servers")
    card.get_by_text("Start an optimizer: 1 to 2", exact=True).wait_for()
    card.get_by_text("5 tasks have waited for 3 min").wait_for()
    card.get_by_role("button", name="Show the evidence").click()
    card.get_by_text("icewright optimizer", exact=True).wait_for()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    card.get_by_role("button", name="Hold").click()
    card.get_by_role("button", name="Release").wait_for()
    assert store.get("tune-1").hold is not None
    card.get_by_role("button", name="Release").click()
    card.get_by_role("button", name="Hold").wait_for()
    assert store.get("tune-1").hold is None
    assert opened.troubles == []


def test_an_attempt_and_its_optimizer_link_to_sparks_ui_where_that_is_on(
    chromium: Any, served: Served, url: str
) -> None:
    served.table(named("events"))
    claimed(served)
    (running,) = served.get("/tasks", state="running")["items"]
    task = f"{url}/ui/tasks/{running['task_id']}"
    off = replace(hello(running["lease"]["optimizer_id"]), application_id="application_1795779034_0001")
    served.post("/optimizers", off)
    opened = Opened(chromium, NARROW)
    page = opened.log_in(url)
    page.goto(task)
    page.get_by_text(off.application_id, exact=True).wait_for()
    assert page.get_by_role("link", name="Spark UI").count() == 0
    served.post("/optimizers", replace(off, spark_ui_url="http://10.0.0.7:4040"))
    for address in (task, f"{url}/ui/administration?tab=optimizers"):
        page.goto(address)
        link = page.get_by_role("link", name=f"Spark UI of {off.application_id}", exact=True)
        link.wait_for()
        assert link.get_attribute("href") == "http://10.0.0.7:4040"
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    assert opened.troubles == []
