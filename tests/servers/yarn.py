"""A YARN of the tests' own: a real resource manager and one node manager in a JVM that is told what to do by py4j."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from py4j.java_gateway import GatewayParameters, JavaGateway

from tests.servers.java import SPARK_JARS, java, resolve
from tests.servers.processes import HOST, accepts, free_port, running

_IVY_FILE = Path(__file__).with_name("yarn.ivy.xml")
_SCHEDULER = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"

_OPENED = "--add-opens=java.base/java.lang=ALL-UNNAMED"
"""Its web pages make classes at run time by means of before Java 9."""


@dataclass(frozen=True)
class Yarn:
    """A running cluster; ``conf_dir`` is what ``HADOOP_CONF_DIR`` names, ``logs`` where containers write."""

    conf_dir: Path
    logs: Path

    def containers(self) -> list[Path]:
        """The folders with the logs of all containers that there were."""
        return sorted(self.logs.glob("application_*/container_*"))


@contextmanager
def yarn(folder: Path, *, cores: int = 4, memory_mb: int = 6_144) -> Iterator[Yarn]:
    """A cluster of one node, open to everybody on this machine."""
    control, conf_dir, logs = free_port(), folder / "conf", folder / "logs"
    conf_dir.mkdir(parents=True)
    conf = {**_addresses(), **_node(folder, logs, cores, memory_mb)}
    (conf_dir / "yarn-site.xml").write_text(_site(conf))
    (conf_dir / "core-site.xml").write_text(_site({"fs.defaultFS": "file:///"}))
    classpath = f"{conf_dir}:{SPARK_JARS}/*:{resolve(_IVY_FILE)}"
    command = java(f"-Dhadoop.log.dir={folder}", _OPENED, "-cp", classpath, "py4j.GatewayServer", str(control))
    with running(command, log=folder / "yarn.log", ready=lambda: accepts(control)):
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=control, enable_memory_management=False))
        jvm = gateway.jvm
        jvm.org.apache.hadoop.metrics2.lib.DefaultMetricsSystem.setMiniClusterMode(True)
        of = jvm.org.apache.hadoop.yarn.conf.YarnConfiguration()
        server = jvm.org.apache.hadoop.yarn.server
        for service in (server.resourcemanager.ResourceManager(), server.nodemanager.NodeManager()):
            service.init(of)
            service.start()
        yield Yarn(conf_dir, logs)


def _addresses() -> Mapping[str, str]:
    names = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
    found = {f"yarn.resourcemanager.{name}": f"{HOST}:{free_port()}" for name in names}
    node = {f"yarn.nodemanager.{name}": f"{HOST}:{free_port()}" for name in ("address", "localizer.address")}
    return {**found, **node, "yarn.nodemanager.webapp.address": f"{HOST}:{free_port()}"}


def _node(folder: Path, logs: Path, cores: int, memory_mb: int) -> Mapping[str, str]:
    return {
        "yarn.resourcemanager.hostname": HOST,
        "yarn.resourcemanager.scheduler.class": _SCHEDULER,
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.nodemanager.resource.memory-mb": str(memory_mb),
        "yarn.nodemanager.resource.cpu-vcores": str(cores),
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(logs),
        "yarn.nodemanager.delete.debug-delay-sec": "3600",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.nodemanager.env-whitelist": "JAVA_HOME,PATH",
    }


def _site(conf: Mapping[str, str]) -> str:
    properties = "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in conf.items()
    )
    return f"<configuration>{properties}</configuration>"
