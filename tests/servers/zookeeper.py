"""A ZooKeeper of the tests' own, from Spark's jars: one server, by TCP and by TLS, which also takes SASL."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.servers.certificates import Authority
from tests.servers.java import SPARK_JARS, java
from tests.servers.processes import HOST, accepts, free_port, running

USER = "icewright"
PASSWORD = "a-password:of=the@tests"  # noqa: S105 - of a server that lives for some tests
_CONFIGURATION = """\
tickTime=200
initLimit=50
syncLimit=25
maxSessionTimeout=20000
dataDir={folder}
clientPort={port}
secureClientPort={tls_port}
clientPortAddress={host}
secureClientPortAddress={host}
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
ssl.keyStore.location={folder}/server.pem
ssl.trustStore.location={authority}
ssl.clientAuth=want
admin.enableServer=false
forceSync=no
"""
_USERS = f"""\
Server {{
  org.apache.zookeeper.server.auth.DigestLoginModule required
  user_{USER}="{PASSWORD}";
}};
"""


@dataclass
class ZooKeeperServer:
    """A server that can be killed, paused and started again with what it knew; each test takes a root of its own."""

    folder: Path
    port: int
    tls_port: int
    authority: Authority
    process: subprocess.Popen[bytes] | None = None
    _running: ExitStack = field(default_factory=ExitStack)
    _numbers: count[int] = field(default_factory=count)

    @property
    def hosts(self) -> tuple[str, ...]:
        return (f"{HOST}:{self.port}",)

    def new_root(self) -> str:
        """A node that is not there yet."""
        return f"/test-{next(self._numbers)}"

    def start(self) -> None:
        """Start it, with what it knew before."""
        if self.process is not None:
            return
        jars = ":".join(str(one) for one in SPARK_JARS.glob("*.jar") if one.name.startswith(_JARS))
        command = java(
            "-Xmx128m",
            "-Dzookeeper.jmx.log4j.disable=true",
            f"-Djava.security.auth.login.config={self.folder / 'users.conf'}",
            *("-cp", jars, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(self.folder / "zoo.cfg")),
        )
        self.process = self._running.enter_context(
            running(command, log=self.folder / "zookeeper.log", ready=lambda: accepts(self.port))
        )

    def kill(self) -> None:
        """As a machine that dies."""
        self._running.close()
        self._running, self.process = ExitStack(), None

    def forget(self) -> None:
        """Of one that is not running: lose all that it knew, its sessions and transactions too."""
        assert self.process is None
        shutil.rmtree(self.folder / "version-2")

    def pause(self) -> None:
        """It answers nothing, and its connections stay."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Behind :meth:`pause`."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)


_JARS = ("zookeeper-", "netty-", "slf4j-", "log4j-", "metrics-core", "snappy-java", "commons-cli", "commons-io")


@contextmanager
def zookeeper_server(folder: Path) -> Iterator[ZooKeeperServer]:
    """A server with nothing in it, which ends behind the block."""
    server = ZooKeeperServer(folder, free_port(), free_port(), Authority(folder))
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    server.authority.vouch(certificate, key, HOST)
    (folder / "server.pem").write_bytes(key.read_bytes() + certificate.read_bytes())
    (folder / "users.conf").write_text(_USERS)
    (folder / "zoo.cfg").write_text(
        _CONFIGURATION.format(
            folder=folder,
            port=server.port,
            tls_port=server.tls_port,
            host=HOST,
            authority=server.authority.certificate,
        )
    )
    server.start()
    try:
        yield server
    finally:
        server.kill()
