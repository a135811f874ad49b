"""The command line answers at once because it loads nothing that the command does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from icewright.app.main import COMMANDS
from icewright.core.extras import EXTRAS
from tests.builders.command_line import COMMAND, icewright
from tests.cases import each_case

HEAVY = ("pyiceberg", "pyarrow", "pyspark", "fastapi", "sqlalchemy", "uvicorn", "httpx2", "structlog", "pydantic")

SCRIPT = """
import sys
from icewright.app.main import app
try:
    app({arguments!r}, prog_name="icewright")
except SystemExit as exit:
    status = exit.code
print("LOADED", sorted({{one for name in sys.modules for one in (name, name.split(".")[0])}} & set({heavy!r})), status)
"""


def python(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=cwd)  # noqa: S603 - our own words


@each_case("arguments", [["--help"], ["scan", "--help"], ["table", "--help"], ["version"], ["config", "path"]])
def test_nothing_heavy_is_loaded_without_need(arguments: list[str]) -> None:
    done = python("-c", SCRIPT.format(arguments=arguments, heavy=HEAVY))
    assert done.stdout.splitlines()[-1] == "LOADED [] 0"


@each_case("arguments", [["tables", "list"], ["cluster"], ["-c", "icewright.toml", "approvals", "list"]])
def test_commands_that_ask_the_server_load_neither_catalogs_nor_pydantic(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "icewright.toml").write_text("", encoding="utf-8")
    heavy = (*(one for one in HEAVY if one != "httpx2"), "icewright.store.engine")
    done = python("-c", SCRIPT.format(arguments=arguments, heavy=heavy), cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "LOADED [] 1"  # no server is running


def test_help_loads_no_policies() -> None:
    done = python("-c", SCRIPT.format(arguments=["--help"], heavy=("icewright.config.model", "icewright.model.policy")))
    assert done.stdout.splitlines()[-1] == "LOADED [] 0"


def test_a_server_loads_the_parser_of_sql_with_the_first_query() -> None:
    code = "import sys, icewright.server.server, icewright.server.http.app; print('sqlglot' in sys.modules)"
    done = python("-c", code)
    assert (done.stdout.strip(), done.stderr) == ("False", "")


WITHOUT_SPARK = """
import sys
from icewright.app.main import app
sys.modules.update(dict.fromkeys({absent!r}))
app({arguments!r}, prog_name="icewright")
"""


@pytest.mark.parametrize("arguments", [["optimizer"], ["optimizer", "secret", "settings"]])
def test_without_the_extra_an_optimizer_says_what_to_install(arguments: list[str]) -> None:
    done = python("-c", WITHOUT_SPARK.format(arguments=arguments, absent=EXTRAS["spark"]))
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "not installed" in done.stderr
    assert "pip install 'icewright[spark]'" in done.stderr


def test_help_says_of_each_command_what_it_says_of_itself_and_imports_none() -> None:
    assert [section for section in COMMANDS if not COMMANDS[section]] == []
    shown = icewright("--help")
    assert shown.status == 0
    words = " ".join(shown.out.split())
    for section in COMMANDS.values():
        for name, entry in section.items():
            assert COMMAND.commands[name].get_short_help_str(limit=300) == entry.help  # type: ignore[attr-defined]  # it is a group
            assert f"{name} {entry.help}" in words
    done = python("-c", SCRIPT.format(arguments=["--help"], heavy=("icewright.maintenance.cli",)))
    assert done.stdout.splitlines()[-1] == "LOADED [] 0"


@each_case(
    ("arguments", "says"),
    [
        (["--host", "0.0.0.0"], "--host: server.public_url is missing"),  # noqa: S104 - refused
        (["--port", "65536"], "--port: server.port"),
    ],
)
def test_options_of_serve_are_held_to_the_rules_of_the_settings(arguments: list[str], says: str) -> None:
    done = python("-m", "icewright", "serve", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_it_is_a_module_too() -> None:
    assert python("-m", "icewright", "version").stdout.startswith("icewright 0.")


@each_case("arguments", [["--nonsense"], ["nonsense"], ["plan"], ["tasks", "list", "--state", "odd"]])
def test_wrong_use_is_exit_status_2(arguments: list[str]) -> None:
    done = python("-m", "icewright", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
