"""Every setting there is: its key, type, default, limits and meaning, said once.

The loader, the environment, ``icewright config show``, ``icewright config init`` and the error messages are all
driven by these tables, so none of them can know a setting that the others do not.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from icewright.config.autotune import AUTOTUNE, is_size
from icewright.config.cluster import CLUSTER
from icewright.config.oidc import OIDC
from icewright.config.platform import PLATFORM
from icewright.config.queries import QUERIES
from icewright.config.retention import HISTORY, RETENTION
from icewright.config.setting import Kind, Setting, choice, integer
from icewright.core.server_urls import is_public_url
from icewright.core.servers import LEADER_LEASE_MS, LEADER_LEASE_MS_MIN, PARALLEL_LOOKS
from icewright.model.iceberg.catalog_entries import CatalogKind
from icewright.model.policy.policy import Mode
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.optimizers import EXECUTORS_WAIT_MS, ICEBERG_RUNTIME, DeployMode, LauncherKind

CATALOG_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*\Z")
_KUBERNETES_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
_HOST_HEADER = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::[0-9]{1,5})?\Z", re.IGNORECASE)
_PEER_URL = re.compile(rf"https?://{_HOST_HEADER.pattern}", re.IGNORECASE)
_PORT_MAX, CONNECTIONS_MAX_MIN, HIVE_INTERVAL_MS_MIN, PROCESSES_MAX = 65_535, 16, 100, 64
PARALLEL_LOOKS_MAX = 8
TWO_PERSONS, ONE_PERSON = "two-persons", "one-person"
LEASE_MS_MIN = 3_000
"""Below this, a pause of the garbage collector would cost an optimizer its tasks."""
METRICS_TABLES_MAX = 200
"""Each is a series of its own, for as long as Prometheus keeps any."""


def _is_host(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _are_proxies(networks: list[str]) -> bool:
    """Whether each is an address or a network, and none is everybody."""
    try:
        return all(ipaddress.ip_network(network).prefixlen > 0 for network in networks)
    except ValueError:
        return False


SERVER = (
    Setting(
        "host",
        Kind.TEXT,
        "Address to listen on. Others than those of loopback need public_url, TLS (tls_certificate, or a proxy of "
        "trusted_proxies that speaks it) and at least one principal with access.",
        default="127.0.0.1",
        allowed="127.0.0.1, ::1, localhost, an address of this machine, or 0.0.0.0 or :: for all of them",
        accepts=_is_host,
    ),
    integer(
        "port", "Port to listen on.", default=7077, least=0, most=_PORT_MAX, allowed=f"0 (any free port) to {_PORT_MAX}"
    ),
    Setting(
        "public_url",
        Kind.TEXT,
        "Where people and programs of other machines find the server: its name, or that of what is in front of it. "
        "Links begin with it, and it is answered to.",
        allowed="https://host or https://host:port without a slash at its end (http:// for this machine alone)",
        accepts=is_public_url,
    ),
    Setting(
        "tls_certificate", Kind.TEXT, "File with the server's certificate and those between it and a root, in PEM."
    ),
    Setting("tls_key", Kind.TEXT, "File with that certificate's private key, in PEM, which not everybody may read."),
    Setting(
        "trusted_proxies",
        Kind.TEXTS,
        "Addresses and networks of what speaks TLS in front of the server: only they are believed when they say "
        "(X-Forwarded-Proto) that a request came by it.",
        default=(),
        allowed='addresses and networks, such as "10.0.0.7" and "10.1.0.0/16", but not everybody',
        accepts=_are_proxies,
    ),
    choice(
        "approvals",
        "Who approves: another person than the one who asked, or, in an installation of one person, the same. That is "
        "allowed only on loopback, without a proxy or public_url, and without [oidc]; approvals and the audit say it.",
        (TWO_PERSONS, ONE_PERSON),
        default=TWO_PERSONS,
    ),
    Setting("state_dir", Kind.TEXT, "Directory of the server's own files; by default ~/.local/state/icewright."),
    Setting(
        "store_url",
        Kind.TEXT,
        "Database of plans and tasks (SQLAlchemy's URL); by default a SQLite file in state_dir.",
        allowed="sqlite:////absolute/path.db, postgresql://user@host/database",
        accepts=lambda value: value.startswith(("sqlite:////", "postgresql://")),
    ),
    Setting("store_password", Kind.TEXT, "Where that database's password is: env:NAME or file:/path."),
    *RETENTION,
    integer(
        "lease_ms",
        "How long an optimizer may stay silent before its task is taken from it, in milliseconds.",
        default=30_000,
        least=LEASE_MS_MIN,
    ),
    integer(
        "connections_max",
        "How many connections the server has at once. One address has half of them at most.",
        default=1_000,
        least=CONNECTIONS_MAX_MIN,
    ),
    integer(
        "processes",
        "How many processes look at tables. Each uses one core; more than 1 need a store on PostgreSQL.",
        default=1,
        least=1,
        most=PROCESSES_MAX,
    ),
    integer(
        "parallel_looks",
        "How many tables each process looks at at once. More of them help where the store, catalogs or storages are "
        "slow to answer; each takes a connection of the store.",
        default=PARALLEL_LOOKS,
        least=1,
        most=PARALLEL_LOOKS_MAX,
    ),
    integer(
        "leader_lease_ms",
        "Of several servers: how long the leader leads without a renewal, in milliseconds. Half of it is the limit of "
        "each statement that writes to the store, and of a transaction that waits for its server.",
        default=LEADER_LEASE_MS,
        least=LEADER_LEASE_MS_MIN,
    ),
    integer(
        "metrics_tables",
        "For how many tables the metrics have series of their own: those whose tasks have waited longest.",
        default=20,
        least=0,
        most=METRICS_TABLES_MAX,
    ),
    Setting(
        "token",
        Kind.TEXT,
        "The token of its owner, the same for all servers of a store: env:NAME or file:/path, never the token itself. "
        "By default one of its own, in the file `token` of state_dir.",
    ),
    Setting(
        "allowed_hosts",
        Kind.TEXTS,
        "Host headers that are accepted in addition to those of the address, with the port where clients send one: the "
        "name of a load balancer.",
        default=(),
        allowed="names or addresses, such as icewright.example.com or icewright.example.com:8443; no patterns",
        accepts=lambda value: all(_HOST_HEADER.match(host) is not None for host in value),
    ),
    Setting(
        "peer_url",
        Kind.TEXT,
        "Where the other servers of the store reach this one; by default the address that it listens on, by the name "
        "of its machine where that is all addresses.",
        allowed="https://host:port, or http://host:port where TLS ends in front of all servers, or on this machine",
        accepts=lambda value: _PEER_URL.match(value) is not None,
    ),
)

OPTIMIZER = (
    choice(
        "launcher",
        "How optimizers run: as a process that stays, or as an application of Spark's for each task.",
        tuple(LauncherKind),
        default=LauncherKind.RESIDENT.value,
    ),
    integer("applications", "How many applications are submitted at the same time, at most.", default=2, least=1),
    Setting(
        "master", Kind.TEXT, "Spark master: local[N], spark://host:port, yarn or k8s://https://...", default="local[*]"
    ),
    choice(
        "deploy_mode",
        "Where drivers of submitted applications run: here (client), or in the cluster (YARN and Kubernetes alone).",
        tuple(DeployMode),
        default=DeployMode.CLIENT.value,
    ),
    Setting("spark_home", Kind.TEXT, "Folder whose bin/spark-submit is run; by default that of PySpark."),
    Setting(
        "kubernetes_secret",
        Kind.TEXT,
        "The Kubernetes Secret with the settings of drivers that run there; see `icewright optimizer secret`.",
        allowed="a name of lower-case letters, digits and '-'",
        accepts=lambda value: _KUBERNETES_NAME.match(value) is not None,
    ),
    Setting(
        "memory",
        Kind.TEXT,
        "Memory of the Spark driver, as Spark writes it.",
        default="2g",
        allowed="a number and k, m, g or t, such as 2g",
        accepts=is_size,
    ),
    integer("slots", "Tasks, or batches of small tasks, carried out at the same time.", default=2, least=1),
    integer(
        "batch_tasks", "How many small tasks may share a Spark job; 1 gives each a job of its own.", default=32, least=1
    ),
    integer(
        "batch_bytes",
        "How many bytes the tasks that share a Spark job may read together.",
        default=256 * 1024**2,
        least=1,
    ),
    Setting(
        "archive",
        Kind.TEXT,
        "Archive of Python packages for the executors of a cluster; `icewright optimizer pack` makes one.",
    ),
    Setting(
        "executor_python",
        Kind.TEXT,
        "Python of a cluster's executors, of the same minor version; by default the path of this one.",
    ),
    Setting("resource_group", Kind.TEXT, "The group whose tasks this optimizer takes.", default="default"),
    Setting(
        "queues",
        Kind.TEXTS,
        "Which queues of its group it takes tasks of: normal, large, or both.",
        default=tuple(queue.value for queue in Queue),
        allowed="normal, large",
        accepts=lambda value: len(value) > 0 and set(value) <= {queue.value for queue in Queue},
    ),
    Setting(
        "packages",
        Kind.TEXTS,
        "Maven coordinates for Spark, in addition to those that the catalogs need.",
        default=(ICEBERG_RUNTIME,),
    ),
    Setting(
        "jars", Kind.TEXTS, "Local jar files instead of packages, for machines without a package registry.", default=()
    ),
    integer(
        "poll_interval_ms", "How often an optimizer without work asks for some, in milliseconds.", default=500, least=1
    ),
    integer(
        "executors_wait_ms",
        "How long work may wait for executors of a cluster, in milliseconds: then it fails with `no-executors`.",
        default=EXECUTORS_WAIT_MS,
        least=1,
    ),
    Setting("spark_conf", Kind.MAPPING, "More Spark configuration, of the keys that are allowed."),
    Setting(
        "spark_conf_keys",
        Kind.TEXTS,
        "Additional keys that spark_conf may have. They allow running any program; in the file only.",
        default=(),
    ),
    integer("recycle_after_tasks", "Start a fresh Spark session after so many tasks.", default=1_000, least=1),
    integer(
        "recycle_memory_bytes",
        "Start a fresh Spark session when the process tree has grown beyond this.",
        default=4 * 1024**3,
        least=1,
    ),
    Setting(
        "server_url",
        Kind.TEXT,
        "The server, where it is not the one of this machine.",
        allowed="http://... or https://...",
        accepts=lambda value: value.startswith(("http://", "https://")),
    ),
    Setting("server_token", Kind.TEXT, "That server's token: env:NAME or file:/path, never the token itself."),
)

EVENTS = (
    Setting(
        "prefixes",
        Kind.MAPPING,
        "Which catalog a prefix of Iceberg's REST addresses stands for, where reports of commits are mirrored: "
        'warehouse-1 = "lake"; "" is for addresses without one. By default the catalog of that name, and without a '
        "prefix the only REST catalog.",
    ),
    Setting(
        "hive",
        Kind.TEXTS,
        "Catalogs on Hive Metastores whose notification logs are read.",
        default=(),
    ),
    integer(
        "hive_interval_ms",
        "How long a notification log in which nothing is new is left alone, in milliseconds.",
        default=2_000,
        least=HIVE_INTERVAL_MS_MIN,
    ),
    Setting(
        "kafka",
        Kind.MAPPING,
        "A Kafka topic to read events from: brokers (host:port, several with commas), topic, group (by default "
        'icewright) and properties of librdkafka for security, such as "properties.sasl.password"; secrets as env:NAME '
        "or file:/path.",
    ),
)

NOTIFICATIONS = (
    Setting(
        "allowed_networks",
        Kind.TEXTS,
        "Internal networks that messages may be sent to, also without TLS, such as 10.1.0.0/16; none by default. In "
        "the file only.",
        default=(),
    ),
    Setting(
        "proxy",
        Kind.TEXT,
        "A proxy for all webhooks: http://host:port; env:NAME or file:/path where it has a password.",
    ),
    Setting("ca_file", Kind.TEXT, "Certificates (PEM) of authorities to trust instead of the system's."),
)

_KINDS = tuple(CatalogKind)
MODE = choice("mode", "What icewright may do without approval: observe, approve or auto.", tuple(Mode))

CATALOG = (
    Setting(
        "type",
        Kind.TEXT,
        "Kind of catalog.",
        required=True,
        allowed=", ".join(_KINDS),
        accepts=lambda value: value in _KINDS,
    ),
    Setting(
        "uri",
        Kind.TEXT,
        "Where the catalog is: sqlite:////absolute/path.db, postgresql://user@host/database, https://host/path (rest), "
        "thrift://host:9083 (hive).",
        required=True,
    ),
    Setting(
        "warehouse",
        Kind.TEXT,
        "Where tables are: a URI or an absolute path; of a REST catalog, its name for a warehouse. Required for sql.",
    ),
    Setting(
        "properties",
        Kind.MAPPING,
        "Further properties, which PyIceberg and Spark get by their names for them; secrets as env:NAME or file:/path.",
    ),
    Setting(
        "aliases",
        Kind.MAPPING,
        'Further names of the same storage, each as scheme://authority: "hdfs://node-1:8020" = "hdfs://cluster". That '
        "s3:, s3a: and s3n: are one is known.",
    ),
    Setting(
        "roots",
        Kind.TEXTS,
        "The only places where its tables may be, as URIs or absolute paths: files are never deleted elsewhere, and a "
        "table that cannot be read is taken to be below them. By default anywhere.",
        default=(),
    ),
    Setting(
        "quarantine",
        Kind.TEXTS,
        "Where removed files wait until they are purged, outside of all tables: a folder for each bucket or file "
        "system, as URIs or absolute paths. On storages without one, no file is ever removed.",
        default=(),
    ),
    MODE,
    Setting("policy", Kind.MAPPING, "Table properties (icewright.* and Iceberg's) that hold unless a table says more."),
)

POLICY_MODE_KEY = "icewright.mode"
SECTIONS: Mapping[str, tuple[Setting, ...]] = {
    "server": SERVER,
    "optimizer": OPTIMIZER,
    "cluster": CLUSTER,
    "autotune": AUTOTUNE,
    "platform": PLATFORM,
    "events": EVENTS,
    "notifications": NOTIFICATIONS,
    "oidc": OIDC,
    "history": HISTORY,
    "queries": QUERIES,
}
