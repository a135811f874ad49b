"""``icewright serve`` for other machines, as a process: by TLS, and not before somebody may come in."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.builders.command_line import at_home, icewright, write_configuration
from tests.lakes.sqlite import append, make_lake, make_table
from tests.servers.certificates import Authority
from tests.servers.processes import free_port

pytestmark = pytest.mark.e2e
_PATIENCE_S = 60.0
TOKEN = "the-token-that-its-owner-chose-for-all-servers"  # noqa: S105 - not a secret


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    entry = make_lake(tmp_path)
    append(make_table(entry, ("db", "events")), range(10))
    write_configuration(tmp_path, entry)
    at_home(tmp_path, monkeypatch)
    return tmp_path


def command(lake: Path) -> list[str]:
    return [sys.executable, "-m", "icewright", "--config", str(lake / "icewright.toml"), "serve"]


def test_it_does_not_listen_for_others_while_nobody_may_come_in(lake: Path) -> None:
    settings = {"HOST": "0.0.0.0", "PUBLIC_URL": "https://lake.example", "TRUSTED_PROXIES": '["10.0.0.7"]'}  # noqa: S104 - it is refused
    environ = {**os.environ, **{f"ICEWRIGHT_SERVER__{name}": value for name, value in settings.items()}}
    done = subprocess.run(command(lake), env=environ, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603 - our own words
    assert (done.returncode, done.stdout) == (1, "")
    assert "no principal has access yet" in done.stderr
    assert not (lake / "state" / "server.json").exists()


def test_the_command_line_reaches_a_server_by_tls(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, port = Authority(lake), free_port()
    authority.vouch(lake / "tls.crt", lake / "tls.key", "localhost")
    url = f"https://localhost:{port}"
    settings = {
        "PORT": str(port),
        "PUBLIC_URL": url,
        "TLS_CERTIFICATE": str(lake / "tls.crt"),
        "TLS_KEY": str(lake / "tls.key"),
        "TOKEN": "env:OWN_TOKEN",
    }
    environ = {f"ICEWRIGHT_SERVER__{name}": value for name, value in settings.items()}
    environ = {**os.environ, **environ, "OWN_TOKEN": TOKEN}
    with subprocess.Popen(command(lake), env=environ, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own words
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"icewright listens at {url}\n"
            assert process.stdout.readline().startswith(f"Open once in a browser: {url}/?token=")
            (lake / "token.txt").write_text(f"{TOKEN}\n")
            refused = icewright("login", url, "--token-file", "token.txt")
            assert refused.status == 1
            assert "SSL_CERT_FILE" in refused.err
            monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
            deadline = time.monotonic() + _PATIENCE_S
            while icewright("login", url, "--token-file", "token.txt").status:
                assert time.monotonic() < deadline, "the server does not answer"
                time.sleep(0.2)
            assert "catalogs  lake" in icewright("status").out
            assert icewright("login").out.startswith("Open once in a browser")
            assert f"{url}/?token=" in icewright("login").out
        finally:
            process.terminate()
