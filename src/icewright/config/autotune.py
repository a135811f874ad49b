"""The settings of ``[autotune]``: how many optimizers there are, and how much memory each has."""

from __future__ import annotations

import re

from icewright.config.setting import Kind, Setting, choice, integer
from icewright.model.work.optimizers import TuneMode

MEMORY_TEXT = re.compile(r"[1-9][0-9]*[kmgt]\Z")
MEMORY_FACTOR = re.compile(r"x1\.[0-9]{1,2}\Z")
BY_STEPS, AT_ONCE = "steps", "at-once"
SPAN_MS_MIN = 1_000
QUIET_CYCLES_MAX = 500
"""So many attempts of a group are looked at."""
SIZE = "a number and k, m, g or t, such as 4g"


def is_size(value: str) -> bool:
    """Whether it is a size of memory as Spark writes it."""
    return MEMORY_TEXT.match(value) is not None


def _is_step(value: str) -> bool:
    return is_size(value) or (MEMORY_FACTOR.match(value) is not None and float(value[1:]) > 1)


AUTOTUNE = (
    choice(
        "mode",
        "Whether decisions about optimizers and their memory are advice (advise), or the leading server carries them "
        "out by resident optimizers on its machine (act).",
        tuple(TuneMode),
        default=TuneMode.ADVISE.value,
    ),
    integer(
        "wait_ms",
        "How long tasks wait, while all optimizers of their queue are busy, before another one is started, in "
        "milliseconds.",
        default=120_000,
        least=SPAN_MS_MIN,
    ),
    integer(
        "idle_ms",
        "How long an optimizer is idle before it is ended, in milliseconds; twice as long for each one that ended "
        "within a day, 64 times at most.",
        default=900_000,
        least=SPAN_MS_MIN,
    ),
    integer(
        "cool_down_ms",
        "How long after a decision the next one of the same queue may follow, in milliseconds.",
        default=600_000,
        least=SPAN_MS_MIN,
    ),
    Setting(
        "large_memory",
        Kind.TEXT,
        "Memory of an optimizer of a large queue to begin with; those of normal queues begin with optimizer.memory.",
        default="4g",
        allowed=SIZE,
        accepts=is_size,
    ),
    Setting(
        "memory_step",
        Kind.TEXT,
        "By how much memory grows and shrinks: by a size, or by a factor; of x1.2 the counterpart down is 0.8.",
        default="2g",
        allowed=f"{SIZE}, or a factor from x1.01 to x1.99",
        accepts=_is_step,
    ),
    Setting("memory_max", Kind.TEXT, "The most memory of an optimizer.", default="16g", allowed=SIZE, accepts=is_size),
    choice(
        "less_memory",
        "How memory that is not needed shrinks: by steps, or down to the first value at once.",
        (BY_STEPS, AT_ONCE),
        default=BY_STEPS,
    ),
    integer(
        "oom_cycles",
        "After how many attempts in a row that ran out of memory, of a queue or of one table, memory grows.",
        default=3,
        least=1,
    ),
    integer(
        "quiet_cycles",
        "After how many attempts in a row that had enough memory it shrinks.",
        default=50,
        least=1,
        most=QUIET_CYCLES_MAX,
    ),
)
