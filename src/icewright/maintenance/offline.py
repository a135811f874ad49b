"""Tables planned without a server: straight through the catalogs, with nothing kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from icewright.core.system_clock import SystemClock, SystemIds
from icewright.maintenance.planner import Planner
from icewright.maintenance.registry.services import plan_asked
from icewright.model.iceberg.names import TableName
from icewright.observation.access import assumed
from icewright.observation.observer import Observer
from icewright.ownership.offline import OfflineCatalogs
from icewright.plans.action_types import Planned
from icewright.policy.source import PolicySource
from icewright.store.engine import open_store
from icewright.work.store.table_store import SqlTableStore

if TYPE_CHECKING:
    from icewright.config.model import Config
    from icewright.model.plans.requests import PlanRequest
    from icewright.model.policy.policies import Rule


class Offline(OfflineCatalogs):
    """Plans tables of these catalogs, each by itself."""

    def __init__(self, config: Config, rules: Sequence[Rule] | None = None) -> None:
        """``rules`` are those to plan by, by default the configuration's alone."""
        super().__init__(config)
        self._rules = config.rules if rules is None else rules

    def plan(self, name: TableName, asked: PlanRequest | None = None) -> Planned:
        """Observe and plan one table, from nothing: what was read goes with its store, so that no name meets another.

        No optimizer can be asked whether its workers reach the table's files; the observation says where that was
        assumed.
        Raises what :meth:`icewright.maintenance.planner.Planner.plan` raises.
        """
        clock = SystemClock()
        with self.suggesting(name), _empty_store(clock) as tables:
            observer = Observer({name.catalog: self.catalog(name.catalog)}, tables, clock, registry=self.registry)
            planner = Planner(observer, tables, clock, SystemIds(clock), PolicySource(self._rules))
            observation = assumed(observer.observe(name))
            return planner.plan_observed(observation) if asked is None else plan_asked(planner, observation, asked)


@contextmanager
def _empty_store(clock: SystemClock) -> Iterator[SqlTableStore]:
    """A store for one table, which is removed behind it."""
    with TemporaryDirectory(prefix="icewright-") as folder:
        engine = open_store(f"sqlite:///{folder}/tables.db")
        try:
            yield SqlTableStore(engine, clock)
        finally:
            engine.dispose()
