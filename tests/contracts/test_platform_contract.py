"""What is true of every platform: an absolute number, asked for once; and it is told apart what nobody knows."""

from __future__ import annotations

import json
import os
import ssl
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from icewright.core.errors import Conflict, OutcomeUnknown, Rejected
from icewright.core.networks import network
from icewright.core.reasons import Reason
from icewright.notifications.senders.guard import Guard
from icewright.notifications.senders.requests import Requests
from icewright.notifications.senders.urls import parse_url
from icewright.server.platforms.command import CommandPlatform
from icewright.server.platforms.kubernetes import ApiServer, KubernetesPlatform, Workload
from icewright.server.platforms.webhook import WebhookPlatform
from icewright.work.autotune.servers.platform import Platform, Resize
from tests.servers.hooks import Hooks, certificate, hooks
from tests.servers.kubernetes import NAME, NAMESPACE, TOKEN, FakeApi, kubernetes_api

WANTED = Resize("tune-1", 2, 3, Reason("busy-server", "server-1 has needed too much", {"servers": 2}))
SECRET = "a-secret-of-the-receiver"  # noqa: S105 - of nothing real
PATIENT_S, TIMEOUT_S = 30.0, 0.4
HANGS_S = 30.0


class Kind(ABC):
    """A real platform in front of one that stands in for where servers run."""

    platform: Platform

    @abstractmethod
    def asked(self) -> list[int]:
        """The numbers of servers that came through."""

    @abstractmethod
    def refuses(self) -> None:
        """From now on it says no."""

    @abstractmethod
    def hangs(self) -> None:
        """From now on it takes the request and says nothing."""


class OfWebhook(Kind):
    def __init__(self, folder: Path, ending: ExitStack) -> None:
        files = certificate(folder)
        self.hooks: Hooks = ending.enter_context(hooks(files))
        self._context = ssl.create_default_context(cafile=str(files[0]))
        self._waits(PATIENT_S)

    def _waits(self, timeout_s: float) -> None:
        url = parse_url(f"https://127.0.0.1:{self.hooks.port}/servers", "platform.url")
        requests = Requests(Guard((network("127.0.0.0/8"),)), context=self._context, timeout_s=timeout_s)
        self.platform = WebhookPlatform(lambda: (url, SECRET), requests)

    def asked(self) -> list[int]:
        return [json.loads(one.body)["servers"] for one in self.hooks.received]

    def refuses(self) -> None:
        self.hooks.status = 409

    def hangs(self) -> None:
        self.hooks.waits_s = 2 * TIMEOUT_S
        self._waits(TIMEOUT_S)


class OfCommand(Kind):
    def __init__(self, folder: Path, _ending: ExitStack) -> None:
        self._log = folder / "asked"
        self._runs(f"open({str(self._log)!r}, 'a').write(sys.argv[1] + chr(10))")

    def _runs(self, python: str, timeout_s: float = PATIENT_S) -> None:
        argv = (sys.executable, "-c", f"import sys, time; {python}")
        self.platform = CommandPlatform(argv, {"PATH": os.environ["PATH"]}, timeout_s=timeout_s)

    def asked(self) -> list[int]:
        return [int(line) for line in self._log.read_text().split()] if self._log.exists() else []

    def refuses(self) -> None:
        self._runs("sys.exit(3)")

    def hangs(self) -> None:
        self._runs(f"time.sleep({HANGS_S})", TIMEOUT_S)


class OfKubernetes(Kind):
    def __init__(self, folder: Path, ending: ExitStack) -> None:
        self.api: FakeApi = ending.enter_context(kubernetes_api(folder))
        (folder / "token").write_text(TOKEN + "\n")
        self._server = ApiServer(self.api.url, folder / "token", self.api.context)
        self._waits(PATIENT_S)

    def _waits(self, timeout_s: float) -> None:
        self.platform = KubernetesPlatform(self._server, Workload("deployment", NAME, NAMESPACE), timeout_s=timeout_s)

    def asked(self) -> list[int]:
        return self.api.patched

    def refuses(self) -> None:
        self.api.answers["PATCH"] = 409

    def hangs(self) -> None:
        self.api.hangs.add("PATCH")
        self._waits(2 * TIMEOUT_S)  # the reading before it is answered


@pytest.fixture(params=[OfWebhook, OfCommand, OfKubernetes])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kind]:
    with ExitStack() as ending:
        yield request.param(tmp_path, ending)


def test_the_number_of_servers_comes_through_once(kind: Kind) -> None:
    assert kind.platform.resize(WANTED)
    assert kind.asked() == [3]


def test_what_is_refused_was_not_done(kind: Kind) -> None:
    kind.refuses()
    with pytest.raises((Rejected, Conflict)):
        kind.platform.resize(WANTED)


def test_what_is_not_answered_is_unknown(kind: Kind) -> None:
    kind.hangs()
    with pytest.raises(OutcomeUnknown) as raised:
        kind.platform.resize(WANTED)
    assert SECRET not in raised.value.message
