"""``icewright autotune`` and its routes: decisions as people see them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from icewright.core.reasons import Reason
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.work.autotune.model import DecisionState, Move
from tests.builders.command_line import icewright, within
from tests.builders.served import V1, Served, problem
from tests.contracts.test_decisions_contract import decision
from tests.lakes.house import House


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    with within(House(tmp_path), monkeypatch) as made:
        yield made


def test_decisions_are_listed_shown_held_and_released(house: House) -> None:
    store = house.control.autotune
    assert icewright("autotune", "list").out.strip() == "no decisions"
    more = replace(decision(2 << 30, house.clock, Move.MORE_MEMORY), decision_id="tune-2")
    assert store.make(decision(1, house.clock))
    assert store.make(replace(more, new=replace(more.new, after=4 << 30)))
    store.end("tune-2", DecisionState.DONE, Reason("carried-out", "optimizers start with 4.0 GiB"))
    listed = icewright("autotune", "list").out
    assert "start an optimizer: 1 to 2" in listed
    assert "more memory: 2.0 GiB to 4.0 GiB" in listed
    assert "5 tasks have waited for 3 min" in listed
    shown = icewright("autotune", "show", "tune-2").out
    assert "optimizers start with 4.0 GiB" in shown
    assert "icewright optimizer" in shown  # by hand
    assert "backlog" in shown
    held = icewright("autotune", "hold", "tune-1", "--why", "not today")
    assert "(start an optimizer: 1 to 2, group etl) is held" in held.out
    assert "held" in icewright("autotune", "list", "--standing").out
    assert "tune-2" not in icewright("autotune", "list", "--standing").out
    assert "by owner: not today" in icewright("autotune", "show", "tune-1").out
    again = icewright("autotune", "hold", "tune-1")
    assert again.status != 0
    assert "held already" in again.err
    assert json.loads(icewright("autotune", "release", "tune-1", "--json").out)["hold"] is None
    assert json.loads(icewright("autotune", "list", "--json").out)["items"][0]["decision_id"] in ("tune-1", "tune-2")


def test_decisions_about_servers_are_of_no_group_and_are_held_as_all_others(house: House) -> None:
    store, add = house.control.autotune, decision(2, house.clock, Move.ADD_SERVER)
    assert store.make(replace(add, new=replace(add.new, group="", queue=None)))
    assert store.make(decision(1, house.clock))  # of a queue, which is another subject
    assert "add a server: 2 to 3" in icewright("autotune", "list").out
    shown = icewright("autotune", "show", "tune-2").out
    assert "add a server: 2 to 3" in shown
    assert "queue" not in shown
    assert "(add a server: 2 to 3) is held" in icewright("autotune", "hold", "tune-2").out
    another = replace(add, decision_id="tune-3", new=replace(add.new, group="", queue=None))
    assert not store.make(another)
    told = json.loads(icewright("autotune", "show", "tune-2", "--json").out)
    assert (told["group"], told["queue"], told["about"]) == (None, None, "servers")
    entry, *_ = house.control.tasks.feed.after(0, 100, FeedFilter(frozenset({FactKind.TUNED}))).told
    assert entry.fact.reason.figures["decision"] == "tune-2"


def test_routes_say_what_is_wrong(served: Served) -> None:
    problem(served.http.get(f"{V1}/autotune/tune-9"), 404, "not-found")
    problem(served.http.post(f"{V1}/autotune/tune-9/hold", json={"why": ""}), 404, "not-found")
    assert served.control.autotune.make(decision(1, served.clock))
    problem(served.http.post(f"{V1}/autotune/tune-1/release", json={"why": ""}), 409, "conflict")
    problem(served.http.post(f"{V1}/autotune/tune-1/hold", json={"why": "x" * 1_001}), 400, "invalid-message")
    assert served.get("/autotune", standing=True)["items"][0]["hold"] is None


def test_metrics_count_decisions_and_holds(served: Served) -> None:
    assert served.control.autotune.make(decision(1, served.clock))
    served.control.autotune.hold("tune-1", "")
    text = served.http.get(f"{V1}/metrics").text
    assert 'icewright_autotune_decisions{move="start-optimizer",state="open"} 1.0' in text
    assert 'icewright_autotune_decisions{move="less-memory",state="done"} 0.0' in text
    assert "icewright_autotune_held 1.0" in text


def test_the_feed_names_the_command_that_tells_more(served: Served) -> None:
    assert served.control.autotune.make(decision(1, served.clock))
    (fact,) = [one for one in served.get("/feed")["items"] if one["kind"] == "tuned"]
    assert fact["do"] == "icewright autotune show tune-1"
    assert (fact["catalog"], fact["reason"]["code"]) == ("", "backlog")
