"""Resource groups: what is none, and that the default one exists always."""

from __future__ import annotations

import math
from typing import Any

import pytest

from icewright.core.codec import dumps, loads
from icewright.core.errors import InvalidConfiguration, InvalidResourceGroup
from icewright.core.times import Window
from icewright.model.policy.resource_groups import DEFAULT_GROUP, ResourceGroup, TenantCaps, with_default
from tests.cases import each_case

NIGHT = Window("0 2 * * *", "Europe/Berlin", 4 * 3_600_000)


def test_a_group_without_caps_holds_nothing_back() -> None:
    group = ResourceGroup("etl")
    assert (group.cores, group.memory_bytes, group.applications_max, group.optimizers_max) == (None,) * 4
    assert not group.windows
    assert math.isclose(group.large_share, 0.2)


def test_the_default_group_exists_always() -> None:
    assert with_default({})[DEFAULT_GROUP] == ResourceGroup(DEFAULT_GROUP)
    mine = ResourceGroup(DEFAULT_GROUP, cores=4)
    assert with_default({DEFAULT_GROUP: mine})[DEFAULT_GROUP] is mine


def test_a_group_outlives_its_json() -> None:
    group = ResourceGroup("etl", 8, 1 << 34, 2, 1, (NIGHT,), 0.3, (TenantCaps("sales", 4), TenantCaps("ops", None, 9)))
    assert loads(ResourceGroup, dumps(group)) == group


def test_the_caps_of_a_tenant() -> None:
    group = ResourceGroup("etl", tenants=(TenantCaps("sales", 4),))
    assert group.caps_of("sales") == TenantCaps("sales", 4)
    assert group.caps_of("ops") is None


@each_case("name", ["", "*", "server", "server-files", "a b", "-a", "a" * 64, "ä", "a/b", "a\n", ".."])
def test_names_that_no_group_may_have(name: str) -> None:
    with pytest.raises(InvalidResourceGroup, match="is no name of a resource group"):
        ResourceGroup(name)


@each_case(
    ("wrong", "said"),
    [
        ({"cores": 0}, "cores: must be 1 or more"),
        ({"memory_bytes": -1}, "memory_bytes: must be 1 or more"),
        ({"applications_max": 0}, "applications_max: must be 1 or more"),
        ({"optimizers_max": 0}, "optimizers_max: must be 1 or more"),
        ({"large_share": 0.0}, "large_share: must be more than 0"),
        ({"large_share": 1.0}, "large_share: must be more than 0"),
        ({"large_share": math.nan}, "large_share: must be more than 0"),
        ({"windows": (NIGHT,) * 21}, "windows: more than 20"),
        ({"windows": (Window("0 2 * * *", "UTC", 0),)}, "windows: each must be open"),
        ({"tenants": (TenantCaps(""),)}, "tenants: a name has 1 to 100 characters"),
        ({"tenants": (TenantCaps("a", 0),)}, r"tenants\.a\.cores: must be 1 or more"),
        ({"tenants": (TenantCaps("a"), TenantCaps("b"), TenantCaps("a"))}, "tenants: a is there twice"),
        ({"tenants": tuple(TenantCaps(str(number)) for number in range(1_001))}, "tenants: more than 1000"),
    ],
)
def test_what_is_no_group(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidConfiguration, match=said) as raised:
        ResourceGroup("etl", **wrong)
    assert raised.value.code == "invalid-resource-group"
