"""Autotuning put together from a configuration, for the server that leads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from icewright.config.autotune import AT_ONCE
from icewright.config.layers import ENVIRONMENT_PREFIX
from icewright.config.model import AutotuneConfig, Config
from icewright.config.secrets import named_variables
from icewright.core.extras import require_extra
from icewright.core.system_clock import SystemIds, running
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.application_size import size_bytes, size_of
from icewright.model.work.optimizers import OptimizerSettings, TuneMode
from icewright.ports.store import TableStore, TaskStore
from icewright.work.autotune.decide import TuneLimits
from icewright.work.autotune.own_optimizers import OWN_OPTIMIZER, OwnOptimizers
from icewright.work.autotune.servers.tuning import ServerTuning
from icewright.work.autotune.service import Autotune
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.autotune.watch import NewOptimizer, QueueWatch
from icewright.work.groups.views import GroupViews
from icewright.work.launch.optimizer import settings_of, spark_conf_of
from icewright.work.launch.port import Launcher
from icewright.work.launch.resident import ResidentLauncher
from icewright.work.optimizers.backlog import Backlogs

_END_S: Final = 10.0
"""How long the end of the server waits for a turn; what it has begun, the next server gives up."""
_PASSWORD_OF_LIBPQ: Final = "PGPASSWORD"  # noqa: S105 - the name of a variable
_LARGE_SLOTS: Final = 1
"""An optimizer of a large queue has all its memory for one task."""


def tune_limits(config: AutotuneConfig) -> TuneLimits:
    """The settings as values."""
    is_factor = config.memory_step.startswith("x")
    return TuneLimits(
        config.wait_ms,
        config.idle_ms,
        config.cool_down_ms,
        size_bytes(config.memory_max) or 0,
        0 if is_factor else size_bytes(config.memory_step) or 0,
        float(config.memory_step[1:]) if is_factor else 1.0,
        config.less_memory == AT_ONCE,
        config.oom_cycles,
        config.quiet_cycles,
    )


def build_autotune(
    config: Config,
    environ: Mapping[str, str],
    tasks: TaskStore,
    tables: TableStore,
    backlogs: Backlogs,
    groups: GroupViews,
    decisions: SqlDecisions,
    launcher: Launcher | None = None,
    *,
    servers: ServerTuning | None = None,
) -> Autotune:
    """Autotuning over the stores of the server that leads; ``servers`` is None where there is one alone.

    Raises :class:`~icewright.core.errors.InvalidConfiguration` where it is to act without the extra for optimizers.
    """
    acts = config.autotune.mode == TuneMode.ACT
    if acts and launcher is None:
        require_extra("spark", "autotune.mode = act")

    def settings() -> OptimizerSettings:
        return settings_of(config, environ)

    ids, sizes = SystemIds(), _sizes(config)
    catalogs = frozenset(entry.name for entry in config.catalogs)
    watch = QueueWatch(tasks, tables, backlogs, groups, catalogs, sizes)
    launcher = launcher or ResidentLauncher(environ=environ_of_optimizers(config, environ))
    own = OwnOptimizers(settings, launcher, lambda: ids.new(OWN_OPTIMIZER), lambda queue: sizes[queue].slots)
    limits, is_local = tune_limits(config.autotune), config.optimizer.master.startswith("local")
    return Autotune(
        decisions, watch, tasks, tables, ids, limits, own if acts else None, is_local=is_local, servers=servers
    )


def environ_of_optimizers(config: Config, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment of the server without its own secrets: that of the store, of log-ins and of receivers.

    What optimizers need of the configuration comes to them through a pipe.
    """
    return environ_without(environ, named_variables(replace(config, catalogs=())))


def environ_without(environ: Mapping[str, str], named: Iterable[str]) -> Mapping[str, str]:
    """The environment without these variables, settings and the password of the store."""
    own = {_PASSWORD_OF_LIBPQ, *named}
    return {
        name: value for name, value in environ.items() if name not in own and not name.startswith(ENVIRONMENT_PREFIX)
    }


def _sizes(config: Config) -> Mapping[Queue, NewOptimizer]:
    """With what optimizers of each queue begin."""
    optimizer, found = config.optimizer, dict[Queue, NewOptimizer]()
    memory_max = size_bytes(config.autotune.memory_max) or 0
    for queue, slots, memory in (
        (Queue.NORMAL, optimizer.slots, optimizer.memory),
        (Queue.LARGE, _LARGE_SLOTS, config.autotune.large_memory),
    ):
        size = size_of(optimizer.master, memory, spark_conf_of(config), os.cpu_count() or 1)
        found[queue] = NewOptimizer(slots, size.cores, size.memory_bytes, memory_max)
    return found


@contextmanager
def autotuning(
    config: Config,
    environ: Mapping[str, str],
    tasks: TaskStore,
    tables: TableStore,
    backlogs: Backlogs,
    groups: GroupViews,
    decisions: SqlDecisions,
    servers: ServerTuning | None = None,
) -> Iterator[None]:
    """Decide while the block runs; see :func:`build_autotune` for what it raises."""
    autotune = build_autotune(config, environ, tasks, tables, backlogs, groups, decisions, servers=servers)
    stop = threading.Event()
    thread = threading.Thread(target=autotune.run, args=(stop,), name="autotune", daemon=True)
    with running([thread], stop, _END_S):
        yield
