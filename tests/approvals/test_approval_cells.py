"""What ``icewright approvals list`` prints of an approval."""

from icewright.approvals.views import approval_view
from icewright.maintenance.approvals_cli import approval_cells
from icewright.model.plans.approvals import Approval
from tests.contracts.test_deletion_store_contract import approval


def test_an_approval_says_who_let_which_plan_go_when_and_why_it_had_to_wait() -> None:
    one = approval(7, at=1_700_000_000_000)
    plan, table, kind, when, by, because = approval_cells(approval_view(one))
    assert (plan, kind, when, by) == ("plan-7", "expire_snapshots", "2023-11-14 22:13:20 UTC", "Ada")
    assert one.plan is not None
    assert one.plan.because is not None
    assert (table, because) == (str(one.plan.table_name), one.plan.because.text)


def test_of_one_of_before_its_plan_was_kept_the_hash_is_said() -> None:
    cells = approval_cells(approval_view(Approval("abc", "Ada", 0)))
    assert cells == ("hash abc", "-", "-", "1970-01-01 00:00:00 UTC", "Ada", "")
