"""Where settings are read from: the TOML file and, over it, the environment, flattened to one value per key.

A key is a tuple of parts (``("catalogs", "lake", "uri")``), and each value knows its origin, so that whatever is
wrong with it later can be said of the right line of the right file.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from icewright.config.setting import Kind, Setting
from icewright.config.settings import CATALOG, CATALOG_NAME, SECTIONS
from icewright.core.errors import InvalidConfiguration

ENVIRONMENT_PREFIX = "ICEWRIGHT_"
CONFIG_VARIABLE = "ICEWRIGHT_CONFIG"
FILE_NAME = "icewright.toml"
_SEPARATOR = "__"

Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """A value as it was given, and where."""

    value: Any
    origin: str


def dotted(key: Key) -> str:
    """A key for people: ``catalogs.lake.uri``."""
    return ".".join(key)


def find_file(path: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The configuration file: ``path``, ``$ICEWRIGHT_CONFIG``, ``./icewright.toml``, the one in ``~/.config``.

    One that was named must exist; else :class:`~icewright.core.errors.InvalidConfiguration`.
    """
    named, by = (path, "--config") if path is not None else (environ.get(CONFIG_VARIABLE), f"${CONFIG_VARIABLE}")
    if named:
        file = cwd / Path(named)
        if not file.is_file():
            raise InvalidConfiguration(f"{by}: there is no file {file}")
        return file
    return next((file for file in (cwd / FILE_NAME, user_file(environ)) if file.is_file()), None)


def user_file(environ: Mapping[str, str]) -> Path:
    """Where a user's own configuration lies: ``~/.config/icewright/icewright.toml`` (``$XDG_CONFIG_HOME``)."""
    base = environ.get("XDG_CONFIG_HOME") or home(environ) / ".config"
    return Path(base) / "icewright" / FILE_NAME


def home(environ: Mapping[str, str]) -> Path:
    """The user's home directory."""
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()


def read_file(path: Path) -> dict[str, Any]:
    """The file's tables. Raises :class:`~icewright.core.errors.InvalidConfiguration`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidConfiguration(f"{path}: not TOML: {error}") from error
    except OSError as error:
        raise InvalidConfiguration(f"{path}: cannot be read: {error.strerror}") from error


def flatten_sections(data: Mapping[str, Any], origin: str) -> dict[Key, Given]:
    """``[server]`` and ``[optimizer]``, one value per setting."""
    found: dict[Key, Given] = {}
    for section, settings in SECTIONS.items():
        table = data.get(section, {})
        if not isinstance(table, dict):
            raise InvalidConfiguration(f"{origin}: {section}: expected a table", hint=f"write [{section}]")
        found.update(flatten_table((section,), table, settings, origin))
    return found


def flatten_catalogs(data: Mapping[str, Any], origin: str) -> dict[Key, Given]:
    """``[[catalogs]]``, one value per setting and catalog, keyed by the catalog's name."""
    found: dict[Key, Given] = {}
    names: set[str] = set()
    for index, table in enumerate(array_of_tables(data, "catalogs", origin)):
        where = f"{origin}: catalogs[{index}]"
        rest = dict(table)
        name = rest.pop("name", None)
        if not isinstance(name, str) or not CATALOG_NAME.match(name):
            raise InvalidConfiguration(
                f"{where}.name: {'missing' if name is None else repr(name)}",
                hint="a catalog's name has letters, digits, _ and - (Spark's configuration allows no more)",
            )
        if name in names:
            raise InvalidConfiguration(f"{where}.name: there are two catalogs {name!r}")
        names.add(name)
        found.update(flatten_table(("catalogs", name), rest, CATALOG, origin))
    return found


def array_of_tables(data: Mapping[str, Any], key: str, origin: str) -> list[dict[str, Any]]:
    """``[[key]]`` of the file. Raises :class:`~icewright.core.errors.InvalidConfiguration`."""
    tables = data.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InvalidConfiguration(f"{origin}: {key}: expected an array of tables", hint=f"write [[{key}]]")
    return tables


