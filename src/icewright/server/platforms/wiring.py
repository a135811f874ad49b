"""Tuning of the number of servers put together from a configuration, for the server that leads."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Engine

from icewright.config.model import Config, PlatformConfig
from icewright.config.platform import COMMAND, KUBERNETES, WEBHOOK, WORKLOAD
from icewright.config.secrets import named_variables, resolve
from icewright.core.errors import InvalidConfiguration
from icewright.core.system_clock import SystemIds
from icewright.model.work.optimizers import TuneMode
from icewright.notifications.senders.urls import Url, parse_url
from icewright.notifications.wiring import requests_of
from icewright.server.cluster.coordinator import SqlCoordinator
from icewright.server.cluster.load import LoadOfServers
from icewright.server.cluster.servers_sql import SqlServers
from icewright.server.platforms.command import CommandPlatform
from icewright.server.platforms.kubernetes import KubernetesPlatform, Workload, api_of_pod, own_namespace
from icewright.server.platforms.webhook import WebhookPlatform
from icewright.work.autotune.servers.decide import ServerLimits
from icewright.work.autotune.servers.platform import Platform
from icewright.work.autotune.servers.tuning import ServerTuning
from icewright.work.autotune.wiring import environ_without

SECRET_LENGTH_MIN = 16


def build_server_tuning(config: Config, engine: Engine, platform: Platform | None) -> ServerTuning:
    """What decides how many servers there are, over the store of all of them, and asks ``platform`` for them."""
    servers = LoadOfServers(engine, SqlServers(engine), SqlCoordinator(engine))
    return ServerTuning(servers.now, SystemIds(), server_limits(config.platform), platform)


def server_limits(config: PlatformConfig) -> ServerLimits:
    """The settings as values."""
    return ServerLimits(
        config.servers_min,
        config.servers_max,
        config.cpu_percent / 100,
        config.tables_max,
        config.busy_ms,
        config.idle_ms,
        config.cool_down_ms,
    )


def platform_to_ask(config: Config, environ: Mapping[str, str]) -> Platform | None:
    """Who is asked for servers by the one that leads; None in mode ``advise``. Raises as :func:`build_platform`.

    Each server builds it as it starts: what only the leader found wrong would end one server after the other.
    """
    return build_platform(config, environ) if config.platform.mode == TuneMode.ACT else None


def build_platform(config: Config, environ: Mapping[str, str]) -> Platform:
    """A platform. Raises :class:`InvalidConfiguration` for what cannot be, before anything happens."""
    platform = config.platform
    match platform.kind:
        case kind if kind == WEBHOOK:
            return _webhook(config, environ)
        case kind if kind == COMMAND:
            own = environ_without(environ, named_variables(config))
            return CommandPlatform(platform.command, own)
        case kind if kind == KUBERNETES:
            found = WORKLOAD.match(platform.workload or "")
            if found is None:
                raise InvalidConfiguration("platform.workload is missing")
            workload = Workload(found[1], found[2], platform.namespace or own_namespace())
            return KubernetesPlatform(api_of_pod(environ), workload)
        case _:
            raise InvalidConfiguration("platform.mode = act: there is no platform to ask for servers")


def _webhook(config: Config, environ: Mapping[str, str]) -> WebhookPlatform:
    platform = config.platform

    def endpoint() -> tuple[Url, str]:
        """References are followed at each request, so that a secret in a file is exchanged without a restart."""
        url = parse_url(resolve(platform.url or "", key="platform.url", environ=environ), "platform.url")
        if not url.is_encrypted:
            raise InvalidConfiguration("platform.url: the secret needs https")
        secret = resolve(platform.secret or "", key="platform.secret", environ=environ).strip()
        if len(secret) < SECRET_LENGTH_MIN or not secret.isascii() or not secret.isprintable() or " " in secret:
            raise InvalidConfiguration(
                f"platform.secret: {platform.secret} holds no secret of {SECRET_LENGTH_MIN} or more visible characters"
            )
        return url, secret

    endpoint()  # what cannot be is said at once
    return WebhookPlatform(endpoint, requests_of(config.notifications, environ))
