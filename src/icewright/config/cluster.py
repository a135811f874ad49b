"""The settings of the section ``[cluster]``: how the servers of one store hear of each other."""

from __future__ import annotations

import re
from typing import Final

from icewright.config.model import ClusterConfig
from icewright.config.setting import Kind, Setting, choice, integer
from icewright.core.errors import InvalidConfiguration
from icewright.core.servers import (
    CLUSTER_DEAD_MS,
    CLUSTER_HEARTBEAT_MS,
    CLUSTER_HEARTBEAT_MS_MIN,
    FILES,
    STORE,
    TABLES,
    ZOOKEEPER,
    ZOOKEEPER_ROOT,
    ZOOKEEPER_SESSION_MS,
)

DIGEST: Final = "digest"
SASL: Final = "sasl"
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})")
_ROOT = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._-]+)+")
_PORT_MAX: Final = 65_535
_SESSION_MS_MIN: Final = 2_000
_SESSION_MS_MAX: Final = 60_000


def _are_hosts(value: list[str]) -> bool:
    found = [_HOST.fullmatch(one) for one in value]
    return all(one is not None and 0 < int(one["port"]) <= _PORT_MAX for one in found)


def _is_root(value: str) -> bool:
    return _ROOT.fullmatch(value) is not None and value.split("/")[1] != "zookeeper"


CLUSTER = (
    integer(
        "heartbeat_ms",
        "Of several servers: how often each says that it looks at its tables, in milliseconds.",
        default=CLUSTER_HEARTBEAT_MS,
        least=CLUSTER_HEARTBEAT_MS_MIN,
    ),
    integer(
        "dead_ms",
        "Of several servers: how long one may be silent before the others look at its tables, in milliseconds. One "
        "whose connection to the store has ended is dead after some seconds.",
        default=CLUSTER_DEAD_MS,
        least=2 * CLUSTER_HEARTBEAT_MS_MIN,
        allowed=f"twice heartbeat_ms or more, and {2 * CLUSTER_HEARTBEAT_MS_MIN} or more",
    ),
    choice(
        "balance",
        "Of several servers: what the leader balances between them in addition to the number of their buckets.",
        (TABLES, FILES),
        default=TABLES,
        allowed=f"{TABLES}, {FILES} (data files of the tables)",
    ),
    choice(
        "coordinator",
        "Of several servers: what says which of them are there, and elects the one that leads. Who looks at which "
        "tables is always in the store, which is on PostgreSQL. The same for all servers of a store.",
        (STORE, ZOOKEEPER),
        default=STORE,
    ),
    Setting(
        "zookeeper_hosts",
        Kind.TEXTS,
        "The servers of ZooKeeper.",
        default=(),
        allowed="host:port of each",
        accepts=_are_hosts,
    ),
    Setting(
        "zookeeper_root",
        Kind.TEXT,
        "The node of ZooKeeper below which icewright's own are; one for each store.",
        default=ZOOKEEPER_ROOT,
        allowed="an absolute path of letters, digits, dots, hyphens and underscores, not below /zookeeper",
        accepts=_is_root,
    ),
    integer(
        "zookeeper_session_ms",
        "How long a server may be silent before it is gone for ZooKeeper, in milliseconds, as far as ZooKeeper allows "
        "it: by default 2 to 20 times its tickTime.",
        default=ZOOKEEPER_SESSION_MS,
        least=_SESSION_MS_MIN,
        most=_SESSION_MS_MAX,
    ),
    Setting(
        "zookeeper_user",
        Kind.TEXT,
        "The user as whom the servers log in to ZooKeeper: then only that user may read or change their nodes.",
        allowed="no colon",
        accepts=lambda value: ":" not in value,
    ),
    Setting("zookeeper_password", Kind.TEXT, "That user's password, as env:NAME or file:/path."),
    choice(
        "zookeeper_scheme",
        "How the user logs in: digest, or SASL with DIGEST-MD5.",
        (DIGEST, SASL),
        default=DIGEST,
    ),
    Setting(
        "zookeeper_ca",
        Kind.TEXT,
        "PEM file of authorities that sign ZooKeeper's certificates, besides those of the system: with it, connections "
        "are by TLS.",
    ),
    Setting("zookeeper_certificate", Kind.TEXT, "PEM file of the certificate that the server shows to ZooKeeper."),
    Setting("zookeeper_key", Kind.TEXT, "PEM file of that certificate's private key."),
)


def check_cluster(cluster: ClusterConfig, store_url: str, origin: str) -> None:
    """Raises :class:`InvalidConfiguration` for settings that do not fit each other or the store."""
    if cluster.dead_ms < 2 * cluster.heartbeat_ms:
        raise InvalidConfiguration(
            f"{origin}: cluster.dead_ms: {cluster.dead_ms} is less than twice cluster.heartbeat_ms",
            hint="a server whose one heartbeat is late would be taken for dead",
        )
    if cluster.coordinator != ZOOKEEPER:
        return
    if store_url.startswith("sqlite"):
        raise InvalidConfiguration(
            f"{origin}: cluster.coordinator: a store on SQLite has one server, which needs no {ZOOKEEPER}",
            hint="leave it out, or set server.store_url to a database on PostgreSQL",
        )
    if not cluster.zookeeper_hosts:
        raise InvalidConfiguration(
            f"{origin}: cluster.zookeeper_hosts is missing", hint='such as ["zk-1.example.com:2181"]'
        )
    for one, other in (("user", "password"), ("certificate", "key")):
        has = [getattr(cluster, f"zookeeper_{name}") is not None for name in (one, other)]
        if any(has) and not all(has):
            raise InvalidConfiguration(
                f"{origin}: cluster.zookeeper_{other if has[0] else one} is missing",
                hint=f"zookeeper_{one} and zookeeper_{other} are needed both, or neither",
            )
    if cluster.zookeeper_certificate is not None and cluster.zookeeper_ca is None:
        raise InvalidConfiguration(
            f"{origin}: cluster.zookeeper_ca is missing", hint="without it, connections to ZooKeeper are not by TLS"
        )
