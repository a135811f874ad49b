"""The one who keeps an optimizer running, over a stand-in that ends as it is told."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from icewright.configuration.load import load_config
from icewright.core.codec import from_json, loads
from icewright.core.errors import InvalidConfiguration, NotFound, Rejected
from icewright.model.work.optimizers import RECYCLE_EXIT_CODE, OptimizerSettings
from icewright.terminal.address import ServerAddress, write_address
from icewright.work.launch.optimizer import Supervisor, kubernetes_secret, run, settings_of
from icewright.work.launch.resident import ResidentApplication, ResidentLauncher
from tests.builders import specs

STAND_IN = """
import json, os, signal, sys, time
folder, parent = sys.argv[1:]
signal.signal(signal.SIGTERM, lambda *_: open(folder + "/told to stop", "w").close())
said = {
    "settings": json.loads(sys.stdin.read()),
    "arguments": open("/proc/self/cmdline").read(),
    "environment": open("/proc/self/environ").read(),
    "parent": int(parent),
    "session": os.getsid(0),
    "pid": os.getpid(),
}
with open(folder + "/starts", "a") as file:
    file.write(json.dumps(said) + "\\n")
number = len(open(folder + "/starts").readlines()) - 1
ends = json.load(open(folder + "/ends"))
while ends[number] == "when told" and not os.path.exists(folder + "/told to stop") or ends[number] == "never":
    time.sleep(0.002)
sys.exit(0 if isinstance(ends[number], str) else ends[number])
"""

SETTINGS = specs.settings_of(
    token="the-secret-token",  # noqa: S106 - nobody is asked
    spark_conf={"spark.hadoop.secret": "the-secret-key"},
    spark_conf_keys=("spark.hadoop.secret",),
)


class Supervised(Supervisor):
    """Does not rest, but notes for how long it would have."""

    def __init__(self, folder: Path, *ends: int | str, serverless: int = 0) -> None:
        self.folder = folder
        self.serverless = serverless
        (folder / "ends").write_text(json.dumps(ends))
        (folder / "stand_in.py").write_text(STAND_IN)
        command = (sys.executable, "-S", str(folder / "stand_in.py"), str(folder))
        super().__init__(self._current, ResidentLauncher(command))
        self.pauses: list[float] = []

    def _current(self) -> OptimizerSettings:
        if self.serverless:
            self.serverless -= 1
            raise NotFound("no server is running")
        return SETTINGS

    def _rest(self, pause_s: float) -> None:
        self.pauses.append(pause_s)

    @property
    def starts(self) -> list[dict[str, object]]:
        file = self.folder / "starts"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture(autouse=True)
def handlers_are_put_back() -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def soon(condition: Callable[[], bool], *numbers: int) -> threading.Thread:
    """Signals to this process once something is so."""

    def send() -> None:
        for _ in range(20_000):
            if condition():
                break
            time.sleep(0.001)
        for number in numbers:
            os.kill(os.getpid(), number)
            time.sleep(0.05)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def test_one_that_dies_is_started_again_after_growing_pauses(tmp_path: Path) -> None:
    supervisor = Supervised(tmp_path, 1, -9, 137, 3, 1, 1, 1, 1, 1, 0)
    assert supervisor.run() == 0
    assert len(supervisor.starts) == 10
    assert supervisor.pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_one_that_wants_a_fresh_process_gets_it_at_once(tmp_path: Path) -> None:
    supervisor = Supervised(tmp_path, RECYCLE_EXIT_CODE, RECYCLE_EXIT_CODE, 0)
    assert supervisor.run() == 0
    assert len(supervisor.starts) == 3
    assert supervisor.pauses == []


def test_one_that_cannot_run_as_configured_is_not_started_again(tmp_path: Path) -> None:
    supervisor = Supervised(tmp_path, 2, 0)
    assert supervisor.run() == 2
    assert len(supervisor.starts) == 1


def test_the_server_is_waited_for(tmp_path: Path) -> None:
    supervisor = Supervised(tmp_path, 0, serverless=3)
    assert supervisor.run() == 0
    assert supervisor.pauses == [2, 4, 5]
    assert len(supervisor.starts) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_tells_the_optimizer_and_waits_for_it(tmp_path: Path, number: int) -> None:
    supervisor = Supervised(tmp_path, "when told", 1)
    thread = soon(lambda: bool(supervisor.starts), number)
    assert supervisor.run() == 0
    thread.join()
    assert (tmp_path / "told to stop").exists()
    assert len(supervisor.starts) == 1


def test_told_to_stop_while_it_waits_for_the_server_it_starts_nothing(tmp_path: Path) -> None:
    supervisor = Supervised(tmp_path, 0, serverless=1 << 60)
    thread = soon(lambda: len(supervisor.pauses) > 3, signal.SIGTERM)
    assert supervisor.run() == 0
    thread.join()
    assert supervisor.starts == []


def test_a_signal_between_two_starts_reaches_the_one_that_is_just_started(tmp_path: Path) -> None:
    supervisor = Supervised(tmp_path, "when told")
    started = ResidentLauncher.start

    def signalled(launcher: ResidentLauncher, settings: OptimizerSettings) -> ResidentApplication:
        child = started(launcher, settings)
        while not supervisor.starts:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
        return child

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ResidentLauncher, "start", signalled)
        assert supervisor.run() == 0
    assert (tmp_path / "told to stop").exists()


def test_a_second_interrupt_ends_it_where_it_is(tmp_path: Path) -> None:
    supervisor = Supervised(tmp_path, "never")
    thread = soon(lambda: bool(supervisor.starts), signal.SIGINT, signal.SIGINT)
    assert supervisor.run() == 0
    thread.join()
    assert not psutil.pid_exists(int(str(supervisor.starts[0]["pid"])))


def test_settings_go_through_standard_input_and_secrets_nowhere_else(tmp_path: Path) -> None:
    supervisor = Supervised(tmp_path, 0)
    supervisor.run()
    (said,) = supervisor.starts
    assert from_json(OptimizerSettings, said["settings"]) == SETTINGS
    for secret in ("the-secret-token", "the-secret-key"):
        assert secret not in str(said["arguments"])
        assert secret not in str(said["environment"])
    assert said["parent"] == os.getpid()
    assert said["session"] == said["pid"]


def test_one_that_ends_before_it_has_read_its_settings_is_only_one_that_died() -> None:
    for command, code in (
        ((sys.executable, "-S", "-c", "import os; os.close(0); os._exit(5)"), 5),
        (("/bin/false",), 1),
    ):
        assert ResidentLauncher(command).start(SETTINGS).wait() == code


def test_a_program_that_is_not_there_is_said_clearly(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="cannot be started"):
        ResidentLauncher((str(tmp_path / "nothing"),)).start(SETTINGS)


def test_each_optimizer_gets_the_servers_present_address_and_a_name_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "icewright.toml").write_text(f'[server]\nstate_dir = "{tmp_path}/state"\n')
    config = load_config(None, {"HOME": str(tmp_path)}, tmp_path)
    with pytest.raises(NotFound):
        settings_of(config, {})
    for url in ("http://127.0.0.1:5", "http://127.0.0.1:6"):
        write_address(config.server.address_file, ServerAddress(url, "token of it", 1))
        first, second = settings_of(config, {}), settings_of(config, {})
        assert (first.server_url, first.token) == (url, "token of it")
        assert first.optimizer_id != second.optimizer_id


def test_a_server_elsewhere_is_reached_with_the_token_that_the_configuration_refers_to(tmp_path: Path) -> None:
    (tmp_path / "icewright.toml").write_text(
        '[optimizer]\nserver_url = "https://icewright.example"\nserver_token = "env:THE_TOKEN"\n'
    )
    config = load_config(None, {"HOME": str(tmp_path)}, tmp_path)
    found = settings_of(config, {"THE_TOKEN": "resolved"})
    assert (found.server_url, found.token) == ("https://icewright.example", "resolved")


def test_drivers_in_kubernetes_find_in_their_secret_what_they_are_started_with(tmp_path: Path) -> None:
    file = tmp_path / "icewright.toml"
    text = """[optimizer]
