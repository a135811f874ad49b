"""Builds the docs site with Zensical and packs it: ``make docs``; with ``--serve``, ``make docs-serve``.

Pages are written as GitHub reads them. The site is built from copies, in which three things are other than there: links
that leave ``docs/`` lead to copies of what they name, lists are indented as Python-Markdown needs it, and pages of the
root have names in lower case. Nothing on the site is loaded from another host; tests/docs/test_docs_site.py says so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
CONFIGURATION: Final = ROOT / "zensical.toml"
BUILD: Final = ROOT / "build/docs"
PACKED: Final = ROOT / "dist/icewright-docs.tar.gz"
OF_THE_ROOT: Final = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Pages beside docs/ that are on the site, and their names there."""
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
_FENCE = re.compile(r" *```")
_ITEM = re.compile(r"( *)([-*+]|\d+\.)( +)(?=\S)")
_HOME = re.compile(r'href="((?:\./)*\.{1,2})/?"')
"""A link to a folder, which only a server shows as the page in it."""
_PATTERN = re.compile(r'"([^"\n]*\*[^"\n]*)"')
_CODE: Final = 4
"""So many columns make a line code."""
SHIM: Final = ROOT / "scripts/iframe_worker.js"
_SHIM_ELSEWHERE: Final = re.compile(r"https://[a-z.]+/iframe-worker/shim\b")
"""From where Zensical would load it."""
_POLL_SECONDS: Final = 1.0


def pages() -> dict[str, Path]:
    """The pages of the site: their paths on it, as Markdown, and where they are written."""
    found = {path.relative_to(ROOT / "docs").as_posix(): path for path in sorted((ROOT / "docs").rglob("*.md"))}
    return found | {name: ROOT / source for source, name in OF_THE_ROOT.items()}


def configuration() -> str:
    """The configuration, with patterns in the navigation replaced by the pages that they match."""

    def matches(pattern: re.Match[str]) -> str:
        return ", ".join(json.dumps(name) for name in pages() if Path(name).match(pattern[1]))

    return _PATTERN.sub(matches, CONFIGURATION.read_text(encoding="utf-8"))


