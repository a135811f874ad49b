"""The configuration for people: every setting with its value and origin, and a commented file to start from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from icewright.catalogs.pyiceberg_settings import Discovery
from icewright.config.layers import dotted
from icewright.config.model import Config, ReceiverConfig
from icewright.config.secrets import MASK, is_reference, redact, without_password
from icewright.config.setting import Setting
from icewright.config.settings import SECTIONS
from icewright.configuration.catalogs import rule_key
from icewright.model.iceberg.names import quote_part
from icewright.model.work.retention import SETTING_OF
from icewright.notifications.receivers import RECEIVER


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """One setting as it may be shown: secrets masked."""

    key: str
    value: str
    origin: str


def shown(config: Config) -> tuple[ShownSetting, ...]:
    """All settings in effect, by section."""
    return tuple(
        ShownSetting(key, redact(key.rsplit(".", 1)[-1] if key.startswith(tuple(SECTIONS)) else key, text), origin)
        for key, text, origin in _all(config)
    )


def _all(config: Config) -> Iterator[tuple[str, str, str]]:
    kept = {SETTING_OF[kind]: number for kind, number in config.server.keep.items()}
    for section, settings in SECTIONS.items():
        values = getattr(config, section)
        for setting in settings:
            found = kept[setting.key] if setting.key in kept else getattr(values, setting.key)
            key = dotted((section, setting.key))
            if isinstance(found, Mapping):
                for name, text in sorted(found.items()):
                    yield f"{key}.{name}", text, config.origins.get(f"{key}.{name}", "default")
            else:
                yield key, _text(found), config.origins.get(key, "default")
    for entry in config.catalogs:
        head = f"catalogs.{entry.name}"
        fallback = config.origins.get(head, "")
        fields = {"type": str(entry.kind), "uri": entry.uri, "warehouse": entry.warehouse}
        properties = {f"properties.{name}": text for name, text in sorted(entry.properties.items())}
        aliases = {f"aliases.{name}": text for name, text in sorted(entry.aliases.items())}
        places = {"roots": entry.roots, "quarantine": entry.quarantine}
        said = {key: _text(found) for key, found in places.items() if found}
        for name, text in {**fields, **properties, **aliases, **said}.items():
            yield f"{head}.{name}", text, config.origins.get(f"{head}.{name}", fallback)
    for key, found in chain.from_iterable(map(_of_receiver, config.receivers)):
        yield key, _text(found), config.origins.get(key, "default")
    for rule in config.rules:
        for name, text in sorted(rule.properties.items()):
            key = rule_key(rule, name)
            yield key, text, config.origins.get(key, "")


def _of_receiver(one: ReceiverConfig) -> Iterator[tuple[str, Any]]:
    for setting in RECEIVER:
        found = getattr(one if hasattr(one, setting.key) else one.receiver, setting.key)
        if setting.key == "under":
            found = tuple(".".join(quote_part(part) for part in parts) for parts in found)
        yield f"receivers.{one.receiver.name}.{setting.key}", found


def _text(value: Any) -> str:
    if value is None:
        return ""
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def starting_file(found: Discovery) -> str:
    """A commented ``icewright.toml``: every setting with its default, and the catalogs that were found.

    Catalogs begin in mode ``observe``. Secrets are not copied out of PyIceberg's configuration: where one stood, the
    file asks for a reference.
    """
    parts = [
        "# icewright: what to look after, and how. Every setting can also come from the environment:",
        "# [server] port is ICEWRIGHT_SERVER__PORT. `icewright config show --origin` says what is in effect and why.",
        "",
    ]
    for entry in found.entries:
        properties = "".join(_property(name, text) for name, text in sorted(entry.properties.items()))
        uri = without_password(entry.uri)
        if uri != entry.uri:
            properties += _property("jdbc.password", entry.uri)
        parts += [
            f"# Found in {found.origins[entry.name]}.",
            "[[catalogs]]",
            f"name = {_toml(entry.name)}",
            f"type = {_toml(str(entry.kind))}",
            f"uri = {_toml(uri)}",
            *([f"warehouse = {_toml(entry.warehouse)}"] if entry.warehouse else []),
            *_MODE,
            *(["[catalogs.properties]", properties] if properties else [""]),
        ]
    for other in found.unusable:
        reason = other.reason.replace("\n", " ")
        parts += [f"# Not usable: {_toml(other.name)} of {other.origin}: {reason}", ""]
    if not found.entries:
        parts += [*_EXAMPLE, ""]
    parts += [*_POLICY, ""]
    for section, settings in SECTIONS.items():
        parts += [f"[{section}]", *(_commented(setting) for setting in settings), ""]
    parts += ["# [receivers.team]", *(line for one in RECEIVER for line in _commented(one).splitlines()), ""]
    return "\n".join(parts)


_MODE = (
    "# observe: plans and explanations only. approve: plans wait for a person. auto: icewright acts automatically.",
    'mode = "observe"',
)
_EXAMPLE = (
    "# [[catalogs]]",
    '# name = "lake"',
    '# type = "sql"',
    '# uri = "sqlite:////absolute/path/catalog.db"   # or "postgresql://user@host:5432/database"',
    '# warehouse = "/absolute/path/warehouse"',
    '# For an Iceberg REST catalog: type = "rest", uri = "https://host/path"; for a Hive Metastore: type = "hive",',
    '# uri = "thrift://host:9083". docs/catalogs.md has a whole example of each.',
    *(f"# {line.removeprefix('# ')}" for line in _MODE),
    "# [catalogs.properties]",
    '# "s3.secret-access-key" = "env:LAKE_SECRET"   # secrets are references: env:NAME or file:/path',
)
_POLICY = (
    "# Table properties that hold for a namespace and all below it, unless a table says otherwise.",
    "# [[policies]]",
    '# catalog = "lake"',
    '# namespace = "sales.daily"',
    '# mode = "approve"',
    "# [policies.properties]",
    '# "write.target-file-size-bytes" = "268435456"',
)


def _commented(setting: Setting) -> str:
    allowed = f" Allowed: {setting.allowed}." if setting.allowed else ""
    if setting.default is None:
        example = f"# {setting.key} ="
    else:
        default = setting.default
        example = f"# {setting.key} = {json.dumps(list(default) if isinstance(default, tuple) else default)}"
    return f"# {setting.about}{allowed}\n{example}"


def _property(name: str, text: str) -> str:
    if not is_reference(text) and redact(name, text) == MASK:
        return f"# {_toml(name)} is a secret: write it as env:NAME or file:/path.\n"
    return f"{_toml(name)} = {_toml(text)}\n"


def _toml(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
