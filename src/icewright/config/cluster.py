"""The settings of the section ``[cluster]``: how the servers of one store hear of each other."""

from __future__ import annotations

from icewright.config.setting import Kind, Setting
from icewright.core.servers import CLUSTER_DEAD_MS, CLUSTER_HEARTBEAT_MS, CLUSTER_HEARTBEAT_MS_MIN

CLUSTER = (
    Setting(
        "heartbeat_ms",
        Kind.INTEGER,
        "Of several servers: how often each says that it looks at its tables, in milliseconds.",
        default=CLUSTER_HEARTBEAT_MS,
        allowed=f"{CLUSTER_HEARTBEAT_MS_MIN} or more",
        accepts=lambda value: value >= CLUSTER_HEARTBEAT_MS_MIN,
    ),
    Setting(
        "dead_ms",
        Kind.INTEGER,
        "Of several servers: how long one may be silent before the others look at its tables, in milliseconds. One "
        "whose connection to the store has ended is dead after some seconds.",
        default=CLUSTER_DEAD_MS,
        allowed=f"twice heartbeat_ms or more, and {2 * CLUSTER_HEARTBEAT_MS_MIN} or more",
        accepts=lambda value: value >= 2 * CLUSTER_HEARTBEAT_MS_MIN,
    ),
)
