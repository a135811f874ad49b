"""Opens the log-in of people, where the configuration has a provider."""

from __future__ import annotations

from collections.abc import Mapping

from icewright.audit.port import AuditLog
from icewright.config.model import OidcConfig
from icewright.config.secrets import resolve
from icewright.core.clock import Clock
from icewright.core.extras import require_extra
from icewright.identity.logins import Logins
from icewright.identity.people_settings import role_rules
from icewright.identity.port import IdentityStore


def open_logins(
    oidc: OidcConfig,
    environ: Mapping[str, str],
    identities: IdentityStore,
    audit: AuditLog,
    clock: Clock,
    token: str,
) -> Logins | None:
    """Log-ins by the provider, None where there is none; the provider itself is asked with the first one.

    ``token`` is the owner's, which all servers of one installation share. Raises :class:`InvalidConfiguration`.
    """
    if oidc.issuer is None or oidc.client_id is None:
        return None
    require_extra("oidc", "log-ins by OpenID Connect")
    from icewright.identity.oidc.provider import Client, OidcProvider  # noqa: PLC0415 - its libraries are an extra

    secret = oidc.client_secret
    if secret is not None:
        secret = resolve(secret, key="oidc.client_secret", environ=environ).strip()
    provider = OidcProvider(Client(oidc.issuer, oidc.client_id, secret, oidc.scopes, oidc.audience), clock.now)
    return Logins(provider, role_rules(oidc), identities, audit, clock, token)
