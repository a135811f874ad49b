"""An HDFS of the tests' own: a real name node and one data node in a JVM that is told what to do by py4j."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hdfs_native import Client, WriteOptions
from py4j.java_gateway import GatewayParameters, JavaGateway

from tests.servers.java import SPARK_JARS, java, resolve
from tests.servers.processes import HOST, accepts, free_port, running

_IVY_FILE = Path(__file__).with_name("hdfs.ivy.xml")


@dataclass(frozen=True)
class Hdfs:
    """A running cluster. All its tests share its name space."""

    port: int

    @property
    def uri(self) -> str:
        """The name node, as ``fs.defaultFS`` has it."""
        return f"hdfs://{HOST}:{self.port}"


@contextmanager
def hdfs(folder: Path) -> Iterator[Hdfs]:
    """A cluster without files, open to everybody on this machine."""
    port, control = free_port(), free_port()
    classpath = f"{SPARK_JARS}/*:{resolve(_IVY_FILE)}"
    command = java(f"-Dhadoop.log.dir={folder}", "-cp", classpath, "py4j.GatewayServer", str(control))
    with running(command, log=folder / "hdfs.log", ready=lambda: accepts(control)):
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=control, enable_memory_management=False))
        jvm = gateway.jvm
        conf = jvm.org.apache.hadoop.hdfs.HdfsConfiguration()
        anywhere = f"{HOST}:0"
        for key, value in {
            "fs.defaultFS": f"hdfs://{HOST}:{port}",
            "dfs.namenode.name.dir": (folder / "names").as_uri(),
            "dfs.datanode.data.dir": (folder / "data").as_uri(),
            "dfs.namenode.http-address": anywhere,
            "dfs.datanode.address": anywhere,
            "dfs.datanode.http.address": anywhere,
            "dfs.datanode.ipc.address": anywhere,
            "dfs.replication": "1",
            "dfs.permissions.enabled": "false",
            "dfs.namenode.safemode.extension": "0",
        }.items():
            conf.set(key, value)
        # Formatting and serving in one JVM would each name the same metrics.
        jvm.org.apache.hadoop.metrics2.lib.DefaultMetricsSystem.setMiniClusterMode(True)
        hdfs_server = jvm.org.apache.hadoop.hdfs.server
        hdfs_server.namenode.NameNode.format(conf)
        none = gateway.new_array(jvm.java.lang.String, 0)
        hdfs_server.namenode.NameNode.createNameNode(none, conf)
        hdfs_server.datanode.DataNode.createDataNode(none, conf)
        yield Hdfs(port)


def await_data_node(cluster: Hdfs, tries: int = 100) -> None:
    """Wait until the data node takes what is written: it comes after the name node."""
    client = Client(cluster.uri)
    for left in reversed(range(tries)):
        try:
            with client.create("/ready", WriteOptions(overwrite=True)) as file:
                file.write(b"ready")
        except (OSError, RuntimeError):
            if not left:
                raise
            time.sleep(0.1)
        else:
            return
