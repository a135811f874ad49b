"""What Prometheus and orchestrators are told: right, named by convention, and no more of it with more tables."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import insert

from icewright.core.codec import from_json
from icewright.core.errors import StoreUnavailable
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Reason
from icewright.model.work import lifecycle
from icewright.model.work.retention import RowKind, Rows
from icewright.model.work.tasks import AttemptState, TaskState
from icewright.ports.store import Change
from icewright.retention.history import HOLD_MS, LATE_MS, HistoryProgress, HistoryStatus
from icewright.server.loop import ROUND_MS_MAX
from icewright.store.schema import tables, tasks
from icewright.store.table_rows import record_row
from icewright.store.transactions import writing
from icewright.work.optimizers.backlog import SEEN_MS
from icewright.work.store.task_rows import task_row
from tests.builders.served import V1, Served, hello, problem
from tests.contracts.samples import HOSTILE_PARTS, OUTCOME, new_task, record

NAME = re.compile(r"icewright_[a-z][a-z0-9_]*")
ODD_UNITS = re.compile(r"_(ms|mills?|millis|minutes|hours|days|kb|mb|gb|percent)(_|\Z)")
REWRITE = {"kind": "rewrite_data_files"}


def families(served: Served) -> dict[str, Metric]:
    response = served.http.get(f"{V1}/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    return {family.name: family for family in text_string_to_metric_families(response.text)}


def value(found: dict[str, Metric], sample: str, **labels: str) -> float:
    (one,) = [
        point.value
        for family in found.values()
        for point in family.samples
        if point.name == sample and all(point.labels.get(key) == said for key, said in labels.items())
    ]
    return one


def series(found: Iterable[Metric]) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    return {(point.name, tuple(sorted(point.labels.items()))) for family in found for point in family.samples}


def test_strangers_get_no_metrics_and_no_parts(served: Served) -> None:
    problem(served.client().get(f"{V1}/metrics"), 401, "unauthenticated")
    problem(served.client().get(f"{V1}/readyz"), 401, "unauthenticated")


def test_names_and_units_are_those_of_prometheus(served: Served) -> None:
    served.table()
    for name, family in families(served).items():
        assert NAME.fullmatch(name), name
        assert not ODD_UNITS.search(name), name
        assert family.documentation, name
        if family.type == "counter":
            assert all(point.name.endswith("_total") for point in family.samples if "created" not in point.name)
        if family.type == "histogram":
            assert name.endswith("_seconds"), name


def test_a_task_is_followed_from_its_queue_to_its_verification(served: Served) -> None:
    served.table()
    found = families(served)
    assert value(found, "icewright_tasks", state="queued", **REWRITE) == 1
    served.clock.advance(120_000)
    assert value(families(served), "icewright_table_task_age_seconds", table="lake.db.events") == 120
    assert value(families(served), "icewright_task_age_max_seconds") == 120
    served.post("/optimizers", hello())
    assert value(families(served), "icewright_optimizers", resource_group="default") == 1
    served.get("/backlog", resource_group="default", catalog="lake", submitter_id="s-1", host="h")
    assert value(families(served), "icewright_submitters", resource_group="default") == 1
    store = served.control.tasks
    task = store.claim("optimizer-1", resource_group="default", catalogs=frozenset({"lake"}), lease_ms=9)
    assert task is not None
    served.clock.advance(7_000)
    task = store.change(Change(task.task_id, task.version, TaskState.IN_DOUBT, OUTCOME, AttemptState.LOST))
    found = families(served)
    assert value(found, "icewright_attempts_total", end="lost", **REWRITE) == 1
    assert value(found, "icewright_attempt_duration_seconds_sum", **REWRITE) == 7
    assert value(found, "icewright_attempt_duration_seconds_bucket", le="5.0", **REWRITE) == 0
    assert value(found, "icewright_attempt_duration_seconds_bucket", le="15.0", **REWRITE) == 1
    assert value(found, "icewright_attempt_duration_seconds_bucket", le="+Inf", **REWRITE) == 1
    assert value(found, "icewright_task_wait_seconds_sum", **REWRITE) == 120
    assert value(found, "icewright_task_changes_total", state="in_doubt", **REWRITE) == 1


def test_what_the_store_keeps_of_the_past_is_told_as_it_was_counted_last(served: Served) -> None:
    assert "icewright_pruning_age_seconds" not in families(served)
    served.prunings.note({RowKind.AUDIT: 4}, {RowKind.AUDIT: Rows(7, served.clock.now() - 5_000)})
    served.clock.advance(60_000)
    served.prunings.note({RowKind.TASKS: 2}, {})
    found = families(served)
    assert value(found, "icewright_pruned_rows_total", kind="audit") == 4
    assert value(found, "icewright_kept_rows", kind="audit") == 7
    assert value(found, "icewright_kept_oldest_age_seconds", kind="audit") == 65
    assert value(found, "icewright_pruned_rows_total", kind="tasks") == 2
    assert value(found, "icewright_pruned_rows_total", kind="feed") == 0
    assert value(found, "icewright_pruning_age_seconds") == 60


def test_two_servers_over_one_store_tell_the_same_of_it(served: Served) -> None:
    served.table()
    other = Served(clock=served.clock, engine=served.engine, login_code="of-another-server")
    mine, others = ({f.name: f.samples for f in families(one).values()} for one in (served, other))
    of_store = [family.name for family in families(served).values() if family.documentation.startswith("Of the store")]
    assert len(of_store) > 10
    assert {name: mine[name] for name in of_store} == {name: others[name] for name in of_store}


def test_looks_are_timed_and_late_commits_told_by_their_lag(served: Served) -> None:
    served.table()
    before = families(served)
    served.append(TableName("lake", ("db",), "events"), "late")
    served.clock.advance(40_000)
    served.control.maintainer.look(TableName("lake", ("db",), "events"))
    found = families(served)

    def more(sample: str, **labels: str) -> float:
        return value(found, sample, **labels) - value(before, sample, **labels)

    assert more("icewright_step_duration_seconds_count", step="look", outcome="ok") == 1
    assert more("icewright_look_lag_seconds_sum") == 40
    assert more("icewright_look_lag_seconds_count") == 1
    served.control.maintainer.look(TableName("lake", ("db",), "events"))
    again = families(served)
    assert value(again, "icewright_look_lag_seconds_count") == value(found, "icewright_look_lag_seconds_count")


def test_requests_are_told_by_their_routes_and_never_by_what_strangers_wrote(served: Served) -> None:
    served.http.get(f"{V1}/tasks/task-of-nobody")
    served.http.get("/no/such/path/secret-in-a-path")
    served.client().get(f"{V1}/status")
    served.http.request("BREW", f"{V1}/status")
    text = served.http.get(f"{V1}/metrics").text
    assert "task-of-nobody" not in text
    assert "secret-in-a-path" not in text
    assert "BREW" not in text
    count = "icewright_http_request_duration_seconds_count"
    assert value(families(served), count, route="/tasks/{task_id}", status="404", method="GET") >= 1
    assert value(families(served), count, route="other", status="404", method="GET") >= 1
    assert value(families(served), count, route="other", status="401", method="GET") >= 1


def test_ten_thousand_tables_make_no_more_series_than_ten() -> None:
    """Of everything: states, problems, tasks, events. Names of tables are in at most as many as are asked for."""

    def told(count: int) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
        many = Served()
        problem_of = Reason("parked", "five tasks came to nothing")
        known = [record_row(record(n, problem=problem_of)) for n in range(count)]
        new = [new_task(f"task-{n:05d}", table=n) for n in range(count)]
        with writing(many.engine) as connection:
            connection.execute(insert(tables), known)
            connection.execute(insert(tasks), [task_row(lifecycle.create(one, many.clock.now()).task) for one in new])
        names = series(families(many).values())
        process = {"icewright_step_duration_seconds", "icewright_http_request_duration_seconds"}
        return {one for one in names if not one[0].startswith(tuple(process))}

    few, many = told(25), told(10_000)
    assert len(many) == len(few)
    assert len(many) < 1_500
    assert len({dict(labels)["table"] for _, labels in many if "table" in dict(labels)}) == 20


def test_hostile_names_are_told_in_a_text_that_can_be_read(served: Served) -> None:
    for number, part in enumerate(HOSTILE_PARTS):
        served.control.tasks.enqueue(new_task(f"task-{number}", table=number, name=TableName("lake", (part,), part)))
    found = families(served)["icewright_table_task_age_seconds"]
    assert len(found.samples) == len(HOSTILE_PARTS)


def test_without_its_store_a_server_still_tells_what_it_sees(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: int) -> None:
        raise StoreUnavailable("the store does not answer")

    monkeypatch.setattr(served.control.tasks, "census", away)
    found = families(served)
    assert value(found, "icewright_store_up") == 0
    assert "icewright_tasks" not in found
    assert value(found, "icewright_catalog_paused", catalog="lake") == 0


def test_a_history_that_does_not_grow_is_told_and_is_no_reason_to_be_unready() -> None:
    history = HistoryProgress()
    served = Served(history=history)

    def part() -> tuple[bool, str]:
        (found,) = [one for one in served.get("/readyz")["parts"] if one["name"] == "history"]
        return found["is_well"], found["detail"]

    def said() -> HistoryStatus:
        return from_json(HistoryStatus, served.get("/status")["history"])

    assert "icewright_history_lag_seconds" not in families(served)
    assert said() == HistoryStatus(None, None, is_late=False, is_waited_for=True, hold_ms=HOLD_MS)
    assert part() == (True, "it was not asked yet")
    history.begun(served.clock.now())
    served.clock.advance(LATE_MS)
    assert part() == (True, "60 minutes behind")
    assert (said().lag_ms, said().is_late) == (LATE_MS, False)
    served.clock.advance(60_000)
    assert part() == (False, "61 minutes behind")
    assert (said().is_late, said().is_waited_for) == (True, True)
    assert value(families(served), "icewright_history_lag_seconds") == 61 * 60
    history.copied(served.clock.now() - 1_000)
    assert value(families(served), "icewright_history_lag_seconds") == 1
    assert part() == (True, "0 minutes behind")
    assert said() == HistoryStatus(
        served.clock.now() - 1_000, 1_000, is_late=False, is_waited_for=False, hold_ms=HOLD_MS
    )


def test_the_status_names_submitters_that_asked_lately(served: Served) -> None:
    served.get("/backlog", resource_group="default", catalog="lake", submitter_id="submitter-1", host="edge-1")
    (one,) = served.get("/status")["submitters"]
    assert (one["submitter"]["submitting"]["submitter_id"], one["asked_at"]) == ("submitter-1", served.clock.now())
    served.clock.advance(SEEN_MS)
    assert served.get("/status")["submitters"] == []


def test_without_a_history_nothing_is_said_of_it(served: Served) -> None:
    assert served.get("/status")["history"] is None


def test_a_ready_server_says_so_part_by_part(served: Served) -> None:
    told = served.get("/readyz")
    assert told["status"] == "ready"
    assert [(part["name"], part["is_well"]) for part in told["parts"]] == [
        ("store", True),
        ("queue", True),
        ("catalog lake", True),
        ("catalog other", True),
        ("loop", True),
        ("threads", True),
        ("optimizers", False),
    ]
    served.post("/optimizers", hello())
    assert served.get("/readyz")["parts"][-1]["is_well"]


def test_a_catalog_that_is_away_is_told_and_is_no_reason_to_be_unready(served: Served) -> None:
    served.lake.available = False
    served.control.loop.round()
    served.control.loop._round_ended_at = served.clock.now()
    told = served.get("/readyz")
    details = {part["name"]: part["detail"] for part in told["parts"]}
    assert re.fullmatch(r"it did not answer and is left alone until \d{4}-\d\d-\d\d .* UTC", details["catalog lake"])
    assert re.fullmatch(r"its last round ended at \d{4}-\d\d-\d\d .* UTC", details["loop"])
    assert told["status"] == "ready"
    assert [part["name"] for part in told["parts"] if not part["is_well"]] == ["catalog lake", "optimizers"]
    assert value(families(served), "icewright_catalog_paused", catalog="lake") == 1
    assert value(families(served), "icewright_catalog_paused", catalog="other") == 0


def test_a_store_that_is_away_makes_it_unready_and_is_named(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise StoreUnavailable("the store does not answer: of this test")

    monkeypatch.setattr(served.control.tables, "census", away)
    document = problem(served.http.get(f"{V1}/readyz"), 503, "unavailable")
    assert "store: the store does not answer: of this test" in document["detail"]


def test_who_starts_processes_again_does_not_do_so_for_a_store_that_is_away(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> int:
        raise StoreUnavailable("the store does not answer")

    monkeypatch.setattr(served.control.tasks, "now", away)
    assert served.client().get(f"{V1}/healthz").status_code == 503
    assert served.client().get(f"{V1}/healthz?live").json() == {"status": "ok"}
    monkeypatch.setattr(served.control.loop, "_round_ended_at", served.clock.now() - ROUND_MS_MAX - 1)
    assert served.client().get(f"{V1}/healthz?live").status_code == 503
