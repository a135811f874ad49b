"""A server's session with ZooKeeper: which servers are there, and which of those that stand is to lead.

It is no fence. A server that stood still for longer than a session lasts believes in its session until it hears
otherwise; what it writes then, the epochs of the store refuse. Nothing is watched: a watch may be late or lost, so that
everything would be asked for now and then all the same. Why so: ``docs/decisions``, 0078.
"""

from __future__ import annotations

import logging
import re
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Self

import structlog
from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, Permissions

from icewright.core.clock import Clock
from icewright.core.errors import CoordinatorUnavailable, InvalidConfiguration, NameTaken, NotAllowed
from icewright.core.outage_log import Outage
from icewright.core.servers import LEADER_LEASE_MS, ZOOKEEPER, CoordinatorLink, LinkState
from icewright.server.cluster.zookeeper_settings import ZooKeeperSettings

_log = structlog.get_logger("icewright.server")

ASK_S: Final = 1.0
"""How long an answer may take. A leader asks twice between two renewals of its lease in the store."""
KEEP_S: Final = 0.5
"""How often it is made sure that the server's node is there, and that it does not stand when it must not."""
START_S: Final = 10.0
"""How long the start of a server waits for ZooKeeper, to tell at once what it denies."""
REVIVE_S: Final = 5.0
"""How long a client that has given up is left alone."""
_END_S: Final = 3.0
_RECONNECT: Final = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 1.0}
_STANDING = re.compile(r"(?P<session>[0-9a-f]{16})-(?P<number>-?[0-9]{1,11})")
_STATES: Final = {
    KazooState.CONNECTED: LinkState.CONNECTED,
    KazooState.SUSPENDED: LinkState.SUSPENDED,
    KazooState.LOST: LinkState.LOST,
}
_UNREADABLE: Final = (struct.error, RuntimeError, ValueError, IndexError)
"""What the library raises for what is no answer to what it asked for."""
_OTHERS_MAY: Final = Permissions.WRITE | Permissions.CREATE | Permissions.DELETE | Permissions.ADMIN


