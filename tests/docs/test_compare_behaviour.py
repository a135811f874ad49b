"""What two versions differ in is found, for each of the five things that others build on."""

import shutil
from pathlib import Path

import pytest

from scripts.compare_behaviour import ROOT, Surfaces, differences, main, surfaces


@pytest.fixture(scope="module")
def today() -> Surfaces:
    return surfaces(ROOT)


def test_all_five_are_read(today: Surfaces) -> None:
    assert "GET /api/v1/tables list_tables" in today["api"]
    assert any(name.startswith("icewright scan `--warehouse`") for name in today["cli"])
    assert "[autotune] `quiet_cycles` `50`" in today["configuration"]
    assert "icewright_build_info `version`" in today["metrics"]
    assert any(made.startswith("CREATE TABLE tasks ") for made in today["database"])
    assert differences(today, today) == []


def test_what_went_and_what_came_is_a_line_each(today: Surfaces, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copytree(ROOT / "src/icewright", tmp_path / "src/icewright", ignore=shutil.ignore_patterns("ui", "*.pyc"))
    for path, old, new in (
        ("docs/openapi.json", '"operationId": "list_tables"', '"operationId": "list_all"'),
        ("docs/cli.md", "| `--warehouse` |", "| `--warehouses` |"),
        ("docs/configuration.md", "| `quiet_cycles` | `50` |", "| `quiet_cycles` | `51` |"),
        ("docs/monitoring.md", "| `icewright_build_info` |", "| `icewright_info` |"),
        ("src/icewright/store/migrations/versions/v0051_task_logs.py", "task_logs", "logs_of_tasks"),
    ):
        text = (tmp_path / path).read_text()
        assert old in text, path
        (tmp_path / path).write_text(text.replace(old, new))
    found = differences(today, surfaces(tmp_path))
    went = {line.split(": ")[0].removeprefix("- ") for line in found if line.startswith("-")}
    came = {line.split(": ")[0].removeprefix("+ ") for line in found if line.startswith("+")}
    assert went == came == set(today)


def test_words_for_people_make_no_difference(today: Surfaces, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    (tmp_path / "src").symlink_to(ROOT / "src")
    page = tmp_path / "docs/openapi.json"
    text = page.read_text()
    assert '"description": "' in text
    page.write_text(text.replace('"description": "', '"description": "More: '))
    assert differences(today, surfaces(tmp_path)) == []


def test_wrong_use_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "scripts.compare_behaviour OLD [NEW]" in capsys.readouterr().err
