"""The server's HTTP API as methods: JSON in and out, problems as the very errors that the server raised.

Answers are JSON objects; the caller knows which view it asked for and reads it with :mod:`icewright.core.codec`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icewright.api_client.connection import (
    LONG_S,
    TIMEOUT_S,
    Page,
    part,
)
from icewright.api_client.event_calls import EventCalls
from icewright.api_client.people_calls import PeopleCalls
from icewright.api_client.queue_calls import QueueCalls
from icewright.core import wording
from icewright.core.codec import to_json
from icewright.core.errors import NotFound, Unreadable
from icewright.core.reasons import SINCE
from icewright.model.actions.remove_files import RemoveOrphanFilesRequest
from icewright.model.iceberg.names import TableName, did_you_mean, quote_part
from icewright.model.iceberg.tables import Json
from icewright.model.plans.requests import PlanRequest
from icewright.model.policy.policies import NewRevision, Policies

_NEAR_MAX: Final = 1_000


def _unreadable(name: TableName, reason: Json) -> Unreadable:
    since = wording.instant(reason["figures"][SINCE])
    return Unreadable(
        f"{name} cannot be read since {since}: {reason['text']}",
        hint="nothing is planned or done for it until then; the server retries automatically",
    )


class Client(PeopleCalls, EventCalls, QueueCalls):
    """A connection to a server.

    Every method raises :class:`~icewright.core.errors.Unavailable` when no server answers, and what the server says
    is wrong as the error of the same code. ``calls`` are the requests made so far. A request whose answer got lost is
    made again, by a key under which the server carries it out once.
    """

    def status(self) -> Json:
        """What the server sees and does."""
        return self.ask("GET", "/status")

    def cluster(self) -> Json:
        """Which server looks at which tables."""
        return self.ask("GET", "/cluster")

    def tables(
        self,
        *,
        name: TableName | None = None,
        catalog: str | None = None,
        sort: str | None = None,
        filters: Mapping[str, str | int | bool | None] | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Tables that the server has seen; ``sort`` and ``filters`` (but name and catalog) as the API has them."""
        asked = {"name": None if name is None else str(name), "catalog": catalog, "sort": sort, **(filters or {})}
        return self.page("/tables", {**asked, "limit": limit, "cursor": cursor})

    def totals(
        self, *, catalog: str | None = None, filters: Mapping[str, str | int | bool | None] | None = None
    ) -> Json:
        """The sums over the tables that :meth:`tables` has: a ``TableTotals``."""
        return self.ask("GET", "/tables/totals", {"catalog": catalog, **(filters or {})})

    def health(self, uuid: str, catalog: str) -> Json:
        """The health of a table, part by part: a ``HealthView``. Raises ``NotFound``."""
        return self.ask("GET", f"/tables/{part(uuid)}/health", {"catalog": catalog})

    def histogram(self, uuid: str, catalog: str) -> Json:
        """The sizes of a table's data files: a ``HistogramView``. Raises ``NotFound``."""
        return self.ask("GET", f"/tables/{part(uuid)}/histogram", {"catalog": catalog})

    def table_document(self, uuid: str, catalog: str) -> Json:
        """One table in full: a ``TableDocument``. Raises ``NotFound``."""
        return self.ask("GET", f"/tables/{part(uuid)}", {"catalog": catalog})

    def table(self, name: TableName) -> Json:
        """The summary of one table.

        Raises ``NotFound``, and ``Unreadable`` for a table that the server could not read even once.
        """
        found = self.tables(name=name, limit=1).items
        if not found:
            for table in self.status()["unreadable"]:
                if table["name"] == str(name):
                    raise _unreadable(name, table["reason"])
            hint = did_you_mean(name, self._names_near(name)) or "it looks for new tables now and then"
            raise NotFound(f"the server does not know a table {name}", hint=hint)
        return found[0]

    def _names_near(self, name: TableName) -> list[TableName]:
        """Names that a misspelt one may mean, of those that the caller may read: its namespace's, and the first."""
        namespace = ".".join(quote_part(one) for one in (name.catalog, *name.namespace))
        near = self.tables(filters={"namespace": namespace}, limit=_NEAR_MAX).items
        return [TableName.parse(one["name"]) for one in (*near, *self.tables(limit=_NEAR_MAX).items)]

    def partitions(self, uuid: str, catalog: str, *, limit: int = 100, cursor: str | None = None) -> Page:
        """The partitions of a table as of its last observed snapshot."""
        return self.parts_of_table("partitions", uuid, catalog, limit=limit, cursor=cursor)

    def parts_of_table(
        self, what: str, uuid: str, catalog: str, *, limit: int = 100, cursor: str | None = None
    ) -> Page:
        """``partitions``, ``snapshots`` or ``refs`` of a table, a view each. Raises ``NotFound``."""
        return self.page(f"/tables/{part(uuid)}/{part(what)}", {"catalog": catalog, "limit": limit, "cursor": cursor})

    def observations(self, uuid: str, catalog: str) -> Page:
        """What looks at a table have seen, the last one alone: an ``ObservationView``. Raises ``NotFound``."""
        return self.page(f"/tables/{part(uuid)}/observations", {"catalog": catalog})

    def why(self, uuid: str, catalog: str) -> Json:
        """Why something happens to a table, or nothing: a ``Why``. Raises ``NotFound``."""
        return self.ask("GET", f"/tables/{part(uuid)}/why", {"catalog": catalog})

    def unneeded(self, uuid: str, catalog: str, files: int = 0) -> Json:
        """Files that a table does not need, some of them one by one: an ``UnneededView``. Raises ``NotFound``."""
        return self.ask("GET", f"/tables/{part(uuid)}/unneeded", {"catalog": catalog, "files": files or None})

    def look_at_table(self, uuid: str, catalog: str) -> Json:
        """Have the table observed and planned now: ``{"plan": PlanView, "task_id": ..., "upkeep": [...]}``."""
        return self.ask("POST", f"/tables/{part(uuid)}/look", {"catalog": catalog})

    def unpark(self, uuid: str, catalog: str) -> Json:
        """Resume a table that was parked, and have it looked at; as :meth:`look_at_table`."""
        return self.ask("POST", f"/tables/{part(uuid)}/unpark", {"catalog": catalog})

    def declare_lost(self, name: str, declared_by: str) -> Json:
        """Declare a table lost that cannot be read: a ``LostTable``."""
        return self.ask("POST", f"/lost-tables/{part(name)}", body={"declared_by": declared_by})

    def withdraw_lost(self, name: str) -> Json:
        """Take that back: a ``LostTable``."""
        return self.ask("POST", f"/lost-tables/{part(name)}/withdraw")

    def declare_gone(self, name: str, uuid: str, declared_by: str, *, in_no_catalog: bool) -> Json:
        """Declare a table gone for good that lay in the place of this one before: a ``GoneTable``."""
        said = {"in_no_catalog": in_no_catalog, "declared_by": declared_by}
        return self.ask("POST", f"/gone-tables/{part(name)}/{part(uuid)}", body=said)

    def withdraw_gone(self, name: str, uuid: str) -> Json:
        """Take that back: a ``GoneTable``."""
        return self.ask("POST", f"/gone-tables/{part(name)}/{part(uuid)}/withdraw")

    def plan_asked(self, uuid: str, catalog: str, asked: PlanRequest) -> Json:
        """Have that planned which is asked for, to be applied: a ``PlanView``."""
        timeout_s = LONG_S if isinstance(asked, RemoveOrphanFilesRequest) else TIMEOUT_S
        path = f"/tables/{part(uuid)}/plans"
        return self.ask("POST", path, {"catalog": catalog}, to_json(asked), timeout_s=timeout_s)

    def plans(self, uuid: str, catalog: str, *, limit: int = 10, cursor: str | None = None) -> Page:
        """The plans of a table that are kept, newest first: a ``PlanView`` each. Raises ``NotFound``."""
        of_table = {"catalog": catalog, "limit": limit, "cursor": cursor}
        return self.page(f"/tables/{part(uuid)}/plans", of_table)

    def apply(self, plan_id: str) -> Json:
        """Queue exactly that plan; the task."""
        return self.ask("POST", f"/plans/{part(plan_id)}/apply")

    def approve(self, plan_id: str, approved_by: str) -> Json:
        """Let exactly that plan go beyond its budget, and queue it; the task."""
        return self.ask("POST", f"/plans/{part(plan_id)}/approve", body={"approved_by": approved_by})

    def refuse(self, plan_id: str, why: str, refused_by: str) -> Json:
        """Refuse exactly that plan, which waits for a person: a ``RefusalView``."""
        return self.ask("POST", f"/plans/{part(plan_id)}/refuse", body={"why": why, "refused_by": refused_by})

    def approvals(self, *, table: Json | None = None, limit: int = 100, cursor: str | None = None) -> Page:
        """Approvals that were given, the latest first: an ``ApprovalView`` each; ``table`` is a summary."""
        of_table = {} if table is None else {"table": table["uuid"], "catalog": table["catalog"]}
        return self.page("/approvals", {**of_table, "limit": limit, "cursor": cursor})

    def approval(self, plan_id: str) -> Json:
        """Who approved exactly this plan: an ``ApprovalView``. Raises ``NotFound``."""
        return self.ask("GET", f"/plans/{part(plan_id)}/approval")

    def waiting(self, *, limit: int = 100, cursor: str | None = None) -> Page:
        """Plans that wait for a person, oldest first."""
        return self.page("/plans/waiting", {"limit": limit, "cursor": cursor})

    def plan(self, plan_id: str) -> Json:
        """One plan: a ``PlanView``."""
        return self.ask("GET", f"/plans/{part(plan_id)}")

    def plan_files(self, plan_id: str, *, limit: int = 100, cursor: str | None = None) -> Page:
        """The files that a plan would remove."""
        return self.page(f"/plans/{part(plan_id)}/files", {"limit": limit, "cursor": cursor})

    def quarantine(self, *, limit: int = 100, cursor: str | None = None) -> Page:
        """Tasks whose removed files are in quarantine, newest first."""
        return self.page("/quarantine", {"limit": limit, "cursor": cursor})

    def held(self, task_id: str) -> Json:
        """What one task has in quarantine: a ``QuarantineView``."""
        return self.ask("GET", f"/quarantine/{part(task_id)}")

    def held_files(self, task_id: str, *, limit: int = 100, cursor: str | None = None) -> Page:
        """The files that one task has in quarantine."""
        return self.page(f"/quarantine/{part(task_id)}/files", {"limit": limit, "cursor": cursor})

    def purge_of_gone_table(self, task_id: str, purged_by: str) -> Json:
        """Have some of it purged although its table is gone: ``{"quarantine": QuarantineView, "waits": ...}``."""
        path = f"/quarantine/{part(task_id)}/purge-of-gone-table"
        return self.ask("POST", path, body={"purged_by": purged_by}, timeout_s=LONG_S)

    def purge(self, task_id: str, *, cursor: str | None = None) -> Json:
        """Have it looked after now what a task removed, a page of its files: a ``PurgeAnswer``."""
        path = f"/quarantine/{part(task_id)}/purge"
        return self.ask("POST", path, {"cursor": cursor}, timeout_s=LONG_S)

    def policies(self, revision: int | None = None) -> Json:
        """A revision of the policies, by default the present one: a ``PolicyRevision``. Raises ``NotFound``."""
        return self.ask("GET", "/policies" if revision is None else f"/policies/revisions/{revision}")

    def policy_revisions(self, *, limit: int = 20, cursor: str | None = None) -> Page:
        """What was applied, newest first."""
        return self.page("/policies/revisions", {"limit": limit, "cursor": cursor})

    def preview_policies(self, policies: Policies) -> Json:
        """What applying these would change: a ``PolicyDifference``."""
        return self.ask("POST", "/policies/preview", body=to_json(policies), timeout_s=LONG_S)

    def apply_policies(self, new: NewRevision, expected: int) -> Json:
        """Apply these in place of revision ``expected``: a ``PolicyRevision``. Raises ``Conflict``."""
        headers = {"If-Match": f'"{expected}"'}
        return self.ask("POST", "/policies", body=to_json(new), timeout_s=LONG_S, headers=headers)
