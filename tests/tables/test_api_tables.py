import threading
from dataclasses import replace
from typing import Any

import pytest

from icewright.catalogs.parallel_catalogs import BoundedLoads
from icewright.core.codec import from_json
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.actions.orphans import FinishedPass, SeenFiles, SeenOrphans
from icewright.model.actions.rewrite_data_files import RewriteDataFilesRequest
from icewright.model.actions.rewrite_manifests import RewriteManifestsRequest
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import PartitionField, TableMetadata
from icewright.model.plans.observation import WorkerAccess
from icewright.model.plans.plans import Migration
from icewright.model.work.storage import AccessRecord
from icewright.model.work.why import Stance, Why
from icewright.policy.rules.cases import PolicyTest
from icewright.ports.findings import ExecutorExclusion
from icewright.tables.views import SnapshotPlace
from icewright.web.messages import decode_cursor, encode_cursor
from tests.builders.queries import CountedQueries
from tests.builders.served import EVENTS, HOUR_MS, Served, answer, hello, problem
from tests.narrowing import not_none

V1 = "/api/v1"


def test_a_table_is_listed_with_its_figures_and_the_reason_of_its_plan(served: Served) -> None:
    uuid = served.table(cities=2)
    (item,) = served.get("/tables")["items"]
    assert (item["name"], item["uuid"], item["mode"]) == ("lake.db.events", uuid, "auto")
    assert (item["figures"]["data_files"], item["figures"]["small_files"]) == (24, 24)
    assert item["figures"]["optimization_ratio"] < 0.5
    assert "merge 24 small files" in item["plan"]["reason"]["text"]
    assert item["plan"]["can_apply"]
    assert item["problem"] is None


def test_without_tables_the_list_is_empty_and_says_so_by_its_shape() -> None:
    assert Served().get("/tables") == {"items": [], "next_cursor": None}


def test_the_list_is_paged_and_each_table_comes_once(served: Served) -> None:
    uuids = [served.table(TableName("lake", ("db",), f"t{number}"), files=1) for number in range(5)]
    seen, cursor = [], None
    while True:
        found = served.get("/tables", limit=2, **({} if cursor is None else {"cursor": cursor}))
        seen += [item["uuid"] for item in found["items"]]
        cursor = found["next_cursor"]
        if cursor is None:
            break
    assert seen == uuids  # by name


def test_a_table_is_found_by_its_name_and_catalog(served: Served) -> None:
    name = TableName("lake", ("d`b", "new\nline"), "<img src=x>.é")
    uuid = served.table(name)
    assert [t["uuid"] for t in served.get("/tables", name=str(name))["items"]] == [uuid]
    assert served.get("/tables", name="lake.db.absent")["items"] == []
    assert served.get("/tables", catalog="other")["items"] == []
    problem(served.http.get(f"{V1}/tables", params={"catalog": "nowhere"}), 404, "not-found")
    problem(served.http.get(f"{V1}/tables", params={"name": "a`b"}), 400, "invalid-name")


def test_what_a_table_does_not_need_is_what_the_store_has_of_it_alone(served: Served) -> None:
    uuid, other = served.table(), served.table(TableName("lake", ("db",), "other"))
    held = {"tasks": 0, "files": 0, "size_bytes": 0, "unknown_files": 0, "purged_from": None}
    assert served.get(f"/tables/{uuid}/unneeded") == {"orphans": None, "quarantine": held}
    sightings, table_id = served.control.sightings, TableId("lake", uuid)
    seen = SeenOrphans(SeenFiles(2, 30), SeenFiles(1, 5), SeenFiles(4, 70), 11)
    finished = FinishedPass(sightings.begin(table_id), 99, False, 7, 105, None, seen)
    sightings.finish(table_id, finished)
    found = served.get(f"/tables/{uuid}/unneeded", catalog="lake")["orphans"]
    assert (found["files"], found["size_bytes"], found["finished_at"]) == (7, 105, 99)
    assert (found["seen"]["removable"], found["seen"]["first_seen_at"]) == ({"files": 4, "size_bytes": 70}, 11)
    assert (found["listing_is_complete"], found["moved_since"]) == (False, {"files": 0, "size_bytes": 0})
    assert served.get(f"/tables/{other}/unneeded")["orphans"] is None
    problem(served.http.get(f"{V1}/tables/absent/unneeded"), 404, "not-found")


