"""Keeping plans: what a checker does not accept is kept nowhere, and carried out never."""

from __future__ import annotations

from collections.abc import Iterable

from icewright.core.fault_points import Fault, fault
from icewright.model.plans.plans import Plan
from icewright.plans.rejection import PlanRejected
from icewright.ports.store import TableStore


def keep_plan(
    tables: TableStore, plan: Plan, violations: Iterable[tuple[str, str]] = (), *, is_present: bool = False
) -> Plan:
    """Keep a plan that its checker accepts, as the table's present one or beside that.

    ``violations`` are codes and texts. Raises :class:`PlanRejected` where there are any.
    """
    said = "; ".join(f"{code}: {text}" for code, text in violations)
    if said:
        raise PlanRejected(f"the plan for {plan.table_name} does not hold: {said}")
    fault(Fault.PLAN_BEFORE)
    tables.save_plan(plan, is_present=is_present)
    fault(Fault.PLAN_AFTER)
    return plan
