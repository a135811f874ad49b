"""Where a server is reached: by TLS, or on this machine alone, since whatever else is sent there everybody can read."""

from __future__ import annotations

import ipaddress
import ssl
from typing import Final
from urllib.parse import urlsplit

from icewright.core.errors import Rejected

_PORTS: Final = {"https": 443, "http": 80}
_HINT: Final = "write https://host or https://host:port"


def is_loopback(host: str) -> bool:
    """Whether an address, or ``localhost``, is this machine's own and nobody else's; IPv4 in IPv6 counts as IPv4.

    Other names are not: what they stand for is for somebody else to say.
    """
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def client_url(url: str) -> str:
    """The URL of a server as its clients use it, without a slash at its end; what is in front of it may have a path.

    Raises :class:`Rejected` for what is none, or would send a token in the clear to another machine.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise Rejected(f"not the address of a server: {error}", hint=_HINT) from error
    if parts.scheme not in _PORTS or not host or parts.query or parts.fragment or "@" in parts.netloc:
        raise Rejected("not the address of a server", hint=_HINT)
    if parts.scheme == "http" and not is_loopback(host):
        raise Rejected(
            f"{url} would send the token in the clear",
            hint="write https://: a server answers other machines by TLS alone",
        )
    return url.rstrip("/")


def trusted(url: str) -> ssl.SSLContext:
    """What a server's certificate is verified by: ``SSL_CERT_FILE``, ``SSL_CERT_DIR`` or the machine's certificates.

    httpx2 leaves these variables out along with those for proxies, which must not see the token. For ``http://`` it
    trusts no certificate: there is none, and to read those of the machine takes time.
    """
    return ssl.create_default_context() if url.startswith("https://") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def is_public_url(url: str) -> bool:
    """Whether a server can call this its own address: a client's URL without a path."""
    try:
        return client_url(url) == url and not urlsplit(url).path
    except Rejected:
        return False


def authorities(url: str) -> frozenset[str]:
    """The Host headers that clients of that URL may send: also without its port where that goes without saying."""
    parts = urlsplit(url)
    netloc = parts.netloc.lower()
    if parts.port is None:
        return frozenset({netloc, f"{netloc}:{_PORTS[parts.scheme]}"})
    if parts.port == _PORTS[parts.scheme]:
        return frozenset({netloc, netloc.rpartition(":")[0]})
    return frozenset({netloc})
