"""A Kafka broker of the tests' own: one node that is its own controller, on files that are gone with it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.java import java, resolve
from tests.servers.processes import HOST, accepts, free_port, running

NEEDS = Path(__file__).with_name("kafka.ivy.xml")
_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"


@contextmanager
def kafka_broker(folder: Path) -> Iterator[str]:
    """A broker without topics; where it listens."""
    port, control = free_port(), free_port()
    one = ("offsets.topic.replication.factor", "offsets.topic.num.partitions", "transaction.state.log.min.isr")
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{control}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{control}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder / "logs"),
        "transaction.state.log.replication.factor": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "group.initial.rebalance.delay.ms": "0",
        **dict.fromkeys(one, "1"),
    }
    properties = folder / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    classes = ("-cp", resolve(NEEDS))
    formatted = java(*classes, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(properties))
    subprocess.run(formatted, check=True, capture_output=True, env=dict(os.environ))  # noqa: S603 - found by java()
    command = java(*classes, "kafka.Kafka", str(properties))
    with running(command, log=folder / "kafka.log", ready=lambda: accepts(port)):
        yield f"{HOST}:{port}"
