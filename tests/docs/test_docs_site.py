"""The docs site, as it is built: every page is on it, reads as it is written, and loads nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import tarfile
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from scripts.build_docs import (
    build,
    configuration,
    for_the_site,
    llms,
    navigation,
    pack,
    pages,
    render,
    title_and_summary,
)
from tests.browser.conftest import system_chromium
from tests.cases import for_each

GITHUB = MarkdownIt("commonmark").enable("table")
COUNTED = frozenset(
    ["h1", "h2", "h3", "h4", "ul", "ol", "li", "pre", "table", "tr", "th", "td", "code", "strong", "em", "img"]
)
"""Paragraphs are not: an item of a list has one in it where there is room around it, which the two see differently."""
LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}
DORMANT = re.compile(
    r"https://[a-z.]+/(?:mermaid|glightbox|pyodide|ace-builds|resize-observer-polyfill)\b|https://api\.github\.com"
)
"""What Zensical's script would load for what no page of ours has: diagrams, galleries, Python, old browsers, stars."""
NAMES = ("http://www.w3.org/", "https://fontawesome.com", "https://github.com/squidfunk/iframe-worker")
"""Addresses that are names, or stand in comments."""


class Page(HTMLParser):
    """What is on a page: the elements and the text of its article, its links, and what it loads."""

    def __init__(self, html: str, *, is_whole: bool) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.text, self.links, self.loads, self.ids = "", list[str](), list[str](), set[str]()
        self._is_read, self._is_whole, self._chrome = not is_whole, is_whole, ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self.ids |= {told["id"]} if "id" in told else set()
        if LOADS.get(tag) in told and told.get("rel") not in ("next", "prev", "canonical"):
            self.loads.append(told[LOADS[tag]])
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        if self._is_whole and tag == "article":
            self._is_read = True
        if self._is_read and tag in COUNTED:
            self.elements[tag] += 1
        if tag in ("button", "nav") or told.get("class") == "headerlink":
            self._chrome = tag

    def handle_endtag(self, tag: str) -> None:
        if self._is_whole and tag == "article":
            self._is_read = False
        if tag == self._chrome:
            self._chrome = ""

    def handle_data(self, data: str) -> None:
        if self._is_read and not self._chrome:
            self.text += re.sub(r"\s+", "", data)


def html_of(name: str) -> str:
    return f"{name.removesuffix('.md').replace('README', 'index')}.html"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("docs"))


