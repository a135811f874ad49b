"""Three servers of one store: two that look at tables, and one that does not yet."""

from __future__ import annotations

from dataclasses import dataclass

from icewright.core.servers import SaidConfiguration, Server
from icewright.server.cluster.coordinator import SqlCoordinator
from icewright.server.cluster.leading import AlwaysLeads
from icewright.server.cluster.servers_sql import SqlServers
from tests.builders.served import Served


@dataclass
class SharedServers:
    """The first leads and has all buckets; half of them are about to go to the second one, with other catalogs."""

    served: Served

    def __post_init__(self) -> None:
        engine, clock = self.served.engine, self.served.clock
        cpus = iter([0.25, None, 1.04])
        leads, follows = (SaidConfiguration("0.1.0", {"catalogs": one, "groups": "g"}, {}) for one in ("a", "b"))
        self.coordinator = SqlCoordinator(engine, clock, said=leads)
        book = SqlServers(engine, clock, cpu=lambda: next(cpus))
        for number, epoch in ((1, 7), (2, None), (3, None)):
            book.beat(Server(f"server-{number}", f"http://10.0.0.{number}:7077", "0.1.0", epoch))
        self.first = self.coordinator.join("server-1", 0)
        self.coordinator.assign(engine)
        self.second = SqlCoordinator(engine, clock, said=follows).join("server-2", 0)
        self.coordinator.assign(engine)
        self.leading = AlwaysLeads(self.served.control)
        self.leading.assigned = self.coordinator.assigned  # type: ignore[method-assign]  # of this test
        self.leading.servers = book.present  # type: ignore[method-assign]  # of this test
        self.leading.buckets, self.leading.differing = 64, 1
        self.leading.link = self.coordinator.link
        self.served.app.state.leading = self.leading
