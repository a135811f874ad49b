"""The server process: API and loop over one control plane, with an address file for the clients of its machine."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import structlog
from sqlalchemy import Engine

from icewright import __version__
from icewright.config.model import Config, ServerConfig
from icewright.config.secrets import resolve
from icewright.core.errors import InvalidConfiguration, Rejected, Unavailable
from icewright.core.servers import Server
from icewright.core.system_clock import SystemIds
from icewright.events.listeners import listening_to_events
from icewright.events.sources.cursors import SqlCursors
from icewright.identity.authentication import Access
from icewright.identity.sql import SqlIdentities
from icewright.identity.wiring import open_logins
from icewright.notifications.wiring import deliver_messages
from icewright.queries.wiring import counting_queries
from icewright.retention.history_wiring import keeping_history
from icewright.server.cluster.leadership import Leadership
from icewright.server.cluster.peers import ask
from icewright.server.control import ControlPlane
from icewright.server.control_wiring import open_control_plane, quarantine_problems
from icewright.server.coordination import open_coordination
from icewright.server.exposure import build_access, certificate, own_url, peer_url, require_access
from icewright.server.http.app import create_app
from icewright.server.http.metrics import Shown
from icewright.server.platforms.wiring import build_server_tuning, platform_to_ask
from icewright.server.process_figures import FiguresOfAll
from icewright.server.processes import check_processes, looking_beside
from icewright.server.web import limits_of, web_server
from icewright.store_admin.wait_for_database import Start
from icewright.terminal.address import (
    SECRET_LENGTH_MIN,
    ServerAddress,
    lasting_secret,
    remove_address,
    write_address,
)
from icewright.work.autotune.wiring import autotuning

_log = structlog.get_logger("icewright.server")

PORTS_TRIED: Final = 20
_PORT_MAX: Final = 65_535
FIRST_CODE_MS: Final = 24 * 3_600_000
"""How long the link can be used that is printed when the server starts."""


def serve(
    config: Config,
    environ: Mapping[str, str] = os.environ,
    *,
    announce: Callable[[str, str | None], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM. ``announce`` gets the URL, and the one-time link for a browser if there is one.

    A server that other machines reach prints none: where its output goes, others may read it. One that starts while
    its store is away waits for it (:mod:`icewright.store_admin.wait_for_database`).

    Raises :class:`~icewright.core.errors.NotAllowed` when other machines would reach it and nobody may come in yet,
    what opening the control plane raises, :class:`InvalidConfiguration` for several processes of a store on SQLite,
    :class:`Unavailable` when no port is free, and what ended its part among the
    servers of the store (:class:`~icewright.server.cluster.leadership.Leadership`).
    """
    # What is announced to the person goes to standard output; everything else is a log.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    start = Start()
    start.until_it_has_begun(lambda: _serve(config, environ, announce, start))


