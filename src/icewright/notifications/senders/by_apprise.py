"""Messages by e-mail and chats, through the library Apprise, which runs in a process of its own for each message.

The library speaks to a hundred services by sockets of its own, so what may be connected to is watched from below: by
an audit hook of the interpreter, which nothing in that process can take away again (:mod:`.apprise_process`). It also
has an end in time, and secrets and answers stay out of this process, its arguments, its environment and its log.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from icewright.core.errors import Forbidden, InvalidConfiguration, Rejected, Unavailable
from icewright.core.times import Instant
from icewright.notifications.port import Outgoing
from icewright.notifications.senders.apprise_process import INSIDE, NO_ADDRESS, NOT_SENT, SENT
from icewright.notifications.senders.guard import Guard, system_resolve
from icewright.notifications.senders.urls import Proxy

PATIENCE_S: Final = 60.0
"""How long a message may take, with the start of the process: mail servers let strangers wait."""
MAIL: Final = frozenset({"mailto", "mailtos", "mailgun", "o365", "sendgrid", "ses"})
"""Services that show HTML; the others show Markdown."""
SCHEMES: Final = MAIL | frozenset(
    {
        *("discord", "gchat", "gotify", "gotifys", "matrix", "matrixs", "mmost", "mmosts", "nctalk", "nctalks"),
        *("ntfy", "ntfys", "opsgenie", "pagerduty", "pover", "rocket", "rockets", "slack", "squadcast", "tgram"),
        *("victorops", "webex", "workflow", "workflows", "wxteams", "zulip"),
    }
)
"""Services of people. Those that run programs, write files or show things on a desktop are not among them."""
_NO: Final = frozenset({"no", "false", "0", "off", "n", "f", "disable", "disabled", "never", "deny", "-", ""})
_MODULE: Final = "icewright.notifications.senders.apprise_process"


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """A URL of Apprise's. It has secrets, hence no ``repr``."""

    url: str
    scheme: str


def parse_address(text: str, key: str) -> Address:
    """The address that a text is. Raises :class:`InvalidConfiguration` naming ``key`` and nothing of the text."""
    scheme, found, _ = text.strip().partition("://")
    scheme = scheme.lower()
    if not found or scheme not in SCHEMES or not text.isprintable():
        known = ", ".join(sorted(SCHEMES))
        raise InvalidConfiguration(f"{key}: not an address of a service that is known here", hint=f"known: {known}")
    try:
        said = parse_qsl(urlsplit(text).query, keep_blank_values=True)
    except ValueError:
        raise InvalidConfiguration(f"{key}: not an address", hint="see the documentation of Apprise") from None
    if any(name.lower() == "verify" and value.strip().lower() in _NO for name, value in said):
        raise InvalidConfiguration(f"{key}: certificates are always verified", hint="leave `verify` out")
    return Address(text.strip(), scheme)


class AppriseSender:
    """A :class:`~icewright.notifications.port.Sender` by a process for each message."""

    def __init__(
        self,
        address: Callable[[], Address],
        guard: Guard,
        *,
        proxy: Callable[[], Proxy | None] = lambda: None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._address, self._guard, self._proxy, self._patience_s = address, guard, proxy, patience_s

    def send(self, outgoing: Outgoing, at: Instant) -> None:
        """See the port."""
        del at
        address, proxy = self._address(), self._proxy()
        is_mail = address.scheme in MAIL
        order = {
            "url": address.url,
            "title": outgoing.title,
            "body": outgoing.html if is_mail else outgoing.markdown,
            "format": "html" if is_mail else "markdown",
            "allowed": [str(network) for network in self._guard.allowed] + _addresses(proxy),
            "proxy": "" if proxy is None else proxy.url,
        }
        _judge(_run(json.dumps(order), self._patience_s))


def _run(order: str, patience_s: float) -> int:
    """How the process ends. It gets nothing of our environment but where Python's modules are."""
    environ = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "LANG": "C.UTF-8"}
    try:
        ended = subprocess.run(  # noqa: S603 - our own module, by the interpreter that runs this
            [sys.executable, "-m", _MODULE],
            input=order.encode(),
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=patience_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable("the service did not take the message in time") from None
    except OSError as error:
        raise Unavailable(f"no process could be started for the message: {error.strerror}") from error
    return ended.returncode


def _judge(status: int) -> None:
    if status == SENT:
        return
    if status == NO_ADDRESS:
        raise Rejected("the library Apprise cannot read the receiver's address", hint="see its documentation")
    if status == INSIDE:
        hint = "an administrator allows networks in notifications.allowed_networks of the configuration file"
        raise Forbidden("the receiver is inside, or its service does what messages may not", hint=hint)
    if status == NOT_SENT:
        raise Unavailable("the service did not take the message")
    raise Unavailable(f"the process that sends the message ended with status {status}")


def _addresses(proxy: Proxy | None) -> list[str]:
    """Those of an administrator's proxy, which may be inside, as networks."""
    if proxy is None:
        return []
    host, _, port = proxy.authority.rpartition(":")
    try:
        return list(system_resolve(host.strip("[]"), int(port)))
    except OSError as error:
        raise Unavailable("the name of the proxy cannot be resolved") from error
