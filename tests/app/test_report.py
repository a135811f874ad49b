"""The report is one file that needs nothing else, says what the server says, and takes no text for markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from icewright.model.iceberg.names import TableName
from tests.builders.command_line import HOSTILE, beside, icewright
from tests.builders.lakehouse import Lakehouse
from tests.builders.served import Served, at_a_port
from tests.builders.worker import Worker

EVIL = TableName("lake", ("db",), "<script>alert(1)</script>\"'&")
PLAIN = TableName("lake", ("db",), "orders")
_TAGS = frozenset(
    {
        *(
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "h1",
            "h2",
            "p",
            "strong",
            "div",
            "table",
            "tr",
            "th",
            "td",
        ),
        *("svg", "rect", "text", "footer"),
    }
)


class Page(HTMLParser):
    """What a browser finds in a page: its tags, what they refer to, and its text."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.text = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def served() -> Served:
    served = Served()
    served.table(EVIL, mode="approve", cities=2)
    served.table(TableName("lake", ("db",), HOSTILE[1]))
    served.table(PLAIN, files=1)
    return served


@pytest.fixture(scope="module", autouse=True)
def home(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch, beside(served.control, folder, patch):
        yield folder


def page_of(path: Path) -> Page:
    document = path.read_text("utf-8")
    found = Page(document)
    assert found.tags <= _TAGS, found.tags - _TAGS
    assert not found.names & {"src", "href", "onclick", "onload", "srcset", "style"}
    assert "default-src 'none'; style-src 'unsafe-inline'" in document
    assert re.findall(r"https?://|@import|url\(", document) == []
    return found


def test_a_table_is_reported_with_reasons_sizes_plans_and_names_that_are_only_text(home: Path) -> None:
    said = icewright("report", str(EVIL), "--html", "out.html")
    assert (said.status, said.out) == (0, "wrote out.html\n")
    found = page_of(home / "out.html")
    health = icewright("health", str(EVIL), "--json").json["health"]
    assert "<script>alert(1)</script>\"'&" in found.text
    assert {"svg", "rect"} <= found.tags
    for part in health["parts"]:
        assert part["reason"]["text"] in found.text
    for words in (f"{health['score']} of 100", "in mode approve each plan waits for a person", "target 512.0 MiB"):
        assert words in found.text
    assert "merge 24 small files" in found.text


def test_the_fleet_is_reported_worst_first_and_with_its_sums(home: Path) -> None:
    said = icewright("report", "--fleet", "--html", "fleet.html", "--json")
    assert (said.status, said.json["file"]) == (0, "fleet.html")
    assert said.json["bytes"] == (home / "fleet.html").stat().st_size
    found = page_of(home / "fleet.html")
    names = [one["name"] for one in icewright("tables", "list", "--sort", "health", "--json").json["items"]]
    assert len(names) == 3
    places = [
        found.text.index(json.dumps(name)[1:-1] if "\x1b" in name else name) for name in names if "\x1b" not in name
    ]
    assert places == sorted(places)
    assert "\x1b" not in found.text
    assert "\u202e" not in found.text


def test_what_a_task_brought_is_beside_what_was_predicted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lakehouse = Lakehouse().with_ready_table({"icewright.mode": "auto"})
    lakehouse.rounds(2)
    task = Worker(lakehouse).carry_out()
    lakehouse.rounds(2)
    with at_a_port(lakehouse.control) as url:
        monkeypatch.setenv("ICEWRIGHT_URL", url)
        assert icewright("report", "lake.db.events", "--html", str(tmp_path / "out.html")).status == 0
    found = page_of(tmp_path / "out.html")
    assert f"Benefit of {task.task_id}: lake.db.events" in found.text
    assert "measured" in found.text


def test_wrong_uses_are_said(home: Path) -> None:
    for arguments in (("report", "--html", "x"), ("report", str(PLAIN), "--fleet", "--html", "x")):
        said = icewright(*arguments)
        assert (said.status, "exactly one of the two" in said.err) == (2, True)
    said = icewright("report", "--fleet", "--html", str(home / "no" / "such"))
    assert (said.status, "cannot be written: No such file or directory" in said.err) == (2, True)
