"""Which storages workers reach: asked of optimizers, kept, forgotten when it turns out to be wrong."""

from __future__ import annotations

import pytest

from icewright.core.errors import InvalidMessage, NotAllowed
from icewright.model.iceberg.names import TableName
from icewright.model.plans.observation import WorkerAccess
from icewright.model.policy.policy import PolicyRule
from icewright.model.work.jobs import Failed
from icewright.model.work.storage import AccessRecord, ProbeReport, ProbeReports, ProbeRequest
from icewright.model.work.tasks import TaskState
from icewright.observation.access import ASKED_FOR_MS, PROBES_MAX, PROVED_FOR_MS, REFUSED_FOR_MS, assumed
from icewright.ports.store import AT_ONCE
from tests.builders.lakehouse import NAME, Lakehouse
from tests.builders.worker import Worker
from tests.narrowing import not_none

ROOT = "s3://bucket/events/data"
ON_S3 = {"write.data.path": ROOT}
OPTIMIZER = "optimizer-a"


@pytest.fixture
def house() -> Lakehouse:
    return Lakehouse()


@pytest.fixture
def worker(house: Lakehouse) -> Worker:
    worker = Worker(house, OPTIMIZER)
    worker.introduce()
    return worker


def looked_at(house: Lakehouse, name: TableName = NAME, root: str = ROOT) -> None:
    house.ready_table(name, {"write.data.path": root})
    house.control.maintainer.look(name)


def asked(house: Lakehouse, optimizer_id: str = OPTIMIZER) -> tuple[ProbeRequest, ...]:
    return house.control.dispatcher.probes(optimizer_id).requests


def answer(house: Lakehouse, access: WorkerAccess, detail: str = "", optimizer_id: str = OPTIMIZER) -> None:
    table_id = house.metadata().table_id
    report = ProbeReport(table_id, NAME, ROOT, access, detail)
    house.control.dispatcher.probed(optimizer_id, ProbeReports((report,)))


def observed(house: Lakehouse) -> tuple[WorkerAccess, str]:
    observation = house.control.observer.observe(NAME)
    return observation.worker_access, observation.access_detail


def test_local_files_need_no_proof(house: Lakehouse, worker: Worker) -> None:
    house.ready_table()
    house.control.maintainer.look(NAME)
    assert observed(house) == (WorkerAccess.PROVED, "")
    assert asked(house) == ()
    assert worker.optimizer_id == OPTIMIZER


@pytest.mark.usefixtures("worker")
def test_what_nobody_knows_is_asked_once_and_then_known(house: Lakehouse) -> None:
    looked_at(house)
    assert observed(house) == (WorkerAccess.UNKNOWN, "")
    assert asked(house) == (ProbeRequest(house.metadata().table_id, NAME, ROOT),)
    assert asked(house) == ()
    answer(house, WorkerAccess.PROVED)
    assert observed(house) == (WorkerAccess.PROVED, "")
    house.control.maintainer.look(NAME)
    assert asked(house) == ()


@pytest.mark.usefixtures("worker")
def test_an_answer_has_the_table_planned_anew(house: Lakehouse) -> None:
    looked_at(house)
    before = house.control.maintainer.look(NAME)
    assert not before.is_new
    asked(house)
    answer(house, WorkerAccess.REFUSED, "not let in")
    house.control.loop.round()
    after = house.control.maintainer.look(NAME)
    assert after.plan.plan_id != before.plan.plan_id
    assert observed(house) == (WorkerAccess.REFUSED, "not let in")


@pytest.mark.usefixtures("worker")
def test_nothing_is_written_where_the_owner_only_lets_us_observe() -> None:
    """A probe is an object: a table in mode observe does not get one, and its plan assumes the best."""
    house = Lakehouse(rules=[PolicyRule("lake", (), {"icewright.mode": "observe"})])
    Worker(house, OPTIMIZER).introduce()
    looked_at(house)
    assert asked(house) == ()
    planned = house.control.planner.plan(NAME)
    assert planned.observation.worker_access is WorkerAccess.PROVED
    assert planned.observation.access_detail.startswith("assumed")


@pytest.mark.usefixtures("worker")
def test_nothing_is_written_to_a_table_that_is_left_alone_anyway(house: Lakehouse) -> None:
    house.ready_table(properties={**ON_S3, "self-optimizing.enabled": "true"})
    house.control.maintainer.look(NAME)
    assert asked(house) == ()


