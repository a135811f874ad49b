"""``[oidc]``: what may stand there."""

from __future__ import annotations

from pathlib import Path

import pytest

from icewright.config.model import Config, OidcConfig
from icewright.configuration.load import load_config
from icewright.configuration.show import shown
from icewright.core.errors import InvalidConfiguration
from icewright.identity.people_settings import role_rules
from icewright.model.access.permissions import Grant, Role, Scope
from tests.cases import each_case

OIDC = """
[oidc]
issuer = "https://login.example.com/realms/data"
client_id = "icewright"
client_secret = "env:OIDC_SECRET"
scopes = ["openid", "profile", "groups"]
[oidc.roles]
"groups=lake-admins" = "platform-admin, policy-admin"
"groups=sales-eng" = "operator@lake.sales, viewer"
"""


def load(folder: Path, oidc: str, **environ: str) -> Config:
    (folder / "icewright.toml").write_text(oidc)
    return load_config(None, {"HOME": str(folder), **environ}, folder)


def test_all_of_it(tmp_path: Path) -> None:
    config = load(tmp_path, OIDC)
    assert (config.oidc.issuer, config.oidc.client_id) == ("https://login.example.com/realms/data", "icewright")
    assert config.oidc.scopes == ("openid", "profile", "groups")
    assert [(rule.claim, rule.value, rule.grants) for rule in role_rules(config.oidc)] == [
        ("groups", "lake-admins", (Grant(Role.PLATFORM_ADMIN), Grant(Role.POLICY_ADMIN))),
        ("groups", "sales-eng", (Grant(Role.OPERATOR, Scope("lake", ("sales",))), Grant(Role.VIEWER))),
    ]
    seen = {setting.key: setting.value for setting in shown(config)}
    assert seen["oidc.client_secret"] == "env:OIDC_SECRET"  # noqa: S105 - a reference
    assert seen["oidc.roles.groups=sales-eng"] == "operator@lake.sales, viewer"


def test_programs_come_in_by_access_tokens_only_where_it_is_said_for_whom_these_are(tmp_path: Path) -> None:
    assert load(tmp_path, OIDC).oidc.audience is None
    assert load(tmp_path, OIDC, ICEWRIGHT_OIDC__AUDIENCE="the-api").oidc.audience == "the-api"


def test_without_it_there_is_no_provider(tmp_path: Path) -> None:
    assert load(tmp_path, "").oidc == OidcConfig()


@each_case(
    ("change", "key"),
    [
        (('client_id = "icewright"', 'client_id = "icewright"\naudience = "icewright"'), "oidc.audience"),
        (('issuer = "https://login.example.com/realms/data"', ""), "oidc.issuer"),
        (('client_id = "icewright"', ""), "oidc.client_id"),
        (("https://login.example.com", "http://login.example.com"), "oidc.issuer"),
        (("https://login.example.com", "https://user@login.example.com"), "oidc.issuer"),
        (("/realms/data", "/realms/data?x=1"), "oidc.issuer"),
        (("/realms/data", "#x"), "oidc.issuer"),
        (("env:OIDC_SECRET", "the secret itself"), "oidc.client_secret"),
        (('"openid", ', ""), "oidc.scopes"),
        (("groups=sales-eng", "sales-eng"), "oidc.roles.sales-eng"),
        (("operator@lake.sales", "operater@lake.sales"), "oidc.roles.groups=sales-eng"),
        (("platform-admin, ", "platform-admin@lake, "), "oidc.roles.groups=lake-admins"),
        (("platform-admin, ", "optimizer, "), "oidc.roles.groups=lake-admins"),
        (("scopes", "scope"), "oidc.scope"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(tmp_path: Path, change: tuple[str, str], key: str) -> None:
    assert change[0] in OIDC
    with pytest.raises(InvalidConfiguration) as refused:
        load(tmp_path, OIDC.replace(*change))
    assert key in refused.value.message
    assert "the secret itself'" not in refused.value.message


def test_t2_roles_come_from_the_file_alone(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="in the configuration file alone"):
        load(tmp_path, OIDC, ICEWRIGHT_OIDC__ROLES='{"groups=x": "platform-admin"}')


def test_a_provider_of_this_machine_may_do_without_tls(tmp_path: Path) -> None:
    config = load(tmp_path, OIDC.replace("https://login.example.com", "http://127.0.0.1:8080"))
    assert config.oidc.issuer == "http://127.0.0.1:8080/realms/data"
