"""The configuration as one frozen value, read once at start and handed down; nothing below looks at files again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from icewright.core.errors import NotFound
from icewright.core.networks import Network
from icewright.core.server_urls import is_loopback
from icewright.core.servers import (
    CLUSTER_DEAD_MS,
    CLUSTER_HEARTBEAT_MS,
    LEADER_LEASE_MS,
    PARALLEL_LOOKS,
    STORE,
    TABLES,
    ZOOKEEPER_ROOT,
    ZOOKEEPER_SESSION_MS,
)
from icewright.model.events.notifications import Receiver
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policy import PolicyRule
from icewright.model.policy.resource_groups import ResourceGroup
from icewright.model.queries.queries import LiteralPolicy
from icewright.model.work.optimizers import TuneMode
from icewright.model.work.retention import HISTORY_HOLD_DAYS, KEPT, Retention, RowKind


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Where the server listens and where it keeps what it knows.

    ``store_url`` is SQLAlchemy's, without a password; ``store_password`` is a reference to one
    (:mod:`icewright.config.secrets`), None where the database asks for none or libpq finds it by itself. ``token`` is
    one to the token that all servers of the store have, None where this one makes its own. ``allowed_hosts`` are Host
    headers that are answered beside those of the address, ``peer_url`` is where the other servers of the store reach
    it, None for the address that it listens on.
    ``public_url`` is where it is found from elsewhere; ``tls_certificate`` and ``tls_key`` are there both or neither.
    ``keep`` has the settings ``keep_...``, as :data:`icewright.model.work.retention.KEPT` has them.
    """

    host: str
    port: int
    state_dir: Path
    store_url: str
    store_password: str | None
    lease_ms: int
    metrics_tables: int
    token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    public_url: str | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    trusted_proxies: tuple[str, ...] = ()
    peer_url: str | None = None
    leader_lease_ms: int = LEADER_LEASE_MS
    connections_max: int = 1_000
    processes: int = 1
    parallel_looks: int = PARALLEL_LOOKS
    approvals: str = "two-persons"
    keep: Mapping[RowKind, int] = field(default_factory=lambda: KEPT)

    @property
    def retention(self) -> Retention:
        """How long the store keeps what is of the past."""
        return Retention.of(self.keep)

    @property
    def is_exposed(self) -> bool:
        """Whether other machines reach the server."""
        return not is_loopback(self.host)

    @property
    def address_file(self) -> Path:
        """Where a running server writes its URL and token, for its owner's eyes only (mode 0600)."""
        return self.state_dir / "server.json"

    @property
    def login_file(self) -> Path:
        """Where ``icewright login`` keeps the URL and the token of another server (mode 0600)."""
        return self.state_dir / "login.json"


@dataclass(frozen=True, slots=True)
class OptimizerConfig:
    """Optimizers: how they are started, their Spark session, what they take on, and when they start afresh.

    ``jars`` are local files that replace ``packages`` on machines without a package registry.
    ``server_url`` is None when the server runs on this machine and its address file says the rest;
    ``server_token`` is a reference to a secret (:mod:`icewright.config.secrets`).
    """

    launcher: str
    applications: int
    master: str
    deploy_mode: str
    spark_home: str | None
    kubernetes_secret: str | None
    archive: str | None
    executor_python: str | None
    memory: str
    slots: int
    batch_tasks: int
    batch_bytes: int
    resource_group: str
    queues: tuple[str, ...]
    packages: tuple[str, ...]
    jars: tuple[str, ...]
    poll_interval_ms: int
    executors_wait_ms: int
    spark_conf: Mapping[str, str]
    spark_conf_keys: tuple[str, ...]
    recycle_after_tasks: int
    recycle_memory_bytes: int
    server_url: str | None
    server_token: str | None


@dataclass(frozen=True, slots=True)
class AutotuneConfig:
    """Autotuning: whether it acts, how fast and how far. Sizes of memory are as Spark writes them.

    ``memory_step`` may be a factor, as in ``x1.2``; ``less_memory`` is :data:`icewright.config.autotune.BY_STEPS` or
    :data:`icewright.config.autotune.AT_ONCE`.
    """

    mode: str = TuneMode.ADVISE.value
    wait_ms: int = 120_000
    idle_ms: int = 900_000
    cool_down_ms: int = 600_000
    large_memory: str = "4g"
    memory_step: str = "2g"
    memory_max: str = "16g"
    less_memory: str = "steps"
    oom_cycles: int = 3
    quiet_cycles: int = 50


