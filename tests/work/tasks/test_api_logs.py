"""What an attempt logs, from the optimizer to whoever looks at its task."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import structlog

from icewright.core.codec import to_json
from icewright.core.errors import Unavailable
from icewright.model.access.identity import NewToken
from icewright.model.access.permissions import Role
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import Failed, Heartbeat, SentReport, TaskReport, TaskSpec
from icewright.model.work.tasks import Progress
from icewright_spark.optimizer.attempt import result_of
from icewright_spark.optimizer.optimizer import Optimizer
from icewright_spark.optimizer.telemetry import configure_telemetry
from icewright_spark.reports.client import Server
from tests.builders.served import HOST, TOKEN, V1, Served, problem
from tests.builders.specs import log_lines, settings_of
from tests.spark_side.optimizer.test_optimizer_loop import Engine
from tests.work.tasks.test_api_tasks import claimed, queued, report

SECRET = "hunter2-of-this-test"  # noqa: S105 - to be looked for
BEAT = Progress("merging", 0, 1)
LOST = Failed("engine", "no heap", retryable=True)


class Failing(Engine):
    """Spark that cannot read what it needs, and quotes the secret that it asked with."""

    def attempt(self, spec: TaskSpec, **how: Any) -> TaskReport:
        log = structlog.get_logger("icewright.optimizer")
        error = Unavailable(f"GET https://u:{SECRET}@bucket/x failed with s3.secret-access-key={SECRET}")
        log.warning("what ended the attempt", exc_info=error)
        return replace(super().attempt(spec, **how), result=result_of(error, cancelled=False))


@pytest.fixture
def telemetry() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.mark.usefixtures("telemetry")
def test_the_lines_of_a_failed_attempt_are_on_the_server_and_no_secret_is() -> None:
    served = queued()
    server = Server(f"http://{HOST}", TOKEN)
    server.close()
    server._http = served.http
    catalog = CatalogEntry("lake", CatalogKind.REST, "http://h", "", {"s3.secret-access-key": SECRET})
    settings = settings_of(token=TOKEN, catalogs=(catalog,), slots=1, tasks_max=1)
    configure_telemetry(settings, {})
    Optimizer(Failing(), server, settings).run()

    (task,) = served.get("/tasks")["items"]
    found = served.get(f"/tasks/{task['task_id']}/logs")
    assert (found["task_id"], found["attempt"], found["optimizer_id"]) == (task["task_id"], 1, "optimizer-1")
    assert found["left_out"] == 0
    texts = [line["text"] for line in found["lines"]]
    assert texts[0].startswith("task started action=rewrite_data_files")
    assert texts[1] == "what ended the attempt"
    assert any("https://u:***@bucket/x failed with s3.secret-access-key=***" in text for text in texts)
    assert texts[-1].startswith("task ended result=failed code=unavailable detail=GET https://u:***@bucket/x")
    assert {line["level"] for line in found["lines"]} == {"info", "warning"}
    attempts = served.get(f"/tasks/{task['task_id']}")["attempts"]
    assert attempts[0]["result"]["code"] == "unavailable"
    assert SECRET not in json.dumps([found, attempts, served.get(f"/tasks/{task['task_id']}/attempts/1")])


def logged(served: Served, *logs: Sequence[str]) -> str:
    """A task that was tried as often as there are logs, each with what its optimizer said; its id."""
    spec = None
    for texts in logs:
        spec = claimed(served)
        served.post(f"/tasks/{spec.task_id}/heartbeat", Heartbeat(spec.fencing_token, BEAT, log_lines(*texts)))
        said = SentReport.of(report(spec, LOST), log_lines("task ended", first=len(texts) + 1))
        served.post(f"/tasks/{spec.task_id}/report", said)
        served.clock.advance(3_600_000)
    assert spec is not None
    return spec.task_id


def test_each_attempt_has_its_own_and_the_last_one_is_shown_where_none_is_named() -> None:
    served = queued()
    task_id = logged(served, ["first"], ["second", "again"])

    def texts(**query: Any) -> list[str]:
        return [line["text"] for line in served.get(f"/tasks/{task_id}/logs", **query)["lines"]]

    assert texts() == texts(attempt=2) == ["second", "again", "task ended"]
    assert texts(attempt=1) == ["first", "task ended"]
    for attempt in (3, 2**31 - 1):
        problem(served.http.get(f"{V1}/tasks/{task_id}/logs", params={"attempt": attempt}), 404, "not-found")
    for wrong in ("0", "-1", "x", str(2**31), ""):
        refused = served.http.get(f"{V1}/tasks/{task_id}/logs", params={"attempt": wrong})
        problem(refused, 400, "invalid-request")
    problem(served.http.get(f"{V1}/tasks/nothing/logs"), 404, "not-found")


def test_a_task_that_was_not_tried_and_an_optimizer_that_sends_no_log_have_none() -> None:
    served = queued()
    (task,) = served.get("/tasks")["items"]
    nothing = {"task_id": task["task_id"], "attempt": None, "optimizer_id": None, "left_out": 0, "lines": []}
    assert served.get(f"/tasks/{task['task_id']}/logs") == nothing
    spec = claimed(served)
    beat = {"fencing_token": spec.fencing_token, "progress": {"phase": "merging", "groups_done": 0, "groups_total": 1}}
    assert served.http.post(f"{V1}/tasks/{spec.task_id}/heartbeat", json=beat).status_code == 200
    served.post(f"/tasks/{spec.task_id}/report", report(spec, LOST))
    assert served.get(f"/tasks/{spec.task_id}/logs") == {**nothing, "attempt": 1, "optimizer_id": "optimizer-1"}


def test_a_report_is_stored_without_its_log_as_releases_of_before_read_it() -> None:
    served = queued()
    task_id = logged(served, ["first"])
    stored = served.get(f"/tasks/{task_id}/attempts/1")["report"]
    assert "log" not in stored
    assert stored["result"]["detail"] == "no heap"


def test_a_reader_of_one_table_is_told_of_no_other_in_what_an_attempt_logs() -> None:
    served = queued()
    other = TableName("lake", ("secret",), "wages")
    served.table(other)
    task_id = logged(served, [f"not at the place of {other}"])
    given = served.access.give_token(NewToken("reader", (Role.VIEWER,), ("lake.db",)), "owner")
    answer = served.client({"Authorization": f"Bearer {given.token}"}).get(f"{V1}/tasks/{task_id}/logs")
    assert answer.json()["lines"][0]["text"] == "not at the place of another table"
    assert served.get(f"/tasks/{task_id}/logs")["lines"][0]["text"] == f"not at the place of {other}"
    elsewhere = served.access.give_token(NewToken("elsewhere", (Role.VIEWER,), ("lake.secret",)), "owner")
    refused = served.client({"Authorization": f"Bearer {elsewhere.token}"}).get(f"{V1}/tasks/{task_id}/logs")
    problem(refused, 404, "not-found")


def test_a_late_optimizer_writes_into_the_log_of_nobody() -> None:
    served = queued()
    task_id = logged(served, ["first"])
    spec = claimed(served)
    for path, body in (
        ("heartbeat", Heartbeat(spec.fencing_token - 1, BEAT, log_lines("late"))),
        ("report", SentReport.of(replace(report(spec, LOST), fencing_token=spec.fencing_token - 1), log_lines("late"))),
    ):
        refused = served.http.post(f"{V1}/tasks/{task_id}/{path}", json=to_json(body))
        problem(refused, 409, "lease-lost")
    assert served.get(f"/tasks/{task_id}/logs")["lines"] == []
