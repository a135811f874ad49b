"""Where a server may listen: on this machine as it likes, for other machines by TLS and under a name alone."""

from __future__ import annotations

from icewright.config.model import ServerConfig
from icewright.config.settings import ONE_PERSON
from icewright.core.errors import InvalidConfiguration


def check_approvals(server: ServerConfig, *, has_provider: bool, origin: str) -> None:
    """Raises :class:`InvalidConfiguration` for one person who approves alone where others may come in."""
    if server.approvals != ONE_PERSON:
        return
    others = {
        f"server.host {server.host}": server.is_exposed,
        "TLS": server.tls_certificate is not None,
        "server.trusted_proxies": bool(server.trusted_proxies),
        "server.public_url": server.public_url is not None,
        "[oidc]": has_provider,
    }
    if found := [name for name, is_there in others.items() if is_there]:
        raise InvalidConfiguration(
            f'{origin}: server.approvals = "{ONE_PERSON}" excludes {", ".join(found)}: others may have access',
            hint="leave it out, and have another person approve",
        )


def check_listening(server: ServerConfig, origin: str) -> None:
    """Raises :class:`InvalidConfiguration` for a server that would be found in the clear, or under no name."""
    if (server.tls_certificate is None) != (server.tls_key is None):
        missing = "tls_key" if server.tls_key is None else "tls_certificate"
        raise InvalidConfiguration(
            f"{origin}: server.{missing} is missing", hint="tls_certificate and tls_key are needed both, or neither"
        )
    has_tls = server.tls_certificate is not None
    if not (server.is_exposed or has_tls or server.trusted_proxies):
        return
    where = f"server.host {server.host}" if server.is_exposed else "TLS"
    if server.public_url is None:
        raise InvalidConfiguration(
            f"{origin}: server.public_url is missing, which {where} needs",
            hint='write the address that others use, such as public_url = "https://icewright.example.com"',
        )
    if not (has_tls or server.trusted_proxies):
        raise InvalidConfiguration(
            f"{origin}: {where} would answer other machines in the clear",
            hint="give tls_certificate and tls_key, or the addresses of what speaks TLS in front (trusted_proxies)",
        )
    if not server.public_url.startswith("https://"):
        raise InvalidConfiguration(
            f"{origin}: server.public_url {server.public_url} is not by TLS", hint="write https://..."
        )