server_url = "https://icewright.example"
server_token = "env:THE_TOKEN"
master = "k8s://https://kubernetes.example:6443"
deploy_mode = "cluster"
kubernetes_secret = "icewright-settings"
"""
    file.write_text(text)
    config = load_config(None, {"HOME": str(tmp_path)}, tmp_path)
    document = json.loads(kubernetes_secret(config, {"THE_TOKEN": "resolved"}, "icewright-settings"))
    found = loads(OptimizerSettings, document["stringData"]["settings.json"])
    assert (found.server_url, found.token, found.tasks_max) == ("https://icewright.example", "resolved", 1)
    with pytest.raises(InvalidConfiguration, match="not 'another'"):
        kubernetes_secret(config, {"THE_TOKEN": "resolved"}, "another")


def test_t4_keys_that_let_any_program_run_are_named_in_the_file_alone(tmp_path: Path) -> None:
    (tmp_path / "icewright.toml").write_text('[optimizer]\nspark_conf_keys = ["spark.eventLog.dir"]\n')
    home = {"HOME": str(tmp_path)}
    assert load_config(None, home, tmp_path).optimizer.spark_conf_keys == ("spark.eventLog.dir",)
    for environ in ({"ICEWRIGHT_OPTIMIZER__SPARK_CONF_KEYS": '["spark.plugins"]'},):
        with pytest.raises(InvalidConfiguration, match="file alone"):
            load_config(None, {**home, **environ}, tmp_path)


def test_a_launcher_that_there_is_not_is_refused(tmp_path: Path) -> None:
    config = load_config(None, {"HOME": str(tmp_path)}, tmp_path)
    with pytest.raises(InvalidConfiguration, match="--launcher"):
        run(config, {}, launcher="livy")
