"""The settings of ``[oidc]``: the provider by which people log in."""

from __future__ import annotations

from urllib.parse import urlsplit

from icewright.config.setting import Kind, Setting
from icewright.core.server_urls import is_loopback


def _is_issuer(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    return is_safe and bool(host) and not (parts.query or parts.fragment or "@" in parts.netloc)


OIDC = (
    Setting(
        "issuer",
        Kind.TEXT,
        "The provider of OpenID Connect by which people log in, as it calls itself: https://login.example.com/realm.",
        allowed="an https:// URL without a query; http:// of this machine alone",
        accepts=_is_issuer,
    ),
    Setting("client_id", Kind.TEXT, "By which name the provider knows this installation."),
    Setting(
        "client_secret",
        Kind.TEXT,
        "What the provider gave for it, as env:NAME or file:/path; without one, a public client by PKCE alone.",
    ),
    Setting(
        "scopes",
        Kind.TEXTS,
        "What is asked for of people. Many providers name their groups only where a scope asks for it.",
        default=("openid", "profile", "email"),
    ),
    Setting(
        "audience",
        Kind.TEXT,
        "For whom access tokens of the provider have to be by which programs come in: its name for this API, and not "
        "client_id. Without it none is taken.",
    ),
    Setting(
        "roles",
        Kind.MAPPING,
        'Which roles people get, by claims of their ID token: "groups=data-eng" = "operator@lake.sales, viewer". '
        "Without @ for everything. People without a matching line get none. In the configuration file alone.",
    ),
)