def navigation(entries: Any = None) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every page of the navigation in its order, with the sections that it is in."""
    for entry in tomllib.loads(configuration())["project"]["nav"] if entries is None else entries:
        if isinstance(entry, str):
            yield (), entry
        else:
            for title, below in entry.items():
                yield from (((title, *sections), name) for sections, name in navigation(below))


def title_and_summary(text: str) -> tuple[str, str]:
    """The heading of a page, and the first sentence of its first paragraph, without links."""
    heading, *blocks = text.split("\n\n")
    first = next((block for block in blocks if re.match(r"[A-Za-z`*\[]", block)), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(first.split()))
    return heading.strip().removeprefix("# "), re.split(r"(?<=\.) ", plain)[0].removesuffix(":")


def llms(texts: dict[str, str]) -> str:
    """The navigation as a list for language models (llmstxt.org): each page as Markdown, in one line."""
    project = tomllib.loads(CONFIGURATION.read_text(encoding="utf-8"))["project"]
    parts = [f"# {project['site_name']}\n\n> {project['site_description']}\n"]
    last: tuple[str, ...] = ()
    for sections, name in navigation():
        if sections != last:
            parts.append(f"\n## {': '.join(sections)}\n\n")
            last = sections
        title, summary = title_and_summary(texts[name])
        parts.append(f"- [{title}]({name}): {summary}\n")
    return "".join(parts)


def for_the_site(text: str, source: Path, copied: dict[str, Path]) -> str:
    """A page with the links and the lists that the site needs. Other files that it links to are added to ``copied``."""
    name = next(name for name, path in pages().items() if path == source)
    by_source = {path: where for where, path in pages().items()}

    def link(target: re.Match[str]) -> str:
        path = (source.parent / target[1]).resolve()
        if path in by_source:
            where = by_source[path]
        elif path.is_relative_to(ROOT / "docs"):
            where = path.relative_to(ROOT / "docs").as_posix()
        elif path.is_file():
            where = f"files/{path.relative_to(ROOT).as_posix()}"
            copied[where] = path
        else:
            return target[0]  # a link to nothing, or to a folder, which Zensical reports
        return "../" * name.count("/") + where

    parts = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    linked = "".join(part if at % 2 else _LINK.sub(link, part) for at, part in enumerate(parts))
    return "\n".join(_indented(linked.split("\n")))


def _indented(lines: list[str]) -> Iterator[str]:
    """Lines with lists as Python-Markdown reads them: four columns a level, and an empty line before a list.

    GitHub takes what stands below the text of an item as part of it, which is two or three columns.
    """
    levels: list[int] = []  # the columns at which the texts of the items begin that a line may be part of
    is_fenced, is_paragraph, before = False, False, ""
    for line in lines:
        text = line.lstrip(" ")
        column = len(line) - len(text)
        item = None if is_fenced or column >= (levels[-1] if levels else 0) + _CODE else _ITEM.match(line)
        begins = text and not is_fenced and (item is not None or not before)
        levels = [level for level in levels if level <= column] if begins else levels
        margin = " " * 4 * len(levels)
        if item is not None:
            if before and is_paragraph:
                yield ""
            yield f"{margin}{item[2]:<4}{line[item.end() :]}"
            levels.append(item.end())
        else:
            yield f"{margin}{line[min(column, levels[-1] if levels else 0) :]}" if text else ""
        is_fenced ^= _FENCE.match(line) is not None
        is_paragraph = is_paragraph if before and item is None else item is None and not text.startswith("#")
        before = text


def stage(folder: Path) -> None:
    """Write what Zensical builds from into a folder: its configuration, pages, pictures, and the files they link to."""
    docs = folder / "docs"
    copied: dict[str, Path] = {
        path.relative_to(ROOT / "docs").as_posix(): path
        for path in (ROOT / "docs").rglob("*")
        if path.is_file() and path.suffix != ".md"
    }
    texts = {name: path.read_text(encoding="utf-8") for name, path in pages().items()}
    written = {name: for_the_site(text, pages()[name], copied) for name, text in texts.items()}
    written["llms.txt"] = llms(texts)
    for name, text in written.items():
        _write(docs / name, text.encode())
    for name, path in copied.items():
        _write(docs / name, path.read_bytes())
    _write(folder / "zensical.toml", configuration().encode())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_bytes() != content:
        path.write_bytes(content)


def build(folder: Path) -> Path:
    """Build the site in a folder. Returns the folder of the site."""
    shutil.rmtree(folder, ignore_errors=True)
    stage(folder)
    site = render(folder)
    shim = site / "assets/javascripts" / SHIM.name
    _write(shim, SHIM.read_bytes())
    for page in site.rglob("*.html"):
        text = _SHIM_ELSEWHERE.sub(os.path.relpath(shim, page.parent), page.read_text(encoding="utf-8"))
        page.write_text(_HOME.sub(r'href="\1/index.html"', text), encoding="utf-8")
    for name in pages():  # as llms.txt names them
        _write(site / name, (folder / "docs" / name).read_bytes())
    return site


def render(folder: Path) -> Path:
    """Have Zensical render what is staged. Raises ``CalledProcessError`` where a link leads nowhere."""
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=folder, check=True)
    return folder / "site"


def pack(site: Path, to: Path) -> None:
    """Pack a site as one file, to be unpacked and opened without a server."""
    to.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(to, "w:gz") as packed:
        packed.add(site, "icewright-docs")


def serve(folder: Path) -> int:
    """Serve the site, and follow the pages as they are edited, until Ctrl-C."""
    shutil.rmtree(folder, ignore_errors=True)
    stage(folder)
    with subprocess.Popen([sys.executable, "-m", "zensical", "serve"], cwd=folder) as server:
        try:
            while server.poll() is None:
                time.sleep(_POLL_SECONDS)
                stage(folder)
        except KeyboardInterrupt:
            server.terminate()
            return 0
        return server.returncode


def main() -> int:
    """Build and pack the site, or serve it."""
    options = argparse.ArgumentParser(description="Build the docs site.")
    options.add_argument("--serve", action="store_true", help="serve it instead, at http://localhost:8000")
    if options.parse_args().serve:
        return serve(BUILD)
    site = build(BUILD)
    pack(site, PACKED)
    print(f"built {site.relative_to(ROOT)}/index.html, packed {PACKED.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
