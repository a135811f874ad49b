"""Plans that wait for a person, and who approved or refused them: beyond a budget and the first time, each one does."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import structlog

from icewright.core import codec
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, InvalidMessage
from icewright.feed.publisher import FeedPublisher
from icewright.model.access.permissions import EVERYWHERE
from icewright.model.actions.actions import ActionKind, cause_of
from icewright.model.actions.deletion import plan_hash_of
from icewright.model.actions.remove_files import RemoveExpiredFiles, RemoveOrphanFiles
from icewright.model.iceberg.names import TableId
from icewright.model.plans.approvals import REFUSED_MS, Approval, ApprovalPlace, ApprovedPlan, Refusal
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Mode, Policy
from icewright.ownership.registry import Registry
from icewright.plans.action_types import ActionType, beyond_budget, no_longer_wanted
from icewright.ports.deletions import DeletionStore
from icewright.ports.store import TableStore, WaitingPlan

_log = structlog.get_logger("icewright.approvals")

NAME_LENGTH_MAX: Final = 200
WHY_LENGTH_MAX: Final = 1_000
"""Of what somebody says when they refuse a plan."""
NO_ROOTS: Final = Reason(
    "no-roots", "the catalog has no `roots`: its tables may be anywhere, so that each removal needs approval"
)
OTHER_PLACE: Final = Reason(
    "other-place", "no removal of this table was approved in the place where it is now: review the plan"
)
RESTORED_SINCE: Final = Reason(
    "restored", "the store was restored from a backup, which does not know later undos: review and approve"
)
"""Why a person has to ask again for what takes something away."""
_APPROVALS_A_PAGE: Final = 100
APPROVED_BY: Final = "approved_by"
"""The figure of a task's reason that says who approved its plan beyond a budget."""


