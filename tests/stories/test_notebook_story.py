"""The session of ``docs/python-client.md``, block by block as it stands, and what a notebook prints under each.

``ICEWRIGHT_WRITE_STORIES=1`` writes the text anew; look at the difference before committing it.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

import pytest

from icewright.model.work.jobs import Committed
from tests.builders.served import TOKEN, Served, at_a_port, hello
from tests.work.tasks.test_api_tasks import carry_out, report

PAGE = Path(__file__).parent.parent.parent / "docs" / "python-client.md"
STORED = Path(__file__).parent / "notebook" / "session.txt"


def blocks() -> list[str]:
    """The code of the page."""
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def printed(block: str, names: dict[str, Any]) -> list[str]:
    """What a notebook prints under a cell: the value of its last line, in words and as HTML where it has that."""
    tree = ast.parse(block)
    body, last = tree.body, tree.body[-1]
    tree.body = body[:-1] if isinstance(last, ast.Expr) else body
    exec(compile(tree, str(PAGE), "exec"), names)  # noqa: S102 - the page's own code
    if not isinstance(last, ast.Expr):
        return []
    value = eval(compile(ast.Expression(last.value), str(PAGE), "eval"), names)  # noqa: S307 - see above
    html = getattr(value, "_repr_html_", None)
    return ([] if value is None else [repr(value)]) + ([] if html is None else [html()])


def work_if_any(served: Served) -> None:
    """Between two cells an optimizer carries out what is queued, and the server verifies it."""
    spec = served.control.dispatcher.claim("optimizer-1")
    if spec is not None:
        served.control.dispatcher.report(report(spec, Committed(carry_out(served, spec))))
        served.control.loop.round()


def test_the_session_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ICEWRIGHT_TOKEN", TOKEN)
    names: dict[str, Any] = {}
    served, lines = Served(), ["A session in a notebook, as the page on the Python client has it.", ""]
    served.control.maintainer._chance = lambda: 0.0  # looks are spread by chance, and this one is stored
    served.table(mode="approve")
    served.control.dispatcher.hello(hello())
    with at_a_port(served.control) as url:
        monkeypatch.setenv("ICEWRIGHT_URL", url)
        for block in blocks():
            if ".wait(" in block:
                work_if_any(served)
            lines += [*(f">>> {line}" for line in block.strip().splitlines()), *printed(block, names), ""]
    text = "\n".join(lines).replace(url, "http://127.0.0.1:7077")
    if os.environ.get("ICEWRIGHT_WRITE_STORIES"):
        STORED.parent.mkdir(exist_ok=True)
        STORED.write_text(text, encoding="utf-8")
    assert text == STORED.read_text(encoding="utf-8")


def test_the_page_names_everything_that_there_is() -> None:
    """The public objects, and nothing that is not there."""
    from icewright import client  # noqa: PLC0415 - what the page is about

    text = PAGE.read_text(encoding="utf-8")
    for name in ("Lake", "Table", "Plan", "Task", "Health", "TablePolicy"):
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        said = set(re.findall(r"`(\w+)(?:\(|`)", row.partition("|")[2].partition("|")[2]))
        there = {one for one in vars(getattr(client, name)) if not one.startswith("_")}
        instance = {"summary", "view", "queued"}
        assert there - said == set(), name
        assert said - there <= instance, name
