"""What each platform does for itself: what is sent, what is refused, and what somebody may not make of it."""

from __future__ import annotations

import json
import os
import ssl
import sys
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest

from icewright.configuration.load import load_config
from icewright.core.errors import (
    Conflict,
    Forbidden,
    IcewrightError,
    InvalidConfiguration,
    OutcomeUnknown,
    Rejected,
    Unavailable,
)
from icewright.core.reasons import Reason
from icewright.notifications.senders.guard import Guard
from icewright.notifications.senders.requests import Requests
from icewright.notifications.senders.urls import parse_url
from icewright.server.platforms.command import CommandPlatform
from icewright.server.platforms.kubernetes import (
    ANSWER_BYTES_MAX,
    ApiServer,
    KubernetesPlatform,
    Workload,
    api_of_pod,
    own_namespace,
)
from icewright.server.platforms.webhook import WebhookPlatform
from icewright.server.platforms.wiring import build_platform, server_limits
from icewright.work.autotune.servers.decide import ServerLimits
from icewright.work.autotune.servers.platform import Resize
from tests.cases import each_case
from tests.servers.hooks import Hooks, certificate, hooks
from tests.servers.kubernetes import NAME, NAMESPACE, TOKEN, FakeApi, kubernetes_api
from tests.waiting import until

SECRET = "a-secret-of-the-receiver"  # noqa: S105 - of nothing real
WANTED = Resize("tune-1", 2, 3, Reason("busy-server", "server-1 is busy", {"servers": 2, "cpu_most": 0.9}))
INSIDE = (ip_network("127.0.0.0/8"),)
KEY = "platform.url"
OTHER = "the-next-one"


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[tuple[Hooks, Requests]]:
    files = certificate(tmp_path)
    context = ssl.create_default_context(cafile=str(files[0]))
    with hooks(files) as found:
        yield found, Requests(Guard(INSIDE), context=context)


def webhook(found: tuple[Hooks, Requests]) -> WebhookPlatform:
    url = parse_url(f"https://127.0.0.1:{found[0].port}/scale", KEY)
    return WebhookPlatform(lambda: (url, SECRET), found[1])


class TestWebhook:
    def test_the_body_says_what_is_wanted_and_why_and_the_secret_is_in_a_header(
        self, receiver: tuple[Hooks, Requests]
    ) -> None:
        webhook(receiver).resize(WANTED)
        (got,) = receiver[0].received
        assert got.path == "/scale"
        assert got.headers["authorization"] == f"Bearer {SECRET}"
        assert got.headers["idempotency-key"] == "tune-1"
        assert json.loads(got.body) == {
            "decision": "tune-1",
            "servers": 3,
            "seen": 2,
            "reason": {"code": "busy-server", "text": "server-1 is busy", "figures": {"servers": 2, "cpu_most": 0.9}},
        }

    @pytest.mark.parametrize(
        ("status", "error"),
        [
            (302, Rejected),
            (400, Rejected),
            (404, Rejected),
            (408, OutcomeUnknown),
            (429, Unavailable),
            (500, OutcomeUnknown),
            (504, OutcomeUnknown),
        ],
    )
    def test_each_status_says_whether_it_was_done(
        self, receiver: tuple[Hooks, Requests], status: int, error: type[IcewrightError]
    ) -> None:
        receiver[0].status, receiver[0].answer = status, {"location": f"https://127.0.0.1:{receiver[0].port}/other"}
        with pytest.raises(error) as raised:
            webhook(receiver).resize(WANTED)
        assert SECRET not in raised.value.message
        assert len(receiver[0].received) == 1

    def test_t7_nothing_goes_to_an_address_inside_or_to_somebody_without_the_certificate(
        self, receiver: tuple[Hooks, Requests]
    ) -> None:
        url = parse_url(f"https://127.0.0.1:{receiver[0].port}/scale", KEY)
        with pytest.raises(Forbidden):
            WebhookPlatform(lambda: (url, SECRET), Requests(Guard())).resize(WANTED)
        assert receiver[0].connections == 0
        with pytest.raises(Unavailable, match="certificate is not accepted"):
            WebhookPlatform(lambda: (url, SECRET), Requests(Guard(INSIDE))).resize(WANTED)
        assert receiver[0].received == []

    def test_where_nobody_listens_nothing_was_asked(self) -> None:
        url = parse_url("https://127.0.0.1:1/scale", KEY)
        with pytest.raises(Unavailable):
            WebhookPlatform(lambda: (url, SECRET), Requests(Guard(INSIDE))).resize(WANTED)


