"""Tasks of a server as objects: to be waited for, cancelled, and looked at."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from icewright.api_client.client import Client
from icewright.api_client.paging import pages
from icewright.client import display as shown
from icewright.core import wording
from icewright.core.codec import from_json
from icewright.core.errors import Unavailable
from icewright.model.work.tasks import TERMINAL_STATES, TaskState
from icewright.plans.views import TaskView
from icewright.work.tasks.task_views import AttemptDocument, ListedAttempt, TaskDocument

POLL_S: Final = 1.0


class StillGoing(Unavailable, TimeoutError):
    """A task has not ended within the time to wait. It goes on."""


class Task:
    """A task as it was when it was asked for; :meth:`refresh` asks again. ``view`` has all that is known of it."""

    def __init__(
        self,
        client: Client,
        view: TaskView,
        *,
        pause: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._pause, self._now = client, pause, now
        self.view = view

    @property
    def task_id(self) -> str:
        """Its id."""
        return self.view.task_id

    @property
    def table(self) -> str:
        """The full name of its table."""
        return self.view.table

    @property
    def state(self) -> TaskState:
        """Where it is in its life."""
        return self.view.state

    @property
    def has_ended(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.state in TERMINAL_STATES

    @property
    def succeeded(self) -> bool:
        """Whether it is done, and its table was looked at to make sure."""
        return self.state is TaskState.SUCCEEDED

    @property
    def says(self) -> str:
        """What became of it last, or what it is to do."""
        return self.view.reason.text if self.view.outcome is None else self.view.outcome.reason.text

    def refresh(self) -> Task:
        """Ask how it stands now; the same object."""
        self.view = self.document().task
        return self

    def document(self) -> TaskDocument:
        """All of it: every change of its state, every attempt with its report, what was measured."""
        return from_json(TaskDocument, self._client.task(self.task_id))

    def attempts(self) -> Iterator[ListedAttempt]:
        """Every try at it, oldest first: who had it, how it ended, and why it failed."""
        return pages(ListedAttempt, lambda cursor: self._client.attempts(self.task_id, cursor=cursor))

    def attempt(self, number: int) -> AttemptDocument:
        """One try at it with its report. Raises ``NotFound``."""
        return from_json(AttemptDocument, self._client.attempt(self.task_id, number))

    def wait(self, timeout: float | None = None, *, poll: float = POLL_S) -> Task:
        """Wait until it has ended, however it ends; the same object.

        ``timeout`` and ``poll`` in seconds, None for as long as it takes. Raises :class:`StillGoing`; the task is not
        cancelled by that. An error of one poll is raised as it is.
        """
        until = None if timeout is None else self._now() + timeout
        while not self.refresh().has_ended:
            left = poll if until is None else min(poll, until - self._now())
            if left <= 0:
                hint = f"wait again, or ask why: lake.table({self.table!r}).why()"
                raise StillGoing(f"task {self.task_id} is {self.state.value} after {timeout:g} s", hint=hint)
            self._pause(left)
        return self

    def cancel(self) -> Task:
        """Cancel it while it waits; ask it to stop before its commit while it runs. Raises ``NotAllowed`` later."""
        self.view = from_json(TaskView, self._client.cancel(self.task_id))
        return self

    def retry(self) -> Task:
        """Queue it again after it failed or was cancelled. Raises ``NotAllowed`` for others."""
        self.view = from_json(TaskView, self._client.retry(self.task_id))
        return self

    def __repr__(self) -> str:
        """Id, table, state, and what became of it."""
        said = f"<Task {self.task_id} of {self.table}: {self.state.value}, {self.says}>"
        return wording.safe(said)

    def _repr_html_(self) -> str:
        view = self.view
        rows = [
            ("table", view.table),
            ("action", view.action.kind),
            ("state", view.state.value),
            ("says", self.says),
            ("attempt", f"{view.attempt} of {view.attempts_max}"),
            ("since", wording.instant(view.created_at)),
            ("changed", wording.instant(view.updated_at)),
        ]
        return shown.table(f"task {view.task_id}", rows)
