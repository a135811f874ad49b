"""Which definition of a resource group counts for a table: the one by which claims go, and no other."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from icewright.model.iceberg.names import TableName
from icewright.model.policy.policies import NamedRule, NewRevision, Policies, RuleMatch
from icewright.model.policy.resource_groups import OPEN_DEFAULT, ResourceGroup, TenantCaps
from icewright.policy.groups.precedence import GroupSource, applied_source, caps_said, group_win
from tests.builders.lakehouse import Lakehouse
from tests.narrowing import not_none

ORDERS = TableName("lake", ("sales",), "orders")
ETL = {"icewright.resource-group": "etl"}
RULE = NamedRule("heavy", RuleMatch(("lake.sales.**",), None, {}), ETL)


def configured(*groups: ResourceGroup) -> GroupSource:
    return GroupSource("icewright.toml", groups, is_configuration=True)


def applied(*groups: ResourceGroup) -> GroupSource:
    return applied_source(7, groups)


def test_what_is_applied_is_above_the_configuration_as_a_whole() -> None:
    mine, theirs = ResourceGroup("etl", tasks_max=2), ResourceGroup("etl", cores=9, tasks_max=5)
    win = group_win(ORDERS, {}, (RULE,), (applied(mine), configured(theirs)))
    assert (win.name, win.named_by, win.defined_by) == ("etl", "rule heavy", "revision 7 of the policies")
    assert win.group == mine  # and none of the other's caps
    assert win.because == "policies are above the configuration"
    assert [one.origin for one in win.over] == ["[groups.etl] of icewright.toml"]


def test_a_group_of_the_configuration_alone() -> None:
    win = group_win(ORDERS, ETL, (), (applied(), configured(ResourceGroup("etl", cores=9))))
    assert (win.named_by, win.defined_by) == ("table property", "[groups.etl] of icewright.toml")
    assert (win.because, win.over) == ("no other definition", ())


def test_a_group_of_files_says_where_it_stands() -> None:
    files = GroupSource("the files", (ResourceGroup("etl"),), places={"etl": "groups.yaml:3:5"})
    assert group_win(ORDERS, ETL, (), (files, configured())).defined_by == "groups.yaml:3:5"


def test_a_group_that_nobody_defines() -> None:
    win = group_win(ORDERS, ETL, (), (applied(), configured()))
    assert (win.defined_by, win.group, win.tenant_caps) == (None, None, None)
    assert win.because == (
        "it is not defined, neither revision 7 of the policies nor icewright.toml: no task of the table starts"
    )


def test_the_group_that_exists_always() -> None:
    win = group_win(ORDERS, {}, (), (applied(), configured()))
    assert (win.name, win.named_by, win.defined_by, win.group) == ("default", "default", "built in", OPEN_DEFAULT)
    mine = ResourceGroup("default", cores=4)
    win = group_win(ORDERS, {}, (), (applied(), configured(mine)))
    assert (win.group, win.over) == (mine, ())


def test_caps_of_its_owner_and_of_nobody_else() -> None:
    sales, ops = TenantCaps("sales", tasks_max=1), TenantCaps("ops", tasks_max=9)
    sources = (applied(ResourceGroup("default", tenants=(ops, sales))), configured())
    win = group_win(ORDERS, {"owner": "sales"}, (), sources)
    assert (win.tenant, win.tenant_caps) == ("sales", sales)
    assert not_none(win.group).tenants == (sales,)
    nobody = group_win(ORDERS, {}, (), sources)
    assert (nobody.tenant, nobody.tenant_caps) == ("", None)
    assert not_none(nobody.group).tenants == ()


def test_caps_in_words() -> None:
    group = ResourceGroup("etl", 1_200, 64 << 30, applications_max=3, optimizers_max=2, tasks_max=4)
    assert caps_said(group) == "tasks 4, cores 1,200, memory 64.0 GiB, Spark applications 3, optimizers 2"
    assert caps_said(TenantCaps("sales", tasks_max=1)) == "tasks 1"
    assert caps_said(ResourceGroup("etl")) == "none"


GROUPS = st.lists(
    st.builds(ResourceGroup, st.sampled_from(["default", "etl", "night"]), st.one_of(st.none(), st.integers(1, 9))),
    unique_by=lambda group: group.name,
    max_size=3,
)


@given(GROUPS, GROUPS, st.sampled_from(["default", "etl", "night"]))
def test_it_is_the_definition_by_which_claims_go(
    own: Sequence[ResourceGroup], over: Sequence[ResourceGroup], name: str
) -> None:
    house = Lakehouse(groups=own)
    house.policies.apply(NewRevision(Policies((), tuple(over)), "Ada"), 0)
    house.create()
    house.catalog.set_properties(house.metadata().name, {"icewright.resource-group": name})
    tested = house.control.policies.test(house.metadata())
    assert tested.group.win.group == house.control.queue_waits._groups.present().get(name)
    assert tested.is_usable == (tested.group.win.group is not None)
    assert not tested.group.differs
