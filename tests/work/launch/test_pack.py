"""What is in the archive for executors: all that the optimizer's side imports, and nothing that leads out of it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import icewright
from icewright import __version__
from icewright.core.errors import InvalidConfiguration, NotAllowed
from icewright.work.launch import pack as packing
from icewright.work.launch.pack import BROUGHT_BY_SPARK, MANIFEST, ROOTS, belongs, closure, normalized, pack
from tests.cases import each_case

SRC = Path(icewright.__file__).parents[1]


def imported() -> set[str]:
    """The top-level modules that the optimizer's side imports, with what it takes of icewright's."""
    found, seen = set(), set()
    left = [*(SRC / "icewright_spark").rglob("*.py")]
    while left:
        path = left.pop()
        if path in seen:
            continue
        seen.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and (source := node.module) and not node.level:
                found.add(source.split(".")[0])
                names = (source, *(f"{source}.{alias.name}" for alias in node.names))
                files = (SRC / f"{name.replace('.', '/')}.py" for name in names if name.startswith("icewright."))
                left += [file for file in files if file.exists()]
    assert len(seen) > len([*(SRC / "icewright_spark").rglob("*.py")])
    return found - sys.stdlib_module_names - {"icewright", "icewright_spark"}


def test_everything_that_the_optimizer_imports_is_packed() -> None:
    of_module = packages_distributions()
    packed = set(closure(ROOTS)) | BROUGHT_BY_SPARK
    missing = {name for name in imported() if not {normalized(one) for one in of_module[name]} & packed}
    assert missing == set()


def test_what_these_require_comes_along_and_spark_does_not() -> None:
    found = closure(ROOTS)
    assert {"httpcore2", "python-dateutil", "six"} <= set(found)
    assert not BROUGHT_BY_SPARK & set(found)
    with pytest.raises(InvalidConfiguration, match="no-such-package is not installed"):
        closure(("no-such-package",))


@each_case(
    ("name", "packed"),
    [
        ("pyarrow/lib.so", True),
        ("pyarrow/include/arrow/api.h", False),
        ("numpy/__pycache__/a.cpython-311.pyc", False),
        ("../../../bin/f2py", False),
        ("/etc/passwd", False),
        ("a/../../b.py", False),
        ("xxhash-3.8.2.dist-info/METADATA", True),
    ],
)
def test_t8_no_name_leads_out_of_the_archive(name: str, *, packed: bool) -> None:
    assert belongs(name) is packed


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "ROOTS", ("xxhash", "structlog"))


@pytest.mark.usefixtures("small")
def test_a_python_without_packages_finds_ours_in_it(tmp_path: Path) -> None:
    target = tmp_path / "packages.zip"
    manifest = pack(target)
    assert manifest.packages["icewright"] == __version__
    assert {"xxhash", "structlog"} <= set(manifest.packages)
    with zipfile.ZipFile(target) as archive:
        names = archive.namelist()
        assert json.loads(archive.read(MANIFEST))["packages"] == manifest.packages
        archive.extractall(tmp_path / "unpacked")
    assert len(names) == len(set(names))
    code = "import xxhash, icewright; print(icewright.__file__)"
    done = subprocess.run(  # noqa: S603 - our own interpreter, as a list
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": "./unpacked"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == str(tmp_path / "unpacked" / "icewright" / "__init__.py"), done.stderr


@pytest.mark.usefixtures("small")
def test_no_file_is_written_over_and_no_half_one_is_seen(tmp_path: Path) -> None:
    target = tmp_path / "packages.zip"
    target.write_text("somebody's")
    with pytest.raises(NotAllowed, match="there already"):
        pack(target)
    assert target.read_text() == "somebody's"
    assert list(tmp_path.iterdir()) == [target]