def test_a_trigger_by_counted_queries_is_shown_as_it_is_planned_with() -> None:
    served, shown = Served(), []
    uuid = served.table()
    for number in (40, 140):
        served.control.planner.queries = CountedQueries(number)
        settings = {one["key"]: one for one in served.get(f"/tables/{uuid}")["table"]["policy"]}
        trigger, scans = settings["icewright.trigger"], settings["icewright.cost-benefit.scans-per-day"]
        shown.append((trigger["value"], trigger["origin"], scans["origin"]))
    assert shown == [
        ("levels", "default", "default"),
        ("cost-benefit", "default for 140 counted queries", "counted queries"),
    ]


def test_why_says_what_keeps_a_table_from_being_worked_on(served: Served) -> None:
    uuid = served.table()
    found = from_json(Why, served.get(f"/tables/{uuid}/why", catalog="lake"))
    (rewrite,) = [each for each in found.kinds if each.kind is ActionKind.REWRITE_DATA_FILES]
    assert (rewrite.stance, [wait.reason.code for wait in rewrite.waits]) == (Stance.QUEUED, ["no-optimizer"])
    assert rewrite.task_id == served.get("/tasks")["items"][0]["task_id"]
    served.lake.available = False
    assert served.get(f"/tables/{uuid}/why")["answer"] == "catalog lake does not answer"
    problem(served.http.get(f"{V1}/tables/absent/why"), 404, "not-found")


