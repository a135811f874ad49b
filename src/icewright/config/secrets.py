"""Secrets: the configuration holds references, which are resolved only when a client is built, and never printed.

``env:NAME`` is the value of an environment variable, ``file:/path`` the content of a file without its last newline
(as container platforms mount secrets).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

from icewright.core.errors import InvalidConfiguration
from icewright.model.access.redacted_text import names_a_secret
from icewright.model.iceberg.catalog_entries import CatalogEntry

MASK = "***"
_PASSWORD_IN_URI = re.compile(r"(?P<head>://[^:/@\s]*:)(?P<password>.+)(?P<tail>@)")
_SECRET_IN_QUERY = re.compile(r"(?P<head>[?&;](?:password|secret|token)=)[^&;]+", re.IGNORECASE)


def is_reference(value: str) -> bool:
    """Whether a value stands for a secret kept elsewhere. ``file:///...`` is a URI, not a reference."""
    return value.startswith("env:") or (value.startswith("file:/") and not value.startswith("file://"))


def resolve(value: str, *, key: str, environ: Mapping[str, str]) -> str:
    """The secret that ``value`` refers to, or ``value`` itself.

    Raises :class:`~icewright.core.errors.InvalidConfiguration` naming ``key`` and the reference, not the secret.
    """
    if not is_reference(value):
        return value
    source, _, where = value.partition(":")
    if source == "env":
        if where not in environ:
            raise InvalidConfiguration(f"{key}: the environment has no variable {where}", hint=f"set {where}")
        return environ[where]
    try:
        return Path(where).read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InvalidConfiguration(f"{key}: cannot read the secret in {where}: {reason}") from error


def resolve_entry(entry: CatalogEntry, environ: Mapping[str, str]) -> CatalogEntry:
    """The entry with its secrets in place, for the one moment in which a client is built from it.

    The warehouse is no secret: ``file:/path`` there is a location, and stays one.
    """
    key = f"catalogs.{entry.name}"
    resolved = replace(
        entry,
        uri=resolve(entry.uri, key=f"{key}.uri", environ=environ),
        properties={
            name: resolve(value, key=f"{key}.properties.{name}", environ=environ)
            for name, value in entry.properties.items()
        },
    )
    resolved.check()
    return resolved


def named_variables(of: object) -> Iterator[str]:
    """The environment variables that the references in a configuration, or a part of one, name."""
    if isinstance(of, str):
        if of.startswith("env:"):
            yield of.removeprefix("env:")
    elif is_dataclass(of):
        yield from named_variables([getattr(of, one.name) for one in fields(of)])
    elif isinstance(of, Mapping):
        yield from named_variables(list(of.values()))
    elif isinstance(of, tuple | list):  # and of nothing else that can be iterated: a network has all its addresses
        for one in of:
            yield from named_variables(one)


def without_password(uri: str) -> str:
    """A URI as it was, without the password that stands in it."""
    return uri if is_reference(uri) else _PASSWORD_IN_URI.sub(lambda found: found["head"][:-1] + found["tail"], uri)


def redact(key: str, value: str) -> str:
    """``value`` as it may be shown: references as they are, what looks like a secret masked."""
    if is_reference(value) or not value:
        return value
    if names_a_secret(key):
        return MASK
    return _SECRET_IN_QUERY.sub(rf"\g<head>{MASK}", _PASSWORD_IN_URI.sub(rf"\g<head>{MASK}\g<tail>", value))
