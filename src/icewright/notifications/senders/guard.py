"""Which addresses messages may go to, and connections that go to exactly those that were looked at.

A name is resolved once, each address that it has is judged, and the connection is made to one of these and to no name,
so that a resolver which answers differently the next time changes nothing.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpcore2

from icewright.core.errors import Forbidden, Unavailable
from icewright.core.networks import Address, Network, inside, is_in, parse
from icewright.notifications.senders.urls import Url

RESPONSE_BYTES_MAX: Final = 65_536
"""How much is read of an answer, of which the status alone is looked at."""
_ADDRESSES_MAX: Final = 8
_HINT: Final = "an administrator allows networks in notifications.allowed_networks of the configuration file"

Resolve = Callable[[str, int], Sequence[str]]
"""The addresses of a host, as texts. Raises ``OSError``."""


def system_resolve(host: str, port: int) -> Sequence[str]:
    """What this machine's resolver says."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True, slots=True)
class Guard:
    """What may be talked to: the world outside over TLS, and ``allowed`` networks besides."""

    allowed: tuple[Network, ...] = ()
    resolve: Resolve = system_resolve

    def addresses(self, url: Url) -> list[Address]:
        """The addresses to connect to, one after the other.

        Raises :class:`Forbidden` where one of them is inside, or anything but an allowed network without TLS, and
        :class:`Unavailable` where there is none.
        """
        found = [url.address] if url.address is not None else self._resolved(url)
        for address in found:
            self._judge(address, url)
        return found[:_ADDRESSES_MAX]

    def judge_as_far_as_known(self, url: Url) -> None:
        """As :meth:`addresses`, for what a proxy connects to: what cannot be resolved here is left to the proxy."""
        try:
            self.addresses(url)
        except Unavailable:
            if not url.is_encrypted:
                raise Forbidden("a receiver behind a proxy needs https", hint=_HINT) from None

    def _resolved(self, url: Url) -> list[Address]:
        try:
            found = [parse(text) for text in self.resolve(url.host, url.port)]
        except (OSError, ValueError, UnicodeError) as error:
            raise Unavailable("the name of the receiver's machine cannot be resolved") from error
        if not found:
            raise Unavailable("the name of the receiver's machine has no address")
        return found

    def _judge(self, address: Address, url: Url) -> None:
        if is_in(address, self.allowed):
            return
        what = inside(address)
        if what is not None:
            raise Forbidden(f"the receiver is at {address}: {what}", hint=_HINT)
        if not url.is_encrypted:
            raise Forbidden("a receiver outside is talked to over https alone", hint="write https://, or see the docs")


class Pinned(httpcore2.NetworkBackend):
    """Connects to given addresses, whatever name is asked for; nothing lasts beyond ``until``, by the monotonic clock.

    Without addresses, to what is asked for: an administrator's proxy.
    """

    def __init__(self, addresses: Sequence[Address], until: float) -> None:
        self._addresses, self._until = [str(address) for address in addresses], until
        self._sockets = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """A connection to the first address that answers."""
        del timeout
        tried = self._addresses or [host]
        for left, address in zip(reversed(range(len(tried))), tried, strict=True):
            patience_s = remaining_s(self._until) / (left + 1)
            try:
                stream = self._sockets.connect_tcp(address, port, patience_s, local_address, socket_options)
            except (httpcore2.NetworkError, httpcore2.TimeoutException):
                if not left:
                    raise
            else:
                return Bounded(stream, self._until)
        raise httpcore2.ConnectError("there is no address to connect to")

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.NetworkStream:
        """Never."""
        del path, timeout, socket_options
        raise httpcore2.ConnectError("messages are not sent to a socket of this machine")


class Bounded(httpcore2.NetworkStream):
    """A connection that takes no longer, and reads no more, than it may, however slowly the other side drips."""

    def __init__(self, stream: httpcore2.NetworkStream, until: float) -> None:
        self._stream, self._until, self._read = stream, until, 0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some bytes."""
        del timeout
        data = self._stream.read(max_bytes, remaining_s(self._until))
        self._read += len(data)
        if self._read > RESPONSE_BYTES_MAX:
            raise httpcore2.ReadError("the answer is too long")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """All of these bytes."""
        del timeout
        self._stream.write(buffer, remaining_s(self._until))

    def close(self) -> None:
        """Let go of it."""
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """The same over TLS, with the name that was asked for."""
        del timeout
        return Bounded(self._stream.start_tls(ssl_context, server_hostname, remaining_s(self._until)), self._until)

    def get_extra_info(self, info: str) -> Any:
        """What is known of the connection."""
        return self._stream.get_extra_info(info)


def remaining_s(until: float) -> float:
    """How long there is left. Raises the library's ``ReadTimeout`` when there is nothing left."""
    left = until - time.monotonic()
    if left <= 0:
        raise httpcore2.ReadTimeout("it took too long")
    return left
