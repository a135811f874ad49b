"""Which addresses are inside: of this machine, its network or its cloud, where no message of ours has any business.

Whoever names a receiver could otherwise have the server talk to what only the server can reach. The list is that of
IANA's special-purpose registries, written out, since what Python's ``is_global`` says changes from version to version.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

PRIVATE: Final = "a private network"

_INSIDE: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("this machine", ("127.0.0.0/8", "0.0.0.0/8", "::1/128", "::/128")),
    ("a link-local address, as clouds have their metadata at", ("169.254.0.0/16", "fe80::/10", "fec0::/10")),
    (PRIVATE, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")),
    ("a cloud's own address", ("168.63.129.16/32",)),
    ("a group of machines", ("224.0.0.0/4", "255.255.255.255/32", "ff00::/8")),
    (
        "an IPv4 address in an IPv6 one",
        ("::ffff:0:0/96", "::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32"),
    ),
    (
        "reserved",
        (
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "240.0.0.0/4",
            "100::/64",
            "100:0:0:1::/64",
            "2001::/23",
            "2001:db8::/32",
            "2620:4f:8000::/48",
            "3fff::/20",
            "5f00::/16",
        ),
    ),
)
_NETWORKS: Final = tuple((what, tuple(ip_network(text) for text in texts)) for what, texts in _INSIDE)
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")


def network(text: str) -> Network:
    """A network as an administrator writes it. Raises ``ValueError``, also for one with bits behind its prefix."""
    return ip_network(text)


def is_in(address: Address, networks: Iterable[Network]) -> bool:
    """Whether an address is in one of these networks, of the same version."""
    return any(address.version == one.version and address in one for one in networks)


def inside(address: Address) -> str | None:
    """What an address is that is not of the world outside; None for one that is."""
    for what, networks in _NETWORKS:
        if is_in(address, networks):
            return what
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return "reserved"
    return None


def parse(text: str) -> Address:
    """An address as resolvers give it, without the name of an interface behind it. Raises ``ValueError``."""
    return ip_address(text.partition("%")[0])
