"""The settings of ``[platform]``: how many servers there are, and who is asked for more."""

from __future__ import annotations

import re
from typing import Final

from icewright.config.setting import Kind, Setting, choice, integer
from icewright.model.work.optimizers import TuneMode

NONE, WEBHOOK, COMMAND, KUBERNETES = "none", "webhook", "command", "kubernetes"
KINDS: Final = (NONE, WEBHOOK, COMMAND, KUBERNETES)
WORKLOAD: Final = re.compile(r"(deployment|statefulset)/([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)\Z")
_NAMESPACE: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
SPAN_MS_MIN: Final = 1_000
SERVERS_MAX: Final = 128
"""So many buckets there are."""
PERCENT_MAX: Final = 100


PLATFORM = (
    choice(
        "kind",
        "What is asked to start and end servers: nothing, the receiver of a webhook, a command, or Kubernetes.",
        KINDS,
        default=NONE,
    ),
    choice(
        "mode",
        "Whether decisions about the number of servers are advice (advise), or the leading server asks the platform "
        "(act).",
        tuple(TuneMode),
        default=TuneMode.ADVISE.value,
    ),
    integer("servers_min", "The fewest servers of the store.", default=1, least=1, most=SERVERS_MAX),
    integer(
        "servers_max",
        "The most servers of the store.",
        default=4,
        least=1,
        most=SERVERS_MAX,
        allowed=f"servers_min to {SERVERS_MAX}",
    ),
    integer(
        "cpu_percent",
        "A server that needs more than this of the CPU that it can use, a core at most, is busy.",
        default=80,
        least=1,
        most=PERCENT_MAX,
    ),
    integer("tables_max", "A server that looks at more tables is full.", default=10_000, least=1),
    integer(
        "busy_ms",
        "How long a server is busy or full before another one is asked for, in milliseconds.",
        default=300_000,
        least=SPAN_MS_MIN,
    ),
    integer(
        "idle_ms",
        "How long one server less would have done before one is given back, in milliseconds; twice as long for each "
        "that was given back within a day, 64 times at most.",
        default=3_600_000,
        least=SPAN_MS_MIN,
    ),
    integer(
        "cool_down_ms",
        "How long after a decision about servers the next one may follow, in milliseconds; twice as long for each "
        "that had no effect within a day.",
        default=900_000,
        least=SPAN_MS_MIN,
    ),
    Setting("url", Kind.TEXT, "Of a webhook: where it is sent, as https://..., env:NAME or file:/path."),
    Setting(
        "secret",
        Kind.TEXT,
        "Of a webhook: what its Authorization header has behind `Bearer`, as env:NAME or file:/path, never the secret.",
    ),
    Setting(
        "command",
        Kind.TEXTS,
        "Of a command: a program by its full path, and its arguments, to which the number of servers is added as the "
        "last one. No shell reads it. In the file only.",
        default=(),
        allowed="a first text that begins with /",
        accepts=lambda value: not value or value[0].startswith("/"),
    ),
    Setting(
        "workload",
        Kind.TEXT,
        "Of Kubernetes: whose replicas the servers are.",
        allowed="deployment/NAME or statefulset/NAME",
        accepts=lambda value: WORKLOAD.match(value) is not None,
    ),
    Setting(
        "namespace",
        Kind.TEXT,
        "Of Kubernetes: where that is; by default the namespace of the server's own pod.",
        allowed="a name of lower-case letters, digits and '-'",
        accepts=lambda value: _NAMESPACE.match(value) is not None,
    ),
)