class TestCommand:
    def test_t4_no_shell_reads_it_and_no_secret_is_in_its_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OTHER", "of the server")
        said, text = tmp_path / "said", "$(touch x); `id` && rm -rf *"
        code = "import json, os, sys; open(sys.argv[1], 'w').write(json.dumps([sys.argv[2:], dict(os.environ)]))"
        CommandPlatform((sys.executable, "-c", code, str(said), text), {"LANG": "C"}).resize(WANTED)
        arguments, environ = json.loads(said.read_text())
        assert arguments == [text, "3"]
        assert environ.pop("ICEWRIGHT_SERVERS_SEEN") == "2"
        assert environ.keys() <= {"LANG", "LC_CTYPE"}

    def test_what_it_started_ends_with_it(self, tmp_path: Path) -> None:
        said = tmp_path / "said"
        code = (
            "import os, subprocess, sys, time\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
            "open(sys.argv[1] + '.new', 'w').write(str(child.pid))\n"
            "os.rename(sys.argv[1] + '.new', sys.argv[1])\n"
            "time.sleep(60)"
        )
        with pytest.raises(OutcomeUnknown, match="did not end within 2 s"):
            CommandPlatform((sys.executable, "-c", code, str(said)), dict(os.environ), timeout_s=2).resize(WANTED)
        child = int(said.read_text())
        until(lambda: not _runs(child))  # the kernel ends it a moment later

    def test_how_it_ended_says_whether_it_was_done(self) -> None:
        with pytest.raises(Rejected, match="cannot be run: No such file"):
            CommandPlatform(("/no/such/program",), {}).resize(WANTED)
        with pytest.raises(Rejected, match="status 4"):
            CommandPlatform((sys.executable, "-c", "import sys; sys.exit(4)"), {}).resize(WANTED)
        with pytest.raises(OutcomeUnknown, match="signal 9"):
            CommandPlatform((sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"), {}).resize(WANTED)


def _runs(pid: int) -> bool:
    """Whether a process runs: one that nobody has buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


@pytest.fixture
def api(tmp_path: Path) -> Iterator[FakeApi]:
    (tmp_path / "token").write_text(TOKEN + "\n")
    with kubernetes_api(tmp_path) as found:
        yield found


def kubernetes(api: FakeApi, folder: Path, name: str = NAME, timeout_s: float = 10.0) -> KubernetesPlatform:
    server = ApiServer(api.url, folder / "token", api.context)
    return KubernetesPlatform(server, Workload("deployment", name, NAMESPACE), timeout_s=timeout_s)


class TestKubernetes:
    def test_replicas_are_patched_with_the_version_that_was_read(self, api: FakeApi, tmp_path: Path) -> None:
        told = kubernetes(api, tmp_path).resize(WANTED)
        assert told == f"deployment/{NAME} of namespace {NAMESPACE} was set from 2 to 3 replicas"
        assert (api.patched, api.asked, api.version) == ([3], ["GET", "PATCH"], 8)

    def test_as_many_as_wanted_are_left_and_any_other_number_is_not_touched(self, api: FakeApi, tmp_path: Path) -> None:
        api.replicas = 3
        assert "3 replicas already" in kubernetes(api, tmp_path).resize(WANTED)
        api.replicas = 5
        with pytest.raises(Conflict, match="has 5 replicas, and 2 servers are seen"):
            kubernetes(api, tmp_path).resize(WANTED)
        assert api.patched == []

    def test_who_changes_them_at_the_same_time_stands_over_it(self, api: FakeApi, tmp_path: Path) -> None:
        api.changes_meanwhile = True
        with pytest.raises(Conflict, match="at the same time"):
            kubernetes(api, tmp_path).resize(WANTED)
        assert (api.replicas, api.patched) == (2, [])

    def test_what_the_account_may_not_do_is_named(self, api: FakeApi, tmp_path: Path) -> None:
        api.allowed = {"GET"}
        with pytest.raises(Rejected, match=r"may not patch deployments/scale in lakes"):
            kubernetes(api, tmp_path).resize(WANTED)
        api.allowed = set()
        with pytest.raises(Rejected, match=r"may not get deployments/scale in lakes"):
            kubernetes(api, tmp_path).resize(WANTED)
        api.allowed = {"GET", "PATCH"}
        with pytest.raises(Rejected, match="no deployment/other of namespace lakes"):
            kubernetes(api, tmp_path, "other").resize(WANTED)

    def test_the_token_is_read_for_each_request(self, api: FakeApi, tmp_path: Path) -> None:
        platform = kubernetes(api, tmp_path)
        api.token = OTHER
        with pytest.raises(Rejected, match="does not accept the token"):
            platform.resize(WANTED)
        (tmp_path / "token").write_text(OTHER)
        platform.resize(WANTED)
        (tmp_path / "token").unlink()
        with pytest.raises(Rejected, match="no token can be read"):
            platform.resize(replace(WANTED, before=3, after=4))
        assert api.patched == [3]

    @pytest.mark.parametrize(
        ("method", "status", "error"),
        [
            ("GET", 500, Unavailable),
            ("GET", 429, Unavailable),
            ("GET", 302, Rejected),
            ("PATCH", 409, Conflict),
            ("PATCH", 408, OutcomeUnknown),
            ("PATCH", 422, Rejected),
            ("PATCH", 429, Unavailable),
            ("PATCH", 500, OutcomeUnknown),
        ],
    )
    def test_each_status_says_whether_it_was_done(
        self, api: FakeApi, tmp_path: Path, method: str, status: int, error: type[IcewrightError]
    ) -> None:
        api.answers[method] = status
        with pytest.raises(error):
            kubernetes(api, tmp_path).resize(WANTED)

    def test_silence_is_unknown_only_where_something_was_asked_for(self, api: FakeApi, tmp_path: Path) -> None:
        api.hangs = {"GET"}
        with pytest.raises(Unavailable):
            kubernetes(api, tmp_path, timeout_s=0.3).resize(WANTED)
        assert api.asked == ["GET"]
        api.hangs = {"PATCH"}
        with pytest.raises(OutcomeUnknown):
            kubernetes(api, tmp_path, timeout_s=1.0).resize(WANTED)
        assert api.patched == [3]

    def test_an_answer_that_does_not_end_in_time_is_left(self, api: FakeApi, tmp_path: Path) -> None:
        """A byte now and then, each in time for the client."""
        api.body, api.pause_s = b" " * 100, 0.05
        with pytest.raises(Unavailable, match=r"does not end its answer within 2 s"):
            kubernetes(api, tmp_path, timeout_s=2).resize(WANTED)

    def test_what_is_no_scale_is_not_believed(self, api: FakeApi, tmp_path: Path) -> None:
        bodies = [
            b"no JSON",
            b"[]",
            b"{}",
            b'{"kind": "Scale", "spec": {"replicas": "2"}}',
            b'{"kind": "Scale", "spec": {"replicas": 2}}',
            b'{"kind": "Deployment", "spec": {"replicas": 2}, "metadata": {"resourceVersion": "7"}}',
            b" " * (ANSWER_BYTES_MAX + 1),
        ]
        for api.body in bodies:
            with pytest.raises(Unavailable):
                kubernetes(api, tmp_path).resize(WANTED)
        assert api.asked == ["GET"] * len(bodies)

    def test_a_pod_knows_where_the_api_is_and_others_are_told_that_they_are_none(self, tmp_path: Path) -> None:
        certificate(tmp_path)[0].rename(tmp_path / "ca.crt")
        (tmp_path / "namespace").write_text("lakes\n")
        environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
        found = api_of_pod(environ, tmp_path)
        assert (found.url, found.token_file) == ("https://[fd00::1]:6443", tmp_path / "token")
        assert own_namespace(tmp_path) == "lakes"
        with pytest.raises(InvalidConfiguration, match="KUBERNETES_SERVICE_HOST"):
            api_of_pod({}, tmp_path)
        with pytest.raises(InvalidConfiguration, match="no certificates"):
            api_of_pod(environ, tmp_path / "nowhere")
        with pytest.raises(InvalidConfiguration, match=r"platform\.namespace"):
            own_namespace(tmp_path / "nowhere")


CATALOG = '\n[[catalogs]]\nname = "lake"\ntype = "sql"\nuri = "sqlite:////nowhere.db"\nwarehouse = "/nowhere"\n'
WEBHOOK = 'kind = "webhook"\nurl = "https://hooks.example.org/scale"\nsecret = "env:SECRET"\n'


def configured(folder: Path, text: str, environ: dict[str, str] | None = None) -> object:
    file = folder / "icewright.toml"
    file.write_text(f"[platform]\n{text}{CATALOG}", encoding="utf-8")
    environ = {"HOME": str(folder), "SECRET": SECRET, **(environ or {})}
    config = load_config(file, environ, folder)
    return build_platform(config, environ) if config.platform.kind != "none" else server_limits(config.platform)


class TestSettings:
    def test_the_defaults_are_those_that_were_simulated(self, tmp_path: Path) -> None:
        assert configured(tmp_path, "") == ServerLimits()

    def test_each_kind_is_built(self, tmp_path: Path) -> None:
        assert isinstance(configured(tmp_path, f'mode = "act"\n{WEBHOOK}'), WebhookPlatform)
        assert isinstance(configured(tmp_path, 'kind = "command"\ncommand = ["/bin/true"]\n'), CommandPlatform)

    @each_case(
        "text",
        [
            'kind = "cloud"\n',
            'mode = "act"\n',
            'kind = "webhook"\n',
            WEBHOOK.replace("env:SECRET", SECRET),
            WEBHOOK.replace("env:SECRET", "env:NOBODY"),
            WEBHOOK.replace("env:SECRET", "env:HOME"),
            WEBHOOK.replace("https:", "http:"),
            WEBHOOK.replace("https://hooks", "https://user@hooks"),
            'kind = "command"\ncommand = []\n',
            'kind = "command"\ncommand = ["scale.sh"]\n',
            'kind = "kubernetes"\n',
            'kind = "kubernetes"\nworkload = "pod/icewright"\n',
            'kind = "kubernetes"\nworkload = "deployment/../secrets/x"\n',
            'kind = "kubernetes"\nworkload = "deployment/x"\nnamespace = "a/b"\n',
            "servers_min = 0\n",
            "servers_min = 3\nservers_max = 2\n",
            "cpu_percent = 101\n",
            "tables_max = 0\n",
            "idle_ms = 999\n",
        ],
    )
    def test_what_is_wrong_is_named_and_no_secret_is_shown(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(InvalidConfiguration, match=r"platform") as refused:
            configured(tmp_path, text, {"HOME": "a b"} if "env:HOME" in text else None)
        assert SECRET not in refused.value.message + refused.value.hint

    def test_a_command_of_the_environment_is_refused(self, tmp_path: Path) -> None:
        environ = {"ICEWRIGHT_PLATFORM__COMMAND": '["/bin/true"]'}
        with pytest.raises(InvalidConfiguration, match="into the configuration file alone"):
            configured(tmp_path, 'kind = "command"\n', environ)
