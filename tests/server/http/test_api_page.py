"""The web pages as they are served: what is built, by whom it may be had, for how long it is kept."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from icewright.server.http import page
from tests.builders.served import LOGIN_CODE, Served, TestClient, problem
from tests.cases import each_case

ROOT = Path(__file__).parents[3]
WEB = ROOT / "web"
BUILT = ROOT / "src/icewright/server/http/static/ui"
WAYS_TO_MARKUP = re.compile(
    r"\b(?:dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|DOMParser|srcdoc|setHTML"
    r"|createContextualFragment)\b|\bFunction\(|javascript:|setTimeout\(\s*[\"'`]"
)


@pytest.fixture(scope="module")
def stranger() -> TestClient:
    if not (BUILT / "index.html").is_file():
        pytest.skip("the web pages are not built (make web)")
    return Served().client()


class Elements(HTMLParser):
    """What a page asks the browser to load and to run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.inline: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in {"src", "href"}:
                self.loads.append(str(value))
            if name == "style" or name.startswith("on") or (tag == "script" and not dict(attrs).get("src")):
                self.inline.append(f"{tag} {name}")


def test_the_page_loads_its_own_parts_alone_and_has_nothing_inline(stranger: TestClient) -> None:
    shell = stranger.get("/ui/")
    assert shell.headers["content-type"].startswith("text/html")
    elements = Elements(shell.text)
    assert elements.inline == []
    assert "style" not in elements.tags
    assert any(path.endswith(".js") for path in elements.loads)
    assert all(path.startswith("/ui/") for path in elements.loads)
    for path in elements.loads:
        part = stranger.get(path)
        assert part.status_code == 200
        assert part.content
    (script,) = [path for path in elements.loads if re.search(r"/index-[\w-]+\.js\Z", path)]
    assert stranger.get(script).headers["content-type"].startswith("text/javascript")


def test_every_address_of_a_page_begins_with_the_same_shell(stranger: TestClient) -> None:
    shell = stranger.get("/ui/").content
    for path in (
        "/ui/tables/x",
        "/ui/tasks",
        "/ui/tables/..%2f..%2fapp.py",
        "/ui/index.html",
        "/ui/no/such/page?tab=x",
    ):
        answer = stranger.get(path)
        assert (answer.status_code, answer.content) == (200, shell), path
    problem(stranger.get("/ui/assets/index-gone.js"), 404, "not-found")
    problem(stranger.get("/ui"), 401, "unauthenticated")
    problem(stranger.post("/ui/tasks"), 401, "unauthenticated")


def test_what_has_a_digest_in_its_name_is_kept_for_ever_and_all_else_is_asked_for_again(stranger: TestClient) -> None:
    shell = stranger.get("/ui/")
    assert shell.headers["cache-control"] == "no-cache"
    (style,) = [path for path in Elements(shell.text).loads if path.endswith(".css")]
    assert stranger.get(style).headers["cache-control"] == "public, max-age=31536000, immutable"
    for path in ("/ui/", style, "/ui/icon.svg"):
        known = {"If-None-Match": stranger.get(path).headers["etag"]}
        again = stranger.get(path, headers=known)
        assert (again.status_code, again.content) == (304, b"")
        assert stranger.get(path, headers={"If-None-Match": '"another"'}).status_code == 200


def test_it_is_sent_packed_to_whoever_can_unpack_it(stranger: TestClient) -> None:
    plain = stranger.get("/ui/", headers={"Accept-Encoding": "identity"})
    packed = stranger.get("/ui/", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == plain.content
    assert int(packed.headers["content-length"]) == len(gzip.compress(plain.content, mtime=0))
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"


def test_a_session_gets_the_pages_at_the_root_as_well(stranger: TestClient) -> None:
    browser = Served().client()
    assert browser.get("/", params={"token": LOGIN_CODE}).status_code == 303
    assert browser.get("/").content == stranger.get("/ui/").content


def test_without_a_build_it_says_what_builds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_ui", dict)
    answer = Served().client().get("/ui/tasks")
    assert answer.status_code == 503
    assert "make web" in answer.text


def test_the_refusal_is_plain_words_whose_style_alone_is_allowed() -> None:
    refusal = Served().client().get("/", params={"token": "wrong"})
    assert refusal.status_code == 401
    elements = Elements(refusal.text)
    assert (elements.loads, elements.inline) == ([], [])
    assert "script" not in elements.tags
    style = refusal.text.partition("<style>")[2].partition("</style>")[0]
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{allowed}';" in refusal.headers["content-security-policy"]
    assert "icewright serve" in refusal.text


def sources() -> Iterator[Path]:
    yield from (path for path in sorted((WEB / "src").rglob("*.ts*")) if ".gen." not in path.name)


def test_no_source_makes_markup_or_code_of_text() -> None:
    found = [(str(path), hit[0]) for path in sources() for hit in WAYS_TO_MARKUP.finditer(path.read_text("utf-8"))]
    assert len(list(sources())) > 20
    assert found == []


@each_case(
    "line",
    ["<p dangerouslySetInnerHTML={{ __html: name }} />", "box.innerHTML = name", "new Function(text)", "eval(text)"],
)
def test_the_check_of_markup_would_notice(line: str) -> None:
    assert WAYS_TO_MARKUP.search(line)


def test_what_stands_beside_a_pointer_is_an_element_and_no_text_that_becomes_markup() -> None:
    """ECharts makes markup of a text that a formatter gives, and text of an element's."""
    drawn = (WEB / "src/components/pictures.tsx").read_text("utf-8")
    tips = drawn.split("...tip(colours),")[1:]
    assert len(tips) >= 8
    assert [
        tip[:200]
        for tip in tips
        if not re.match(r"[^)]*?formatter: .{0,500}?return (?:\w+[ &\w]*\s*\? )?said\(", tip, re.DOTALL)
    ] == []


@pytest.mark.campaign
def test_two_builds_are_equal(tmp_path: Path) -> None:
    npx = shutil.which("npx")
    if npx is None or not (WEB / "node_modules").is_dir() or not (BUILT / "index.html").is_file():
        pytest.skip("the web pages are not built (make web)")
    command = [npx, "vite", "build", "--logLevel", "error", "--outDir", str(tmp_path / "ui")]
    subprocess.run(command, cwd=WEB, check=True, capture_output=True)  # noqa: S603 - the build of the project
    assert contents(tmp_path / "ui") == contents(BUILT)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
