"""What attempts log on the page of their task: text whatever it is made of, reached by keys, and up to date."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from icewright.model.work.jobs import Failed, Heartbeat, SentReport
from icewright.model.work.tasks import Progress
from tests.browser.conftest import NARROW, Opened
from tests.browser.lake import named
from tests.browser.pages import violations
from tests.builders.served import Served, hello
from tests.builders.specs import log_lines
from tests.work.tasks.test_api_tasks import claimed, report

MARKUP = "<img src=x onerror=alert(1)> \N{ICE CUBE} at org.apache.spark.Frame" + 200 * "e"


def test_the_lines_of_each_attempt_come_as_they_are_logged(chromium: Any, served: Served, url: str) -> None:
    served.table(named("tried"))
    spec = claimed(served)
    while spec.table_name != named("tried"):
        spec = claimed(served)
    log = log_lines("task started", MARKUP, first=8)
    path, beat = f"/tasks/{spec.task_id}", Heartbeat(spec.fencing_token, Progress("merging", 0, 1), log)
    served.post(f"{path}/heartbeat", beat)
    opened = Opened(chromium, NARROW)
    page = opened.log_in(url)
    page.goto(f"{url}/ui{path}")
    card = page.get_by_role("region", name="Logs")
    lines = card.get_by_role("region", name="What attempt 1 logged")
    lines.get_by_text(MARKUP, exact=True).wait_for()
    card.get_by_text("7 earlier lines were left out.", exact=True).wait_for()
    assert card.locator("img").count() == 0
    lines.focus()
    assert lines.evaluate("element => element === document.activeElement")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]

    served.post("/optimizers", replace(hello("optimizer-1"), application_id="application_1_2"))
    said = SentReport.of(report(spec, Failed("engine", "no heap", retryable=True)), log_lines("task ended", first=10))
    served.post(f"{path}/report", said)
    lines.get_by_text("task ended", exact=True).wait_for()
    card.get_by_text("yarn logs -applicationId application_1_2", exact=True).wait_for()
    served.clock.advance(120_000)  # nobody is logged out in that time
    second = claimed(served)
    while second.task_id != spec.task_id:
        second = claimed(served)
    card.get_by_text("No lines of attempt 2 are kept here.", exact=True).wait_for()
    card.get_by_label("Of attempt").select_option("1")
    lines.get_by_text("task ended", exact=True).wait_for()
    assert violations(page) == []
    assert opened.troubles == []
