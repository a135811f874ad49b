"""Sessions with a real ZooKeeper: they expire, are lost, and begin anew; nobody else has a server's name or nodes."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial

import pytest
import structlog
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, Permissions, make_digest_acl

from icewright.core.errors import CoordinatorUnavailable, InvalidConfiguration, NameTaken, NotAllowed
from icewright.core.servers import LinkState
from icewright.core.system_clock import SystemClock
from icewright.server.cluster import zookeeper as module
from icewright.server.cluster.zookeeper import ZooKeeper
from icewright.server.cluster.zookeeper_settings import ZooKeeperSettings
from tests.servers.certificates import Authority
from tests.servers.processes import HOST
from tests.servers.zookeeper import PASSWORD, USER, ZooKeeperServer
from tests.waiting import at_once, until

WAIT_S = 60.0
STORE = "00000000000000aa"


class Town:
    """Servers of one root."""

    def __init__(self, server: ZooKeeperServer, ending: ExitStack) -> None:
        self.server, self._ending = server, ending
        self.settings = ZooKeeperSettings(server.hosts, server.new_root(), session_s=2.0)

    def open(
        self, settings: ZooKeeperSettings | None = None, patience_s: float = 60.0, store: str = STORE
    ) -> ZooKeeper:
        return self._ending.enter_context(
            ZooKeeper(settings or self.settings, SystemClock(), store=store, patience_s=patience_s)
        )

    def client(self, **more: object) -> KazooClient:
        """Somebody else, who speaks with ZooKeeper by himself."""
        client = KazooClient(hosts=self.server.hosts[0], **more)
        client.start()
        self._ending.callback(client.stop)
        return client

    def expire(self, one: ZooKeeper) -> None:
        """End a session by another connection, which has its number and password."""
        before = one._client.client_id
        twin = KazooClient(hosts=self.server.hosts[0], client_id=before)
        twin.start()
        twin.stop()
        until(lambda: one._client.client_id not in (None, before))


@pytest.fixture
def town(zookeeper: ZooKeeperServer) -> Iterator[Town]:
    zookeeper.start()
    with ExitStack() as ending:
        yield Town(zookeeper, ending)
        zookeeper.start()


def away(do: Callable[[], object]) -> bool:
    try:
        do()
    except CoordinatorUnavailable:
        return True
    return False


def test_who_stands_longest_is_elected_until_it_withdraws_or_ends(town: Town) -> None:
    first, second, third = town.open(), town.open(), town.open()
    assert [one.stand() for one in (first, second, third)] == [True, False, False]
    assert [one.stand() for one in (third, second, first)] == [False, False, True]
    first.withdraw()
    assert [one.stand() for one in (first, second)] == [False, True]
    second.__exit__()
    assert [one.stand() for one in (first, third)] == [False, True]


def test_who_has_not_stood_for_long_stands_no_more(town: Town) -> None:
    """Its thread hangs in a call, or its store does not answer; its session goes on."""
    hangs, other = town.open(patience_s=0.5), town.open()
    assert hangs.stand()
    assert not other.stand()
    until(other.stand)
    assert not hangs.stand()
    assert hangs.link.state is LinkState.CONNECTED


def test_strange_nodes_are_nobodys(town: Town) -> None:
    first = town.open()
    first.announce("server-1")
    stranger, root = town.client(), town.settings.root
    for name in ("0000-1", "x", "0000000000000000-", "0000000000000000-" + 5_000 * "1"):
        stranger.create(f"{root}/election/{name}", ephemeral=True)
    assert first.stand()
    stranger.create(f"{root}/nodes/%s", ephemeral=True)
    assert first.present() == {"server-1", "%s"}


@pytest.mark.parametrize("session", ["0000000000000000", "00000000000000ff"])
def test_a_node_of_the_election_that_ends_with_no_session_stands_for_nobody(town: Town, session: str) -> None:
    """It would stand longest for ever, and no server would lead."""
    first = town.open()
    by_hand = f"{town.settings.root}/election/{session}--1"
    town.client().create(by_hand)
    with structlog.testing.capture_logs() as logs:
        assert first.stand()
        assert first.stand()
    assert [one["node"] for one in logs if one["event"] == "stands for no server"] == [by_hand]


def test_a_node_that_names_a_session_does_not_make_it_stand(town: Town) -> None:
    """Somebody made it by hand, and it does not end with the server."""
    first, second, stranger = town.open(), town.open(), town.client()
    session = module._hex(first._client.client_id)
    stranger.create(f"{town.settings.root}/election/{session}--1")
    assert second.stand()
    assert not first.stand()
    second.withdraw()
    assert first.stand()


def test_a_root_is_one_stores(town: Town) -> None:
    first = town.open()
    first.announce("server-1")
    with pytest.raises(InvalidConfiguration, match=f"{town.settings.root} of ZooKeeper at .* another store") as caught:
        town.open(store="00000000000000bb")
    assert "[cluster] zookeeper_root" in caught.value.hint
    assert town.client().get_children(f"{town.settings.root}/nodes") == ["server-1"]
    town.open(replace(town.settings, root=town.server.new_root()), store="00000000000000bb")
    assert town.open().present() == {"server-1"}


def test_of_the_stores_that_come_to_a_new_root_at_once_one_has_it(town: Town) -> None:
    """All find that nobody has it; ZooKeeper lets one create the node."""
    stores, refused = [f"{number:016x}" for number in range(6)], list[str]()

    def come(store: str) -> None:
        try:
            town.open(store=store)
        except InvalidConfiguration:
            refused.append(store)

    at_once([partial(come, store) for store in stores])
    data, _ = town.client().get(f"{town.settings.root}/store")
    assert sorted([*refused, data.decode()]) == stores


def test_a_server_that_started_without_zookeeper_is_not_there_in_the_root_of_another_store(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    town.open()
    monkeypatch.setattr(module, "START_S", 0.2)
    town.server.kill()
    other = town.open(store="00000000000000bb")
    town.server.start()
    until(lambda: other.link.state is LinkState.CONNECTED)
    for ask in (lambda: other.announce("server-2"), other.present, other.stand, lambda: other.publish(b"{}")):
        with pytest.raises(CoordinatorUnavailable, match="the root of another store"):
            ask()
    assert town.client().get_children(f"{town.settings.root}/nodes") == []


def test_a_server_whose_session_expired_is_there_again_by_a_new_one_and_stands_behind_the_others(town: Town) -> None:
    first, second = town.open(), town.open()
    first.announce("server-1")
    assert first.stand()
    assert not second.stand()
    town.expire(first)
    until(lambda: "server-1" in second.present())
    assert second.stand()
    assert not first.stand()


def test_nodes_that_somebody_removes_are_there_again(town: Town) -> None:
    first, second = town.open(), town.open()
    first.announce("server-1")
    first.stand()
    second.stand()
    town.client().delete(town.settings.root, recursive=True)
    for ask in (first.stand, first.present, lambda: first.publish(b"{}"), second.withdraw):
        until(lambda ask=ask: not away(ask))  # type: ignore[misc]  # of the loop
    until(lambda: first.present() == {"server-1"})
    assert first.stand()


def test_a_name_is_one_servers_alone_until_that_ends(town: Town) -> None:
    first, twin = town.open(), town.open()
    first.announce("server-1")
    first.announce("server-1")
    with pytest.raises(NameTaken, match="another server has the name server-1"):
        twin.announce("server-1")
    town.client().delete(f"{town.settings.root}/nodes/server-1")
    until(lambda: "server-1" in first.present())  # it makes sure by itself
    first.__exit__()
    twin.announce("server-1")
    assert twin.present() == {"server-1"}


def test_while_it_is_paused_each_question_ends_and_behind_it_the_session_is_the_same(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ASK_S", 0.2)
    one = town.open(replace(town.settings, session_s=15.0))
    one.announce("server-1")
    before = one._client.client_id
    town.server.pause()
    try:
        assert away(one.stand)
        assert away(one.present)
        assert away(lambda: one.publish(b"{}"))
        one.withdraw()
    finally:
        town.server.go_on()
    until(lambda: not away(one.present))
    until(lambda: town.client().get_children(f"{town.settings.root}/election") == [])
    assert one._client.client_id == before
    assert one.stand()


def test_while_it_is_gone_it_says_so_and_all_goes_on_by_itself_when_it_is_back(town: Town) -> None:
    first, second = town.open(), town.open()
    for one, name in ((first, "server-1"), (second, "server-2")):
        one.announce(name)
        one.stand()
    town.server.kill()
    until(lambda: first.link.state is LinkState.SUSPENDED)
    since = first.link.since
    assert first.steady_s == 0
    until(lambda: first.link.state is LinkState.LOST)
    assert first.link.since == since
    assert away(first.stand)
    assert away(first.present)
    town.server.start()
    until(lambda: {first.link.state, second.link.state} == {LinkState.CONNECTED})
    assert (first.link.since or 0) > (since or 0)
    until(lambda: not away(first.present) and first.present() == {"server-1", "server-2"})
    assert sorted([first.stand(), second.stand()]) == [False, True]


def test_servers_are_there_again_when_it_comes_back_empty(town: Town) -> None:
    """It lets nobody in who has seen later transactions than its own: there are none."""
    first, second = town.open(), town.open()
    for one, name in ((first, "server-1"), (second, "server-2")):
        one.announce(name)
        one.stand()
    before = first._client.client_id
    town.server.kill()
    until(lambda: first.link.state is LinkState.SUSPENDED)
    town.server.forget()
    town.server.start()
    until(lambda: not away(first.present) and first.present() == {"server-1", "server-2"})
    assert first._client.client_id != before
    assert sorted([first.stand(), second.stand()]) == [False, True]
    assert town.client().get(f"{town.settings.root}/store")[0] == STORE.encode()
    with pytest.raises(InvalidConfiguration, match="another store"):
        town.open(store="00000000000000bb")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # of kazoo's own
@pytest.mark.parametrize("xid", [None, 99])
def test_what_answers_with_no_answers_of_zookeeper_is_as_one_that_is_away(
    xid: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too short for what was asked for, or an answer to something else."""
    monkeypatch.setattr(module, "START_S", 0.5)
    with socket.create_server((HOST, 0)) as listening:
        threading.Thread(target=babbling, args=(listening, xid), daemon=True).start()
        settings = ZooKeeperSettings((f"{HOST}:{listening.getsockname()[1]}",), session_s=2.0)
        with ZooKeeper(settings, SystemClock(), store=STORE) as one:
            until(lambda: one._client.connected)
            for ask in (one.present, one.stand, lambda: one.announce("server-1")):
                with pytest.raises(CoordinatorUnavailable):
                    ask()


