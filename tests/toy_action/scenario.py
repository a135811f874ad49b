"""The action from the question to the verified task, by command line and HTTP API of a real server in this process.

Run as a program, with an ``icewright`` that has the action: it is the one that ``PYTHONPATH`` leads to.
"""

from __future__ import annotations

import json
import os
from typing import Any

import httpx2

import icewright as package
from tests.builders.command_line import icewright
from tests.builders.served import EVENTS, TOKEN, V1, Served, at_a_port

KIND = "count_snapshots"


def main() -> None:
    served = Served()
    uuid = served.table(mode="approve")
    assert package.__file__ is not None
    found: dict[str, Any] = {"icewright": package.__file__}
    with at_a_port(served.control) as url:
        os.environ.update(ICEWRIGHT_URL=url, ICEWRIGHT_TOKEN=TOKEN)
        http = httpx2.Client(base_url=url + V1, headers={"Authorization": f"Bearer {TOKEN}"})
        planned = icewright("plan", str(EVENTS), "--action", KIND.replace("_", "-"))
        plan = http.post(f"/tables/{uuid}/plans", params={"catalog": "lake"}, json={"kind": KIND}).json()
        applied = icewright("apply", plan["plan_id"], "--json").json
        queued = icewright("tasks", "list")
        for _ in range(3):
            served.control.loop.round()
            served.clock.advance(60_000)
        task = http.get(f"/tasks/{applied['task_id']}").json()["task"]
        document = http.get("/openapi.json").json()
        found |= {
            "planned": planned.out,
            "plan": plan,
            "queued": queued.out,
            "task": task,
            "shown": icewright("tasks", "show", applied["task_id"]).out,
            "undo": icewright("undo", applied["task_id"]).err,
            "schemas": sorted(name for name in document["components"]["schemas"] if "CountSnapshots" in name),
        }
    print(json.dumps(found))  # noqa: T201 - what the test reads


if __name__ == "__main__":
    main()
