"""``[notifications]`` and ``[receivers.NAME]``: who is told of what happens, and where messages may go."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from icewright.config import layers, values
from icewright.config.layers import Given, Key, dotted
from icewright.config.model import NotificationsConfig, ReceiverConfig
from icewright.config.secrets import is_reference, redact
from icewright.config.setting import Kind, Setting, choice, integer
from icewright.config.settings import NOTIFICATIONS
from icewright.core.errors import InvalidConfiguration, InvalidName
from icewright.core.networks import Network, network
from icewright.model.events.feed import FactKind
from icewright.model.events.notifications import RECEIVERS_MAX, GroupBy, Receiver, ReceiverKind
from icewright.model.iceberg.names import split_parts

_TOP: Final = "receivers"
_SECTION: Final = "notifications"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}", re.ASCII)
_DAY_MS: Final = 86_400_000
_PER_HOUR_MAX: Final = 1_000
_USUAL: Final = (
    FactKind.DATA_AT_RISK,
    FactKind.FAILED,
    FactKind.PARKED,
    FactKind.WAITS_FOR_APPROVAL,
    FactKind.REGRESSED,
    FactKind.CATALOG_AWAY,
    FactKind.CATALOG_BACK,
)
_SECRETS: Final = ("secret", "previous_secret")

RECEIVER: Final = (
    Setting(
        "kind",
        Kind.TEXT,
        "How it gets its messages: signed requests for programs, or e-mail and chats through the library Apprise.",
        required=True,
        allowed=", ".join(ReceiverKind),
        accepts=lambda value: value in tuple(ReceiverKind),
    ),
    Setting(
        "url",
        Kind.TEXT,
        "Where to: https://... for webhook, a URL of Apprise's for apprise; env:NAME or file:/path where it has "
        "secrets, as those of Apprise always do.",
        required=True,
    ),
    Setting(
        "secret",
        Kind.TEXT,
        "What webhooks are signed with, whsec_... of Standard Webhooks: env:NAME or file:/path. Required for webhook.",
    ),
    Setting("previous_secret", Kind.TEXT, "The one before, which messages are signed with as well: env: or file:."),
    Setting(
        "facts",
        Kind.TEXTS,
        "Which kinds of facts it receives.",
        default=tuple(kind.value for kind in _USUAL),
        allowed=", ".join(FactKind),
        accepts=lambda value: bool(value) and all(one in tuple(FactKind) for one in value),
    ),
    Setting("under", Kind.TEXTS, "Of which catalogs, namespaces and tables alone, by their names.", default=()),
    Setting(
        "owners",
        Kind.TEXTS,
        "Of tables of which owners alone; * is any run of characters.",
        default=(),
        accepts=all,
    ),
    choice(
        "group_by",
        "What has a message of its own: an owner, or a table.",
        tuple(GroupBy),
        default=GroupBy.OWNER.value,
    ),
    integer(
        "interval_ms",
        "How long facts wait for others to share their message, in milliseconds; data at risk waits for none.",
        default=300_000,
        least=0,
        most=_DAY_MS,
    ),
    integer(
        "messages_per_hour",
        "How many messages it gets in an hour, at most; then they wait and are counted together.",
        default=20,
        least=1,
        most=_PER_HOUR_MAX,
    ),
)


def flatten_receivers(data: Mapping[str, Any], origin: str) -> dict[Key, Given]:
    """``[receivers.NAME]`` of the file, one value per setting and receiver. Raises ``InvalidConfiguration``."""
    tables = data.get(_TOP, {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise InvalidConfiguration(f"{origin}: {_TOP}: expected a table of each", hint=f"write [{_TOP}.NAME]")
    if len(tables) > RECEIVERS_MAX:
        raise InvalidConfiguration(f"{origin}: {_TOP}: more than {RECEIVERS_MAX}", hint="let one tell the others")
    found: dict[Key, Given] = {}
    for name, table in tables.items():
        if not _NAME.fullmatch(name):
            hint = "use a-z, 0-9, _ and -, beginning with a letter or a digit, at most 63 characters"
            raise InvalidConfiguration(f"{origin}: {_TOP}.{name[:100]!r} cannot be the name of a receiver", hint=hint)
        found.update(layers.flatten_table((_TOP, name), table, RECEIVER, origin))
        if not table:
            raise InvalidConfiguration(f"{origin}: {_TOP}.{name}.kind is missing", hint=f"one of {RECEIVER[0].allowed}")
    return found


def receivers(given: Mapping[Key, Given]) -> tuple[ReceiverConfig, ...]:
    """All receivers, checked. Raises ``InvalidConfiguration``."""
    names = dict.fromkeys(key[1] for key in given if key[0] == _TOP)
    return tuple(_receiver(given, name) for name in names)


def _receiver(given: Mapping[Key, Given], name: str) -> ReceiverConfig:
    head = (_TOP, name)
    found = {setting.key: values.value(given, head, setting) for setting in RECEIVER}
    receiver = Receiver(
        name=name,
        kind=ReceiverKind(found["kind"]),
        facts=tuple(FactKind(kind) for kind in found["facts"]),
        under=tuple(_parts(given, head, text) for text in found["under"]),
        owners=found["owners"],
        group_by=GroupBy(found["group_by"]),
        interval_ms=found["interval_ms"],
        messages_per_hour=found["messages_per_hour"],
    )
    url = found["url"]
    is_webhook = receiver.kind is ReceiverKind.WEBHOOK
    if not is_reference(url) and (not is_webhook or redact("url", url) != url or "?" in url or "@" in url):
        raise _wrong(given, (*head, "url"), "it may hold a secret, which does not belong here")
    for key in _SECRETS:
        if found[key] is not None and not is_webhook:
            raise _wrong(given, (*head, key), "only webhooks are signed", "leave it out")
        values.require_reference(given, (*head, key), found[key])
    if is_webhook and found["secret"] is None:
        raise _wrong(given, (*head, "kind"), f"{_TOP}.{name}.secret is missing: webhooks are always signed")
    return ReceiverConfig(receiver, url, found["secret"], found["previous_secret"])


def notifications_config(given: Mapping[Key, Given], file: str) -> NotificationsConfig:
    """The section. Raises ``InvalidConfiguration``."""
    found = {setting.key: values.value(given, (_SECTION,), setting) for setting in NOTIFICATIONS}
    allowed = given.get((_SECTION, "allowed_networks"))
    if allowed is not None and allowed.origin != file:
        raise InvalidConfiguration(
            f"{allowed.origin}: {_SECTION}.allowed_networks belongs into the configuration file alone",
            hint="messages could reach what only the server can",
        )
    networks = tuple(_network(given, text) for text in found["allowed_networks"])
    if found["proxy"] is not None and "@" in found["proxy"] and not is_reference(found["proxy"]):
        raise _wrong(given, (_SECTION, "proxy"), "a password does not belong here")
    return NotificationsConfig(found["allowed_networks"], found["proxy"], found["ca_file"], networks)


def _network(given: Mapping[Key, Given], text: str) -> Network:
    try:
        return network(text)
    except ValueError as error:
        key = (_SECTION, "allowed_networks")
        raise _wrong(
            given, key, f"{text[:100]!r} is no network: {error}", "write 10.1.0.0/16 or fd00:1::/32"
        ) from error


def _parts(given: Mapping[Key, Given], head: Key, text: str) -> tuple[str, ...]:
    try:
        return tuple(split_parts(text))
    except InvalidName as error:
        raise _wrong(given, (*head, "under"), error.message, error.hint) from error


def _wrong(given: Mapping[Key, Given], key: Key, what: str, hint: str = "write env:NAME or file:/path") -> Exception:
    return InvalidConfiguration(f"{given[key].origin}: {dotted(key)}: {what}", hint=hint)