class ZooKeeper:
    """A server's session, as long as it is entered; a lost one is begun anew. Safe for several threads.

    ``store`` is the identity of the servers' store: a root is one store's. ``patience_s`` is for how long it stands for
    election without :meth:`stand`: a server whose thread hangs in a call, or whose store does not answer, lets others
    lead.
    """

    def __init__(
        self,
        settings: ZooKeeperSettings,
        clock: Clock,
        *,
        store: str,
        patience_s: float = LEADER_LEASE_MS / 1000,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._clock, self._monotonic_s, self._patience_s = settings, clock, monotonic_s, patience_s
        root = settings.root
        self._nodes, self._election, self._assignment = f"{root}/nodes", f"{root}/election", f"{root}/bucket-assignment"
        self._store, self._identity = f"{root}/store", store.encode()
        self._acl = CREATOR_ALL_ACL if settings.is_known else OPEN_ACL_UNSAFE
        self._lock = threading.Lock()
        self._state, self._since, self._since_s = LinkState.LOST, clock.now(), monotonic_s()
        self._name: str | None = None
        self._prepared: int | None = None
        self._stood_s: float | None = None
        self._may_stand = False
        """Whether there may be a node of this session among those of the election."""
        self._is_denied = False
        """Whether the library has given up, since ZooKeeper does not let the user in."""
        self._strange = set[str]()
        """Nodes of the election that were found to be no server's."""
        self._outage = Outage()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="zookeeper", daemon=True)
        self._client, self._begun_s = self._new_client(), monotonic_s()

    def __enter__(self) -> Self:
        """Begin. What follows is raised if ZooKeeper answers: else that is waited for.

        Raises :class:`NotAllowed` for what ZooKeeper denies, and :class:`InvalidConfiguration` for the root of another
        store.
        """
        self._client.start_async()
        try:
            self._begin()
        except BaseException:
            self._stop()
            raise
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join(_END_S)
        self._stop()

    @property
    def link(self) -> CoordinatorLink:
        """How it is connected."""
        with self._lock:
            state, since, since_s = self._state, self._since, self._since_s
        if state is LinkState.SUSPENDED and self._monotonic_s() - since_s > self._settings.session_s:
            state = LinkState.LOST  # the library does not say so before ZooKeeper does
        return CoordinatorLink(ZOOKEEPER, state, since)

    @property
    def steady_s(self) -> float:
        """For how long it is connected; 0 while it is not."""
        with self._lock:
            return self._monotonic_s() - self._since_s if self._state is LinkState.CONNECTED else 0.0

    @property
    def root(self) -> str:
        """Below which icewright's nodes are."""
        return self._settings.root

    @property
    def session_s(self) -> float:
        """How long a server may be silent."""
        return self._settings.session_s

    def announce(self, name: str) -> None:
        """Be there by that name, from now on and by each session.

        Raises :class:`~icewright.core.errors.NameTaken` while another server has it, and
        :class:`~icewright.core.errors.CoordinatorUnavailable`.
        """
        self._show(name)
        self._name = name

    def present(self) -> frozenset[str]:
        """The names of all that are there. Raises :class:`~icewright.core.errors.CoordinatorUnavailable`."""
        self._prepare()
        return frozenset(self._children(self._nodes))

    def stand(self) -> bool:
        """Stand for election, and tell whether this server is to lead: it stands for longer than all others do.

        Raises :class:`~icewright.core.errors.CoordinatorUnavailable`.
        """
        self._prepare()
        self._stood_s = self._monotonic_s()
        session = self._session()
        first, stands = self._standing(session)
        if not stands:
            self._may_stand = True
            path = f"{self._election}/{session}-"
            self._ask(lambda client: client.create_async(path, acl=self._acl, ephemeral=True, sequence=True))
            first, _ = self._standing(session)
        return first == session

    def withdraw(self) -> None:
        """Stand no more. Where ZooKeeper does not answer, it hears of that as soon as it does."""
        self._stood_s = None
        with suppress(CoordinatorUnavailable):
            self._step_back()

    def publish(self, assignment: bytes) -> None:
        """Have people read who has which buckets: nothing reads it back. Raises as :meth:`present`."""
        self._prepare()
        self._ask(lambda client: client.set_async(self._assignment, assignment))

    def _new_client(self) -> KazooClient:
        one = self._settings
        quiet = logging.getLogger("icewright.kazoo")
        quiet.setLevel(logging.ERROR)  # what there is to say of a connection is said here
        more: dict[str, Any] = {}
        if one.user is not None and one.by_sasl:
            more["sasl_options"] = {"mechanism": "DIGEST-MD5", "username": one.user, "password": one.password}
        elif one.user is not None:
            more["auth_data"] = [("digest", f"{one.user}:{one.password}")]
        if one.ca is not None:
            more |= {"use_ssl": True, "ca": one.ca, "check_hostname": True}
            more |= {"certfile": one.certificate, "keyfile": one.key}
        client = KazooClient(
            hosts=",".join(one.hosts), timeout=one.session_s, connection_retry=_RECONNECT, logger=quiet, **more
        )
        client.add_listener(lambda state: self._hear(client, state))
        return client

    def _hear(self, client: KazooClient, said: str) -> None:
        state = _STATES[said]
        with self._lock:
            self._is_denied = client.client_state == KeeperState.AUTH_FAILED
            if client is not self._client or state is self._state:
                return
            if LinkState.CONNECTED in (state, self._state):
                self._since, self._since_s = self._clock.now(), self._monotonic_s()
            self._state = state
        if self._closing.is_set():
            return
        if state is LinkState.CONNECTED:
            _log.info("zookeeper connected", session=_hex(client.client_id))
        else:
            _log.warning("zookeeper away", state=state, detail="no bucket is assigned until it answers")

    def _begin(self) -> None:
        until_s = time.monotonic() + START_S
        while time.monotonic() < until_s and not self._is_denied:
            if self._client.connected:
                try:
                    self._prepare()
                except _Denied as error:
                    raise NotAllowed(error.message, hint=error.hint) from error
                except _OtherStore as error:
                    raise InvalidConfiguration(error.message, hint=error.hint) from error
                except CoordinatorUnavailable:
                    pass
                else:
                    return
            time.sleep(0.05)
        if self._is_denied:
            raise NotAllowed(
                f"ZooKeeper at {self._where} does not let the user of cluster.zookeeper_user in",
                hint="check cluster.zookeeper_user, zookeeper_password and zookeeper_scheme",
            )
        _log.warning("zookeeper away", detail=self._away("does not answer").message)

    def _keep(self) -> None:
        while not self._closing.wait(KEEP_S):
            stood_s = self._stood_s
            if stood_s is not None and self._monotonic_s() - stood_s > self._patience_s:
                _log.error("stands for election no more", silent_s=round(self._monotonic_s() - stood_s))
                self._stood_s = None
            try:
                self._revive()
                if self._name is not None:
                    self._show(self._name)
                if self._stood_s is None and self._may_stand:
                    self._step_back()
            except CoordinatorUnavailable as error:
                count = self._outage.failed(self._monotonic_s())
                if count is not None:
                    _log.warning("zookeeper away", detail=error.message, times=count)
            else:
                self._outage.over()

    def _revive(self) -> None:
        """Begin anew where the library has given up: why ZooKeeper did not let it in may be mended by now.

        ZooKeeper lets nobody in who has seen later transactions than it has: it may have come back with less. Whether
        it knows the session then, it says itself.
        """
        if self.link.state is LinkState.LOST:
            self._client.last_zxid = 0
        has_ended = self._client.client_state in (KeeperState.AUTH_FAILED, KeeperState.CLOSED)
        if has_ended and self._monotonic_s() - self._begun_s > REVIVE_S:
            old, new = self._client, self._new_client()
            with self._lock:
                self._client, self._begun_s = new, self._monotonic_s()
            self._end(old)
            new.start_async()

    def _stop(self) -> None:
        """End the session, or leave it to run out where that takes long."""
        self._closing.set()
        ending = threading.Thread(target=self._end, args=(self._client,), name="zookeeper-end", daemon=True)
        ending.start()
        ending.join(_END_S)

    @staticmethod
    def _end(client: KazooClient) -> None:
        try:
            client.stop()
            client.close()
        except (KazooException, OSError, AttributeError) as error:  # of a connection that has ended already
            _log.info("zookeeper session left to run out", detail=str(error))

    @property
    def _where(self) -> str:
        return ", ".join(self._settings.hosts)

    def _away(self, how: str) -> CoordinatorUnavailable:
        return CoordinatorUnavailable(
            f"ZooKeeper at {self._where} {how}", hint="check ZooKeeper, and cluster.zookeeper_hosts"
        )

    def _session(self) -> str:
        found = self._client.client_id
        if found is None:
            raise self._away("does not answer")
        return _hex(found)

    def _ask(self, ask: Callable[[KazooClient], Any]) -> Any:
        client = self._client
        if not client.connected:
            raise self._away("does not answer")
        try:
            return ask(client).get(timeout=ASK_S)
        except NodeExistsError:
            raise
        except NoNodeError as error:
            self._prepared = None  # they are made again
            raise self._away("has lost nodes of ours") from error
        except (NoAuthError, AuthFailedError, InvalidACLError) as error:
            raise _Denied(
                f"ZooKeeper at {self._where} denies access to {self._settings.root}: {type(error).__name__}",
                hint="check cluster.zookeeper_user, or whose nodes these are (getAcl)",
            ) from error
        except (KazooException, KazooTimeoutError, OSError, *_UNREADABLE) as error:
            raise self._away(f"does not answer: {type(error).__name__}") from error

    def _prepare(self) -> None:
        """Make the nodes below which ours are, once in a session, and see to it that they are ours."""
        session = self._client.client_id
        if session is not None and session[0] == self._prepared:
            return
        self._make(self._settings.root)
        self._claim()
        for path in (self._nodes, self._election, self._assignment):
            self._make(path)
        self._prepared = None if session is None else session[0]

    def _make(self, path: str) -> None:
        self._ask(lambda client: client.ensure_path_async(path, acl=self._acl))
        self._require_own(path)

    def _claim(self) -> None:
        """Have the root for this store, if no other store has it."""
        with suppress(NodeExistsError):
            self._ask(lambda client: client.create_async(self._store, self._identity, acl=self._acl))
        self._require_own(self._store)
        found, _ = self._ask(lambda client: client.get_async(self._store))
        if found != self._identity:
            root = self._settings.root
            raise _OtherStore(
                f"{root} of ZooKeeper at {self._where} is the root of another store",
                hint="check server.store_url first: this may be the wrong store. If it is the right one, set another "
                "[cluster] zookeeper_root for its servers; or stop all servers of the other store permanently, wait "
                f"until {self._nodes} is empty, and remove {self._store}: servers of two stores in one root elect one "
                "leader for both, and one store has none",
            )

    def _require_own(self, path: str) -> None:
        if not self._settings.is_known:
            return
        found, _ = self._ask(lambda client: client.get_acls_async(path))
        if any(one.perms & _OTHERS_MAY and not self._settings.is_own(one.id) for one in found):
            raise _Denied(
                f"other users may change {path} of ZooKeeper at {self._where}",
                hint="remove it, or give it to the user of cluster.zookeeper_user (setAcl); or set another "
                "cluster.zookeeper_root",
            )

    def _show(self, name: str) -> None:
        self._prepare()
        path = f"{self._nodes}/{name}"
        with suppress(NodeExistsError):  # by an earlier session, or another server
            if self._ask(lambda client: client.exists_async(path)) is None:
                self._ask(lambda client: client.create_async(path, acl=self._acl, ephemeral=True))
        stat = self._ask(lambda client: client.exists_async(path))
        own = self._client.client_id
        if stat is None or own is None:
            raise self._away("has no node of this server yet")
        if stat.ephemeralOwner != own[0]:
            raise NameTaken(
                f"another server has the name {name} in ZooKeeper at {self._where}",
                hint="end that one: it may be a copy of this machine",
            )

    def _children(self, path: str) -> Sequence[str]:
        """As they are by now, whichever of ZooKeeper's servers is asked."""
        self._ask(lambda client: client.sync_async(path))
        return list(self._ask(lambda client: client.get_children_async(path)))

    def _standing(self, session: str) -> tuple[str | None, bool]:
        """The session that stands for election longest, and whether one stands."""
        children = self._children(self._election)
        self._strange &= set(children)
        found = [match for child in children if (match := _STANDING.fullmatch(child))]
        first: str | None = None
        for one in sorted(found, key=lambda one: int(one["number"])):
            if (first is None or one["session"] == session) and self._is_of_session(one):
                first = first or one["session"]
                if one["session"] == session:
                    return first, True
        return first, False

    def _is_of_session(self, standing: re.Match[str]) -> bool:
        """Whether a node ends with the session that it names: one that somebody made by hand would stand for ever."""
        path = f"{self._election}/{standing[0]}"
        stat = self._ask(lambda client: client.exists_async(path))
        if stat is None:  # it has just ended
            return False
        owner = stat.ephemeralOwner
        if owner != 0 and _hex((owner, b"")) == standing["session"]:
            return True
        if standing[0] not in self._strange:
            self._strange.add(standing[0])
            _log.warning("stands for no server", node=path, detail="it is ignored; remove it")
        return False

    def _step_back(self) -> None:
        session = self._session()
        for child in self._children(self._election):
            match = _STANDING.fullmatch(child)
            if match is not None and match["session"] == session:
                self._delete(f"{self._election}/{child}")
        self._may_stand = self._stood_s is not None

    def _delete(self, path: str) -> None:
        if self._ask(lambda client: client.exists_async(path)) is not None:
            self._ask(lambda client: client.delete_async(path))


class _Denied(CoordinatorUnavailable):
    """ZooKeeper answers, and does not let this server have its nodes."""


class _OtherStore(CoordinatorUnavailable):
    """ZooKeeper answers, and the root is that of another store."""


def _hex(session: tuple[int, bytes] | None) -> str:
    """A session's number as ZooKeeper's log has it; the number alone lets nobody in."""
    return "" if session is None else f"{session[0] & 0xFFFF_FFFF_FFFF_FFFF:016x}"
