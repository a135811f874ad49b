"""Tasks: the queue for people, and the optimizer's side of a task that it works on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query, Response

from icewright.core.codec import from_json
from icewright.core.errors import Conflict, InvalidMessage, NotFound
from icewright.identity.authorization import On, needs, needs_as_its_actions
from icewright.maintenance.dispatch.dispatcher import Dispatcher, NextRound
from icewright.maintenance.explain import plan_view
from icewright.maintenance.undoer import Undoer
from icewright.model.access.permissions import Permission
from icewright.model.work.jobs import Heartbeat, HeartbeatReply, SentReport
from icewright.model.work.tasks import AttemptState, Task, TaskState
from icewright.observation.lookups import ByUuid
from icewright.plans.views import PlanView, TaskView, task_view
from icewright.ports.store import TaskFilter, TaskStore
from icewright.web.conditional import IfMatch, changed, expected_version, tag_of
from icewright.web.deps import BY_LEADER, Caller, Led, Service
from icewright.web.messages import REPORT_BYTES_MAX, Cursor, Limit, decode_cursor, first_page, json_body, render
from icewright.web.schema import operation, page_of, schema_of
from icewright.work.groups.queue_waits import QueueWaits
from icewright.work.tasks.start_estimates import StartEstimates
from icewright.work.tasks.task_views import (
    AttemptDocument,
    AttemptLog,
    AttemptOfTaskView,
    ListedAttempt,
    TaskDocument,
    attempt_document,
    attempt_log,
    attempt_of_task_view,
    listed_attempt,
    task_document,
)

router = APIRouter(prefix="/tasks", tags=["tasks"])
attempts_router = APIRouter(prefix="/tasks", tags=["optimizers"])
latest_router = APIRouter(prefix="/attempts", tags=["tasks"])

_NOT_FOUND = {404: "No such task."}
_CHANGED = {412: "The task is not the one of `If-Match` any more."}
_ATTEMPT_MAX: Final = 2**31 - 1
"""As the store counts them."""
_LEASE = {**_NOT_FOUND, 409: "`lease-lost`: the attempt is not the caller's any more; `version-mismatch`."}


@router.get(
    "",
    dependencies=[needs(Permission.READ, On.ANYWHERE)],
    **operation(page_of(TaskView), problems={404: "No such table or catalog."}),
)
def list_tasks(
    task_store: Service[TaskStore],
    by_uuid: ByUuid,
    caller: Caller,
    *,
    state: Annotated[list[TaskState] | None, Query(description="Only tasks in one of these states.")] = None,
    table: Annotated[str | None, Query(description="Only tasks of the table of that uuid.")] = None,
    catalog: Annotated[str | None, Query(description="The catalog of `table`.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Tasks of tables that the caller may read, newest first."""
    before, within = decode_cursor(str, cursor), caller.scopes(Permission.READ)
    table_id = None if table is None else by_uuid.seen(table, catalog, within).table_id
    only = TaskFilter(frozenset(state) if state else None, table_id, within=within)
    found = task_store.listed(only, limit=limit + 1, before=before)
    return first_page(found, limit, lambda task: task.task_id, task_view)


@router.get(
    "/{task_id}", dependencies=[needs(Permission.READ, On.TASK)], **operation(TaskDocument, problems=_NOT_FOUND)
)
def show_task(
    task_store: Service[TaskStore], queue_waits: Service[QueueWaits], starts: Service[StartEstimates], task_id: str
) -> Response:
    """One task with its history and its attempts."""
    task = task_store.head(task_id)
    waits = queue_waits.of(task)
    start = starts.of(task, waits)
    document = task_document(task, task_store.history(task_id), task_store.attempts(task_id), waits, start)
    return _tagged(render(document), task.version)


