"""Documentation that can fail: generated parts, links, commands, files and tests that pages name."""

from __future__ import annotations

import ast
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from icewright.configuration.load import load_config
from icewright.core.fault_points import Fault
from icewright.policy.settings import SETTINGS
from scripts import write_reference
from tests.builders.command_line import COMMAND
from tests.cases import each_case, for_each
from tests.e2e.kills import ELSEWHERE, HOUSEKEEPER, KILLS, SERVER
from tests.test_tidy import FILLERS

ROOT = Path(__file__).parent.parent.parent
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"`([^`\n]+)`")
_TEST = re.compile(r"`((?:tests/)[\w/]+\.py)::([\w:]+)`")
_PATH = re.compile(r"`((?:src|tests|scripts|docs|benchmarks)/[\w./-]*)`")
_PLACEHOLDER = re.compile(r"[A-Z][A-Z_]+")
_NOT_PARSED = ("...", "|")

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def prose(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


@cache
def tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads)


def commands(page: Path) -> Iterator[tuple[str, bool]]:
    """Command lines of ``icewright`` that a page quotes; and whether in a block, to be typed as they stand."""
    text = page.read_text(encoding="utf-8")
    blocks = [line.strip().removeprefix("$ ") for line in text.splitlines() if line.startswith("    ")]
    blocks += [line.strip().removeprefix("$ ") for block in _FENCED.findall(text) for line in block.splitlines()]
    quoted = _QUOTED.findall(_FENCED.sub("", text))
    for line, is_whole in (*((line, True) for line in blocks), *((line, False) for line in quoted)):
        if re.match(r"icewright( -| [a-z-]+( |$))", line) and not any(sign in line for sign in _NOT_PARSED):
            yield line, is_whole


def parse(line: str) -> None:
    """Parse a command line as the program does, without running it. Raises what the parser raises."""
    command: Any = COMMAND
    words = ["1" if _PLACEHOLDER.fullmatch(word) else word for word in shlex.split(line, comments=True)]
    name, rest, context = words[0], words[1:], None
    while True:
        try:
            context = command.make_context(name, list(rest), parent=context)
        except typer.Exit:  # --help
            return
        if not hasattr(command, "commands"):
            return
        left = [*context._protected_args, *context.args]
        if not left:  # options before the command alone
            return
        name, command, rest = command.resolve_command(context, left)


@each_case("page", write_reference.pages(), ids=lambda page: page.name)
def test_generated_parts_are_up_to_date(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == write_reference.rendered(text), f"{page.name} is out of date: run `make docs`"


def test_every_generated_part_is_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in write_reference.pages())
    assert [name for name in write_reference.GENERATED if f"<!-- generated: {name} -->" not in text] == []
    assert [setting.key for setting in SETTINGS if f"`{setting.key}`" not in text] == []


def test_every_body_of_the_api_has_a_shape_in_words() -> None:
    """A union is all of its members; what there are no words for is not passed over."""
    assert "- body: `RewriteDataFilesRequest` or `ExpireSnapshotsRequest` or" in write_reference.routes()
    assert write_reference.shape({"anyOf": [{"$ref": "#/s/A"}, {"properties": {"b": {}}}]}) == (
        "`A` or an object with optional `b`"
    )
    nothing: list[dict[str, object]] = [{}, {"type": "object"}, {"anyOf": []}, {"properties": {}}]
    for silent in nothing:
        with pytest.raises(ValueError, match="no words"):
            write_reference.shape(silent)


def test_the_words_of_the_glossary_are_in_order() -> None:
    """Below the header alone, each once: so a row that is not found where it belongs is not there."""
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert rows[:2] == ["| word | meaning |", "|---|---|"]
    words = [row.split("|")[1].strip().lower() for row in rows[2:]]
    assert words == sorted(set(words))


