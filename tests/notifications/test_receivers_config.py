"""``[notifications]`` and ``[receivers.NAME]``: what may stand there."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import pytest

from icewright.config.model import Config
from icewright.configuration.load import load_config
from icewright.configuration.show import shown
from icewright.core.errors import InvalidConfiguration
from icewright.model.events.feed import FactKind
from icewright.model.events.notifications import GroupBy, Receiver, ReceiverKind
from tests.cases import each_case

HOOK = """
[receivers.hook]
kind = "webhook"
url = "https://hooks.example.org/icewright"
secret = "env:HOOK_SECRET"
"""


def load(folder: Path, text: str, **environ: str) -> Config:
    (folder / "icewright.toml").write_text(text)
    return load_config(None, {"HOME": str(folder), **environ}, folder)


def test_all_of_it(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
[notifications]
allowed_networks = ["10.1.0.0/16", "fd00:1::/32"]
proxy = "env:PROXY"
ca_file = "/etc/ssl/own.pem"
[receivers.sales_team-1]
kind = "webhook"
url = "file:/run/secrets/hook"
secret = "file:/run/secrets/new"
previous_secret = "file:/run/secrets/old"
facts = ["succeeded", "data-at-risk"]
under = ["lake.sales", "lake.`odd.name`.t"]
owners = ["sales-*"]
group_by = "table"
interval_ms = 0
messages_per_hour = 100
""",
    )
    (one,) = config.receivers
    assert one.receiver == Receiver(
        "sales_team-1",
        ReceiverKind.WEBHOOK,
        (FactKind.SUCCEEDED, FactKind.DATA_AT_RISK),
        (("lake", "sales"), ("lake", "odd.name", "t")),
        ("sales-*",),
        GroupBy.TABLE,
        0,
        100,
    )
    assert (one.url, one.secret, one.previous_secret) == (
        "file:/run/secrets/hook",
        "file:/run/secrets/new",
        "file:/run/secrets/old",
    )
    assert config.notifications.networks == (ip_network("10.1.0.0/16"), ip_network("fd00:1::/32"))
    said = {one.key: one.value for one in shown(config)}
    assert said["receivers.sales_team-1.secret"] == "file:/run/secrets/new"
    assert said["receivers.sales_team-1.under"] == "lake.sales, lake.`odd.name`.t"
    assert said["notifications.allowed_networks"] == "10.1.0.0/16, fd00:1::/32"
    assert config.origins["receivers.sales_team-1.url"] == str(config.path)


def test_what_is_usual(tmp_path: Path) -> None:
    (one,) = load(tmp_path, HOOK).receivers
    assert set(one.receiver.facts) >= {FactKind.DATA_AT_RISK, FactKind.FAILED, FactKind.PARKED}
    assert not {FactKind.QUEUED, FactKind.STARTED} & set(one.receiver.facts)
    assert (one.receiver.under, one.receiver.owners, one.receiver.group_by) == ((), (), GroupBy.OWNER)
    assert load(tmp_path, "").receivers == ()


@each_case(
    ("text", "key"),
    [
        ('receivers = "x"', "receivers"),
        ("[[receivers]]\nkind = 'webhook'", "receivers"),
        ("[receivers.Upper]\nkind = 'webhook'", "Upper"),
        ("[receivers.'a b']\nkind = 'webhook'", "a b"),
        ("[receivers.a]", "receivers.a.kind"),
        ("[receivers.a]\nkind = 'pigeon'\nurl = 'env:X'", "receivers.a.kind"),
        ("[receivers.a]\nkind = 'webhook'\nsecret = 'env:X'", "receivers.a.url"),
        ("[receivers.a]\nkind = 'webhook'\nurl = 'env:X'", "receivers.a.secret"),
        ("[receivers.a]\nkind = 'webhook'\nurl = 'env:X'\nsecret = 'whsec_clear'", "receivers.a.secret"),
        ("[receivers.a]\nkind = 'webhook'\nurl = 'https://h/?key=1'\nsecret = 'env:X'", "receivers.a.url"),
        ("[receivers.a]\nkind = 'webhook'\nurl = 'https://u:p@h/'\nsecret = 'env:X'", "receivers.a.url"),
        ("[receivers.a]\nkind = 'apprise'\nurl = 'slack://token/x'", "receivers.a.url"),
        ("[receivers.a]\nkind = 'apprise'\nurl = 'env:X'\nsecret = 'env:X'", "receivers.a.secret"),
        (HOOK + "previous_secret = 'whsec_clear'", "receivers.hook.previous_secret"),
        (HOOK + "facts = []", "receivers.hook.facts"),
        (HOOK + "facts = ['rumours']", "receivers.hook.facts"),
        (HOOK + "under = ['lake..x']", "receivers.hook.under"),
        (HOOK + "owners = ['']", "receivers.hook.owners"),
        (HOOK + "group_by = 'colour'", "receivers.hook.group_by"),
        (HOOK + "interval_ms = -1", "receivers.hook.interval_ms"),
        (HOOK + "messages_per_hour = 0", "receivers.hook.messages_per_hour"),
        (HOOK + "colour = 'red'", "receivers.hook.colour"),
        ("[notifications]\nallowed_networks = ['10.0.0.1/8']", "notifications.allowed_networks"),
        ("[notifications]\nallowed_networks = ['everything']", "notifications.allowed_networks"),
        ("[notifications]\nproxy = 'http://u:hidden@h:1'", "notifications.proxy"),
    ],
)
def test_what_is_refused_is_named_and_no_secret_is_shown(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        load(tmp_path, text)
    assert key in refused.value.message
    assert not any(word in str(refused.value) for word in ("whsec_clear", "hidden", "slack://"))


def test_t7_networks_inside_are_allowed_by_the_file_alone(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="file alone"):
        load(tmp_path, HOOK, ICEWRIGHT_NOTIFICATIONS__ALLOWED_NETWORKS="127.0.0.0/8")
    assert load(tmp_path, HOOK, ICEWRIGHT_NOTIFICATIONS__PROXY="http://h:1").notifications.proxy == "http://h:1"


def test_there_are_only_so_many(tmp_path: Path) -> None:
    many = "".join(HOOK.replace("hook]", f"r{number}]") for number in range(101))
    with pytest.raises(InvalidConfiguration, match="more than 100"):
        load(tmp_path, many)
