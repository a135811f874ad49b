"""Tables of a server, and plans for them, as objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from icewright.api_client.client import Client
from icewright.api_client.paging import pages
from icewright.approvals.views import ApprovalView
from icewright.client import display as shown
from icewright.client.tasks import Task
from icewright.client.views import Health, TablePolicy, WhyAnswer
from icewright.core import wording
from icewright.core.codec import from_json
from icewright.core.errors import NotAllowed
from icewright.feed.views import FactView
from icewright.model.iceberg.names import TableName
from icewright.model.plans.requests import PlanRequest
from icewright.model.work.tasks import TaskState
from icewright.plans.views import PlanView, RefusalView, TaskView, VerdictView
from icewright.tables.api_views import LookAnswer, ObservationView, TableDocument, TableSummary


class Plan:
    """A plan: what would be done to a table, exactly. ``view`` has all of it but the names of the files.

    ``queued`` is the task that carries it already, as in mode ``auto``.
    """

    def __init__(self, client: Client, view: PlanView, queued: str | None, task: Callable[[TaskView], Task]) -> None:
        self._client, self._task = client, task
        self.view, self.queued = view, queued

    @property
    def plan_id(self) -> str:
        """Its id."""
        return self.view.plan_id

    @property
    def is_empty(self) -> bool:
        """Whether it is to do nothing; why, it :attr:`says`."""
        return not self.view.can_apply

    @property
    def says(self) -> str:
        """What it would do, or why it is to do nothing."""
        return self.view.reason.text

    def apply(self) -> Task:
        """Have exactly this plan carried out, or be refused because the world moved; the task.

        Raises ``NotAllowed`` for a plan that is to do nothing, in mode ``observe``, and for one that has to be approved
        first; ``Conflict`` where it does not hold any more, or another task of its kind is under way.
        """
        return self._task(from_json(TaskView, self._client.apply(self.plan_id)))

    def approve(self, approved_by: str) -> Task:
        """Let exactly this plan go although it had to wait for a person, and have it carried out; the task.

        ``approved_by`` is who says so, as people call them; the server writes down beside it whose token it was. Raises
        ``NotAllowed`` for a plan that waits for no approval, and as :meth:`apply`.
        """
        return self._task(from_json(TaskView, self._client.approve(self.plan_id, approved_by)))

    def refuse(self, why: str, refused_by: str) -> RefusalView:
        """Refuse exactly this plan, which waits for a person: it cannot be approved or applied any more.

        Raises ``Conflict`` for a plan that does not wait, also since it was approved.
        """
        return from_json(RefusalView, self._client.refuse(self.plan_id, why, refused_by))

    def approval(self) -> ApprovalView:
        """Who approved it, and when. Raises ``NotFound`` where it is not approved."""
        return from_json(ApprovalView, self._client.approval(self.plan_id))

    def __repr__(self) -> str:
        """Its explanation, a line each."""
        return "\n".join([f"<Plan {self.plan_id}>", *(wording.safe(line) for line in self.view.explanation)])

    def _repr_html_(self) -> str:
        rows = [_verdict_cells(one) for one in self.view.verdicts]
        head = ("partition", "verdict", "why", "files", "files after")
        said = shown.paragraphs(f"plan {self.plan_id} for {self.view.table}", self.view.explanation[:3])
        return said + (shown.table("", rows, head) if rows else "")


class Table:
    """A table as the server knew it; every method asks it again. ``summary`` has what was listed."""

    def __init__(self, client: Client, summary: TableSummary, task: Callable[[TaskView], Task]) -> None:
        self._client, self._task = client, task
        self.summary = summary
        self._plan: Plan | None = None

    @property
    def name(self) -> str:
        """Its full name."""
        return self.summary.name

    @property
    def uuid(self) -> str:
        """What it is, whatever it is called."""
        return self.summary.uuid

    def health(self) -> Health:
        """How it is, by its metadata as it is now and the inventory of the last look."""
        return Health(self._document())

    def policy(self) -> TablePolicy:
        """What its owner wants, with the rule that won for each setting."""
        view = self._document().table
        settings = {one.key: one for one in view.policy}
        return TablePolicy(view.name, view.mode, settings, view.policy_problems)

    def why(self) -> WhyAnswer:
        """Why something happens to it, or nothing."""
        return from_json(WhyAnswer, self._client.why(self.uuid, self.summary.catalog))

    def observation(self) -> ObservationView:
        """What the last look at it saw. Of looks before it only ``first_seen`` is kept."""
        (found,) = self._client.observations(self.uuid, self.summary.catalog).items
        return from_json(ObservationView, found)

    def plan(self, asked: PlanRequest | None = None) -> Plan:
        """Have it looked at and planned now, or have that planned which is ``asked`` for.

        As `icewright plan`: in mode ``auto`` an automatic plan is queued as well, and :attr:`Plan.queued` says
        so; what was asked for is only carried out when it is applied.
        """
        if asked is not None:
            view = from_json(PlanView, self._client.plan_asked(self.uuid, self.summary.catalog, asked))
            self._plan = Plan(self._client, view, None, self._task)
        else:
            looked = from_json(LookAnswer, self._client.look_at_table(self.uuid, self.summary.catalog))
            self._plan = Plan(self._client, looked.plan, looked.task_id, self._task)
        return self._plan

    def apply(self) -> Task:
        """Have the plan carried out that :meth:`plan` of this object gave last: that one and no newer one.

        Raises ``NotAllowed`` where no plan was looked at, and as :meth:`Plan.apply`.
        """
        if self._plan is None:
            raise NotAllowed(f"no plan for {self.name} was looked at", hint="look at plan() first, then apply()")
        return self._plan.apply()

    def tasks(self, *states: TaskState) -> Iterator[Task]:
        """Its tasks, newest first; only those in these states, if any are named."""
        of_table = {"uuid": self.uuid, "catalog": self.summary.catalog}
        found = pages(TaskView, lambda cursor: self._client.tasks(states=states, table=of_table, cursor=cursor))
        return (self._task(view) for view in found)

    def plans(self) -> Iterator[Plan]:
        """The plans for it that are kept, newest first."""
        found = pages(PlanView, lambda cursor: self._client.plans(self.uuid, self.summary.catalog, cursor=cursor))
        return (Plan(self._client, view, None, self._task) for view in found)

    def approvals(self) -> Iterator[ApprovalView]:
        """Who let which of its plans go, the latest first."""
        of_table = {"uuid": self.uuid, "catalog": self.summary.catalog}
        return pages(ApprovalView, lambda cursor: self._client.approvals(table=of_table, cursor=cursor))

    def history(self) -> Iterator[FactView]:
        """What happened to it, oldest first, for as long as facts are kept: two weeks."""
        return facts(self._client, under=(self.name,))

    def _document(self) -> TableDocument:
        return from_json(TableDocument, self._client.table_document(self.uuid, self.summary.catalog))

    def __repr__(self) -> str:
        """Name, mode, files, and what the last plan says."""
        return wording.safe(f"<Table {self.name}: {'; '.join(value for _, value in rows_of(self.summary) if value)}>")

    def _repr_html_(self) -> str:
        return shown.table(self.name, rows_of(self.summary))


def rows_of(summary: TableSummary) -> list[tuple[str, str]]:
    """Mode, files, and what the last plan says, by what they are called."""
    figures, plan, mode = summary.figures, summary.plan, summary.mode
    problem = summary.problem
    files = "" if figures is None else f"{wording.count(figures.data_files, 'file')}, {figures.small_files:,} small"
    return [
        ("mode", "mode not known" if mode is None else f"mode {mode.value}"),
        ("files", files),
        ("says", problem.text if problem is not None else "" if plan is None else plan.reason.text),
    ]


def facts(client: Client, *, kinds: Sequence[str] = (), under: Sequence[str] = ()) -> Iterator[FactView]:
    """Facts of the feed, oldest first."""
    return pages(FactView, lambda cursor: client.feed(kinds=kinds, under=under, cursor=cursor))


def full_name(client: Client, text: str) -> TableName:
    """A table's name; of a server with one catalog that one need not be named. Raises ``InvalidName``."""
    catalogs = [one["name"] for one in client.status()["catalogs"]]
    return TableName.parse(text, default_catalog=catalogs[0] if len(catalogs) == 1 else None)


def _verdict_cells(one: VerdictView) -> tuple[str, ...]:
    path = wording.place(one.path)
    return (path, one.verdict.value, one.reason.text, f"{one.files_before:,}", f"{one.files_after:,}")
