"""The docs site in Chromium, from a folder, without a server: its search finds pages, and it asks no other host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scripts.build_docs import build

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_docs_site_opens_from_a_folder(chromium: Any, site: Path, scheme: str) -> None:
    context = chromium.new_context(color_scheme=scheme)
    page = context.new_page()
    asked: list[str] = []
    troubles: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto((site / "policy.html").as_uri())
    assert page.locator("body").get_attribute("data-md-color-scheme") == {"light": "default", "dark": "slate"}[scheme]
    assert page.locator("button.md-code__button").count() > 0  # copies a block of code
    page.keyboard.press("/")
    page.keyboard.type("quarantine")
    page.locator(f'a[href*="{site.as_uri()}/deleting.html"], a[href*="deleting.html#"]').first.wait_for()
    assert troubles == []
    assert len(asked) > 3
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("docs"))
