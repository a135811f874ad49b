"""Messages through Apprise: a process for each, which reaches nothing inside and starts nothing (hazard T7)."""

from __future__ import annotations

import json
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path

import pytest

from icewright.core.errors import Forbidden, InvalidConfiguration, Rejected, Unavailable
from icewright.notifications.port import Outgoing
from icewright.notifications.senders.apprise_process import INSIDE
from icewright.notifications.senders.by_apprise import SCHEMES, AppriseSender, parse_address
from icewright.notifications.senders.guard import Guard
from tests.cases import each_case
from tests.servers.hooks import hooks

KEY = "receivers.chat.url"
TOKEN = "abcdefghijklmnopqrstuvwxyz"  # noqa: S105 - nobody's
OUTGOING = Outgoing("msg_1", "icewright: 1 parked", "plain", "- **parked** `lake / a`: `so`", "<p>html</p>")
LOOPBACK = (ip_network("127.0.0.0/8"),)


def sender(url: str, *, allowed: tuple[object, ...] = LOOPBACK, patience_s: float = 60.0) -> AppriseSender:
    address = parse_address(url, KEY)
    return AppriseSender(lambda: address, Guard(allowed), patience_s=patience_s)  # type: ignore[arg-type]  # networks


def test_a_message_arrives_at_a_chat() -> None:
    with hooks() as receiver:
        receiver.status = 200
        sender(f"mmost://127.0.0.1:{receiver.port}/{TOKEN}").send(OUTGOING, 0)
    (got,) = receiver.received
    said = json.loads(got.body)
    assert OUTGOING.title in said["text"]
    assert "lake / a" in said["text"]
    assert got.path == f"/hooks/{TOKEN}"


@each_case("host", ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "127.1", "[::1]"])
def test_t7_a_chat_inside_is_not_reached(host: str) -> None:
    with hooks() as receiver:
        with pytest.raises((Forbidden, Rejected, Unavailable)):
            sender(f"mmost://{host}:{receiver.port}/{TOKEN}", allowed=()).send(OUTGOING, 0)
        assert receiver.connections == 0


def test_t7_nor_a_mail_server_inside() -> None:
    with hooks() as receiver:
        url = f"mailto://u:p@example.org?smtp=127.0.0.1&port={receiver.port}&to=a@example.org"
        with pytest.raises(Forbidden):
            sender(url, allowed=()).send(OUTGOING, 0)
        assert receiver.connections == 0


def test_t7_no_redirect_is_followed() -> None:
    with hooks() as inside, hooks() as receiver:
        receiver.status, receiver.answer = 307, {"Location": f"http://127.0.0.1:{inside.port}/"}
        with pytest.raises(Unavailable):
            sender(f"mmost://127.0.0.1:{receiver.port}/{TOKEN}").send(OUTGOING, 0)
        assert (inside.connections, len(receiver.received)) == (0, 1)


def test_what_a_service_answers_is_shown_to_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    with hooks() as receiver:
        receiver.status, receiver.body = 500, b"the-secret-of-the-inside"
        with pytest.raises(Unavailable) as told:
            sender(f"mmost://127.0.0.1:{receiver.port}/{TOKEN}").send(OUTGOING, 0)
    said = f"{told.value} {told.value.hint} {capfd.readouterr()}"
    assert not any(secret in said for secret in (TOKEN, "the-secret-of-the-inside"))


def test_a_service_that_lets_us_wait_is_given_up() -> None:
    with pytest.raises(Unavailable, match="in time"):
        sender(f"mmost://127.0.0.1:9/{TOKEN}", patience_s=0.01).send(OUTGOING, 0)


@each_case(
    "text",
    [
        *(
            f"{scheme}://x"
            for scheme in ("syslog", "rsyslog", "dbus", "glib", "gnome", "kde", "macosx", "windows", "qt")
        ),
        *(f"{scheme}://x" for scheme in ("json", "xml", "form", "apprise", "mqtt", "smpp", "file", "exec", "irc", "")),
        "http://example.org",
        "slack",
        "slack:/x",
        f"mmost://example.org/{TOKEN}?verify=no",
        f"mmost://example.org/{TOKEN}?VERIFY=False",
        f"mmost://example.org/{TOKEN}?verify=yes&verify=0",
        f"mmost://example.org/{TOKEN}\nx",
    ],
)
def test_t1_t7_what_is_no_service_of_people_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        parse_address(text, KEY)
    assert KEY in refused.value.message
    assert TOKEN not in f"{refused.value} {refused.value.hint}"


def test_every_service_that_is_known_here_is_known_to_the_library() -> None:
    found = subprocess.check_output(
        [
            sys.executable,
            "-c",
            "from apprise.manager_plugins import NotificationManager as M; print(*M().schemas())",
        ],
        text=True,
    )
    assert set(found.split()) >= SCHEMES


@each_case(
    "deed",
    [
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import socket; socket.socket(socket.AF_UNIX).connect('/tmp/none')",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('169.254.169.254', 80))",
        "import socket; socket.socket().connect(('localhost', 9))",
        "import socket; socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', 9))",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
        "import os; os.posix_spawn('/bin/true', ['true'], {})",
        "import os; os.execv('/bin/true', ['true'])",
        "import os; os.fork()",
    ],
)
def test_t7_whatever_code_does_there_ends_the_process(deed: str, tmp_path: Path) -> None:
    watched = "from icewright.notifications.senders.apprise_process import watch\nwatch([])\n"
    code = f"{watched}try:\n  {deed}\nexcept OSError: pass"
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)  # noqa: S603 - our own words
    assert ended.returncode == INSIDE
