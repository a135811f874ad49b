"""``ETag``, ``If-None-Match`` and ``If-Match``: what has not changed is not sent again, what has is not overwritten."""

import pytest

from icewright.core.codec import from_json
from icewright.model.work.jobs import ANY_TASK, Heartbeat, TaskSpec
from icewright.model.work.tasks import Progress
from tests.builders.served import EVENTS, V1, Served, hello, problem


def test_all_that_is_read_has_a_tag_and_is_sent_once(served: Served) -> None:
    uuid = served.table()
    task_id = served.get("/tasks")["items"][0]["task_id"]
    plan_id = served.get(f"/tables/{uuid}/plans")["items"][0]["plan_id"]
    for path in (
        "/tables",
        f"/tables/{uuid}",
        f"/tables/{uuid}/partitions",
        f"/tables/{uuid}/snapshots",
        "/tasks",
        f"/tasks/{task_id}",
        f"/plans/{plan_id}",
        "/policies",
        "/policies/revisions",
        "/optimizers",
        "/openapi.json",
    ):
        first = served.http.get(V1 + path)
        tag = first.headers["etag"]
        for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            again = served.http.get(V1 + path, headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag), path
            assert "content-type" not in again.headers
            assert again.headers["x-content-type-options"] == "nosniff"
        assert served.http.get(V1 + path, headers={"If-None-Match": '"other"'}).content == first.content


def test_a_change_changes_the_tag(served: Served) -> None:
    uuid = served.table()
    tags = [served.http.get(f"{V1}/tables/{uuid}").headers["etag"]]
    served.append(EVENTS, "more")
    served.control.maintainer.look(EVENTS)
    answer = served.http.get(f"{V1}/tables/{uuid}", headers={"If-None-Match": tags[0]})
    assert answer.status_code == 200
    assert answer.headers["etag"] != tags[0]


def test_what_is_no_document_has_no_tag(served: Served) -> None:
    for path in ("/metrics", "/tables/x", "/feed/stream"):
        assert "etag" not in served.http.get(V1 + path, headers={"If-None-Match": "*"}).headers


def test_t2_a_tag_tells_nothing_to_whoever_may_not_read(served: Served) -> None:
    tag = served.http.get(f"{V1}/tables").headers["etag"]
    problem(served.client().get(f"{V1}/tables", headers={"If-None-Match": tag}), 401, "unauthenticated")


def test_a_task_that_changed_since_it_was_seen_is_not_changed(served: Served) -> None:
    served.table()
    path = f"{V1}/tasks/{served.get('/tasks')['items'][0]['task_id']}"
    seen = served.http.get(path).headers["etag"]
    cancelled = served.http.post(f"{path}/cancel", headers={"If-Match": seen})
    assert cancelled.status_code == 200
    problem(served.http.post(f"{path}/retry", headers={"If-Match": seen}), 412, "conflict")
    assert served.http.post(f"{path}/retry", headers={"If-Match": cancelled.headers["etag"]}).status_code == 200
    problem(served.http.post(f"{path}/cancel", headers={"If-Match": seen}), 412, "conflict")
    assert served.http.get(path).json()["task"]["state"] == "queued"
    assert served.http.post(f"{path}/cancel", headers={"If-Match": "*"}).status_code == 200


@pytest.mark.parametrize("tag", ['"x"', "W/", '"1x"', "", '"-1"', '"' + "9" * 400 + '"', '"\u0661"'])
def test_tags_of_something_else_match_nothing(served: Served, tag: str) -> None:
    served.table()
    path = f"{V1}/tasks/{served.get('/tasks')['items'][0]['task_id']}"
    problem(served.http.post(f"{path}/cancel", headers={b"If-Match": tag.encode()}), 412, "conflict")
    assert served.http.get(path).json()["task"]["state"] == "queued"


def test_a_heartbeat_changes_what_is_read_and_not_what_is_meant(served: Served) -> None:
    served.table()
    served.post("/optimizers", hello())
    spec = from_json(TaskSpec, served.post("/optimizers/optimizer-1/claims", ANY_TASK))
    path = f"{V1}/tasks/{spec.task_id}"
    seen = served.http.get(path).headers["etag"]
    served.post(f"/tasks/{spec.task_id}/heartbeat", Heartbeat(spec.fencing_token, Progress("merging", 0, 1)))
    assert served.http.get(path, headers={"If-None-Match": seen}).status_code == 200
    assert served.http.post(f"{path}/cancel", headers={"If-Match": seen}).json()["cancel_requested"]
