"""Keeping plans: what a checker does not accept is kept nowhere, and carried out never."""

from __future__ import annotations

from collections.abc import Iterable

from icewright.core.errors import IcewrightError
from icewright.core.fault_points import Fault, fault
from icewright.model.plans.plans import Plan
from icewright.plans.check_table import Wrong
from icewright.ports.store import TableStore


class PlanRejected(IcewrightError):
    """The checker found the planner wrong: a defect of icewright. Nothing is done to the table."""

    code = "plan-refused"


def refuse_wrong(claim: str, violations: Iterable[Wrong]) -> None:
    """Raises :class:`PlanRejected`, with all that a checker found, where it found anything."""
    if said := "; ".join(f"{code}: {text}" for code, text in violations):
        raise PlanRejected(f"{claim}: {said}")


def keep_plan(tables: TableStore, plan: Plan, violations: Iterable[Wrong] = (), *, is_present: bool = False) -> Plan:
    """Keep a plan that its checker accepts, as the table's present one or beside that.

    Raises :class:`PlanRejected` where there are ``violations``.
    """
    refuse_wrong(f"the plan for {plan.table_name} does not hold", violations)
    fault(Fault.PLAN_BEFORE)
    tables.save_plan(plan, is_present=is_present)
    fault(Fault.PLAN_AFTER)
    return plan
