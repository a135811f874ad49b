"""Who rewrites data files: icewright, with everything that it does in production, and Iceberg's own procedure."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from benchmarks.lake import BenchTable, Mismatch
from benchmarks.measure import Meter
from icewright import __version__
from icewright.actions.undo.undo_records_sql import SqlUndoRecordStore
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.codec import dumps, loads
from icewright.core.system_clock import SystemClock, SystemIds
from icewright.core.times import Instant
from icewright.maintenance.dispatch.dispatcher import DispatchLimits
from icewright.model.actions.actions import OPTIMIZER_ACTIONS
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import PROTOCOL_VERSION, Heartbeat, OptimizerHello, TaskReport, TaskSpec
from icewright.model.work.tasks import TaskState
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.service import MessageDelivery
from icewright.server.control import ControlPlane, build_control_plane
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from icewright_spark.actions.done import Done
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.rewrite_data_files import rewrite_data_files
from icewright_spark.iceberg.java_api import SparkTable
from tests.doubles.removals import removal_ports
from tests.lakes.stores import new_store

PEER = "peer"
ICEWRIGHT = "icewright"

PLANNING, MERGE, PROOF = "planning", "job: merge", "job: proof"
COMMIT, VERIFICATION = "job: the rest", "verification"
PHASES = (PLANNING, MERGE, PROOF, COMMIT, VERIFICATION)
"""What our CPU goes into, all of it. ``PROOF`` is what workers count as that (``GroupFigures.proof_cpu_ms``)."""
_OPTIMIZER_ID = "benchmark"
_LEASE_MS = 3_600_000
"""Nobody beats during a merge here, as the optimizer's thread does."""
_AHEAD_MS = 3 * 3_600_000


class IcewrightRewriter:
    """One pass of the loop over a table that it has never seen: observe, plan, queue, claim, rewrite, verify.

    Beside production it lacks the HTTP between server and optimizer, whose messages are still made and parsed, and
    the database of the stores.
    """

    def __init__(self, spark: SparkSession, entry: CatalogEntry, name: TableName) -> None:
        self._spark, self._entry, self._name = spark, entry, name

    def rewrite(self, meter: Meter) -> None:
        """The pass. Raises :class:`Mismatch` when it does not end as it should."""
        plane = self._control_plane()
        self._carry_out(plane, self._plan(plane), meter)

    def optimize(self, meter: Meter, done: Callable[[TaskSpec], None]) -> None:
        """Pass after pass, until the loop finds nothing more to do; ``done`` is told of each task.

        Raises :class:`Mismatch` when one does not end as it should, or there is none.
        """
        plane = self._control_plane()
        spec: TaskSpec | None = self._plan(plane)
        while spec is not None:
            self._carry_out(plane, spec, meter)
            done(spec)
            spec = self._claim(plane)
        meter.mark(PLANNING)

    def _carry_out(self, plane: ControlPlane, spec: TaskSpec, meter: Meter) -> None:
        meter.mark(PLANNING)
        phase = Phase(len(spec.rewrite.groups))
        done = rewrite_data_files(
            self._spark,
            SparkTable(self._spark, spec.table_name),
            spec,
            phase,
            lambda: self._beat(plane, spec, phase),
        )
        plane.dispatcher.report(loads(TaskReport, dumps(_report(spec, done))))
        proof_s = sum(group.proof_cpu_ms for group in done.figures) / 1000
        groups_s = sum(group.cpu_ms for group in done.figures) / 1000
        meter.mark(COMMIT)
        meter.move(COMMIT, MERGE, groups_s - proof_s)
        meter.move(COMMIT, PROOF, proof_s)
        verified = plane.verifier.verify(plane.tasks.get(spec.task_id))
        plane.maintainer.look(verified.table_name, plan_anew=True)
        meter.mark(VERIFICATION)
        if verified.state is not TaskState.SUCCEEDED:
            raise Mismatch(f"the rewrite was not verified: {verified.outcome}")

    def _control_plane(self) -> ControlPlane:
        clock = _LaterClock()
        catalogs = {self._entry.name: PyIcebergCatalog(self._entry)}
        store = new_store()
        plane = build_control_plane(
            catalogs,
            SqlTableStore(store),
            SqlTaskStore(store),
            clock,
            SystemIds(clock),
            removal_ports(store, clock),
            SqlUndoRecordStore(store),
            MessageDelivery(SqlMessages(store)),
            limits=DispatchLimits(lease_ms=_LEASE_MS),
            decisions=SqlDecisions(store),
        )
        plane.dispatcher.hello(
            OptimizerHello(
                protocol_version=PROTOCOL_VERSION,
                optimizer_id=_OPTIMIZER_ID,
                version=__version__,
                resource_group="default",
                slots=1,
                catalogs=(self._entry.name,),
                spark_version=self._spark.version,
                iceberg_version="",
                actions=OPTIMIZER_ACTIONS,
            )
        )
        return plane

    def _plan(self, plane: ControlPlane) -> TaskSpec:
        looked = plane.maintainer.look(self._name)
        spec = self._claim(plane)
        if spec is None:
            raise Mismatch(f"nothing was planned: {looked.plan.reason.text}")
        return spec

    def _claim(self, plane: ControlPlane) -> TaskSpec | None:
        spec = plane.dispatcher.claim(_OPTIMIZER_ID)
        return None if spec is None else loads(TaskSpec, dumps(spec))

    def _beat(self, plane: ControlPlane, spec: TaskSpec, phase: Phase) -> None:
        plane.dispatcher.heartbeat(spec.task_id, Heartbeat(spec.fencing_token, phase.progress()))


class ProcedureRewriter:
    """Iceberg's ``rewrite_data_files``: its bin-packing strategy, every file, as many file groups at once as cores."""

    def __init__(self, spark: SparkSession, table: BenchTable, target_file_size_bytes: int) -> None:
        self._spark, self._table = spark, table
        options = {
            "target-file-size-bytes": target_file_size_bytes,
            "rewrite-all": "true",
            "max-concurrent-file-group-rewrites": spark.sparkContext.defaultParallelism,
        }
        self._options = ", ".join(f"'{key}', '{value}'" for key, value in options.items())

    def rewrite(self, _meter: Meter) -> None:
        """The whole CALL."""
        name = self._table.name
        self._spark.sql(
            f"CALL {name.catalog}.system.rewrite_data_files("
            f"table => '{'.'.join(name.path)}', strategy => 'binpack', options => map({self._options}))"
        ).collect()


class _LaterClock:
    """Hours ahead of the real one: partitions that rows were just removed from are left alone, and need not be here."""

    def __init__(self) -> None:
        self._clock = SystemClock()

    def now(self) -> Instant:
        return self._clock.now() + _AHEAD_MS


def _report(spec: TaskSpec, done: Done) -> TaskReport:
    return TaskReport(
        protocol_version=PROTOCOL_VERSION,
        task_id=spec.task_id,
        attempt=spec.attempt,
        fencing_token=spec.fencing_token,
        result=done.result,
        receipts=done.receipts,
        groups=done.figures,
        wall_ms=0,
        cpu_ms=0,
    )
