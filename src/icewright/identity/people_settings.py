"""``[oidc]``: the provider by which people log in, and which roles its word gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icewright.config import values
from icewright.config.layers import Given, Key, dotted
from icewright.config.model import OidcConfig
from icewright.config.oidc import OIDC
from icewright.core.errors import InvalidConfiguration, InvalidName
from icewright.model.access.people import RoleRule

_SECTION: Final = "oidc"


def oidc_config(given: Mapping[Key, Given], file: str) -> OidcConfig:
    """The section, checked. Raises ``InvalidConfiguration``."""
    here = [key for key in given if key[0] == _SECTION]
    found = {setting.key: values.value(given, (_SECTION,), setting) for setting in OIDC}
    for key in ("issuer", "client_id"):
        if here and found[key] is None:
            origin = given[here[0]].origin
            raise InvalidConfiguration(f"{origin}: oidc.{key} is missing", hint="issuer and client_id are both needed")
    values.require_reference(given, (_SECTION, "client_secret"), found["client_secret"])
    if "openid" not in found["scopes"]:
        raise _wrong(given, ("scopes",), "openid is missing", 'without it no name is known: ["openid", "profile"]')
    if found["audience"] is not None and found["audience"] == found["client_id"]:
        what = "that is oidc.client_id, for which ID tokens are"
        raise _wrong(given, ("audience",), what, "have the provider name this API otherwise in access tokens")
    for condition, roles in found["roles"].items():
        rule = ("roles", condition)
        if given[_SECTION, *rule].origin != file:
            raise _wrong(
                given, rule, "roles are given in the configuration file alone", "write them under [oidc.roles]"
            )
        try:
            RoleRule.parse(condition, roles)
        except InvalidName as error:
            raise _wrong(given, rule, error.message, error.hint) from error
    return OidcConfig(**found)


def role_rules(oidc: OidcConfig) -> tuple[RoleRule, ...]:
    """Which roles people get by the provider's word."""
    return tuple(RoleRule.parse(condition, roles) for condition, roles in oidc.roles.items())


def _wrong(given: Mapping[Key, Given], key: Key, what: str, hint: str) -> InvalidConfiguration:
    whole = (_SECTION, *key)
    return InvalidConfiguration(f"{given[whole].origin}: {dotted(whole)}: {what}", hint=hint)
