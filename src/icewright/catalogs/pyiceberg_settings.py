"""Finds what PyIceberg is configured for already, so that a user need not write the same catalog down twice.

The places and rules are PyIceberg's own (``pyiceberg/utils/config.py`` of 0.12): the first ``.pyiceberg.yaml`` of
``$PYICEBERG_HOME``, the home directory and the working directory, and ``PYICEBERG_CATALOG__NAME__KEY`` over it;
names and keys in lower case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from icewright.config.layers import home
from icewright.config.model import UnusableCatalog
from icewright.config.secrets import is_reference
from icewright.config.settings import CATALOG_NAME
from icewright.core.errors import InvalidConfiguration
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind

FILE_NAME = ".pyiceberg.yaml"
_VARIABLE_PREFIX = "pyiceberg_catalog__"
_ENVIRONMENT = "environment PYICEBERG_CATALOG__*"
_VARIABLE_PARTS = 2


@dataclass(frozen=True, slots=True)
class Discovery:
    """What was found: usable catalogs, where each comes from, and the others with the reason against them."""

    entries: tuple[CatalogEntry, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    unusable: tuple[UnusableCatalog, ...] = ()


def discover(environ: Mapping[str, str], cwd: Path) -> Discovery:
    """The catalogs of PyIceberg's configuration. A file that cannot be read raises ``InvalidConfiguration``."""
    found: dict[str, dict[str, Any]] = {}
    origins: dict[str, str] = {}
    file = _find_file(environ, cwd)
    if file is not None:
        for name, properties in _read_file(file).items():
            found[name], origins[name] = properties, str(file)
    for name, key, value in _variables(environ):
        found.setdefault(name, {})[key] = value
        origins.setdefault(name, _ENVIRONMENT)
    entries: list[CatalogEntry] = []
    unusable: list[UnusableCatalog] = []
    for name, properties in found.items():
        try:
            entries.append(_entry(name, properties))
        except InvalidConfiguration as error:
            unusable.append(UnusableCatalog(name, origins[name], error.message))
    return Discovery(tuple(entries), {entry.name: origins[entry.name] for entry in entries}, tuple(unusable))


def _find_file(environ: Mapping[str, str], cwd: Path) -> Path | None:
    places = [Path(environ["PYICEBERG_HOME"])] if environ.get("PYICEBERG_HOME") else []
    return next((place / FILE_NAME for place in (*places, home(environ), cwd) if (place / FILE_NAME).is_file()), None)


def _read_file(file: Path) -> dict[str, dict[str, Any]]:
    import strictyaml  # noqa: PLC0415 - only where such a file exists

    try:
        data: Any = strictyaml.load(file.read_text(encoding="utf-8")).data
    except (OSError, UnicodeDecodeError, strictyaml.YAMLError) as error:
        raise InvalidConfiguration(f"{file}: cannot be read: {error}") from error
    catalogs = _lower(data).get("catalog") or {} if isinstance(data, dict) else {}
    if not isinstance(catalogs, dict) or not all(isinstance(one, dict) for one in catalogs.values()):
        raise InvalidConfiguration(f"{file}: catalog: expected a mapping of catalogs")
    return catalogs


def _lower(data: dict[str, Any]) -> dict[str, Any]:
    return {key.lower(): _lower(value) if isinstance(value, dict) else value for key, value in data.items()}


def _variables(environ: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """(catalog, key, value) of each variable; after the catalog's name, ``__`` is a dot and ``_`` a dash."""
    found = []
    for variable in sorted(environ):
        if variable.lower().startswith(_VARIABLE_PREFIX):
            parts = variable.lower().removeprefix(_VARIABLE_PREFIX).split("__", 1)
            if len(parts) == _VARIABLE_PARTS:
                name, key = (part.replace("__", ".").replace("_", "-") for part in parts)
                found.append((name, key, environ[variable]))
    return found


def _entry(name: str, found: Mapping[str, Any]) -> CatalogEntry:
    """A catalog that icewright can drive, or ``InvalidConfiguration`` with the reason why it cannot."""
    nested = sorted(key for key, value in found.items() if isinstance(value, dict))
    if nested:
        raise InvalidConfiguration(
            f"its block {nested[0]} has no counterpart for Spark; icewright.toml can say it flat"
        )
    properties = {key: str(value) for key, value in found.items()}
    uri, warehouse = properties.pop("uri", ""), properties.pop("warehouse", "")
    implementation = properties.pop("py-catalog-impl", None)
    kind = properties.pop("type", "").lower() or _kind_of(uri)
    known = ", ".join(CatalogKind)
    if implementation is not None:
        raise InvalidConfiguration(
            f"its own implementation {implementation}: only catalogs of type {known} can be used"
        )
    if kind not in tuple(CatalogKind):
        raise InvalidConfiguration(f"catalogs of type {kind or 'unknown'} cannot be used, only {known}")
    if not CATALOG_NAME.match(name):
        raise InvalidConfiguration("Spark cannot have a catalog of this name: only letters, digits, _ and -")
    entry = CatalogEntry(name, CatalogKind(kind), uri, warehouse, properties)
    check_entry(entry, f"catalog.{name}")
    return entry


def _kind_of(uri: str) -> str | None:
    """What PyIceberg infers from the uri when no type is given (``pyiceberg.catalog.infer_catalog_type``)."""
    if uri.startswith("http"):
        return "rest"
    if uri.startswith("thrift"):
        return "hive"
    return "sql" if uri.startswith(("sqlite", "postgresql")) else None


def check_entry(built: CatalogEntry, origin: str) -> None:
    """Whether both clients could be pointed at it; one whose ``uri`` is a reference is checked once it is resolved."""
    try:
        built.check_places()
        if not is_reference(built.uri):
            built.check()
    except InvalidConfiguration as error:
        raise InvalidConfiguration(f"{origin}: {error.message}", hint=error.hint) from error
