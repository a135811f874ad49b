"""The demo as a person meets it: its first minutes in a browser, all that it promises, Ctrl-C and ``--clean``.

That ``--once`` ends it there is shown in ``tests/demo``, and played by ``make campaign``.
What its queries recommend is accepted and carried out on Spark in ``tests/spark/test_recommendations_on_spark.py``.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table.snapshots import Operation

from icewright.core.fault_points import Fault
from icewright.demo.flights_writer import DELAYS, DELAYS_DAYS, FLIGHTS
from icewright.demo.proof import TABLES
from tests.browser.conftest import Opened, system_chromium
from tests.browser.pages import settled

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(600)]

WRITER, WRITTEN = "WRITER", 8
"""What a writer calls its planes, and how many commits of a row each it makes while a rewrite is under way."""
DEMO = [sys.executable, "-m", "icewright", "demo"]


def test_its_first_minutes_play_in_the_browser_and_ctrl_c_leaves_nothing_running(tmp_path: Path) -> None:
    folder, log, orders = tmp_path / "demo", tmp_path / "log", tmp_path / "orders"
    orders.mkdir()
    path = os.pathsep.join([str(Path(__file__).with_name("armed")), *sys.path])
    arguments = ["--no-browser", "--port", "0", "--days", "60", "--folder", str(folder)]
    with log.open("wb") as said:
        environment = {**os.environ, "PYTHONPATH": path, "KILLS_FOLDER": str(orders)}
        environment.pop("SPARK_DIST_CLASSPATH", None)  # Spark fetches its packages, as a person's does
        demo = subprocess.Popen([*DEMO, *arguments], stdout=said, env=environment)  # noqa: S603 - our own command
    try:
        link = said_by(demo, log, re.compile(r"log in once with (\S+)"))
        with system_chromium() as browser:
            opened = Opened(browser)
            opened.page.set_default_timeout(60_000)
            opened.page.goto(link)
            opened.page.wait_for_selector("#connection[data-state=live]")
            see_the_fleet_fill(opened.page)
            look_at_a_table(opened.page)
            decide_and_take_it_back(opened.page, folder)
            said_by(demo, log, re.compile("(everything runs until Ctrl-C)"))  # also of who decides before it is through
            see_what_queries_open(opened.page, log)
            check_who_may_be_touched(folder)
            meet_a_writer(opened.page, folder, orders)
            take_it_to_your_own(opened.page, folder, tmp_path / "report.html")
            assert opened.troubles == []
        assert (log.read_text().count(" proved "), "BROKEN" in log.read_text()) == (10, False), log.read_text()
        assert "there are fewer files: 60 files were committed, " in log.read_text()
        started = psutil.Process(demo.pid).children(recursive=True)
        assert len(started) >= 3
    finally:
        demo.send_signal(signal.SIGINT)
        demo.wait(120)

    assert demo.returncode == 0, log.read_text()
    assert "nothing is left running" in log.read_text()
    _, alive = psutil.wait_procs(started, timeout=20)
    assert alive == []

    subprocess.run([*DEMO, "--clean", "--folder", str(folder)], check=True, timeout=60)  # noqa: S603 - our own command
    assert not folder.exists()


def said_by(demo: subprocess.Popen[bytes], log: Path, wanted: re.Pattern[str]) -> str:
    """What the demo says, as soon as it does."""
    while (found := wanted.search(log.read_text())) is None:
        assert demo.poll() is None, log.read_text()
        time.sleep(0.1)
    return found[1]


def see_the_fleet_fill(page: Any) -> None:
    """Tables come by themselves while their writers are at work, the last ones on a Spark that is just starting."""
    page.get_by_role("link", name="demo.nyc.flights", exact=True).first.wait_for()
    tables = page.locator("dl > div").filter(has_text="Tables")
    tables.get_by_text(str(len(TABLES)), exact=True).wait_for(timeout=180_000)


def look_at_a_table(page: Any) -> None:
    """Pictures of its files, and what a lookup opens."""
    page.get_by_role("link", name="demo.nyc.flights", exact=True).first.click()
    page.get_by_role("link", name="Layout", exact=True).click()
    page.get_by_label("By column").select_option("date")
    page.get_by_text(re.compile(r"A lookup opens \d+ of \d+ files at worst")).wait_for()
    settled(page)
    for picture in ("File sizes", "Overlap of date"):
        canvas = page.get_by_role("region", name=picture, exact=True).locator("canvas")
        assert canvas.evaluate("canvas => canvas.width > 100 && canvas.height > 100"), picture


def decide_and_take_it_back(page: Any, folder: Path) -> None:
    """The plan that waits is looked at, approved and carried out on Spark, and rolled back: the rows are the same."""
    page.get_by_role("link", name="Administration").click()
    page.get_by_role("link", name="Optimizers", exact=True).click()
    page.get_by_text(re.compile("^optimizer-")).first.wait_for(timeout=120_000)  # Spark is up
    files, rows = files_and_rows(folder)
    assert files == DELAYS_DAYS
    page.get_by_role("link", name="Inbox").click()
    page.get_by_role("link", name="Look at it and decide").click()
    page.get_by_role("heading", level=1).filter(has_text="Plan of demo.nyc.delays").wait_for()
    assert f"{DELAYS_DAYS} small files" in page.inner_text("main")
    let_it_go(page, "Approve")
    history = page.get_by_role("region", name="History", exact=True).inner_text()
    assert [state for state in ("queued", "running", "committed", "succeeded") if state not in history] == []
    card = page.get_by_role("region", name="Before and after", exact=True)
    card.get_by_text(f"Data files: {DELAYS_DAYS} before, 1 afterwards.").wait_for()
    assert files_and_rows(folder) == (1, rows)
    assert page.get_by_role("button", name="Undo").count() == 0, "it changed no row"
    page.get_by_role("button", name="Roll back").click()
    page.get_by_role("dialog").get_by_role("button", name="Plan it", exact=True).click()
    page.get_by_role("heading", level=1).filter(has_text="Plan of demo.nyc.delays").wait_for()
    let_it_go(page, "Apply")
    assert files_and_rows(folder) == (DELAYS_DAYS, rows)


def see_what_queries_open(page: Any, log: Path) -> None:
    """The same queries open fewer files than when there were many small ones, and are shown by their columns."""
    each = [float(found) for found in re.findall(r"queries of demo.nyc.flights open ([0-9.,]+) of", log.read_text())]
    assert len(each) == 2
    assert each[1] < each[0]
    page.get_by_role("link", name="Fleet").click()
    page.get_by_role("link", name=f"demo.{FLIGHTS}", exact=True).first.click()
    page.get_by_role("link", name="Queries", exact=True).click()
    page.get_by_role("table", name="Columns of filters").get_by_role("cell", name="tailnum", exact=True).wait_for()
    templates = page.get_by_role("table", name="Queries that differ in their values alone").get_by_role("row")
    assert templates.count() == 1 + 4
    assert page.locator("dl > div").filter(has_text="Queries").first.inner_text().startswith("Queries\n20")


def meet_a_writer(page: Any, folder: Path, orders: Path) -> None:
    """A commit takes away a file that a rewrite is about to replace: its task is superseded, another one succeeds."""
    table = demo_catalog(folder).load_table(FLIGHTS)
    rows = table.scan().to_arrow()
    with table.transaction() as change:
        change.set_properties({"icewright.write-window": "PT0S"})  # else rewrites keep away from who removes rows
    (orders / f"order-{Fault.COMMIT_BEFORE.value}").write_text("sleeper 1")
    for number in range(WRITTEN):
        name = pa.array([f"{WRITER}-{number}"], rows.schema.field("tailnum").type)
        table.append(rows.slice(0, 1).set_column(rows.schema.get_field_index("tailnum"), "tailnum", name))
    page.get_by_role("link", name="Fleet").click()
    page.get_by_role("link", name=f"demo.{FLIGHTS}", exact=True).first.click()
    page.get_by_role("button", name="Look at it now").click()
    optimizer = psutil.Process(int(content_of(orders / "killed-1")))  # stopped right before it commits
    table.delete(f"tailnum == '{WRITER}-0'")
    optimizer.resume()
    page.get_by_role("link", name="Snapshots", exact=True).click()
    page.get_by_text("; 1 conflict of its tasks with writers.").wait_for(timeout=120_000)
    page.get_by_role("link", name="Tasks", exact=True).last.click()
    tasks = page.get_by_role("table", name="Tasks of this table").get_by_role("row")
    tasks.nth(2).get_by_text("superseded", exact=True).wait_for()
    tasks.nth(1).get_by_text("succeeded", exact=True).wait_for(timeout=120_000)
    tasks.nth(2).get_by_role("link").first.click()
    page.get_by_role("region", name="History", exact=True).get_by_text("superseded", exact=True).wait_for()
    table = table.refresh()
    left = table.scan().to_arrow()
    written = [name for name in left["tailnum"].to_pylist() if name is not None and name.startswith(WRITER)]
    assert sorted(written) == sorted(f"{WRITER}-{number}" for number in range(1, WRITTEN))
    assert left.num_rows == rows.num_rows + len(written)
    small = [task.file.file_path for task in table.scan(f"tailnum == '{WRITER}-1'").plan_files()]
    assert len(small) < WRITTEN


def content_of(file: Path) -> str:
    """What another process writes into a file, as soon as it has."""
    for _ in range(1_200):
        if file.exists() and (said := file.read_text()):
            return said
        time.sleep(0.1)
    raise AssertionError(f"there is no {file}")


def take_it_to_your_own(page: Any, folder: Path, report: Path) -> None:
    """The section for a catalog of one's own, read-only at first; and one file with what is known of the fleet."""
    page.get_by_role("link", name="Administration").click()
    page.get_by_role("button", name="Connect a catalog").click()
    dialog = page.get_by_role("dialog", name="Connect a catalog")
    dialog.get_by_label("Name, as in").fill("prod")
    dialog.get_by_label("Address").fill("https://catalog.example.org/iceberg")
    assert 'mode = "observe"' in dialog.locator("pre").inner_text()
    command = [sys.executable, "-m", "icewright", "--config", str(folder / "icewright.toml")]
    subprocess.run([*command, "report", "--fleet", "--html", str(report)], check=True, timeout=120)  # noqa: S603 - ours
    page.goto(report.as_uri())
    page.get_by_text(f"demo.{FLIGHTS}").first.wait_for()


