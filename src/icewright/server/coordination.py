"""Wires how the servers of a store hear of each other: by the store alone, or by ZooKeeper as well."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from icewright.config.agreement import said_configuration
from icewright.config.cluster import SASL
from icewright.config.model import Config
from icewright.config.secrets import resolve
from icewright.core.errors import InvalidConfiguration
from icewright.core.extras import require_extra
from icewright.core.servers import ZOOKEEPER
from icewright.core.system_clock import SystemClock
from icewright.server.cluster.coordinator import SqlCoordinator
from icewright.server.cluster.leadership import Sharing
from icewright.server.cluster.port import Coordinator
from icewright.server.cluster.share import Share
from icewright.server.cluster.store_identity import store_identity
from icewright.server.control_wiring import Opened
from icewright.store_admin.leader_lock import LeaderElection


@dataclass(frozen=True)
class Coordination:
    """How a server comes to lead, and shares the looks; without a coordinator it is the only one of its store."""

    opened: Opened
    election: LeaderElection
    coordinator: Coordinator | None

    def sharing(self, server_id: str) -> Sharing | None:
        """How a server shares the looks at tables; None where it is the only one."""
        if self.coordinator is None:
            return None
        cluster = self.opened.config.cluster
        share = Share(
            self.coordinator,
            server_id,
            lambda: self.election.backend,
            heartbeat_ms=cluster.heartbeat_ms,
            dead_ms=cluster.dead_ms,
        )
        return Sharing(share, self.opened.look)


@contextmanager
def open_coordination(config: Config, environ: Mapping[str, str], opened: Opened) -> Iterator[Coordination]:
    """What a configuration asks for.

    Raises :class:`~icewright.core.errors.InvalidConfiguration` where what ZooKeeper needs is not installed or not
    there, or its root is that of another store, and :class:`~icewright.core.errors.NotAllowed` for what ZooKeeper
    denies.
    """
    cluster = config.cluster
    if not opened.is_shared:
        yield Coordination(opened, opened.election, None)
    elif cluster.coordinator != ZOOKEEPER:
        said = said_configuration(config)
        own = SqlCoordinator(opened.engine, dead_ms=cluster.dead_ms, said=said, balance=cluster.balance)
        yield Coordination(opened, opened.election, own)
    else:
        with _open_zookeeper(config, environ, opened) as found:
            yield found


@contextmanager
def _open_zookeeper(config: Config, environ: Mapping[str, str], opened: Opened) -> Iterator[Coordination]:
    require_extra("zookeeper", "servers that hear of each other by ZooKeeper")
    from icewright.server.cluster.zookeeper import ZooKeeper  # noqa: PLC0415 - kazoo is an extra
    from icewright.server.cluster.zookeeper_coordinator import ZooKeeperCoordinator  # noqa: PLC0415 - kazoo is an extra
    from icewright.server.cluster.zookeeper_election import StoreElection, ZooKeeperElection  # noqa: PLC0415 - kazoo is an extra
    from icewright.server.cluster.zookeeper_settings import ZooKeeperSettings  # noqa: PLC0415 - kazoo is an extra

    cluster, password = config.cluster, config.cluster.zookeeper_password
    if password is not None:
        password = resolve(password, key="cluster.zookeeper_password", environ=environ)
    ca, certificate, key = (
        None if path is None else str(path)
        for path in (cluster.zookeeper_ca, cluster.zookeeper_certificate, cluster.zookeeper_key)
    )
    _check_files(ca, certificate, key)
    settings = ZooKeeperSettings(
        hosts=cluster.zookeeper_hosts,
        root=cluster.zookeeper_root,
        session_s=cluster.zookeeper_session_ms / 1000,
        user=cluster.zookeeper_user,
        password=password or "",
        by_sasl=cluster.zookeeper_scheme == SASL,
        ca=ca,
        certificate=certificate,
        key=key,
    )
    # That of PostgreSQL: a store on SQLite has one server.
    store = cast(StoreElection, opened.election)
    identity, patience_s = store_identity(opened.engine), config.server.leader_lease_ms / 1000
    with ZooKeeper(settings, SystemClock(), store=identity, patience_s=patience_s) as zookeeper:
        said = said_configuration(config)
        coordinator = ZooKeeperCoordinator(
            opened.engine, zookeeper, dead_ms=cluster.dead_ms, said=said, balance=cluster.balance
        )
        yield Coordination(opened, ZooKeeperElection(store, zookeeper), coordinator)


def _check_files(ca: str | None, certificate: str | None, key: str | None) -> None:
    """Tell at the start what the library would only try again."""
    if ca is None:
        return
    try:
        context = ssl.create_default_context(cafile=ca)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except OSError as error:  # those of ssl among them
        raise InvalidConfiguration(
            f"cluster: the files for connections to ZooKeeper by TLS cannot be used: {error}",
            hint="check cluster.zookeeper_ca, zookeeper_certificate and zookeeper_key, which are PEM files",
        ) from error
