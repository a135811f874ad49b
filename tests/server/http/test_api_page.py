"""The plain page as it is served. That text stays text is shown on its source: it has no way to make markup."""

import base64
import hashlib
import re
from dataclasses import fields
from html.parser import HTMLParser

import pytest
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient

from icewright.model.work.halts import HaltState, PartKind
from icewright.notifications.service import DeadLetter, ReceiverView
from tests.builders.served import HOST, LOGIN_CODE, V1, Served


@pytest.fixture(scope="module")
def browser() -> TestClient:
    client = Served().client()
    assert client.get("/", params={"token": LOGIN_CODE}).status_code == 303
    return client


def scripts(browser: TestClient) -> str:
    """All that the page runs."""
    return "".join(browser.get(f"/assets/{name}").text for name in ("page.js", "parts.js"))


class Elements(HTMLParser):
    """What a page asks the browser to load and to run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.inline: list[str] = []
        self.tags: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in {"src", "href"}:
                self.loads.append(str(value))
            if name == "style" or name.startswith("on") or (tag == "script" and not dict(attrs).get("src")):
                self.inline.append(f"{tag} {name}")
            if name == "id":
                self.ids.add(str(value))


def test_the_page_loads_its_own_parts_alone_and_has_nothing_inline(browser: TestClient) -> None:
    page = browser.get("/")
    assert page.headers["content-type"].startswith("text/html")
    elements = Elements(page.text)
    assert elements.inline == []
    assert "style" not in elements.tags
    assert set(elements.loads) == {"/assets/icon.svg", "/assets/page.css", "/assets/page.js"}
    for path in elements.loads:
        part = browser.get(path)
        assert part.status_code == 200
        assert part.content
    assert browser.get("/assets/page.js").headers["content-type"].startswith("text/javascript")


def test_the_script_cannot_make_markup_or_code_of_text(browser: TestClient) -> None:
    script = scripts(browser)
    for means in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "DOMParser"):
        assert means not in script
    assert not re.search(r"setTimeout\(\s*[\"'`]|\.srcdoc|javascript:|createContextualFragment|setHTML", script)
    # Tag and attribute names are constants: values from outside are never the first argument of el().
    assert not re.search(r"\bel\((?![\"'`])(?!tag, attributes)", script)
    assert "createElement(tag)" in script


def test_the_script_shows_hidden_characters_by_their_code(browser: TestClient) -> None:
    script = scripts(browser)
    assert r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]" in script
    assert "visible(String(child))" in script


def test_the_script_finds_in_the_page_and_in_the_api_what_it_looks_for(browser: TestClient) -> None:
    script = scripts(browser)
    ids = set(re.findall(r"\$\(\"([a-z-]+)\"\)", script)) | set(re.findall(r"showEmpty\(\"([a-z-]+)\"", script))
    assert ids
    assert ids <= Elements(browser.get("/").text).ids
    served = {
        re.sub(r"\{\w+\}", "*", str(route.path).removeprefix(V1)) for route in iter_route_contexts(Served().app.routes)
    }
    asked = {re.sub(r"\$\{.*?\}", "*", path).partition("?")[0] for path in re.findall(r"[\"`](/[a-z].*?)[\"`]", script)}
    assert {path.replace("*)", "*") for path in asked} - {"/api/v1"} <= served


def test_what_is_halted_stands_before_all_else_and_at_what_it_holds(browser: TestClient) -> None:
    page, script = browser.get("/").text, scripts(browser)
    assert page.index('id="halts"') < page.index('id="totals"') < page.index('id="tables"')
    assert "halts = status.halts;" in script
    states = re.findall(r'"(\w+)"', script.partition("HALT_STATES = [")[2].partition("]")[0])
    assert states == [state.value for state in HaltState]  # in the order in which they let less go on
    covering = script.partition("function covers(")[2].partition("\n}")[0]
    assert set(re.findall(r'kind === "(\w+)"', covering)) == {kind.value for kind in PartKind} - {PartKind.CATALOG}
    for told in ("haltOver(table)", "haltOver(task)", "halt.by", "halt.why", "timeOf(halt.since)"):
        assert told in script


def test_messages_are_shown_by_the_fields_that_they_have_and_to_whom_may_see_them_alone(browser: TestClient) -> None:
    script = scripts(browser)
    shown = script.partition("function showMessages")[2].partition("\n}\n")[0]
    receivers, letters = shown.partition('keyed($("letters")')[::2]
    for part, view in ((receivers, ReceiverView), (letters, DeadLetter)):
        used = set(re.findall(r"each\.([a-z_]+)", part))
        assert used
        assert used <= {one.name for one in fields(view)}
    assert "403: Refused" in script
    assert 'id="messages-section" aria-labelledby="messages-title" hidden' in browser.get("/").text


def test_the_refusal_is_plain_words_whose_style_alone_is_allowed() -> None:
    stranger = Served().client()
    page = stranger.get("/", params={"token": "wrong"})
    assert page.status_code == 401
    elements = Elements(page.text)
    assert (elements.loads, elements.inline) == ([], [])
    assert "script" not in elements.tags
    style = page.text.partition("<style>")[2].partition("</style>")[0]
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{allowed}';" in page.headers["content-security-policy"]
    assert "icewright serve" in page.text


def test_numbers_that_javascript_cannot_hold_keep_their_digits(browser: TestClient) -> None:
    script = scripts(browser)
    assert "JSON.parse(await response.text(), digits)" in script
    assert "context.source" in script
    assert ".json()" not in script


def test_the_page_needs_no_other_host(browser: TestClient) -> None:
    for path in ("/", "/assets/page.js", "/assets/parts.js", "/assets/page.css"):
        text = browser.get(path).text
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text.replace(f"http://{HOST}", ""))