def let_it_go(page: Any, how: str) -> None:
    """Approve or apply the plan that is shown, and see its task through."""
    page.get_by_role("button", name=how).click()
    dialog = page.get_by_role("dialog")
    if how == "Approve":
        dialog.get_by_label("Your name").fill("Ada")
    dialog.get_by_role("button", name=how, exact=True).click()
    page.wait_for_url("**/ui/tasks/*")
    page.get_by_role("heading", level=1).get_by_text("succeeded").wait_for(timeout=180_000)


def files_and_rows(folder: Path) -> tuple[int, list[dict[str, Any]]]:
    """The data files of the table that waits for a person, and its rows in an order of their own."""
    table = demo_catalog(folder).load_table(DELAYS)
    rows = table.scan().to_arrow()
    keys = [(name, "ascending") for name in rows.column_names]
    return len(list(table.scan().plan_files())), rows.sort_by(keys).to_pylist()


def check_who_may_be_touched(folder: Path) -> None:
    """Whoever writes a table says when it may be touched: nothing was rewritten before its rows were deleted."""
    catalog = demo_catalog(folder)
    for name in ("nyc.observations", "nyc.planes"):
        operations = [one.summary.operation for one in catalog.load_table(name).snapshots() if one.summary]
        assert Operation.REPLACE in operations
        assert operations.index(Operation.DELETE) < operations.index(Operation.REPLACE)


def demo_catalog(folder: Path) -> Catalog:
    """The catalog of a demo, as any program opens it."""
    return load_catalog("demo", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "warehouse"))


@pytest.mark.campaign
def test_it_plays_to_its_end_and_every_promise_holds(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    command = [*DEMO, "--once", "--no-browser", "--days", "60", "--port", "0", "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)  # noqa: S603 - our own
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith("demo ok: 10 of 10 promises held; 60 files were committed, "), last
    check_who_may_be_touched(folder)


def test_a_folder_that_no_demo_made_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    for arguments in (["--clean"], ["--once", "--no-browser"]):
        command = [*DEMO, *arguments, "--folder", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - see above
        assert done.returncode in (1, 2)
        assert "was not made by the demo" in done.stderr
    assert (tmp_path / "precious.txt").read_text() == "mine"
