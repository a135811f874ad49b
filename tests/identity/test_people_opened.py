"""How a server lets people log in, by its configuration."""

from __future__ import annotations

import sys

import pytest

from icewright.audit.sql import SqlAudit
from icewright.config.model import OidcConfig
from icewright.core.errors import InvalidConfiguration
from icewright.identity.logins import Logins
from icewright.identity.sql import SqlIdentities
from icewright.identity.wiring import open_logins
from tests.doubles.clock import ManualClock
from tests.lakes.stores import new_store
from tests.servers.oidc import CLIENT_ID, oidc_server

BACK = "http://127.0.0.1:7077/login/callback"


def opened(oidc: OidcConfig, **environ: str) -> Logins | None:
    store, clock = new_store(), ManualClock()
    identities, audit = SqlIdentities(store, clock), SqlAudit(store, clock)
    return open_logins(oidc, environ, identities, audit, clock, "the-owners-token")


def test_the_provider_is_asked_with_the_first_log_in_and_not_before() -> None:
    with oidc_server() as server:
        logins = opened(OidcConfig(server.issuer, CLIENT_ID, "env:SECRET"), SECRET="x\n")  # noqa: S106 - not a secret
        assert logins is not None
        assert not server.asked
        assert logins.begin(BACK).address.startswith(f"{server.issuer}/authorize?")


def test_without_one_nobody_logs_in() -> None:
    assert opened(OidcConfig()) is None


def test_a_secret_that_is_not_there_is_said_by_its_reference() -> None:
    with pytest.raises(InvalidConfiguration, match=r"oidc\.client_secret"):
        opened(OidcConfig("https://login.example.com", CLIENT_ID, "env:SECRET"))


def test_without_its_libraries_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "authlib", None)
    with pytest.raises(InvalidConfiguration) as refused:
        opened(OidcConfig("https://login.example.com", CLIENT_ID))
    assert "icewright[oidc]" in refused.value.hint
