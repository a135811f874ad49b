"""Decisions about optimizers and their memory, on the page of the queue."""

from __future__ import annotations

from typing import Any

from tests.browser.conftest import NARROW, Opened
from tests.browser.pages import violations
from tests.builders.served import Served
from tests.contracts.test_decisions_contract import decision


def test_a_decision_shows_its_evidence_and_is_held_and_released(chromium: Any, served: Served, url: str) -> None:
    store = served.control.autotune.store
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
