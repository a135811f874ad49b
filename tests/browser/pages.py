"""The pages as a test goes through them: which there are, when one is drawn, and what axe finds wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.builders.served import Served

AXE = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
}
TABS = ("health", "layout", "queries", "files", "snapshots", "storage", "tasks", "policy", "why")


def violations(page: Any) -> list[tuple[str, str]]:
    """What axe finds wrong with a page as it stands."""
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(_axe())
    found = page.evaluate("async options => (await axe.run(document, options)).violations", AXE)
    return [(one["id"], node["html"][:200]) for one in found for node in one["nodes"]]


@cache
def _axe() -> str:
    """axe itself, which a page that is loaded anew has to be given again."""
    module = pytest.importorskip("axe_playwright_python")
    return (Path(module.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def eventually(page: Any, ask: Callable[[], Any], wanted: Any) -> None:
    """Wait until that is so. Playwright's own way for it needs a policy that lets text become code."""
    for _ in range(300):
        if ask() == wanted:
            return
        page.wait_for_timeout(100)
    assert ask() == wanted


def settled(page: Any) -> None:
    """Nothing is on its way, and every picture is drawn."""
    page.locator("main h1:not(.sr-only)").first.wait_for()  # the page itself, and not what stands for it until it comes
    page.wait_for_function(
        "() => ![...document.querySelectorAll('[role=status]')].some(e => /^Loading/.test(e.textContent))"
    )
    page.wait_for_function("() => [...document.querySelectorAll('[role=img]')].every(e => e.dataset.drawn)")


def uuid_of(served: Served, name: str) -> str:
    """The uuid of a table of ``lake.db``."""
    (table,) = served.get("/tables", name=f"lake.db.{name}")["items"]
    return str(table["uuid"])


def task_of(served: Served, name: str) -> dict[str, Any]:
    """The only task of a table."""
    (task,) = [task for task in served.get("/tasks")["items"] if task["table"] == f"lake.db.{name}"]
    return dict(task)


def addresses(served: Served, table: str, plan_id: str, tasks: Sequence[str]) -> list[str]:
    """Every page there is, with something on it: of a table, a plan and the tasks of some tables."""
    of_table = f"/ui/tables/{uuid_of(served, table)}?catalog=lake"
    return [
        "/ui/",
        *(f"{of_table}&tab={tab}" for tab in TABS),
        "/ui/inbox",
        f"/ui/plans/{plan_id}",
        "/ui/tasks",
        *(f"/ui/tasks/{task_of(served, name)['task_id']}" for name in tasks),
        "/ui/queue",
        "/ui/benefit",
        "/ui/policies",
        "/ui/policies?tab=edit",
        *(
            f"/ui/administration?tab={tab}"
            for tab in ("system", "servers", "optimizers", "quarantine", "notifications", "audit", "people")
        ),
        "/ui/reference?schema=PlanView",
        "/ui/no/such/page",
    ]
