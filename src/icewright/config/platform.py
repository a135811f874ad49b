"""The settings of ``[platform]``: how many servers there are, and who is asked for more."""

from __future__ import annotations

import re
from typing import Final

from icewright.config.setting import Kind, Setting
from icewright.model.work.optimizers import TuneMode

NONE, WEBHOOK, COMMAND, KUBERNETES = "none", "webhook", "command", "kubernetes"
KINDS: Final = (NONE, WEBHOOK, COMMAND, KUBERNETES)
WORKLOAD: Final = re.compile(r"(deployment|statefulset)/([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)\Z")
_NAMESPACE: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
SPAN_MS_MIN: Final = 1_000
SERVERS_MAX: Final = 128
"""So many buckets there are."""
PERCENT_MAX: Final = 100


def _is_span(value: int) -> bool:
    return value >= SPAN_MS_MIN


def _is_number(value: int) -> bool:
    return 1 <= value <= SERVERS_MAX


PLATFORM = (
    Setting(
        "kind",
        Kind.TEXT,
        "What is asked to start and end servers: nothing, the receiver of a webhook, a command, or Kubernetes.",
        default=NONE,
        allowed=", ".join(KINDS),
        accepts=lambda value: value in KINDS,
    ),
    Setting(
        "mode",
        Kind.TEXT,
        "Whether decisions about the number of servers are advice (advise), or the leading server asks the platform "
        "(act).",
        default=TuneMode.ADVISE.value,
        allowed=", ".join(TuneMode),
        accepts=lambda value: value in tuple(TuneMode),
    ),
    Setting(
        "servers_min",
        Kind.INTEGER,
        "The fewest servers of the store.",
        default=1,
        allowed=f"1 to {SERVERS_MAX}",
        accepts=_is_number,
    ),
    Setting(
        "servers_max",
        Kind.INTEGER,
        "The most servers of the store.",
        default=4,
        allowed=f"servers_min to {SERVERS_MAX}",
        accepts=_is_number,
    ),
    Setting(
        "cpu_percent",
        Kind.INTEGER,
        "A server that needs more than this of the CPU that it can use, a core at most, is busy.",
        default=80,
        allowed=f"1 to {PERCENT_MAX}",
        accepts=lambda value: 1 <= value <= PERCENT_MAX,
    ),
    Setting(
        "tables_max",
        Kind.INTEGER,
        "A server that looks at more tables is full.",
        default=10_000,
        allowed="1 or more",
        accepts=lambda value: value >= 1,
    ),
    Setting(
        "busy_ms",
        Kind.INTEGER,
        "How long a server is busy or full before another one is asked for, in milliseconds.",
        default=300_000,
        allowed=f"{SPAN_MS_MIN} or more",
        accepts=_is_span,
    ),
    Setting(
        "idle_ms",
        Kind.INTEGER,
        "How long one server less would have done before one is given back, in milliseconds; twice as long for each "
        "that was given back within a day, 64 times at most.",
        default=3_600_000,
        allowed=f"{SPAN_MS_MIN} or more",
        accepts=_is_span,
    ),
    Setting(
        "cool_down_ms",
        Kind.INTEGER,
        "How long after a decision about servers the next one may follow, in milliseconds; twice as long for each "
        "that had no effect within a day.",
        default=900_000,
        allowed=f"{SPAN_MS_MIN} or more",
        accepts=_is_span,
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
