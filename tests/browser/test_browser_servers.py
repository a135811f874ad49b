"""The servers of one store, on the page of the administration."""

from __future__ import annotations

from typing import Any

import httpx2

from icewright.core.servers import CoordinatorLink, LinkState
from tests.browser.conftest import PHONE, WIDE, Opened
from tests.browser.pages import settled, violations
from tests.builders.served import TOKEN, V1, Served, at_a_port
from tests.builders.shared_servers import SharedServers


def cells(page: Any, name: str) -> list[list[str]]:
    rows = page.get_by_role("table", name=name, exact=True).get_by_role("row").all()[1:]
    return [row.get_by_role("cell").all_inner_texts() for row in rows]


def open_servers(chromium: Any, url: str) -> tuple[Opened, Any]:
    opened = Opened(chromium)
    page = opened.log_in(url)
    page.goto(f"{url}/ui/administration?tab=servers")
    page.get_by_role("table", name="Servers", exact=True).wait_for()
    return opened, page


def test_it_says_who_looks_at_which_tables_what_moves_and_why(chromium: Any, served: Served) -> None:
    shared = SharedServers(served)
    with at_a_port(served.control, leading=shared.leading) as url:
        opened, page = open_servers(chromium, url)
        one, two, three = cells(page, "Servers")
        tables = served.control.tables.census().tables
        assert one[:4] == ["server-1 leads\nhttp://10.0.0.1:7077", "128", f"{tables} (100 %)", "0"]
        assert (one[4], two[4], one[7]) == ("25 %", "unknown", "0.1.0")
        differs = (
            "Its configuration differs from the leader's in catalogs. "
            "icewright discovers no tables in a catalog that the leader lacks: configure it there."
        )
        assert two[:4] == [f"server-2 follows\nhttp://10.0.0.2:7077\n{differs}", "0", "0 (0 %)", "64"]
        assert (three[1], three[6]) == ("0", "not yet")
        page.get_by_text("Coordinator: store, connected.", exact=True).wait_for()
        ((source, target, buckets, _),) = cells(page, "Buckets on their way")
        assert (source, target, buckets) == ("server-1", "server-2", "64")
        moves = {row[1]: row[0] for row in cells(page, "Last moves of buckets")}
        assert moves == {"first assignment": "server-1", "a server started": "server-1"}
        page.get_by_role("button", name="Show the buckets").click()
        page.get_by_role("table", name="All buckets").get_by_role("row").nth(3).wait_for()
        for size, scheme in ((WIDE, "light"), (WIDE, "dark"), (PHONE, "light"), (PHONE, "dark")):
            page.set_viewport_size({"width": size[0], "height": size[1]})
            page.emulate_media(color_scheme=scheme)
            settled(page)
            assert violations(page) == [], (size, scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0], size
        shared.leading.link = CoordinatorLink("zookeeper", LinkState.LOST, 1_795_759_149_000)
        shared.coordinator.leave(shared.first)
        page.reload()
        page.get_by_text("128 buckets without a server: the leader assigns them within seconds.").wait_for()
        page.get_by_text("Coordinator: zookeeper, lost since").wait_for()
        page.get_by_text(": no bucket is assigned until it is connected.").wait_for()
        assert opened.troubles == []


def test_one_server_alone_says_so_in_one_sentence(chromium: Any, shown_at: str) -> None:
    opened, page = open_servers(chromium, shown_at)
    page.get_by_text("One server looks at all tables: on SQLite there is no other.", exact=True).wait_for()
    headings = page.get_by_role("table", name="Servers", exact=True).get_by_role("columnheader").all_inner_texts()
    assert headings == ["Server", "Last heartbeat", "Release"]
    assert page.get_by_role("button", name="Show the buckets").count() == 0
    assert opened.troubles == []


def test_who_may_read_a_part_alone_is_not_offered_it(chromium: Any, shown_at: str) -> None:
    opened = Opened(chromium)
    page = opened.log_in(shown_at)
    mine = httpx2.get(f"{shown_at}{V1}/me", headers={"Authorization": f"Bearer {TOKEN}"}).json()
    mine["grants"] = [{"role": "viewer", "scope": {"catalog": "lake", "namespace": []}}]
    page.route(f"**{V1}/me", lambda route: route.fulfill(json=mine))
    page.goto(f"{shown_at}/ui/administration?tab=servers")
    page.get_by_role("link", name="Optimizers", exact=True).wait_for()
    assert page.get_by_role("link", name="Servers", exact=True).count() == 0
    page.get_by_role("heading", name="Parts", exact=True).wait_for()
    assert opened.troubles == []
