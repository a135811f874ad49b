"""Values of options are read without pydantic exactly as typer reads them with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer._coercion import build_runtime_param

from tests.builders.command_line import COMMAND


def parameters(command: Any) -> Iterator[Any]:
    yield from (each for each in command.params if hasattr(each, "type_descriptor"))
    for each in getattr(command, "commands", {}).values():
        yield from parameters(each)


def outcome(runtime: Any, parameter: Any, value: Any) -> Any:
    """What becomes of a value, with its type, or what is said against it."""
    try:
        found = runtime.coerce(value, param=parameter, ctx=None)
    except Exception as error:  # noqa: BLE001 - compared with the other one's
        return type(error), str(error)
    return type(found), found


def test_each_option_of_each_command_takes_and_refuses_what_typer_does(tmp_path: Path) -> None:
    texts = ["", "a", "-", "7", "-1", "99999", "true", "2026-11-27", str(tmp_path), "observe", "å\udcff"]
    differ, seen = [], 0
    for parameter in parameters(COMMAND):
        own, typers = parameter.get_runtime_param(), build_runtime_param(parameter.type_descriptor)
        assert type(own) is not type(typers)
        for text in [None, parameter.default, b"bytes", 5, *texts]:
            value = [text] if isinstance(text, str) and (parameter.multiple or parameter.nargs == -1) else text
            seen += 1
            if outcome(own, parameter, value) != outcome(typers, parameter, value):
                differ.append((parameter.name, value))
    assert (differ, seen > 1000) == ([], True)


@pytest.mark.parametrize("given", ["there", "missing"])
def test_a_path_that_must_exist_is_looked_for(given: str, tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    app = typer.Typer()

    @app.command()
    def read(path: Annotated[Path, typer.Argument(exists=True)]) -> None:
        del path

    (parameter,) = [each for each in parameters(typer.main.get_command(app)) if each.name == "path"]
    own, typers = parameter.get_runtime_param(), build_runtime_param(parameter.type_descriptor)
    value = str(tmp_path / given)
    assert outcome(own, parameter, value) == outcome(typers, parameter, value)
    assert isinstance(outcome(own, parameter, value)[1], Path) == (given == "there")


def test_a_parser_of_its_own_is_asked() -> None:
    code = (
        "import typer, icewright.app.main\n"
        "from typing import Annotated\n"
        "app = typer.Typer()\n"
        "@app.command()\n"
        "def say(text: Annotated[str, typer.Argument(parser=str.upper)]) -> None:\n"
        "    print(text)\n"
        "app(['quiet'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)  # noqa: S603 - our own words
    assert (done.stdout, done.stderr) == ("QUIET\n", "")
