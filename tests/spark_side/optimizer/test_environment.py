"""A cluster that has other versions than the driver is refused, clearly, before anything is claimed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Never

import pyspark
import pytest
from pyspark import cloudpickle

from icewright import __version__
from icewright.core.codec import loads
from icewright.core.errors import Unavailable, VersionMismatch
from icewright.model.work.optimizers import WorkerEnvironment
from icewright_spark.optimizer.environment import PACKAGES, _look, require_same, worker_environment
from tests.cases import each_case

OURS = WorkerEnvironment("3.11.7", "4.1.4", {"pyarrow": "26.0.1", "xxhash": "3.8.2"})


def test_the_same_is_the_same_and_a_patch_of_python_does_not_matter() -> None:
    require_same(OURS, OURS)
    require_same(OURS, replace(OURS, python="3.11.2"))
    require_same(OURS, replace(OURS, packages={**OURS.packages, "more": "1"}))


@each_case("spark", ["4.1.3", "3.5.9", "4.2.0"])
def test_a_cluster_of_another_spark_is_refused(spark: str) -> None:
    with pytest.raises(VersionMismatch, match=f"the cluster runs Spark {spark}, this optimizer brings Spark 4.1.4"):
        require_same(OURS, replace(OURS, spark=spark))


@each_case("python", ["3.12.7", "3.1.17", "4.11.7"])
def test_workers_of_another_python_are_refused(python: str) -> None:
    with pytest.raises(VersionMismatch, match="Python") as refused:
        require_same(OURS, replace(OURS, python=python))
    assert "executor_python" in refused.value.hint


@each_case("version", ["26.0.0", "", None])
def test_workers_with_other_packages_are_refused(version: str | None) -> None:
    packages = {"xxhash": "3.8.2"} | ({} if version is None else {"pyarrow": version})
    with pytest.raises(VersionMismatch, match=f"pyarrow {version or 'missing'} instead of 26.0.1") as refused:
        require_same(OURS, replace(OURS, packages=packages))
    assert "xxhash" not in refused.value.message
    assert "icewright optimizer pack" in refused.value.hint


def test_the_question_travels_to_a_python_that_has_nothing_of_ours() -> None:
    ours = loads(WorkerEnvironment, _look()(0))
    assert set(ours.packages) == {*PACKAGES, "icewright"}
    assert ours.packages["icewright"] == __version__
    assert ours.spark == pyspark.__version__
    archives = [str(path) for path in (Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip")]
    code = (
        f"import sys; sys.path[:0] = {archives!r}\n"
        "from pyspark import cloudpickle\n"
        "print(cloudpickle.loads(sys.stdin.buffer.read())(0))"
    )
    question = cloudpickle.dumps(_look())  # type: ignore[no-untyped-call]  # PySpark's, untyped
    done = subprocess.run(  # noqa: S603 - our own interpreter, as a list
        [sys.executable, "-I", "-S", "-c", code], input=question, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    theirs = loads(WorkerEnvironment, done.stdout.decode())
    assert (theirs.python, theirs.spark) == (ours.python, ours.spark)
    assert set(theirs.packages.values()) == {""}
    with pytest.raises(VersionMismatch, match="icewright missing"):
        require_same(ours, theirs)


def session(master: str, collect: Any) -> Any:
    """A Spark whose job ends as ``collect`` does."""
    job = SimpleNamespace(map=lambda _look: SimpleNamespace(collect=collect))
    return SimpleNamespace(
        sparkContext=SimpleNamespace(master=master, defaultParallelism=2, parallelize=lambda _range, _slices: job)
    )


def breaking(text: str) -> Any:
    def collect() -> Never:
        raise RuntimeError(text)

    return collect


def test_in_local_mode_nobody_needs_to_be_asked() -> None:
    assert worker_environment(session("local[2]", breaking("asked"))) == loads(WorkerEnvironment, _look()(0))


def test_on_a_cluster_all_that_answer_are_compared() -> None:
    said = _look()(0)
    assert worker_environment(session("spark://head:7077", lambda: [said, said])) == loads(WorkerEnvironment, said)
    other = said.replace(pyspark.__version__, "3.5.9")
    with pytest.raises(VersionMismatch, match=r"Spark 3\.5\.9"):
        worker_environment(session("yarn", lambda: [said, other]))


@pytest.mark.parametrize(
    ("text", "error"), [("[PYTHON_VERSION_MISMATCH] 3.12 and 3.11", VersionMismatch), ("no such file", Unavailable)]
)
def test_workers_that_cannot_say_are_told_apart(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        worker_environment(session("yarn", breaking(text)))