@pytest.fixture(scope="module")
def shown(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8"), is_whole=True) for path in sorted(site.rglob("*.html"))}


def test_every_page_is_in_the_navigation_once() -> None:
    assert Counter(name for _, name in navigation()) == Counter(pages().keys())


def test_pages_read_as_they_are_written(shown: dict[Path, Page], site: Path) -> None:
    """GitHub and Zensical read Markdown differently: the words are the same, and so are lists, tables and code."""

    def check(name: str) -> None:
        there, here = Page(GITHUB.render(pages()[name].read_text("utf-8")), is_whole=False), shown[site / html_of(name)]
        assert here.text == there.text
        assert here.elements == there.elements

    for_each(pages(), check)


def test_lists_are_indented_for_python_markdown() -> None:
    source = pages()["index.md"]
    text = "Text:\n- a\n  more\n  - b\n\n    of b\n- c\n\n  ```\n  - no item\n  ```\n\n1. d\n\n       code\n\n   - e\n"
    assert for_the_site(text, source, {}) == (
        "Text:\n\n-   a\n    more\n    -   b\n\n        of b\n\n-   c\n\n    ```\n    - no item\n    ```\n\n"
        "1.  d\n\n        code\n\n    -   e\n"
    )


def test_links_that_leave_the_docs_lead_to_copies() -> None:
    copied: dict[str, Path] = {}
    source = pages()["decisions/README.md"]
    text = (
        "[a](../../ARCHITECTURE.md#rooms) [b](../../deploy/Containerfile) [c](0001-files-travel-as-scan-task-json.md)"
    )
    assert for_the_site(text, source, copied) == (
        "[a](../architecture.md#rooms) [b](../files/deploy/Containerfile) "
        "[c](../decisions/0001-files-travel-as-scan-task-json.md)"
    )
    assert [path.name for path in copied.values()] == ["Containerfile"]


def test_every_link_of_the_site_leads_somewhere(shown: dict[Path, Page], site: Path) -> None:
    def check(path: Path) -> None:
        for link in [*shown[path].links, *shown[path].loads]:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = unquote(link).partition("#")
            target = (path.parent / name).resolve() if name else path
            assert target.is_file(), link
            assert not anchor or anchor in shown[target].ids, link
        assert path == site / "404.html" or len(shown[path].links) > len(pages())  # the navigation is on each

    for_each([path for path in shown if path.name != "404.html"], check)


def test_links_that_lead_nowhere_fail_the_build(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of a site of two pages; that the whole site has no such link is what building it shows."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/why.md").write_text("# Why\n")
    (tmp_path / "docs/index.md").write_text("# Start\n\n[there](no-such-page.md) [there](why.md#no-such-section)\n")
    whole = configuration()
    few = re.sub(r"^nav = \[\n.*?^\]\n", "", whole, flags=re.DOTALL | re.MULTILINE)
    assert few != whole
    (tmp_path / "zensical.toml").write_text(few, encoding="utf-8")
    with pytest.raises(subprocess.CalledProcessError):
        render(tmp_path)
    said = re.sub(r"\x1b\[[\d;]*m", "", capfd.readouterr().err)
    assert "no-such-page.md" in said
    assert "no-such-section" in said
    assert "2 issues found" in said


def test_nothing_is_loaded_from_another_host(shown: dict[Path, Page], site: Path) -> None:
    assert {load for page in shown.values() for load in page.loads if re.match(r"([a-z]+:)?//", load)} == set()
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert {
        url for text in styles for url in re.findall(r"(?:url\(|@import)[\"' ]*((?:[a-z]+:)?//[^)]*)", text)
    } == set()
    scripts = [path.read_text(encoding="utf-8") for path in (*site.rglob("*.html"), *site.rglob("assets/**/*.js"))]
    loaded = {url for text in scripts for url in re.findall(r"(?<!href=\")\bhttps?://[\w.-]+/[\w./-]*", text)}
    assert len(styles) > 0
    assert len(loaded) > 0
    pages_say = " ".join(path.read_text(encoding="utf-8") for path in pages().values())
    unknown = {
        url for url in loaded if not (url.startswith(NAMES) or DORMANT.match(url)) and url.rstrip("/.") not in pages_say
    }
    assert unknown == set()


def test_no_page_wakes_what_would_load(shown: dict[Path, Page]) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in shown)
    assert re.findall(r"class=\"(?:mermaid|glightbox|pyodide)[^\"]*\"", text) == []
    assert "md-source" not in text
    assert "fonts.g" not in text


def test_language_models_are_told_of_every_page(site: Path) -> None:
    told = (site / "llms.txt").read_text(encoding="utf-8")
    named = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S", told, re.MULTILINE)
    assert named == [name for _, name in navigation()]
    assert all((site / name).is_file() for name in named)
    assert told == llms({name: path.read_text(encoding="utf-8") for name, path in pages().items()})
    assert title_and_summary("# T\n\n    code\n\nSee [this](x.md), a\npage. More.\n") == ("T", "See this, a page.")


def test_it_is_packed_as_one_folder(site: Path, tmp_path: Path) -> None:
    pack(site, tmp_path / "dist/docs.tar.gz")
    with tarfile.open(tmp_path / "dist/docs.tar.gz") as packed:
        names = set(packed.getnames())
    assert {"icewright-docs/index.html", "icewright-docs/search.js", "icewright-docs/llms.txt"} <= names
    assert {Path(name).parts[0] for name in names} == {"icewright-docs"}


@pytest.mark.browser
def test_it_opens_from_a_folder_and_its_search_finds_pages(site: Path) -> None:
    """In Chromium, in both colour schemes, without a server; and it asks no other host."""
    asked: list[str] = []
    troubles: list[str] = []

    def opened(chromium: Any, name: str, scheme: str) -> Any:
        page = chromium.new_context(color_scheme=scheme).new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto((site / name).as_uri())
        return page

    with system_chromium() as chromium:
        dark = opened(chromium, "health.html", "dark")
        assert dark.locator("body").get_attribute("data-md-color-scheme") == "slate"
        page = opened(chromium, "policy.html", "light")
        assert page.locator("body").get_attribute("data-md-color-scheme") == "default"
        assert page.locator("button.md-code__button").count() > 0  # copies a block of code
        page.keyboard.press("/")
        page.keyboard.type("quarantine")
        page.locator(f'a[href*="{site.as_uri()}/deleting.html"], a[href*="deleting.html#"]').first.wait_for()
    assert troubles == []
    assert len(asked) > 3
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