def strings(key: Key, table: Any, origin: str) -> Iterator[tuple[str, str]]:
    """A table of strings; ``a.b = 1`` and ``"a.b" = "1"`` are the same, numbers and booleans become text."""
    if not isinstance(table, dict):
        raise InvalidConfiguration(f"{origin}: {dotted(key)}: expected {Kind.MAPPING}")
    for name, value in table.items():
        if isinstance(value, dict):
            for rest, text in strings((*key, name), value, origin):
                yield f"{name}.{rest}", text
        elif isinstance(value, bool):
            yield name, str(value).lower()
        elif isinstance(value, (str, int, float)):
            yield name, str(value)
        else:
            raise InvalidConfiguration(f"{origin}: {dotted((*key, name))}: expected a string")


def environment(environ: Mapping[str, str], catalogs: frozenset[str]) -> dict[Key, Given]:
    """``ICEWRIGHT_SECTION__KEY``: what the environment says, by key.

    Catalogs are addressed by name, regardless of case: ``ICEWRIGHT_CATALOGS__LAKE__URI``; below ``PROPERTIES`` and
    ``POLICY``, two underscores are a dot and one is a dash, as in PyIceberg's own variables. A variable without two
    underscores is none of ours, because container platforms make up such names (``ICEWRIGHT_SERVICE_HOST``).
    """
    found: dict[Key, Given] = {}
    for variable in sorted(environ):
        if variable.startswith(ENVIRONMENT_PREFIX) and _SEPARATOR in variable:
            parts = variable.removeprefix(ENVIRONMENT_PREFIX).lower().split(_SEPARATOR)
            key, setting = _environment_key(variable, parts, catalogs)
            value = _from_text(variable, setting, environ[variable])
            origin = f"environment {variable}"
            if setting.kind is Kind.MAPPING and len(key) == _section_depth(key):
                found.update({(*key, name): Given(text, origin) for name, text in strings(key, value, origin)})
            else:
                found[key] = Given(value, origin)
    return found


def _section_depth(key: Key) -> int:
    return 3 if key[0] == "catalogs" else 2


def _environment_key(variable: str, parts: list[str], catalogs: frozenset[str]) -> tuple[Key, Setting]:
    section, *rest = parts
    settings: tuple[Setting, ...]
    if section == "catalogs" and len(rest) > 1:
        name = next((known for known in sorted(catalogs) if known.lower() == rest[0]), rest[0])
        head: Key = (section, name, rest[1])
        settings, below = CATALOG, rest[2:]
    elif section in SECTIONS and rest:
        head, settings, below = (section, rest[0]), SECTIONS[section], rest[1:]
    else:
        known = ", ".join([*SECTIONS, "catalogs"])
        raise InvalidConfiguration(f"environment {variable}: no such section", hint=f"sections: {known}")
    setting = next((setting for setting in settings if setting.key == head[-1]), None)
    if setting is None or (below and setting.kind is not Kind.MAPPING):
        raise unknown_key(f"environment {variable}", head, settings)
    if below:
        name = ".".join(part.replace("_", "-") for part in below)
        return (*head, name), Setting(name, Kind.TEXT, "")
    return head, setting


def _from_text(variable: str, setting: Setting, text: str) -> Any:
    """The value that a variable stands for, by the setting's type."""
    if setting.kind is Kind.TEXT:
        return text
    try:
        if setting.kind is Kind.INTEGER:
            return int(text)
        if setting.kind is Kind.TEXTS and not text.lstrip().startswith("["):
            return [part.strip() for part in text.split(",") if part.strip()]
        return json.loads(text)
    except ValueError as error:
        raise InvalidConfiguration(f"environment {variable}: expected {setting.kind}, found {text!r}") from error


def flatten_table(
    head: Key, table: Mapping[str, Any], settings: tuple[Setting, ...], origin: str
) -> Iterator[tuple[Key, Given]]:
    """One value per setting of a table of the file. Raises :class:`~icewright.core.errors.InvalidConfiguration`."""
    by_key = {setting.key: setting for setting in settings}
    for name, value in table.items():
        setting = by_key.get(name)
        if setting is None:
            raise unknown_key(origin, (*head, name), settings)
        if setting.kind is Kind.MAPPING:
            for rest, text in strings((*head, name), value, origin):
                yield (*head, name, rest), Given(text, origin)
        else:
            yield (*head, name), Given(value, origin)


def unknown_key(origin: str, key: Key, settings: tuple[Setting, ...]) -> InvalidConfiguration:
    """The error for a key that no setting has."""
    known = ", ".join(setting.key for setting in settings)
    return InvalidConfiguration(f"{origin}: unknown key {dotted(key)}", hint=f"known here: {known}")
