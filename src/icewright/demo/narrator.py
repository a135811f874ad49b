"""Tells what happens, as it happens: polls the server's API and prints a line for each thing that is new."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from icewright.api_client.client import Client
from icewright.model.iceberg.tables import Json
from icewright.model.work.tasks import TERMINAL_STATES, TaskState

_WORDS: Final = {
    TaskState.QUEUED: "queued",
    TaskState.RUNNING: "running",
    TaskState.IN_DOUBT: "in doubt",
    TaskState.COMMITTED: "committed",
    TaskState.SUCCEEDED: "verified",
    TaskState.FAILED: "failed",
    TaskState.CANCELLED: "cancelled",
    TaskState.SUPERSEDED: "superseded",
}
_COLOURS: Final = {TaskState.SUCCEEDED: "green", TaskState.FAILED: "red", TaskState.IN_DOUBT: "yellow"}


class Narrator:
    """Remembers what it has told, so that nothing is told twice."""

    def __init__(self, console: Console, client: Client, started_s: float) -> None:
        self._console, self._client, self._started_s = console, client, started_s
        self._snapshots: dict[str, int | None] = {}
        self._plans: dict[str, str] = {}
        self._changed: dict[str, int] = {}
        self._versions: dict[str, int] = {}
        self._progress: dict[str, Json] = {}
        self.tables: Sequence[Json] = ()
        self.tasks: Sequence[Json] = ()

    def look(self) -> None:
        """Ask the server, and tell what is new."""
        self.tables, self.tasks = self._client.tables().items, self._client.tasks(limit=100).items
        for table in self.tables:
            self._tell_commit(table)
            self._tell_plan(table)
        for task in reversed(self.tasks):
            self._tell_task(task)

    def say(self, what: str, text: str, colour: str = "") -> None:
        """One line: seconds since the start, what it is about, and the rest."""
        head = f"{time.monotonic() - self._started_s:6.1f} s  {what:<11}"
        self._console.print(escape(head) + escape(text), style=colour or None, highlight=False, soft_wrap=True)

    @property
    def is_idle(self) -> bool:
        """Whether no task waits or runs."""
        return all(TaskState(task["state"]) in TERMINAL_STATES for task in self.tasks)

    def overview(self) -> None:
        """Which tables there are, and what is wrong with each."""
        sheet = Table(title=None, box=None, pad_edge=False)
        for title in ("table", "files", "small", "rows", "what icewright says"):
            sheet.add_column(title, justify="right" if title in {"files", "small", "rows"} else "left")
        for table in self.tables:
            figures: Mapping[str, Any] = table["figures"] or {}
            numbers = [f"{figures.get(key, 0):,}" for key in ("data_files", "small_files", "records")]
            plan = table["plan"]
            sheet.add_row(escape(table["name"]), *numbers, escape("" if plan is None else plan["reason"]["text"]))
        self._console.print()
        self._console.print(sheet)
        self._console.print()

    def partitions(self, before: Mapping[str, int]) -> None:
        """The partitions of the small-file table, before and after; ``before`` has the files committed to each."""
        table = next(table for table in self.tables if table["name"].endswith(".flights"))
        sheet = Table(title=f"{escape(table['name'])}, per partition", box=None, pad_edge=False, title_justify="left")
        for title in ("partition", "files committed", "files now", "size", "rows", "optimized"):
            sheet.add_column(title, justify="left" if title == "partition" else "right")
        for row in self._client.partitions(table["uuid"], table["catalog"], limit=1000).items:
            sheet.add_row(
                escape(row["path"]),
                f"{before.get(row['path'], 0):,}",
                f"{row['data_files']:,}",
                f"{row['size_bytes'] / 2**20:,.1f} MiB",
                f"{row['records']:,}",
                f"{row['optimization_ratio']:.0%}",
            )
        self._console.print()
        self._console.print(sheet)
        self._console.print()

    def _tell_commit(self, table: Json) -> None:
        seen = self._snapshots.get(table["uuid"], 0)
        if table["snapshot_id"] == seen:
            return
        self._snapshots[table["uuid"]] = table["snapshot_id"]
        figures = table["figures"]
        if table["snapshot_id"] is not None and figures is not None:
            files = f"{figures['data_files']:,} files, {figures['small_files']:,} small, {figures['records']:,} rows"
            self.say("seen", f"{table['name']}: {files}")

    def _tell_plan(self, table: Json) -> None:
        plan = table["plan"]
        if plan is None or self._plans.get(table["uuid"]) == plan["reason"]["text"]:
            return
        self._plans[table["uuid"]] = plan["reason"]["text"]
        self.say("planned", f"{table['name']}: {plan['reason']['text']}")

    def _tell_task(self, task: Json) -> None:
        task_id, name = task["task_id"], f"task ..{task['task_id'][-6:]}"
        if self._changed.get(task_id) != task["updated_at"]:
            self._changed[task_id] = task["updated_at"]
            for entry in self._client.task(task_id)["history"]:
                if entry["version"] > self._versions.get(task_id, -1):
                    self._versions[task_id] = entry["version"]
                    state = TaskState(entry["state"])
                    self.say(_WORDS[state], f"{name}: {entry['reason']['text']}", _COLOURS.get(state, ""))
        progress = task["progress"]
        if task["state"] == TaskState.RUNNING and progress is not None and self._progress.get(task_id) != progress:
            self._progress[task_id] = progress
            done = f"{progress['groups_done']} of {progress['groups_total']} groups"
            self.say("running", f"{name}: {progress['phase']}, {done}")