@pytest.mark.usefixtures("worker")
def test_what_is_known_is_asked_again_after_a_while_and_counts_meanwhile(house: Lakehouse) -> None:
    looked_at(house)
    for access, fresh_for_ms in ((WorkerAccess.PROVED, PROVED_FOR_MS), (WorkerAccess.REFUSED, REFUSED_FOR_MS)):
        assert len(asked(house)) == 1
        answer(house, access)
        house.pass_time(fresh_for_ms - 1)
        house.control.maintainer.look(NAME)
        assert asked(house) == ()
        house.pass_time(1)
        house.control.maintainer.look(NAME)
        assert observed(house)[0] is access


@pytest.mark.usefixtures("worker")
def test_an_optimizer_that_does_not_answer_is_not_waited_for_for_ever(house: Lakehouse) -> None:
    other = Worker(house, "optimizer-b")
    other.introduce()
    looked_at(house)
    assert len(asked(house)) == 1
    assert asked(house, "optimizer-b") == ()
    house.pass_time(ASKED_FOR_MS - 1)
    house.control.maintainer.look(NAME)
    assert asked(house, "optimizer-b") == ()
    house.pass_time(1)
    house.control.maintainer.look(NAME)
    assert len(asked(house, "optimizer-b")) == 1
    answer(house, WorkerAccess.PROVED, optimizer_id=OPTIMIZER)
    assert observed(house)[0] is WorkerAccess.UNKNOWN, "it was somebody else's to answer by then"
    answer(house, WorkerAccess.PROVED, optimizer_id="optimizer-b")
    assert observed(house)[0] is WorkerAccess.PROVED


def test_only_who_reaches_the_catalog_is_asked_and_only_who_is_known(house: Lakehouse) -> None:
    looked_at(house)
    with pytest.raises(NotAllowed):
        asked(house)
    with pytest.raises(NotAllowed):
        answer(house, WorkerAccess.PROVED)
    Worker(house, OPTIMIZER).introduce("other")
    assert asked(house) == ()


@pytest.mark.usefixtures("worker")
def test_answers_that_nobody_asked_for_are_passed_over(house: Lakehouse) -> None:
    looked_at(house)
    answer(house, WorkerAccess.PROVED)
    assert observed(house)[0] is WorkerAccess.UNKNOWN
    asked(house)
    with pytest.raises(InvalidMessage):
        answer(house, WorkerAccess.UNKNOWN)


@pytest.mark.usefixtures("worker")
def test_many_tables_are_asked_for_in_turn(house: Lakehouse) -> None:
    names = [TableName("lake", ("db",), f"t{number:02}") for number in range(PROBES_MAX + 1)]
    for name in names:
        looked_at(house, name, f"s3://bucket/{name.name}/data")
    first, second = asked(house), asked(house)
    assert [request.table_name for request in (*first, *second)] == names
    assert len(first) == PROBES_MAX


@pytest.mark.parametrize("code", ["storage-refused", "unsupported-location"])
def test_a_worker_that_is_not_let_in_takes_the_proof_back(house: Lakehouse, worker: Worker, code: str) -> None:
    """The task is not tried again as it is: its table is planned anew, now knowing."""
    house.ready_table()
    house.control.maintainer.look(NAME)
    spec = not_none(worker.claim())
    house.catalog.set_properties(NAME, ON_S3)
    access = AccessRecord("lake", ROOT, WorkerAccess.PROVED, "", OPTIMIZER, house.clock.now())
    house.tables.save_access(access)
    assert observed(house)[0] is WorkerAccess.PROVED

    task = worker.report(spec, Failed(code, "s3://bucket: Access Denied", retryable=True))

    assert task.state is TaskState.SUPERSEDED
    assert observed(house) == (WorkerAccess.REFUSED, "s3://bucket: Access Denied")
    assert NAME in [record.name for record in house.tables.due(AT_ONCE, 9)]


def test_a_worker_in_other_trouble_takes_nothing_back(house: Lakehouse, worker: Worker) -> None:
    house.ready_table()
    house.control.maintainer.look(NAME)
    spec = not_none(worker.claim())
    house.catalog.set_properties(NAME, ON_S3)
    house.tables.save_access(AccessRecord("lake", ROOT, WorkerAccess.PROVED, "", OPTIMIZER, house.clock.now()))
    task = worker.report(spec, Failed("storage-away", "no route", retryable=True))
    assert task.state is TaskState.QUEUED
    assert observed(house)[0] is WorkerAccess.PROVED


def test_only_the_unknown_is_assumed(house: Lakehouse) -> None:
    house.ready_table(properties=ON_S3)
    unknown = house.control.observer.observe(NAME)
    assert assumed(unknown).worker_access is WorkerAccess.PROVED
    house.tables.save_access(AccessRecord("lake", ROOT, WorkerAccess.REFUSED, "no", OPTIMIZER, house.clock.now()))
    refused = house.control.observer.observe(NAME)
    assert assumed(refused) == refused