def babbling(listening: socket.socket, xid: int | None) -> None:
    """Begin sessions, and answer all requests with nothing, as if they were those of a number."""
    while True:
        try:
            connection = listening.accept()[0]
        except OSError:
            return
        with connection, suppress(OSError, struct.error):
            read_frame(connection)
            write_frame(connection, struct.pack(">iiqi16sb", 0, 2000, 1, 16, b"", 0))
            while True:
                (asked,) = struct.unpack_from(">i", read_frame(connection))
                write_frame(connection, struct.pack(">iqi", asked if xid is None or asked < 0 else xid, 1, 0))


def read_frame(connection: socket.socket) -> bytes:
    (length,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    return connection.recv(length, socket.MSG_WAITALL)


def write_frame(connection: socket.socket, body: bytes) -> None:
    connection.sendall(struct.pack(">i", len(body)) + body)


def test_a_server_starts_without_it_and_is_there_once_it_is(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "START_S", 0.2)
    town.server.kill()
    one = town.open()
    assert one.link.state is LinkState.LOST
    with pytest.raises(CoordinatorUnavailable, match=f"ZooKeeper at {HOST}:{town.server.port} does not answer"):
        one.announce("server-1")
    town.server.start()
    until(lambda: not away(lambda: one.announce("server-1")))
    assert one.present() == {"server-1"}


class TestCredentials:
    """With a user, or a certificate, nobody else has the servers' nodes."""

    @pytest.mark.parametrize("by_sasl", [False, True])
    def test_nobody_else_reads_or_changes_them(self, town: Town, *, by_sasl: bool) -> None:
        settings = replace(town.settings, user=USER, password=PASSWORD, by_sasl=by_sasl)
        first, second = town.open(settings), town.open(settings)
        first.announce("server-1")
        assert second.present() == {"server-1"}
        assert [first.stand(), second.stand()] == [True, False]
        first.publish(b"{}")
        stranger, root = town.client(), settings.root
        attempts: tuple[Callable[[], object], ...] = (
            lambda: stranger.get(f"{root}/bucket-assignment"),
            lambda: stranger.get_children(f"{root}/nodes"),
            lambda: stranger.delete(f"{root}/nodes/server-1"),
            lambda: stranger.create(f"{root}/election/0000000000000000-0000000000"),
            lambda: stranger.set(f"{root}/bucket-assignment", b"x"),
            lambda: stranger.set_acls(root, OPEN_ACL_UNSAFE),
        )
        for attempt in attempts:
            with pytest.raises(NoAuthError):
                attempt()

    def test_another_user_is_not_let_in(self, town: Town) -> None:
        town.open(replace(town.settings, user=USER, password=PASSWORD))
        for other in (replace(town.settings, user=USER, password="wrong"), town.settings):  # noqa: S106 - wrong
            with pytest.raises(NotAllowed, match=f"denies access to {town.settings.root}"):
                town.open(other)
        with pytest.raises(NotAllowed, match="does not let the user") as caught:
            town.open(wrong := replace(town.settings, user=USER, password="wrong", by_sasl=True))  # noqa: S106 - wrong
        assert "wrong" not in f"{caught.value.message} {wrong}"

    def test_who_is_not_let_in_any_more_is_let_in_later(self, town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
        """The library gives up at the first denial; a running server does not."""
        monkeypatch.setattr(module, "REVIVE_S", 0.5)
        one = town.open(replace(town.settings, user=USER, password=PASSWORD, by_sasl=True))
        one.announce("server-1")
        one._client._connection.sasl_options["password"] = "wrong"  # noqa: S105 - wrong
        before, client = one._client.client_id, one._client
        town.client(client_id=before).stop()
        until(lambda: one._client is not client)
        until(lambda: not away(one.present) and one.present() == {"server-1"})

    @pytest.mark.parametrize("where", ["", "/store", "/nodes", "/election", "/bucket-assignment"])
    def test_nodes_that_anybody_may_change_are_not_used(self, town: Town, where: str) -> None:
        root = town.settings.root
        known = replace(town.settings, user=USER, password=PASSWORD)
        if where:
            town.open(known)
            town.client(auth_data=[("digest", f"{USER}:{PASSWORD}")]).set_acls(f"{root}{where}", OPEN_ACL_UNSAFE)
        else:
            town.client().create(root)
        with pytest.raises(NotAllowed, match=f"other users may change {root}{where} of ZooKeeper"):
            town.open(known)

    @pytest.mark.parametrize("by_sasl", [False, True])
    def test_nodes_that_somebody_else_made_and_lets_the_servers_have_are_not_used(
        self, town: Town, *, by_sasl: bool
    ) -> None:
        """By their address, or by the name of their user."""
        stranger = town.client(auth_data=[("digest", "stranger:secret")])
        ours = ACL(Permissions.ALL, Id("sasl", USER) if by_sasl else Id("ip", HOST))
        stranger.create(town.settings.root, acl=[make_digest_acl("stranger", "secret", all=True), ours])
        with pytest.raises(NotAllowed, match=f"other users may change {town.settings.root} of ZooKeeper"):
            town.open(replace(town.settings, user=USER, password=PASSWORD, by_sasl=by_sasl))

    def test_nodes_that_an_administrator_made_for_the_user_are_used(self, town: Town) -> None:
        """Who may not change what others may is not shown its own digest."""
        own = make_digest_acl(USER, PASSWORD, read=True, write=True, create=True, delete=True)
        town.client().create(town.settings.root, acl=[own, make_digest_acl("guest", "secret", read=True)])
        one = town.open(replace(town.settings, user=USER, password=PASSWORD))
        one.announce("server-1")
        assert one.present() == {"server-1"}

    def test_by_tls_a_server_shows_its_certificate_and_believes_none_but_its_authority(
        self, town: Town, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = town.server.folder
        by_tls = replace(
            town.settings,
            hosts=(f"{HOST}:{town.server.tls_port}",),
            ca=str(town.server.authority.certificate),
            certificate=str(folder / "certificate.pem"),
            key=str(folder / "key.pem"),
        )
        one = town.open(by_tls)
        one.announce("server-1")
        assert one.present() == {"server-1"}
        with pytest.raises(NoAuthError):
            town.client().get_children(f"{by_tls.root}/nodes")
        monkeypatch.setattr(module, "START_S", 0.5)
        (folder / "other").mkdir()
        for wrong in (
            replace(by_tls, ca=str(Authority(folder / "other").certificate)),
            replace(by_tls, hosts=(f"localhost:{town.server.tls_port}",)),  # the certificate is for the address
        ):
            assert town.open(wrong).link.state is LinkState.LOST
