"""Chromium for the tests of the page, and a lake in memory behind a port."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import pytest

from icewright.core.server_urls import trusted
from scripts.install_programs import BROWSERS
from tests.browser.lake import full_lake, three_tables
from tests.builders.served import TOKEN, V1, Served, at_a_port

WIDE, NARROW, PHONE = (1280, 900), (390, 844), (360, 740)


@contextmanager
def system_chromium() -> Iterator[Any]:
    """The system's Chromium, driven by Playwright, which brings none of its own here."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (make setup)")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"Chromium is not installed (on Debian: apt-get install {BROWSERS[0]})")
    with playwright.sync_playwright() as started:
        # Its sandbox refuses root; it opens nothing but the server of these tests.
        launched = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield launched
        launched.close()


_RUNNING = ExitStack()
"""The browser of all tests of the folder."""


@cache
def _browser() -> Any:
    return _RUNNING.enter_context(system_chromium())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """End the browser behind the last test of the folder: Playwright's loop would be in the way of those that follow.

    A new one for each module would take some two seconds of CPU.
    """
    result = yield
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        _browser.cache_clear()
        _RUNNING.close()
    return result


@pytest.fixture
def chromium() -> Iterator[Any]:
    """The browser for one test; a page that is left open would go on asking."""
    browser = _browser()
    yield browser
    for context in browser.contexts:
        context.close()


@pytest.fixture(scope="module")
def shown() -> Served:
    """What tests share that change nothing."""
    served = full_lake()
    served.post("/queue/pause", {"part": "table", "name": "lake.db.logs", "reason": "a fire"})
    return served


@pytest.fixture(scope="module")
def shown_at(shown: Served) -> Iterator[str]:
    with at_a_port(shown.control) as found:
        yield found


@pytest.fixture
def served() -> Served:
    """For tests that change something."""
    return three_tables(Served())


@pytest.fixture
def url(served: Served) -> Iterator[str]:
    with at_a_port(served.control) as found:
        yield found


def one_time_link(url: str) -> str:
    """What ``icewright login`` prints."""
    answer = httpx2.post(f"{url}{V1}/login-codes", headers={"Authorization": f"Bearer {TOKEN}"}, verify=trusted(url))
    assert answer.status_code == 201, answer.text
    return url + str(answer.json()["path"])


class Opened:
    """The page as somebody has it open; ``troubles`` is what the browser complained of."""

    def __init__(self, chromium: Any, size: tuple[int, int] = WIDE, scheme: str = "light") -> None:
        self.context = chromium.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=scheme,
            timezone_id="UTC",
            locale="en-US",
            reduced_motion="reduce",
        )
        self.troubles: list[str] = []
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", self._hear)
        self.page.on("dialog", self._refuse)

    def _hear(self, message: Any) -> None:
        """What Chromium logs, broken policies and failed requests among it."""
        if message.type in {"error", "warning"}:
            self.troubles.append(message.text)

    def _refuse(self, dialog: Any) -> None:
        self.troubles.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def log_in(self, url: str) -> Any:
        """Open it by a link of its own."""
        self.page.goto(one_time_link(url))
        self.page.wait_for_selector("#connection[data-state=live]")
        return self.page