def _serve(
    config: Config, environ: Mapping[str, str], announce: Callable[[str, str | None], None] | None, start: Start
) -> None:
    server = config.server
    check_processes(server)
    with (
        open_control_plane(config, environ) as opened,
        open_coordination(config, environ, opened) as coordination,
        _listen_safely(config, opened.identities) as listening,
    ):
        platform = platform_to_ask(config, environ) if opened.is_shared else None

        @contextmanager
        def listening_while_leading(led: ControlPlane, engine: Engine) -> Iterator[None]:
            cursors = SqlCursors(engine)
            servers = build_server_tuning(config, engine, platform) if opened.is_shared else None
            with (
                listening_to_events(config, environ, led.intake, cursors),
                keeping_history(config, environ, led.tasks, led.history),
                autotuning(
                    config, environ, led.tasks, led.tables, led.backlogs, led.group_views, led.autotune, servers
                ),
            ):
                yield

        port = int(listening.getsockname()[1])
        own, url = Server(SystemIds().new("server"), peer_url(server, port), __version__), own_url(server, port)
        address = ServerAddress(url, own_token(server, environ), os.getpid())
        leadership = Leadership(
            coordination.election,
            opened.lead,
            opened.servers,
            own,
            ask=lambda peer, question: ask(peer, address.token, question, in_the_clear=bool(server.trusted_proxies)),
            beside=(listening_while_leading, lambda led, _engine: deliver_messages(led.notifications)),
            end=lambda: setattr(web, "should_exit", True),
            lease_ms=server.leader_lease_ms,
            sharing=coordination.sharing(own.server_id),
        )
        control = opened.follow(leadership.wake)
        counting = counting_queries(config, environ, control.queries, control.clock)
        logins = open_logins(config.oidc, environ, opened.identities, opened.audit, control.clock, address.token)
        access = build_access(
            server, port, address.token, opened.identities, opened.audit, opened.answers, logins=logins
        )
        figures = FiguresOfAll()
        app = create_app(control, access, Shown(server.metrics_tables, server.state_dir, figures), leadership)
        web = web_server(app, certificate(server), limits_of(server.connections_max), access.transport)
        app.state.streams.is_ending = lambda: web.should_exit
        write_address(server.address_file, address)
        _outlive_signals()
        try:
            link = None if server.is_exposed or announce is None else _first_link(access, url)
            start.has_begun = True
            if announce is not None:
                announce(server.public_url or url, link)
            _log.info("serving", url=url, catalogs=sorted(control.catalogs))
            for catalog, problem in quarantine_problems(config.catalogs).items():
                _log.warning("quarantine cannot be used", catalog=catalog, detail=problem)
            beside = looking_beside(config, environ, own, opened.servers.leave, lambda: web.should_exit, figures)
            with leadership, counting, beside:
                web.run(sockets=[listening])
            if leadership.failure is not None:
                raise leadership.failure
        finally:
            remove_address(server.address_file, address)


def _first_link(access: Access, url: str) -> str:
    return f"{access.public_url or url}/?token={access.new_login_code(lifetime_ms=FIRST_CODE_MS)}"


def _listen_safely(config: Config, identities: SqlIdentities) -> socket.socket:
    has_people = config.oidc.issuer is not None and bool(config.oidc.roles)
    require_access(config.server, has_tokens=identities.has_tokens(), has_people=has_people)
    return listen(config.server.host, config.server.port)


def _outlive_signals() -> None:
    """Let the web server end by a signal, and this process in order behind it.

    Uvicorn ends at SIGTERM and SIGINT and then raises them again, which by default would end the process before its
    address file is removed and its store closed.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket on ``port``, or on one of the next few when it is taken.

    Raises :class:`Unavailable` when all are taken, and :class:`Rejected` when the host or the port is not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in (port,) if port == 0 else range(port, min(port + PORTS_TRIED, _PORT_MAX + 1)):
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, candidate))
            listening.listen()  # until somebody listens, another one could be bound to the same port
        except OSError as error:
            listening.close()
            if error.errno != errno.EADDRINUSE:
                raise Rejected(f"cannot listen on {host} port {candidate}: {error}", hint="see [server]") from error
            _log.info("port taken", port=candidate, detail=str(error))
            continue
        if candidate != port:
            _log.warning("port taken, using another", wanted=port, port=candidate)
        return listening
    raise Unavailable(f"ports {port} to {port + PORTS_TRIED - 1} of {host} are taken", hint="set server.port")


def own_token(server: ServerConfig, environ: Mapping[str, str]) -> str:
    """The owner's bearer token: the one that the configuration refers to, or else :func:`lasting_secret`.

    Raises :class:`InvalidConfiguration` for one that is not there, or too short to be a secret, and as that does.
    """
    if server.token is None:
        return lasting_secret(server.state_dir, "token")
    token = resolve(server.token, key="server.token", environ=environ).strip()
    if len(token) < SECRET_LENGTH_MIN or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidConfiguration(
            f"server.token: {server.token} holds no token of {SECRET_LENGTH_MIN} or more visible characters",
            hint="make one: `openssl rand -hex 32`",
        )
    return token
