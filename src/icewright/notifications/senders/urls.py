"""Addresses of receivers, read strictly: what two programs might read differently is refused.

Parsers disagree about user names, backslashes, numbers for IPv4 addresses (decimal, octal, hexadecimal, short ones)
and characters that look like others; that is how a check is told one host and a connection another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final
from urllib.parse import quote, unquote

from icewright.core.errors import InvalidConfiguration
from icewright.core.networks import Address

URL_LENGTH_MAX: Final = 2_000
_HOST_LENGTH_MAX: Final = 253
_PORT_MAX: Final = 65_535
_PORTS: Final = {"http": 80, "https": 443}
_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9_.-]+))"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?(?P<target>/[!-~]*)?",
    re.ASCII,
)
_LABEL: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*", re.ASCII)
"""A host whose last label is one is an IPv4 address in some spelling to most programs, and a name to others."""
_HINT: Final = "write https://host.name/path, a name in ASCII (xn--... for others), no user, no fragment"


@dataclass(frozen=True, slots=True, repr=False)
class Url:
    """Where to send to. ``host`` is as it goes into the request, ``address`` what it is where it is no name.

    It may hold a secret, hence no ``repr``.
    """

    scheme: str
    host: str
    port: int
    target: str
    address: Address | None = None

    @property
    def is_encrypted(self) -> bool:
        """Whether it goes over TLS."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """Host and port, as a request names them."""
        return self.host if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, repr=False)
class Proxy:
    """An administrator's proxy. It may hold a password, hence no ``repr``."""

    scheme: str
    authority: str
    login: tuple[str, str] | None = None

    @property
    def url(self) -> str:
        """As programs take it from their environment."""
        login = "" if self.login is None else ":".join(quote(part, safe="") for part in self.login) + "@"
        return f"{self.scheme}://{login}{self.authority}"


def parse_proxy(text: str, key: str) -> Proxy:
    """The proxy that a text is: ``http://host:port``, with ``user:password@`` perhaps.

    Raises :class:`InvalidConfiguration` naming ``key`` and nothing of the text.
    """
    head, found, rest = text.partition("://")
    login, at, where = rest.rpartition("@")
    url = parse_url(f"{head}://{where}", key)
    if not found or url.target != "/":
        raise _wrong(key, "not an address of the form http://host.name:port")
    user, _, password = login.partition(":")
    return Proxy(url.scheme, f"{url.host}:{url.port}", (unquote(user), unquote(password)) if at else None)


def parse_url(text: str, key: str) -> Url:
    """The address that a text is. Raises :class:`InvalidConfiguration` naming ``key`` and nothing of the text."""
    found = _URL.fullmatch(text) if len(text) <= URL_LENGTH_MAX else None
    if found is None or any(sign in text for sign in "#\\"):
        raise _wrong(key, "not an address of the form https://host.name/path")
    port = int(found["port"] or _PORTS[found["scheme"]])
    if port > _PORT_MAX:
        raise _wrong(key, "there is no such port")
    address = _six(found["six"], key) if found["six"] else _four(found["name"], key)
    host = f"[{address}]" if isinstance(address, IPv6Address) else found["name"].lower()
    return Url(found["scheme"], host, port, found["target"] or "/", address)


def _six(text: str, key: str) -> IPv6Address:
    try:
        return IPv6Address(text)
    except AddressValueError:
        raise _wrong(key, "the text in brackets is no IPv6 address") from None


def _four(name: str, key: str) -> IPv4Address | None:
    """The IPv4 address that a host is, in the one spelling that nobody reads differently; None for a name."""
    labels = name.split(".")
    if len(name) > _HOST_LENGTH_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        raise _wrong(key, "its host is no name of a machine")
    if not _NUMBER.fullmatch(labels[-1]):
        return None
    try:
        return IPv4Address(name)
    except AddressValueError:
        raise _wrong(key, "its host is a number, and not four of them as 192.0.2.1 is") from None


def _wrong(key: str, what: str) -> InvalidConfiguration:
    return InvalidConfiguration(f"{key}: {what}", hint=_HINT)
