"""All commands that list a page of what the server has, alike: a table or JSON, words for nothing, how to go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from icewright.identity.sql import SqlIdentities
from icewright.model.access.permissions import OWNER
from tests.builders.command_line import icewright, within
from tests.lakes.house import House

NOTHING = {
    ("token", "list"): ("there are no tokens but the server's own", "/tokens?limit=50"),
    ("session", "list"): ("no session is open", "/sessions?limit=50"),
    ("session", "list", "--own"): ("no session is open", "/me/sessions?limit=50"),
    ("audit", "list"): ("nothing was done yet", "/audit?limit=50"),
    ("notifications", "list"): ("no receivers: see [receivers.NAME] of the configuration", "/notifications"),
    ("notifications", "deadletters"): ("every message arrived so far", "/notifications/dead-letters?limit=50"),
    ("quarantine", "list"): ("nothing is in quarantine", "/quarantine?limit=50"),
    ("policy", "history"): ("no policies were applied yet", "/policies/revisions?limit=20"),
    ("tables", "list"): ("no such table is known", "/tables?sort=name&limit=100"),
    ("tasks", "list"): ("no tasks", "/tasks?limit=50"),
    ("feed",): ("no facts yet", "/feed?limit=100"),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with pytest.MonkeyPatch.context() as patch, within(House(tmp_path_factory.mktemp("lists")), patch) as made:
        yield made


@pytest.mark.parametrize("command", NOTHING, ids=" ".join)
@pytest.mark.usefixtures("house")
def test_a_list_of_nothing_says_so_in_words_and_in_json(command: tuple[str, ...]) -> None:
    none, path = NOTHING[command]
    said = icewright(*command, "--show-api")
    assert (said.status, said.out) == (0, none + "\n")
    (call,) = said.err.splitlines()
    assert call.startswith("GET http://127.0.0.1:")
    assert call.endswith(f"/api/v1{path}")
    said = icewright(*command, "--json")
    assert (said.out, said.err) == ('{\n"items": [\n],\n"next_cursor": null\n}\n', "")


def test_a_page_says_how_to_go_on_beside_the_table(house: House) -> None:
    identities = SqlIdentities(house.engine, house.clock)
    for number in range(3):
        identities.open_session(str(number) * 64, OWNER)
    first = icewright("session", "list", "--limit", "2")
    head, *rows = first.out.splitlines()
    assert head.split("  ")[0] == "session"
    assert [row.split()[:3] for row in rows] == [["2" * 16, "owner", "link"], ["1" * 16, "owner", "link"]]
    cursor = first.err.removeprefix("there are more: --cursor ").strip()
    second = icewright("session", "list", "--limit", "2", "--cursor", cursor)
    assert (len(second.out.splitlines()), second.err) == (2, "")
    document = icewright("session", "list", "--limit", "2", "--json").json
    assert ([one["session_id"][0] for one in document["items"]], document["next_cursor"]) == (["2", "1"], cursor)
    assert icewright("session", "end", "--own").status == 0