class Approvals:
    """Keeps which plans wait, and what was approved."""

    def __init__(
        self,
        tables: TableStore,
        deletions: DeletionStore,
        clock: Clock,
        tidings: FeedPublisher,
        registry: Registry,
        types: Mapping[str, ActionType[Any]],
    ) -> None:
        """``types`` are all kinds of actions: each says what is beyond its budget."""
        self._tables, self._deletions, self._clock, self._tidings = tables, deletions, clock, tidings
        self._registry, self._types = registry, types

    def missing(self, plan: Plan) -> Reason | None:
        """Why a plan must not be carried out before somebody approves it; None when it may be."""
        reason = beyond_budget(self._types, plan)
        return None if reason is None or self.given(plan) is not None else reason

    def may_be_given(self, plan: Plan) -> bool:
        """Whether a plan waits for somebody, or did until it was approved: all others are applied, not approved.

        Also one that the server made by itself, in whose place another one of its kind waits by now.
        """
        if beyond_budget(self._types, plan) is not None or self.given(plan) is not None:
            return True
        kinds = (ActionKind(action.kind) for action in plan.actions)
        waiting = self._tables.waits(plan.table_id)
        found = (waiting[kind] for kind in kinds if kind in waiting)
        return any(one.plan_id == plan.plan_id or not plan.asked for one in found)

    def given(self, plan: Plan) -> Approval | None:
        """Who approved this very plan."""
        return self._deletions.approval(approval_hash(plan))

    def figures(self, plan: Plan) -> dict[str, str]:
        """Who approved it, as a task's reason says it; nothing where nobody had to."""
        approval = self.given(plan)
        return {} if approval is None else {APPROVED_BY: approval.approved_by}

    def give(self, plan: Plan, approved_by: str) -> Approval:
        """Let a plan go beyond its budget: this one and no other. The first approval of a plan stays.

        Raises :class:`InvalidMessage` for a name that is none.
        """
        name = _named(approved_by, "no approver is named")
        return self._deletions.approve(Approval(approval_hash(plan), name, self._clock.now(), self._approved(plan)))

    def refuse(self, plan_id: str, refused_by: str, why: str) -> Refusal:
        """Refuse a plan that waits: this one and no other. The first refusal of a plan stays.

        Raises ``NotFound``; :class:`InvalidMessage` where nobody or no reason is named; and
        :class:`~icewright.core.errors.Conflict` for a plan that does not wait, also since somebody approved it.
        """
        plan = self._tables.plan(plan_id)
        text = why.strip()
        if not text or len(text) > WHY_LENGTH_MAX or not text.isprintable():
            raise InvalidMessage("no reason is given", hint=f"why, in 1 to {WHY_LENGTH_MAX} characters on one line")
        name, kinds = _named(refused_by, "no name is given"), [ActionKind(action.kind) for action in plan.actions]
        if not kinds:
            raise Conflict(f"plan {plan_id} is to do nothing: {plan.reason.text}", hint="there is nothing to refuse")
        refusal = Refusal(
            plan_id=plan_id,
            plan_hash=approval_hash(plan),
            table_id=plan.table_id,
            table_name=plan.table_name,
            kind=kinds[0],
            refused_by=name,
            why=text,
            refused_at=self._clock.now(),
            snapshot_id=plan.snapshot_id,
            settings_digest=plan.settings_digest,
        )
        kept = self._tables.refuse(refusal)
        self._tables.look_at_once(kept.table_name)  # its health says that the plan waits
        _log.info("plan refused", table=str(plan.table_name), plan=plan_id, by=kept.refused_by, because=kept.why)
        return kept

    def refused(
        self, table_id: TableId, kind: ActionKind, digest: str | None, snapshot_id: int | None
    ) -> Reason | None:
        """Why nobody is asked about another plan of this kind, and none goes: one was refused, and nothing changed.

        Of work on data files, the table's snapshot and the settings of its policy. What expires or is removed is the
        same however many commits come, so of that the settings alone. None where one may be asked about.
        """
        return self.still_refused(self._tables.refusals(table_id).get(kind), digest, snapshot_id)

    def still_refused(self, refusal: Refusal | None, digest: str | None, snapshot_id: int | None) -> Reason | None:
        """As :meth:`refused`, by the latest refusal of a kind, which was read already."""
        if refusal is None or self._clock.now() - refusal.refused_at >= REFUSED_MS:  # also by a clock that is behind
            return None
        if refusal.settings_digest != digest:
            return None
        is_other = refusal.kind is ActionKind.REWRITE_DATA_FILES and refusal.snapshot_id != snapshot_id
        return None if is_other else refusal.reason()

    def _approved(self, plan: Plan) -> ApprovedPlan:
        """The plan as it is kept with its approval: its first action says of which kind it is."""
        kind = ActionKind(plan.actions[0].kind)
        waiting = self._tables.waits(plan.table_id).get(kind)
        because = (
            waiting.reason
            if waiting is not None and waiting.plan_id == plan.plan_id
            else beyond_budget(self._types, plan)
        )
        return ApprovedPlan(plan.plan_id, plan.table_id, plan.table_name, kind, because, self._places(plan))

    def _places(self, plan: Plan) -> tuple[str, ...]:
        """The places that a removal is about: those that the table owns alone, or lays claim to."""
        match plan.actions[0]:
            case RemoveOrphanFiles(roots=roots):
                return roots
            case RemoveExpiredFiles():
                claim = self._registry.claim(plan.table_name)
                return () if claim is None else claim.roots
            case _:
                return ()

    def other_place(self, plan: Plan) -> Reason | None:
        """Why a removal needs approval for the place that it is in; None where one of this table was approved there.

        Whoever owns a table says where it lies: an approval is for the place as it was, and where an administrator does
        not limit the places of a catalog, for one plan.
        """
        if not self._registry.limits_of(plan.table_id.catalog):
            return NO_ROOTS
        before: ApprovalPlace | None = None
        places, approved = self._places(plan), list[str]()
        while found := self._deletions.approvals(
            table_id=plan.table_id, limit=_APPROVALS_A_PAGE, before=before, within=EVERYWHERE
        ):
            approved += [root for one in found if one.plan is not None for root in one.plan.roots]
            before = ApprovalPlace(found[-1].approved_at, found[-1].plan_hash)
        is_approved = bool(places) and all(place.startswith(tuple(approved)) for place in places)
        return None if is_approved else OTHER_PLACE

    def wait(self, plan: Plan, reason: Reason, *, is_news: bool = True) -> None:
        """Let a plan wait for a person, in place of one of the same kind that waits for the table already.

        With ``is_news`` the feed is told.
        """
        (action,) = plan.actions
        kind = ActionKind(action.kind)
        waiting = WaitingPlan(plan.plan_id, plan.table_id, plan.table_name, kind, reason, self._clock.now())
        self._tables.wait(waiting)
        if is_news:
            self._tidings.waits(waiting)
        _log.info("plan waits for approval", table=str(plan.table_name), plan=plan.plan_id, because=reason.text)

    def unwanted(self, plan: Plan, policy: Policy) -> Reason | None:
        """Why the owner does not want any more what a plan was made for by itself; such a plan waits no more."""
        reason = no_longer_wanted(self._types, plan, policy)
        for action in () if reason is None else plan.actions:
            kind = ActionKind(action.kind)
            waiting = self._tables.waits(plan.table_id).get(kind)
            if waiting is not None and waiting.plan_id == plan.plan_id:
                self._tables.waits_no_more(plan.table_id, kind)
        return reason

    def wait_no_more(self, plan: Plan) -> None:
        """A person had this plan queued: another one of its kind, or this one, need not wait any more."""
        (action,) = plan.actions
        self._tables.waits_no_more(plan.table_id, ActionKind(action.kind))


def _named(name: str, otherwise: str) -> str:
    """Who decides. Raises :class:`InvalidMessage` for a name that is none."""
    found = name.strip()
    if not found or len(found) > NAME_LENGTH_MAX or not found.isprintable():
        raise InvalidMessage(otherwise, hint=f"a name of 1 to {NAME_LENGTH_MAX} characters")
    return found


def waits_by_mode(plan: Plan) -> Reason | None:
    """Why a plan that nobody asked for waits for a person: in mode ``approve`` each one does."""
    if plan.mode is not Mode.APPROVE or plan.is_empty or plan.asked or plan.migration is not None:
        return None
    return Reason("mode-approve", "in mode approve each plan waits for a person")


def approval_hash(plan: Plan) -> str:
    """What an approval is for. Of a removal, what the Deleter asks for as well; else the whole plan."""
    for action in plan.actions:
        if isinstance(action, RemoveOrphanFiles | RemoveExpiredFiles):
            return plan_hash_of(plan.plan_id, plan.table_id, cause_of(action), action.candidates)
    return hashlib.sha256(codec.dumps(plan).encode("utf-8", "surrogatepass")).hexdigest()
