"""How a request came: by TLS, from this machine, or in the clear, in which case nothing of it is used.

TLS ends in this server or in a proxy in front of it. A proxy says which it was by a header that anybody can send, so it
is believed from the addresses alone that the owner named. The address of the client is taken from it to count by, and
gives nobody any right; nothing else is taken from such headers, neither the host nor a path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from icewright.core.server_urls import is_loopback

FORWARDED_SCHEME: Final = "x-forwarded-proto"
FORWARDED_CLIENT: Final = "x-forwarded-for"


@dataclass(frozen=True, slots=True)
class Transport:
    """Who can reach a server, and who is believed to say how a request came.

    ``is_exposed``: others than this machine can. ``proxies``: the addresses of what speaks TLS in front of it.
    """

    is_exposed: bool = False
    proxies: Sequence[IPv4Network | IPv6Network] = ()

    def scheme(self, scope: Scope) -> str | None:
        """``https``, or ``http`` for a program of this machine; None for what came in the clear from elsewhere."""
        if scope["scheme"] == "https":
            return "https"
        peer = scope["client"][0] if scope.get("client") else ""
        said = Headers(scope=scope).getlist(FORWARDED_SCHEME) if self.is_proxy(peer) else []
        if said:
            return "https" if [word.strip().lower() for word in said] == ["https"] else None
        return "http" if not self.is_exposed or is_loopback(peer) else None

    def client(self, scope: Scope) -> str:
        """The address that a request came from: the peer's, or behind trusted proxies the one that they name."""
        return self.forwarded_client(scope) or str(scope["client"][0] if scope.get("client") else "")

    def forwarded_client(self, scope: Scope) -> str | None:
        """Who asks by a trusted proxy: the last address of its header that is none of theirs; None without one.

        What stands before that, the client may have written itself.
        """
        if not scope.get("client") or not self.is_proxy(scope["client"][0]):
            return None
        said = ",".join(Headers(scope=scope).getlist(FORWARDED_CLIENT)).split(",")
        for word in reversed([word.strip() for word in said]):
            try:
                address = _unmapped(ip_address(word))
            except ValueError:
                return None
            if not self.is_proxy(str(address)):
                return str(address)
        return None

    def is_proxy(self, peer: str) -> bool:
        """Whether the peer is one of the trusted proxies."""
        try:
            address = _unmapped(ip_address(peer))
        except ValueError:
            return False
        return any(address in network for network in self.proxies)


LOCAL: Final = Transport(is_exposed=False, proxies=[])
"""Nobody but this machine reaches the server, and nobody is believed."""


def _unmapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """A socket for both kinds has the addresses of one within the other."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
