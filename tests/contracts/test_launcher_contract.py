"""What every launcher does, whatever carries the optimizer: a process of ours, Spark's ``spark-submit``, or nobody."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from icewright.core.errors import InvalidConfiguration
from icewright.model.work.optimizers import OptimizerSettings
from icewright.work.launch.port import Application, Launcher
from icewright.work.launch.resident import ResidentLauncher
from icewright.work.launch.spark_submit import SparkSubmitLauncher
from icewright.work.launch.submission import SparkHome
from tests.builders import specs
from tests.doubles.launcher import MemoryApplication, MemoryLauncher
from tests.waiting import until

SETTINGS = specs.settings_of(token="the-secret-token", tasks_max=1)  # noqa: S106 - nobody is asked
FAKE = """\
#!{python} -S
import os, signal, subprocess, sys, time
folder = {folder!r}
signal.signal(signal.SIGTERM, lambda *_: open(folder + "/told", "a").close())
child = subprocess.Popen(["/bin/sleep", "600"])
for name, text in (("child", child.pid), ("pid", os.getpid())):
    with open(folder + "/" + name + ".new", "w") as file:
        file.write(str(text))
    os.rename(folder + "/" + name + ".new", folder + "/" + name)
while not os.path.exists(folder + "/end") and not os.path.exists(folder + "/told"):
    time.sleep(0.005)
sys.exit(int(open(folder + "/end").read()) if os.path.exists(folder + "/end") else 0)
"""


@dataclass
class Kind:
    """A launcher, and a way to have its applications end with a status; ``folder`` is where the fake notes things."""

    launcher: Launcher
    folder: Path
    is_real: bool = True

    def end(self, application: Application, code: int) -> None:
        if isinstance(application, MemoryApplication):
            application.exit_code = code
        else:
            (self.folder / "end.new").write_text(str(code))
            (self.folder / "end.new").rename(self.folder / "end")

    def child(self) -> psutil.Process:
        """Somebody in the group of the application who would never end by itself."""
        until((self.folder / "pid").exists)
        return psutil.Process(int((self.folder / "child").read_text()))


def is_gone(process: psutil.Process) -> bool:
    """Killed, though perhaps not buried yet by whoever has to."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def fake(folder: Path) -> Path:
    """A Spark whose ``spark-submit`` runs until it is told to end."""
    submit = folder / "spark" / "bin" / "spark-submit"
    submit.parent.mkdir(parents=True)
    submit.write_text(FAKE.format(python=sys.executable, folder=str(folder)))
    submit.chmod(0o700)
    return submit


@pytest.fixture(params=["memory", "resident", "spark-submit"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    if request.param == "memory":
        return Kind(MemoryLauncher(), tmp_path, is_real=False)
    submit = fake(tmp_path)
    if request.param == "resident":
        return Kind(ResidentLauncher((str(submit),)), tmp_path)
    home = SparkHome(str(submit.parent.parent), sys.executable)
    return Kind(SparkSubmitLauncher(home, tmp_path / "applications", os.environ), tmp_path)


def test_it_runs_until_it_ends_and_says_how(kind: Kind) -> None:
    application = kind.launcher.start(SETTINGS)
    assert application.name == SETTINGS.optimizer_id
    assert application.poll() is None
    child = kind.child() if kind.is_real else None
    kind.end(application, 3)
    if child is not None:
        child.kill()  # what ends by itself is waited for
    until(lambda: application.poll() is not None)
    assert (application.poll(), application.wait(), application.poll()) == (3, 3, 3)
    application.stop()
    application.kill()
    assert application.poll() == 3


def test_q4_q5_one_that_is_killed_leaves_nobody_behind(kind: Kind) -> None:
    application = kind.launcher.start(SETTINGS)
    child = kind.child() if kind.is_real else None
    application.kill()
    assert application.wait() == -9
    assert child is None or is_gone(child)


def test_q4_whoever_hangs_in_its_group_ends_with_it(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icewright.work.launch.process._TIDY_S", 0.05)
    application = kind.launcher.start(SETTINGS)
    child = kind.child() if kind.is_real else None
    if child is not None:
        child.suspend()  # as a JVM that hangs
    kind.end(application, 1)
    assert application.wait() == 1
    assert child is None or is_gone(child)


def test_told_to_stop_it_ends_after_its_task(kind: Kind) -> None:
    application = kind.launcher.start(SETTINGS)
    child = kind.child() if kind.is_real else None
    application.stop()
    application.stop()
    if not (kind.folder / "told").exists():
        kind.end(application, 0)  # one for a single task ends by itself
    if child is not None:
        child.kill()
    assert application.wait() == 0


def test_a_trace_may_be_asked_for_at_any_time(kind: Kind) -> None:
    application = kind.launcher.start(SETTINGS)
    before = application.trace()
    application.kill()
    application.wait()
    assert application.trace() == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"spark_conf": {"spark.driver.extraJavaOptions": "-javaagent:x"}},
        {"spark_conf": {"spark.executor.cores": "1\nspark.jars=/x"}},
        {"master": "--conf spark.jars=/x"},
    ],
)
def test_t4_settings_that_may_not_be_used_are_refused_before_anything_runs(
    kind: Kind, wrong: dict[str, object], tmp_path: Path
) -> None:
    settings: OptimizerSettings = replace(SETTINGS, **wrong)  # type: ignore[arg-type]  # a case of any field
    with pytest.raises(InvalidConfiguration):
        kind.launcher.start(settings)
    assert not (tmp_path / "pid").exists()