@dataclass(frozen=True, slots=True)
class PlatformConfig:
    """How many servers there are, when more are asked for, and of whom; ``secret`` and ``url`` may be references."""

    kind: str = "none"
    mode: str = TuneMode.ADVISE.value
    servers_min: int = 1
    servers_max: int = 4
    cpu_percent: int = 80
    tables_max: int = 10_000
    busy_ms: int = 300_000
    idle_ms: int = 3_600_000
    cool_down_ms: int = 900_000
    url: str | None = None
    secret: str | None = None
    command: tuple[str, ...] = ()
    workload: str | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class KafkaConfig:
    """A topic with events. ``properties`` are librdkafka's, with secrets in place."""

    brokers: str
    topic: str
    group: str
    properties: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class EventsConfig:
    """How commit events come in beside HTTP.

    ``prefixes`` are catalogs by the prefix of their REST addresses, ``hive`` those whose notification logs are read.
    ``kafka`` is the section as it is written, for :func:`icewright.events.settings.kafka_config`.
    """

    prefixes: Mapping[str, str] = field(default_factory=dict)
    hive: tuple[str, ...] = ()
    hive_interval_ms: int = 2_000
    kafka: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotificationsConfig:
    """Where messages may go. ``allowed_networks`` are as written, ``networks`` the same as read."""

    allowed_networks: tuple[str, ...] = ()
    proxy: str | None = None
    ca_file: str | None = None
    networks: tuple[Network, ...] = ()


@dataclass(frozen=True, slots=True)
class ReceiverConfig:
    """A receiver and the way to it, with references in place of secrets (:mod:`icewright.config.secrets`)."""

    receiver: Receiver
    url: str
    secret: str | None = None
    previous_secret: str | None = None


@dataclass(frozen=True, slots=True)
class OidcConfig:
    """The provider by which people log in, none where ``issuer`` is None.

    ``client_secret`` is a reference; ``roles`` is the section as it is written, for
    :func:`icewright.identity.people_settings.role_rules`.
    """

    issuer: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    roles: Mapping[str, str] = field(default_factory=dict)
    audience: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """How the servers of one store hear of each other. ``zookeeper_password`` is a reference."""

    heartbeat_ms: int = CLUSTER_HEARTBEAT_MS
    dead_ms: int = CLUSTER_DEAD_MS
    balance: str = TABLES
    coordinator: str = STORE
    zookeeper_hosts: tuple[str, ...] = ()
    zookeeper_root: str = ZOOKEEPER_ROOT
    zookeeper_session_ms: int = ZOOKEEPER_SESSION_MS
    zookeeper_user: str | None = None
    zookeeper_password: str | None = None
    zookeeper_scheme: str = "digest"
    zookeeper_ca: Path | None = None
    zookeeper_certificate: Path | None = None
    zookeeper_key: Path | None = None


@dataclass(frozen=True, slots=True)
class HistoryConfig:
    """Where tasks that have ended are kept as a table; nowhere without a ``catalog``."""

    catalog: str | None = None
    table: str = "icewright.tasks"
    hold_days: int = HISTORY_HOLD_DAYS

    @property
    def name(self) -> TableName | None:
        """The table. Raises :class:`~icewright.core.errors.InvalidName`."""
        return None if self.catalog is None else TableName.parse(f"{self.catalog}.{self.table}")


@dataclass(frozen=True, slots=True)
class QueriesConfig:
    """Queries that engines ran. ``catalogs`` are ours by what engines call them; ``hash_key`` is a reference.

    Without a ``catalog`` there is no table of them. ``event_logs`` are folders, ``kafka`` is the section as it is
    written.
    """

    catalog: str | None = None
    table: str = "icewright.queries"
    catalogs: Mapping[str, str] = field(default_factory=dict)
    literals: LiteralPolicy = LiteralPolicy.HASH
    hash_key: str | None = None
    event_logs: tuple[str, ...] = ()
    kafka: Mapping[str, str] = field(default_factory=dict)
    spool_bytes: int = 1 << 30

    @property
    def name(self) -> TableName | None:
        """The table. Raises :class:`~icewright.core.errors.InvalidName`."""
        return None if self.catalog is None else TableName.parse(f"{self.catalog}.{self.table}")


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
    autotune: AutotuneConfig = field(default_factory=AutotuneConfig)
    platform: PlatformConfig = field(default_factory=PlatformConfig)
    events: EventsConfig = field(default_factory=EventsConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    history: HistoryConfig = field(default_factory=HistoryConfig)
    queries: QueriesConfig = field(default_factory=QueriesConfig)
    notifications: NotificationsConfig = field(default_factory=NotificationsConfig)
    receivers: tuple[ReceiverConfig, ...] = ()
    oidc: OidcConfig = field(default_factory=OidcConfig)
    groups: tuple[ResourceGroup, ...] = ()
    path: Path | None = None
    """The TOML file that was read, None when there is none."""
    origins: Mapping[str, str] = field(default_factory=dict)
    unusable: tuple[UnusableCatalog, ...] = ()
    notes: tuple[str, ...] = ()

    def catalog(self, name: str) -> CatalogEntry:
        """The entry of that name. Raises :class:`~icewright.core.errors.NotFound`."""
        for entry in self.catalogs:
            if entry.name == name:
                return entry
        known = ", ".join(entry.name for entry in self.catalogs)
        raise NotFound(
            f"no catalog {name!r} in the configuration",
            hint=f"known: {known}" if known else "`icewright config init` writes a configuration to start from",
        )
