"""Port, token and address of a server: what others could have written is not trusted, what they could read neither."""

from __future__ import annotations

import os
import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from icewright.configuration.load import load_config
from icewright.core.errors import InvalidConfiguration, NotFound, Rejected, Unavailable, Unreadable
from icewright.server.server import PORTS_TRIED, listen, own_token
from icewright.terminal.address import ServerAddress, lasting_secret, read_address, remove_address, write_address
from tests.cases import each_case

ADDRESS = ServerAddress("http://127.0.0.1:7077", "t" * 43, 17)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def generous_umask() -> None:
    os.umask(0o022)


def test_a_port_that_is_taken_makes_way_for_the_next() -> None:
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with listen("127.0.0.1", port) as second:
            assert port < second.getsockname()[1] < port + PORTS_TRIED


def test_a_port_is_ours_from_the_moment_it_is_given() -> None:
    """A bound socket that does not listen yet would share its port with the next server that tries."""
    with listen("127.0.0.1", 0) as first, socket.create_connection(first.getsockname(), timeout=5):
        pass


def test_when_all_ports_are_taken_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with listen("127.0.0.1", 0) as first:
        monkeypatch.setattr("icewright.server.server.PORTS_TRIED", 1)
        with pytest.raises(Unavailable, match="taken"):
            listen("127.0.0.1", first.getsockname()[1])


def test_a_host_that_is_not_this_machine_is_not_a_port_that_is_taken() -> None:
    with pytest.raises(Rejected, match=r"192\.0\.2\.1"):
        listen("192.0.2.1", 7077)


def test_the_search_for_a_port_ends_with_the_last_one() -> None:
    with listen("127.0.0.1", 65_535), pytest.raises(Unavailable):
        listen("127.0.0.1", 65_535)


def test_the_token_lasts_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    token = lasting_secret(tmp_path / "state", "token")
    assert len(token) >= 32
    assert lasting_secret(tmp_path / "state", "token") == token
    assert mode(tmp_path / "state" / "token") == 0o600
    assert mode(tmp_path / "state") == 0o700
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["token"]
    assert lasting_secret(tmp_path / "other", "token") != token


def test_servers_of_one_store_may_have_the_same_token(tmp_path: Path) -> None:
    config = load_config(None, {"HOME": str(tmp_path), "ICEWRIGHT_SERVER__TOKEN": "env:SHARED"}, tmp_path)
    assert own_token(config.server, {"SHARED": f"{'t' * 43}\n"}) == "t" * 43
    assert not config.server.state_dir.exists()


@each_case("shared", ["", "short", "t" * 31, f"{'t' * 20} {'t' * 20}", "\u00e9" * 43])
def test_t5_a_reference_to_no_token_is_refused_and_not_shown(tmp_path: Path, shared: str) -> None:
    config = load_config(None, {"HOME": str(tmp_path), "ICEWRIGHT_SERVER__TOKEN": "env:SHARED"}, tmp_path)
    with pytest.raises(InvalidConfiguration, match="env:SHARED holds no token") as raised:
        own_token(config.server, {"SHARED": shared})
    assert not shared or shared not in raised.value.message
    with pytest.raises(InvalidConfiguration, match="no variable SHARED"):
        own_token(config.server, {})


@each_case("readable", [0o640, 0o604, 0o644, 0o620])
def test_a_token_that_others_can_read_or_write_is_refused(tmp_path: Path, readable: int) -> None:
    lasting_secret(tmp_path, "token")
    (tmp_path / "token").chmod(readable)
    with pytest.raises(Unreadable, match="others"):
        lasting_secret(tmp_path, "token")


@each_case("text", ["", "\n", "short"])
def test_a_file_without_a_token_is_not_an_empty_token(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").touch(0o600)
    (tmp_path / "token").write_text(text)
    with pytest.raises(Unreadable, match="no token"):
        lasting_secret(tmp_path, "token")


def test_what_a_crash_left_behind_does_not_stand_in_the_way(tmp_path: Path) -> None:
    (tmp_path / f"token.{os.getpid()}").write_text("half a tok")
    assert len(lasting_secret(tmp_path, "token")) >= 32


def test_servers_that_start_at_once_agree_on_one_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = iter(range(1, 1000))
    monkeypatch.setattr(os, "getpid", lambda: next(ids))  # threads stand in for processes
    with ThreadPoolExecutor(8) as pool:
        tokens = set(pool.map(lambda _: lasting_secret(tmp_path, "token"), range(8)))
    assert len(tokens) == 1


def test_the_address_is_for_its_owner_alone_whatever_stood_there(tmp_path: Path) -> None:
    path = tmp_path / "state" / "server.json"
    write_address(path, ADDRESS)
    assert (read_address(path), mode(path), mode(path.parent)) == (ADDRESS, 0o600, 0o700)
    left = path.with_name(f"server.json.{os.getpid()}")
    left.write_text("left behind")
    left.chmod(0o666)
    path.chmod(0o666)
    write_address(path, ADDRESS)
    assert (read_address(path), mode(path)) == (ADDRESS, 0o600)
    assert [entry.name for entry in path.parent.iterdir()] == ["server.json"]


def test_a_link_that_stands_in_the_way_is_not_followed(tmp_path: Path) -> None:
    path, theirs = tmp_path / "server.json", tmp_path / "theirs"
    theirs.write_text("theirs")
    path.with_name(f"server.json.{os.getpid()}").symlink_to(theirs)
    write_address(path, ADDRESS)
    assert theirs.read_text() == "theirs"
    assert not path.is_symlink()


@each_case("readable", [0o640, 0o604, 0o622])
def test_an_address_that_others_could_read_or_write_is_not_used(tmp_path: Path, readable: int) -> None:
    path = tmp_path / "server.json"
    write_address(path, ADDRESS)
    path.chmod(readable)
    with pytest.raises(Unreadable, match="trusted"):
        read_address(path)


def test_an_address_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "server.json"
    write_address(path, ADDRESS)
    somebody_else = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody_else)
    with pytest.raises(Unreadable, match="trusted"):
        read_address(path)


@each_case("content", [b"", b"{", b"[]", b'{"url": 5}', b"\xff\xfe", b"null"])
def test_an_address_that_is_none_is_unreadable(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "server.json"
    path.touch(0o600)
    path.write_bytes(content)
    with pytest.raises(Unreadable, match=r"server\.json"):
        read_address(path)


def test_no_address_means_no_server(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no server is running"):
        read_address(tmp_path / "server.json")


def test_a_folder_in_its_place_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        read_address(tmp_path)


def test_a_server_removes_its_own_address_only(tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    write_address(path, ADDRESS)
    remove_address(path, ServerAddress(ADDRESS.url, ADDRESS.token, 18))
    assert path.exists()
    path.chmod(0o644)
    remove_address(path, ADDRESS)
    assert path.exists()
    path.chmod(0o600)
    remove_address(path, ADDRESS)
    assert not path.exists()
    remove_address(path, ADDRESS)
