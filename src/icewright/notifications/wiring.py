"""The ways to the receivers of a configuration, and the threads that tell them, for one server."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from icewright.config.model import Config, NotificationsConfig, ReceiverConfig
from icewright.config.secrets import resolve
from icewright.core.errors import InvalidConfiguration
from icewright.core.extras import require_extra
from icewright.core.system_clock import running
from icewright.model.events.notifications import ReceiverKind
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.port import Sender
from icewright.notifications.senders.by_apprise import Address, AppriseSender, parse_address
from icewright.notifications.senders.guard import Guard
from icewright.notifications.senders.requests import TIMEOUT_S, Requests
from icewright.notifications.senders.signatures import parse_secret
from icewright.notifications.senders.urls import Proxy, parse_proxy, parse_url
from icewright.notifications.senders.webhook import Endpoint, WebhookSender
from icewright.notifications.service import MessageDelivery, Notifications

THREADS_MAX: Final = 8
"""How many receivers are told at the same time; one that does not answer holds up those of its thread alone."""
_END_S: Final = 2 * TIMEOUT_S
"""How long the end of the server waits for a message that is on its way; one that is cut off is sent again."""


def open_delivery(config: Config, environ: Mapping[str, str], store: SqlMessages) -> MessageDelivery:
    """Who is told, by which way. Raises :class:`InvalidConfiguration` for a way that cannot be."""
    if not config.receivers and config.notifications.ca_file is None:
        return MessageDelivery(store, (), {})  # the authorities of a machine take an eighth of a server's start
    context = _context(config.notifications)
    senders = {one.receiver.name: _sender(one, config.notifications, environ, context) for one in config.receivers}
    return MessageDelivery(store, tuple(one.receiver for one in config.receivers), senders)


def unusable_receivers(config: Config, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Receivers that a server would refuse to start with, and why: by the check of the server itself."""
    found = {}
    for one in config.receivers:
        try:
            _sender(one, config.notifications, environ, _context(config.notifications))
        except InvalidConfiguration as error:
            found[one.receiver.name] = error.message
    return found


@contextmanager
def deliver_messages(notifications: Notifications) -> Iterator[None]:
    """Tell all receivers while the block runs. One process of those that share a store does."""
    stop, shares = threading.Event(), min(THREADS_MAX, len(notifications.receivers))
    threads = [
        threading.Thread(target=notifications.run, args=(stop, share, shares), name=f"notifier-{share}", daemon=True)
        for share in range(shares)
    ]
    with running(threads, stop, _END_S):
        yield


def _sender(
    one: ReceiverConfig, config: NotificationsConfig, environ: Mapping[str, str], context: ssl.SSLContext
) -> Sender:
    """References are followed at each message, so that a secret in a file is exchanged without a restart."""
    key = f"receivers.{one.receiver.name}"
    guard = Guard(config.networks)

    def url() -> str:
        return resolve(one.url, key=f"{key}.url", environ=environ)

    def endpoint() -> Endpoint:
        references = {"secret": one.secret, "previous_secret": one.previous_secret}
        secrets = tuple(
            parse_secret(resolve(said, key=f"{key}.{name}", environ=environ), f"{key}.{name}")
            for name, said in references.items()
            if said is not None
        )
        return Endpoint(parse_url(url(), f"{key}.url"), secrets)

    def address() -> Address:
        return parse_address(url(), f"{key}.url")

    proxy = _proxy_of(config, environ)
    # What cannot be is said at once, and not when something has happened.
    proxy()
    if one.receiver.kind is ReceiverKind.APPRISE:
        require_extra("notify", "receivers of kind apprise")
        address()
        return AppriseSender(address, guard, proxy=proxy)
    endpoint()
    return WebhookSender(endpoint, Requests(guard, context=context, proxy=proxy))


def requests_of(config: NotificationsConfig, environ: Mapping[str, str]) -> Requests:
    """Requests to where messages may go. Raises :class:`InvalidConfiguration`."""
    proxy = _proxy_of(config, environ)
    proxy()
    return Requests(Guard(config.networks), context=_context(config), proxy=proxy)


def _proxy_of(config: NotificationsConfig, environ: Mapping[str, str]) -> Callable[[], Proxy | None]:
    def proxy() -> Proxy | None:
        name = "notifications.proxy"
        return None if config.proxy is None else parse_proxy(resolve(config.proxy, key=name, environ=environ), name)

    return proxy


def _context(config: NotificationsConfig) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=config.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise InvalidConfiguration(
            f"notifications.ca_file: no certificates can be read from {config.ca_file}",
            hint="it is a file of certificates in PEM",
        ) from error
