"""A Hive Metastore of the tests' own: Hive 2.3 from Spark's jars, on a Derby that is gone with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from tests.servers.java import SPARK_JARS, java, resolve
from tests.servers.processes import HOST, accepts, free_port, running, wait

LOG_NEEDS = Path(__file__).with_name("hive_log.ivy.xml")

LOG = {
    "hive.metastore.transactional.event.listeners": "org.apache.hive.hcatalog.listener.DbNotificationListener",
    "hive.metastore.event.db.notification.api.auth": "false",
}
"""A log of what happens to tables, which anybody may read."""


@dataclass(frozen=True)
class HiveMetastore:
    """A running metastore. All its tests share its databases."""

    port: int
    warehouse: Path

    @property
    def uri(self) -> str:
        """Where it listens."""
        return f"thrift://{HOST}:{self.port}"


@contextmanager
def hive_metastore(folder: Path, *, with_log: bool = False) -> Iterator[HiveMetastore]:
    """A metastore without databases but ``default``; with a log of notifications only for tests of that log.

    Hive 2.3's listener fails commits of several writers at once ("Event not set up correctly").
    """
    port, warehouse = free_port(), folder / "warehouse"
    warehouse.mkdir()
    settings = {
        "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "HikariCP",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": warehouse.as_uri(),
        "hive.metastore.disallow.incompatible.col.type.changes": "false",  # as Iceberg's evolution of schemas needs it
        "hive.log.dir": str(folder),
        "hive.async.log.enabled": "false",  # it would need a library that Spark does not have
        "derby.stream.error.file": str(folder / "derby.log"),
    }
    if with_log:
        settings |= LOG
    classes = [*([resolve(LOG_NEEDS)] if with_log else []), f"{SPARK_JARS}/*"]
    control = free_port()
    command = java(
        *(f"-D{key}={value}" for key, value in settings.items()),
        *("-cp", ":".join(classes), "py4j.GatewayServer", str(control)),
    )
    with running(command, log=folder / "metastore.log", ready=lambda: accepts(control)) as process:
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=control))
        hive = gateway.jvm.org.apache.hadoop.hive.metastore
        # The tables of transactions and locks; the metastore would make them for its own tests only, and then
        # refuse locks of clients that do not say what they are about, as PyIceberg does not.
        hive.txn.TxnDbUtil.prepDb(gateway.jvm.org.apache.hadoop.hive.conf.HiveConf())
        arguments = gateway.new_array(gateway.jvm.java.lang.String, 2)
        arguments[0], arguments[1] = "-p", str(port)
        threading.Thread(target=_until_it_ends, args=(hive.HiveMetaStore.main, arguments), daemon=True).start()
        wait(process, lambda: accepts(port), folder / "metastore.log")
        yield HiveMetastore(port, warehouse)


def _until_it_ends(main: Callable[[Any], None], arguments: Any) -> None:
    with suppress(Py4JError):  # it is killed
        main(arguments)
