"""``GET /cluster`` and ``icewright cluster``: which server looks at which tables."""

from __future__ import annotations

import pytest

from icewright.app.cluster import _print
from icewright.core.servers import CoordinatorLink, LinkState
from icewright.terminal.cli import Terminal
from tests.builders.served import V1, Served, problem
from tests.builders.shared_servers import SharedServers


def test_where_there_is_one_server_alone_it_says_so(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    found = served.get("/cluster")
    assert found == {"now": None, "version": 0, "coordinator": None, "servers": [], "buckets": []}
    metrics = served.http.get(f"{V1}/metrics").text
    assert "icewright_buckets" not in metrics
    assert "icewright_servers_differing" not in metrics
    assert "icewright_coordinator" not in metrics
    _print(Terminal(as_json=False), found)
    assert capsys.readouterr().out == "one server looks at all tables\n"


def test_it_says_who_has_which_buckets_and_what_is_on_its_way(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    served.table()
    shared = SharedServers(served)
    found = served.get("/cluster")
    assert found["version"] == shared.coordinator.version()
    assert found["coordinator"] == {"coordinator": "store", "state": "connected", "since": None}
    shown = [
        (one["server_id"], one["leads"], one["session"], one["buckets"], one["coming"]) for one in found["servers"]
    ]
    assert shown == [
        ("server-1", True, shared.first, 128, 0),
        ("server-2", False, shared.second, 0, 64),
        ("server-3", False, None, 0, 0),
    ]
    assert [one["tables"] for one in found["servers"]] == [1, 0, 0]
    assert [one["cpu"] for one in found["servers"]] == [0.25, None, 1.04]
    assert [one["differs"] for one in found["servers"]] == [[], ["catalogs"], []]
    assert len(found["buckets"]) == 128
    assert {(one["server_id"], one["moves_to"], one["moved_by"]) for one in found["buckets"]} == {
        ("server-1", None, "first"),
        ("server-1", "server-2", "joined"),
    }
    assert sum(one["tables"] for one in found["buckets"]) == 1
    _print(Terminal(as_json=False), found)
    out = capsys.readouterr().out
    assert "http://10.0.0.2:7077" in out
    assert "25%" in out
    assert "104%" in out
    assert "follows, looks at no tables" in out
    assert "server-2: its configuration differs from the leader's in catalogs; icewright discovers no tables in" in out
    assert out.count("differs") == 1
    metrics = served.http.get(f"{V1}/metrics").text
    assert "icewright_buckets 64.0" in metrics
    assert "icewright_servers_differing 1.0" in metrics
    assert 'icewright_coordinator{coordinator="store",state="connected"} 1.0' in metrics
    assert "icewright_coordinator_since" not in metrics
    shared.coordinator.leave(shared.first)
    _print(Terminal(as_json=False), served.get("/cluster"))
    assert "128 buckets without a server" in capsys.readouterr().out


@pytest.mark.parametrize("state", LinkState)
def test_it_says_how_the_server_is_connected_with_zookeeper(
    served: Served, state: LinkState, capsys: pytest.CaptureFixture[str]
) -> None:
    SharedServers(served)
    served.app.state.leading.link = CoordinatorLink("zookeeper", state, 1_795_759_149_000)
    found = served.get("/cluster")
    assert found["coordinator"] == {"coordinator": "zookeeper", "state": state, "since": 1_795_759_149_000}
    _print(Terminal(as_json=False), found)
    said = f"zookeeper {state} since 2026-11-27 05:59:09 UTC"
    away = "" if state is LinkState.CONNECTED else ": no bucket is assigned until it is connected"
    assert f"{said}{away}\n" in capsys.readouterr().out
    metrics = served.http.get(f"{V1}/metrics").text
    assert f'icewright_coordinator{{coordinator="zookeeper",state="{state}"}} 1.0' in metrics
    assert "icewright_coordinator_since_timestamp_seconds 1.795759149e+09" in metrics


def test_strangers_hear_of_no_server(served: Served) -> None:
    problem(served.client().get(f"{V1}/cluster"), 401, "unauthenticated")