@router.get(
    "/{task_id}/attempts",
    dependencies=[needs(Permission.READ, On.TASK)],
    **operation(page_of(ListedAttempt), problems=_NOT_FOUND),
)
def list_attempts(task_store: Service[TaskStore], task_id: str, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All tries of a task, oldest first: who had it, how far it got, how it ended, and why it failed."""
    after = min(decode_cursor(int, cursor) or 0, _ATTEMPT_MAX)
    found = task_store.attempts(task_id, limit=limit + 1, after=after)
    return first_page(found, limit, lambda one: one.attempt, listed_attempt)


@router.get(
    "/{task_id}/attempts/{number}",
    dependencies=[needs(Permission.READ, On.TASK)],
    **operation(AttemptDocument, problems={404: "No such task, or no such attempt at it."}),
)
def show_attempt(
    task_store: Service[TaskStore], task_id: str, number: Annotated[int, Path(ge=1, le=_ATTEMPT_MAX)]
) -> Response:
    """One try of a task, with what its optimizer reported of it, group by group."""
    found = task_store.attempts(task_id, limit=1, after=number - 1)
    if not found or found[0].attempt != number:
        raise NotFound(f"task {task_id} has no attempt {number}")
    return render(attempt_document(found[0]))


@router.get(
    "/{task_id}/logs",
    dependencies=[needs(Permission.READ, On.TASK)],
    **operation(AttemptLog, problems={404: "No such task, or no such attempt at it."}),
)
def show_log(
    task_store: Service[TaskStore],
    task_id: str,
    attempt: Annotated[
        int | None, Query(ge=1, le=_ATTEMPT_MAX, description="Of which try; of the last one where it is left out.")
    ] = None,
) -> Response:
    """The last lines that a try logged, oldest first, with secrets masked; `server.keep_task_logs_days` keeps them."""
    number = attempt or task_store.head(task_id).attempt
    found = task_store.attempts(task_id, limit=1, after=number - 1) if number else ()
    if number and (not found or found[0].attempt != number):
        raise NotFound(f"task {task_id} has no attempt {number}")
    return render(attempt_log(task_id, found[0] if found else None, task_store.log(task_id, number)))


@latest_router.get(
    "",
    dependencies=[needs(Permission.READ, On.ANYWHERE)],
    **operation(page_of(AttemptOfTaskView), problems={404: "No such table or catalog."}),
)
def list_latest_attempts(
    task_store: Service[TaskStore],
    by_uuid: ByUuid,
    caller: Caller,
    *,
    state: Annotated[list[AttemptState] | None, Query(description="Only tries in one of these states.")] = None,
    table: Annotated[str | None, Query(description="Only tries at tasks of the table of that uuid.")] = None,
    catalog: Annotated[str | None, Query(description="The catalog of `table`.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Tries at the tasks of tables that the caller may read, those that began last first."""
    before, within = decode_cursor(int, cursor), caller.scopes(Permission.READ)
    table_id = None if table is None else by_uuid.seen(table, catalog, within).table_id
    only, states = TaskFilter(table_id=table_id, within=within), frozenset(state) if state else None
    found = task_store.latest_attempts(only, states=states, limit=limit + 1, before=before)
    return first_page(found, limit, lambda one: one.attempt.fencing_token, attempt_of_task_view)


@router.post(
    "/{task_id}/cancel",
    dependencies=[needs(Permission.OPERATE, On.TASK)],
    **operation(TaskView, problems={**_NOT_FOUND, 409: "The task has ended or is committed.", **_CHANGED}),
)
def cancel_task(dispatcher: Service[Dispatcher], task_id: str, if_match: IfMatch = None) -> Response:
    """Cancel a waiting task; ask the optimizer of a running one to stop before its commit."""
    return _if_still(dispatcher.cancel, task_id, if_match)


@router.post(
    "/{task_id}/expedite",
    dependencies=[needs(Permission.OPERATE, On.TASK)],
    **operation(TaskView, problems={**_NOT_FOUND, 409: "The task does not wait."}),
)
def expedite_task(dispatcher: Service[Dispatcher], task_id: str) -> Response:
    """Have a waiting task started before all others of its resource group."""
    return render(task_view(dispatcher.expedite(task_id)))


@router.post(
    "/{task_id}/retry",
    dependencies=[needs_as_its_actions(On.TASK)],
    **operation(TaskView, problems={**_NOT_FOUND, 409: "The task neither failed nor was cancelled.", **_CHANGED}),
)
def retry_task(dispatcher: Service[Dispatcher], task_id: str, if_match: IfMatch = None) -> Response:
    """Queue a failed or cancelled task again."""
    return _if_still(dispatcher.retry, task_id, if_match)


@router.post(
    "/{task_id}/undo",
    dependencies=[needs(Permission.UNDO, On.TASK), BY_LEADER],
    **operation(
        PlanView,
        status=201,
        problems={**_NOT_FOUND, 409: "The task cannot be undone (any more), or the world moved; the detail says why."},
    ),
)
def undo_task(undoer: Led[Undoer], task_id: str) -> Response:
    """Plan to take back what a task did. Nothing is done yet: apply the plan by its id, as any other."""
    return render(plan_view(undoer.plan(task_id)), 201)


@attempts_router.post(
    "/{task_id}/heartbeat",
    dependencies=[needs(Permission.WORK, On.EVERYTHING)],
    **operation(HeartbeatReply, accepts=schema_of(Heartbeat), problems=_LEASE),
)
def heartbeat_task(
    dispatcher: Service[Dispatcher], task_id: str, body: Annotated[Any, Depends(json_body())]
) -> Response:
    """The optimizer is still at it: its lease runs on from now."""
    return render(dispatcher.heartbeat(task_id, from_json(Heartbeat, body)))


@attempts_router.post(
    "/{task_id}/report",
    dependencies=[needs(Permission.WORK, On.EVERYTHING)],
    **operation(TaskView, accepts=schema_of(SentReport), problems=_LEASE),
)
def report_task(
    dispatcher: Service[Dispatcher],
    next_round: Service[NextRound],
    task_id: str,
    body: Annotated[Any, Depends(json_body(REPORT_BYTES_MAX))],
) -> Response:
    """The attempt has ended. The server looks into the table itself before it believes so."""
    said = from_json(SentReport, body)
    if said.task_id != task_id:
        raise InvalidMessage(f"$.task_id: the report is about task {said.task_id!r}, the address says {task_id!r}")
    task = dispatcher.report(said.report, said.log)
    next_round.begin()
    return render(task_view(task))


def _if_still(change: Callable[[str, int | None], Task], task_id: str, if_match: str | None) -> Response:
    """Change a task that is still what the caller saw."""
    version = expected_version(if_match)
    try:
        task = change(task_id, version)
    except Conflict as error:
        if version is None:
            raise
        raise changed(error.message) from error
    return _tagged(render(task_view(task)), task.version)


def _tagged(response: Response, version: int) -> Response:
    """Tagged by its version, which no heartbeat changes, and by its digest, which heartbeats do."""
    response.headers["ETag"] = tag_of(bytes(response.body), version)
    return response
