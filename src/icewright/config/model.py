"""The configuration as one frozen value, read once at start and handed down; nothing below looks at files again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from icewright.domain.catalogs import CatalogEntry
from icewright.domain.errors import NotFound
from icewright.domain.policy import PolicyRule


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Where the server listens and where it keeps what it knows.

    ``store_url`` is SQLAlchemy's, without a password; ``store_password`` is a reference to one
    (:mod:`icewright.config.secrets`), None where the database asks for none or libpq finds it by itself.
    """

    host: str
    port: int
    state_dir: Path
    store_url: str
    store_password: str | None
    keep_tasks_days: int
    lease_ms: int

    @property
    def address_file(self) -> Path:
        """Where a running server writes its URL and token, for its owner's eyes only (mode 0600)."""
        return self.state_dir / "server.json"


@dataclass(frozen=True, slots=True)
class OptimizerConfig:
    """The resident optimizer: its Spark session, what it takes on, and when it starts afresh.

    ``jars`` are local files that replace ``packages`` on machines without a package registry.
    ``server_url`` is None when the server runs on this machine and its address file says the rest;
    ``server_token`` is a reference to a secret (:mod:`icewright.config.secrets`).
    """

    master: str
    memory: str
    slots: int
    batch_tasks: int
    batch_bytes: int
    resource_group: str
    packages: tuple[str, ...]
    jars: tuple[str, ...]
    poll_interval_ms: int
    spark_conf: Mapping[str, str]
    recycle_after_tasks: int
    recycle_memory_bytes: int
    server_url: str | None
    server_token: str | None


@dataclass(frozen=True, slots=True)
class UnusableCatalog:
    """A catalog that was found in PyIceberg's configuration and cannot be used, with the reason."""

    name: str
    origin: str
    reason: str


@dataclass(frozen=True, slots=True)
class Config:
    """All settings. ``origins`` says where each came from, by dotted key; ``notes`` are for the person who asks."""

    catalogs: tuple[CatalogEntry, ...]
    rules: tuple[PolicyRule, ...]
    server: ServerConfig
    optimizer: OptimizerConfig
    path: Path | None = None
    """The TOML file that was read, None when there is none."""
    origins: Mapping[str, str] = field(default_factory=dict)
    unusable: tuple[UnusableCatalog, ...] = ()
    notes: tuple[str, ...] = ()

    def catalog(self, name: str) -> CatalogEntry:
        """The entry of that name. Raises :class:`~icewright.domain.errors.NotFound`."""
        for entry in self.catalogs:
            if entry.name == name:
                return entry
        known = ", ".join(entry.name for entry in self.catalogs)
        raise NotFound(
            f"no catalog {name!r} in the configuration",
            hint=f"known: {known}" if known else "`icewright config init` writes a configuration to start from",
        )