def test_the_places_where_processes_die_are_counted_as_they_are() -> None:
    text = (ROOT / "docs" / "bad-days.md").read_text(encoding="utf-8")
    killed = {kill.point for kill in KILLS}
    parts = Counter(point.partition(".")[0] for point in Fault)
    assert f"(`icewright.core.fault_points.Fault`), {len(Fault)} of them" in text
    assert f"each of {len(killed)} has its kill" in text
    assert f"At the other {len(Fault) - len(killed)} no process is killed" in text
    assert sorted(re.findall(r"^The (\d+) of the (?:Deleter|job)", text, re.MULTILINE)) == sorted(
        str(parts[part]) for part in ELSEWHERE
    )
    assert f"the server at all its {len(SERVER) + len(HOUSEKEEPER)} points, {len(HOUSEKEEPER)} of them over" in text
    assert f"at each of the optimizer's {parts['optimizer']} points" in text


def test_pages_say_it_plainly() -> None:
    """As messages do; decisions and changes are records of their time."""

    def check(page: Path) -> None:
        words = re.sub(r"\]\([^)\s]*\)", "]", _QUOTED.sub("", prose(page)))
        assert [
            f"{page.name}: {hit[0]!r} in {words[hit.start() - 40 : hit.end() + 40]!r}"
            for hit in FILLERS.finditer(words)
        ] == []

    for_each(sorted((ROOT / "docs").glob("*.md")), check)


def test_every_relative_link_leads_somewhere() -> None:
    for_each(PAGES, relative_link_leads_somewhere)


def relative_link_leads_somewhere(page: Path) -> None:
    for target in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{page.relative_to(ROOT)} links to {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.relative_to(ROOT)} links to {target}"


def test_every_quoted_command_exists() -> None:
    for_each(PAGES, quoted_command_exists)


def quoted_command_exists(page: Path) -> None:
    for line, is_whole in commands(page):
        try:
            parse(line)
        except Exception as error:
            if not is_whole and type(error).__name__ == "MissingParameter":
                continue  # a command is only named
            error.add_note(f"{page.relative_to(ROOT)} quotes: {line}")
            raise


def test_the_check_of_commands_would_notice() -> None:
    for wrong in ("icewright scann", "icewright plan", "icewright scan --not-an-option", "icewright tasks cancel"):
        with pytest.raises(Exception, match=r"No such|Missing"):
            parse(wrong)
    assert len([line for page in PAGES for line, _ in commands(page)]) > 0


def test_every_quoted_test_exists() -> None:
    for_each(PAGES, quoted_test_exists)


def quoted_test_exists(page: Path) -> None:
    for file, name in _TEST.findall(page.read_text(encoding="utf-8")):
        node: Any = tree(file)
        for part in name.split("::"):
            found = [one for one in node.body if isinstance(one, ast.ClassDef | ast.FunctionDef) and one.name == part]
            assert found, f"{page.relative_to(ROOT)} names {file}::{name}"
            node = found[0]


def test_every_quoted_path_exists() -> None:
    for_each(PAGES, quoted_path_exists)


def quoted_path_exists(page: Path) -> None:
    for path in _PATH.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), f"{page.relative_to(ROOT)} names {path}"


_GIVES = re.compile(r"\b(?:Reason|_nothing|Failed)\(")


@cache
def reason_codes() -> frozenset[str]:
    """The codes of all reasons that the code spells out."""
    found: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if _GIVES.search(source) else ():  # most modules give none
            match node:
                case ast.Call(ast.Name("Reason" | "_nothing" | "Failed"), [ast.Constant(str(code)), *_]):
                    found.add(code)
    return frozenset(found - {""})


def test_every_reason_code_is_documented() -> None:
    text = (ROOT / "docs" / "reason-codes.md").read_text(encoding="utf-8")
    assert "recent-removals" in reason_codes()
    assert sorted(code for code in reason_codes() if f"`{code}`" not in text) == []


def test_every_quoted_configuration_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "icewright.toml"

    def check(page: Path) -> None:
        for block in re.findall(r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            file.write_text(block, encoding="utf-8")
            assert load_config(file, {"HOME": str(tmp_path)}, tmp_path).path == file

    for_each(PAGES, check)