def test_while_a_catalog_hangs_what_is_stored_is_answered_and_the_rest_says_so(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = served.table()
    (listed,) = served.get("/tables")["items"]
    answers, load = threading.Event(), served.lake.load

    def hang(name: TableName) -> TableMetadata:
        answers.wait(60)
        return load(name)

    monkeypatch.setattr(served.lake, "load", hang)
    monkeypatch.setattr(served.control.observer, "_loads", BoundedLoads(limit_s=0.01))
    try:
        assert served.get(f"/tables/{uuid}/summary") == listed
        assert served.get(f"/tables/{uuid}/health")["health"]["score"] == listed["health"]["score"]
        for path in ("", "/snapshots", "/policy-test"):
            said = problem(served.http.get(f"{V1}/tables/{uuid}{path}"), 503, "unavailable")
            assert said["detail"].startswith("catalog lake does not answer: no metadata of lake.db.events within ")
        assert served.get(f"/tables/{uuid}/why")["answer"].startswith("catalog lake does not answer")
    finally:
        answers.set()


def test_which_rule_and_which_definition_of_its_group_win(served: Served) -> None:
    uuid = served.table()
    found = from_json(PolicyTest, served.get(f"/tables/{uuid}/policy-test", catalog="lake"))
    (mode,) = [one.win for one in found.settings if one.win.key == "icewright.mode"]
    assert (mode.value, found.from_files, found.revision) == ("auto", False, 0)
    group = found.group.win
    assert (group.name, group.defined_by, found.is_usable) == ("default", "built in", True)
    problem(served.http.get(f"{V1}/tables/absent/policy-test"), 404, "not-found")


def test_one_table_in_full_says_which_rule_won(served: Served) -> None:
    uuid = served.table()
    document = served.get(f"/tables/{uuid}")
    (mode,) = [setting for setting in document["table"]["policy"] if setting["key"] == "icewright.mode"]
    assert mode["value"] == "auto"
    assert "table" in mode["origin"]
    assert document["table"]["partition_spec"] == "city"
    assert document["table"]["figures"] == document["summary"]["figures"]
    assert set(document["attempts"].values()) == {0}


def test_partitions_come_in_pages_with_small_files_and_ratio(served: Served) -> None:
    uuid = served.table(cities=3)
    first = served.get(f"/tables/{uuid}/partitions", limit=2)
    rest = served.get(f"/tables/{uuid}/partitions", limit=2, cursor=first["next_cursor"])
    paths = [entry["path"] for entry in first["items"] + rest["items"]]
    assert paths == ["city=city-0", "city=city-1", "city=city-2"]
    assert rest["next_cursor"] is None
    assert {entry["small_files"] for entry in first["items"]} == {12}
    assert first["items"][0]["optimized_at"] is None


def test_an_observation_is_what_the_last_look_saw_and_no_more(served: Served) -> None:
    uuid = served.table(cities=2)
    before = served.get(f"/tables/{uuid}")["summary"]
    served.append(EVENTS, "later")
    (seen,) = served.get(f"/tables/{uuid}/observations")["items"]
    assert (seen["table"], seen["snapshot_id"], seen["problem"]) == ("lake.db.events", before["snapshot_id"], None)
    assert (seen["observed_at"], seen["figures"]) == (before["observed_at"], before["figures"])
    assert (seen["figures"]["data_files"], seen["manifests"]) == (24, 12)
    assert seen["first_seen"] == [{"at": seen["changed_at"], "sequence_number": 12}]
    assert served.http.get(seen["plan_at"]).json()["plan_id"] == before["plan"]["plan_id"]
    served.clock.advance(HOUR_MS)
    served.control.maintainer.look(EVENTS)
    page = served.get(f"/tables/{uuid}/observations")
    assert page["next_cursor"] is None
    (then,) = page["items"]
    assert then["snapshot_id"] != seen["snapshot_id"]
    assert then["figures"]["data_files"] == 25
    assert [mark["sequence_number"] for mark in then["first_seen"]] == [12, 13]


def test_an_observation_says_what_was_found_of_storage_and_files(served: Served) -> None:
    uuid = served.table()
    (seen,) = served.get(f"/tables/{uuid}/observations")["items"]
    assert (seen["storage_root"], seen["worker_access"], seen["exclusions"]) == (None, "proved", [])
    served.lake.set_properties(EVENTS, {"write.data.path": "s3://bucket/events"})
    served.control.maintainer.look(EVENTS)
    tables, now = served.control.tables, served.clock.now()
    (seen,) = served.get(f"/tables/{uuid}/observations")["items"]
    assert (seen["storage_root"], seen["worker_access"]) == ("s3://bucket/events", "unknown")
    tables.save_access(AccessRecord("lake", "s3://bucket/events", WorkerAccess.REFUSED, "403", "optimizer-1", now))
    tables.note_exclusion(TableId("lake", uuid), "not-stitchable", ExecutorExclusion(now, "its codec"))
    (seen,) = served.get(f"/tables/{uuid}/observations")["items"]
    assert seen["worker_access"] == "refused"
    assert seen["exclusions"] == [{"code": "not-stitchable", "text": "its codec", "figures": {}}]


def test_an_observation_of_a_table_whose_catalog_is_away_is_as_the_last_look_was(served: Served) -> None:
    uuid = served.table()
    served.lake.available = False
    (seen,) = served.get(f"/tables/{uuid}/observations")["items"]
    assert (seen["figures"]["data_files"], seen["problem"]) == (12, None)
    assert seen["manifests"] == 12


def test_snapshots_and_refs_are_read_from_the_table_as_it_is_now(served: Served) -> None:
    uuid = served.table()
    newest = served.append(EVENTS, "later")
    snapshots = served.get(f"/tables/{uuid}/snapshots")["items"]
    assert snapshots[0]["snapshot_id"] == str(newest)
    assert len(snapshots) == 13
    (main,) = served.get(f"/tables/{uuid}/refs")["items"]
    assert (main["name"], main["snapshot_id"]) == ("main", str(newest))


def paged(served: Served, path: str, **params: Any) -> list[Any]:
    """All pages of a list, each but the last of two items."""
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = served.get(path, limit=2, **params, **({} if cursor is None else {"cursor": cursor}))
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found
        assert len(page["items"]) == 2


def test_snapshots_refs_and_plans_come_in_pages_and_each_one_once(served: Served) -> None:
    uuid = served.table(files=5)
    snapshots = served.get(f"/tables/{uuid}/snapshots")["items"]
    for number, snapshot in enumerate(snapshots):
        served.lake.set_ref(EVENTS, f"tag-{number}", int(snapshot["snapshot_id"]))
    for number in range(3):
        served.append(EVENTS, f"more-{number}")
        served.post(f"/tables/{uuid}/look")
    for part, count in (("snapshots", 8), ("refs", 6), ("plans", 4)):
        whole = served.get(f"/tables/{uuid}/{part}", limit=99)
        assert (len(whole["items"]), whole["next_cursor"]) == (count, None)
        assert paged(served, f"/tables/{uuid}/{part}") == whole["items"]
        for cursor in ("", "x", encode_cursor({"a": 1})):
            refused = served.http.get(f"{V1}/tables/{uuid}/{part}", params={"cursor": cursor})
            problem(refused, 400, "invalid-message")


def test_a_page_of_snapshots_goes_on_behind_one_that_has_expired(served: Served) -> None:
    uuid = served.table(files=5)
    whole = served.get(f"/tables/{uuid}/snapshots")["items"]
    first = served.get(f"/tables/{uuid}/snapshots", limit=3)
    place = not_none(decode_cursor(SnapshotPlace, first["next_cursor"]))
    gone = encode_cursor(replace(place, snapshot_id=place.snapshot_id - 1, sequence_number=place.sequence_number))
    rest = served.get(f"/tables/{uuid}/snapshots", cursor=first["next_cursor"])["items"]
    assert rest == whole[3:]
    assert served.get(f"/tables/{uuid}/snapshots", cursor=gone)["items"] == whole[2:]


def test_optimizers_come_in_pages_by_id(served: Served) -> None:
    for name in ("c", "a", "e", "b", "d"):
        served.post("/optimizers", hello(name))
        served.clock.advance(1_000)
    assert [one["hello"]["optimizer_id"] for one in paged(served, "/optimizers")] == ["a", "b", "c", "d", "e"]


def test_a_uuid_that_two_catalogs_have_needs_the_catalog(served: Served) -> None:
    uuid = served.table()
    record = not_none(served.control.tables.record_by_name(EVENTS))
    twin = replace(record, table_id=replace(record.table_id, catalog="other"), name=TableName("other", ("db",), "t"))
    served.control.tables.save_record(replace(twin, revision=0))
    refused = problem(served.http.get(f"{V1}/tables/{uuid}"), 422, "rejected")
    assert "lake, other" in refused["hint"]
    assert served.get(f"/tables/{uuid}", catalog="lake")["table"]["uuid"] == uuid


def test_unknown_and_dropped_tables_are_not_found_and_a_replaced_one_is_a_conflict(served: Served) -> None:
    uuid = served.table()
    problem(served.http.get(f"{V1}/tables/no-such-uuid"), 404, "not-found")
    served.lake.drop(EVENTS)
    problem(served.http.get(f"{V1}/tables/{uuid}"), 404, "not-found")
    served.lake.create(EVENTS)
    problem(served.http.get(f"{V1}/tables/{uuid}/snapshots"), 409, "table-replaced")
    problem(served.http.post(f"{V1}/tables/{uuid}/look"), 409, "table-replaced")
    gone = problem(served.http.get(f"{V1}/tables/{uuid}"), 404, "not-found")
    assert "dropped" in gone["detail"]


def test_a_catalog_that_is_away_leaves_the_list_and_refuses_the_rest_for_now(served: Served) -> None:
    uuid = served.table()
    served.lake.available = False
    (item,) = served.get("/tables")["items"]
    assert (item["mode"], item["figures"]["data_files"], item["problem"]) == ("auto", 12, None)
    response = served.http.get(f"{V1}/tables/{uuid}")
    problem(response, 503, "unavailable")
    assert int(response.headers["retry-after"]) > 0


def test_what_was_worked_out_for_a_metadata_file_is_remembered_while_the_table_stands_still(served: Served) -> None:
    served.table()
    before = served.get("/tables")
    served.lake.available = False
    assert served.get("/tables") == before


def test_figures_follow_a_commit_as_soon_as_the_loop_has_seen_it(served: Served) -> None:
    served.table()
    served.get("/tables")
    served.append(EVENTS, "later")
    served.control.maintainer.look(EVENTS)
    assert served.get("/tables")["items"][0]["figures"]["data_files"] == 13


def test_planning_anew_looks_at_the_table_now_and_keeps_the_plan(served: Served) -> None:
    uuid = served.table(mode="approve")
    looked = served.post(f"/tables/{uuid}/look")
    assert looked["task_id"] is None
    assert looked["upkeep"] == []
    assert looked["plan"]["can_apply"]
    plans = served.get(f"/tables/{uuid}/plans")["items"]
    assert plans[0] == looked["plan"]
    assert len(plans) == 2
    assert len(served.get(f"/tables/{uuid}/plans", limit=1)["items"]) == 1
    assert served.get(f"/plans/{plans[1]['plan_id']}") == plans[1]


def test_a_migration_that_is_asked_for_is_planned_kept_and_applied_but_not_queued_by_itself(served: Served) -> None:
    uuid = served.table(mode="auto", files=2)
    served.lake.set_spec(EVENTS, (PartitionField(1, 1001, "id_bucket", "bucket[2]"),))
    plan = served.post(f"/tables/{uuid}/plans", RewriteDataFilesRequest(Migration.SPEC))
    assert (plan["migration"], plan["can_apply"]) == ("spec", True)
    assert "of 2 files to be migrated 0 remain" in plan["explanation"][0]
    assert served.get("/tasks")["items"] == []
    assert served.get(f"/plans/{plan['plan_id']}") == plan
    assert served.http.post(f"{V1}/plans/{plan['plan_id']}/apply").status_code == 202
    for body in ({"kind": "rewrite_data_files", "migrate": "everything"}, {"kind": "drop_table"}, {}, 7):
        problem(served.http.post(f"{V1}/tables/{uuid}/plans", json=body), 400, "invalid-message")


def test_e11_an_expiry_is_asked_for_by_ages_and_numbers_alone(served: Served) -> None:
    uuid = served.table(mode="auto", files=2)
    plan = served.post(f"/tables/{uuid}/plans", ExpireSnapshotsRequest("P5D", 1))
    assert (plan["can_apply"], plan["reason"]["code"]) == (False, "nothing-expires")
    for older_than, retain_last in (("now", 1), ("2026-11-22T10:00:00Z", 1), ("P5D", 0), (5, 1), ("P5D", "1")):
        body = {"kind": "expire_snapshots", "older_than": older_than, "retain_last": retain_last}
        problem(served.http.post(f"{V1}/tables/{uuid}/plans", json=body), 400, "invalid-message")
    body = {"kind": "expire_snapshots", "older_than_timestamp": 0}
    problem(served.http.post(f"{V1}/tables/{uuid}/plans", json=body), 400, "invalid-message")


def test_rewritten_manifests_are_asked_for_planned_and_queued_when_applied(served: Served) -> None:
    uuid = served.table(mode="approve", files=3)
    served.lake.set_properties(EVENTS, {"commit.manifest.min-count-to-merge": "2"})
    plan = served.post(f"/tables/{uuid}/plans", RewriteManifestsRequest())
    assert (plan["can_apply"], plan["reason"]["code"]) == (True, "rewrite-manifests"), plan["reason"]
    assert plan["prediction"]["kind"] == "rewrite_manifests"
    task = answer(served.http.post(f"{V1}/plans/{plan['plan_id']}/apply"))
    assert (task["state"], task["action"]["kind"]) == ("queued", "rewrite_manifests")
    assert served.get(f"/tasks/{task['task_id']}")["task"]["action"]["manifests_written"] == 1


def test_x4_a_plan_is_applied_once_and_only_while_it_holds(served: Served) -> None:
    uuid = served.table(mode="approve")
    plan_id = served.get("/tables")["items"][0]["plan"]["plan_id"]
    response = served.http.post(f"{V1}/plans/{plan_id}/apply")
    assert response.status_code == 202
    task = answer(response)
    assert (task["state"], task["plan_id"], task["uuid"]) == ("queued", plan_id, uuid)
    served.lake.delete(EVENTS, [f"{EVENTS}-0-0.parquet"])
    problem(served.http.post(f"{V1}/plans/{plan_id}/apply"), 409, "conflict")
    problem(served.http.post(f"{V1}/plans/plan-0/apply"), 404, "not-found")


def test_in_mode_observe_nothing_is_applied(served: Served) -> None:
    served.table(mode="observe")
    plan_id = served.get("/tables")["items"][0]["plan"]["plan_id"]
    refused = problem(served.http.post(f"{V1}/plans/{plan_id}/apply"), 409, "not-allowed")
    assert "icewright.mode" in refused["hint"]
    assert served.get("/tasks")["items"] == []
