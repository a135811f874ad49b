"""Read all configuration once: flags and environment over ``icewright.toml`` over defaults, strictly.

An unknown key, a wrong type or a value out of bounds is an error that names the place and what is allowed there;
a guessed setting could let icewright touch a table that its owner believed safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from icewright.catalogs.pyiceberg_settings import Discovery, discover
from icewright.config import layers, values
from icewright.config.autotune import AUTOTUNE
from icewright.config.cluster import CLUSTER, check_cluster
from icewright.config.layers import Given, Key, dotted
from icewright.config.listening import check_approvals, check_listening
from icewright.config.model import AutotuneConfig, ClusterConfig, Config, HistoryConfig, OptimizerConfig, ServerConfig
from icewright.config.retention import HISTORY
from icewright.config.secrets import redact
from icewright.config.settings import OPTIMIZER, POLICY_MODE_KEY, SECTIONS, SERVER
from icewright.configuration import catalogs
from icewright.configuration.platform import platform_config
from icewright.core.errors import InvalidConfiguration
from icewright.events.settings import events_config
from icewright.identity.people_settings import oidc_config
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.work.optimizers import LauncherKind, TuneMode
from icewright.model.work.retention import SETTING_OF
from icewright.notifications.receivers import flatten_receivers, notifications_config, receivers
from icewright.queries.settings import queries_config
from icewright.work.groups.settings import groups_config

DEFAULT_ORIGIN = "default"
_KIND_OF_SCHEME = {"http": "rest", "https": "rest", "thrift": "hive", "sqlite": "sql", "postgresql": "sql"}
_TOP = ("catalogs", "policies", "groups", *SECTIONS, "receivers")


def load_config(
    path: Path | None, environ: Mapping[str, str], cwd: Path, flags: Mapping[Key, Given] | None = None
) -> Config:
    """The configuration of this process.

    ``path`` is what ``--config`` names, ``flags`` are settings of the command line. Without ``[[catalogs]]`` anywhere,
    PyIceberg's own configuration is used.
    Raises :class:`~icewright.core.errors.InvalidConfiguration`.
    """
    file = layers.find_file(path, environ, cwd)
    data = layers.read_file(file) if file is not None else {}
    unknown = sorted(data.keys() - set(_TOP))
    if unknown:
        raise InvalidConfiguration(f"{file}: unknown key {unknown[0]}", hint=f"known here: {', '.join(_TOP)}")
    given = {**layers.flatten_sections(data, str(file)), **layers.flatten_catalogs(data, str(file))}
    given |= flatten_receivers(data, str(file))
    given |= layers.environment(environ, frozenset(catalogs.catalog_names(given)))
    given |= flags or {}

    built = [catalogs.entry(given, name) for name in catalogs.catalog_names(given)]
    found = discover(environ, cwd) if not built else Discovery()
    entries = tuple(entry for entry, _ in built) or found.entries
    namespace_rules = catalogs.policies(data, str(file), entries)
    base = file.parent if file is not None else cwd
    server = _server(given, environ, base)
    oidc = oidc_config(given, str(file))
    optimizer = _optimizer(given, str(file))
    check_approvals(server, has_provider=oidc.issuer is not None, origin=str(file))
    return Config(
        catalogs=entries,
        rules=(*(rule for _, rule in built if rule is not None), *namespace_rules),
        server=server,
        optimizer=optimizer,
        autotune=_autotune(given, optimizer),
        platform=platform_config(given, str(file)),
        events=events_config(given, entries),
        cluster=_cluster(given, environ, base, server.store_url),
        history=_history(given, entries),
        queries=queries_config(given, entries, lambda text: str(_directory(text, environ, base))),
        notifications=notifications_config(given, str(file)),
        receivers=receivers(given),
        oidc=oidc,
        groups=groups_config(data, str(file)),
        path=file,
        origins={
            **{dotted((section, setting.key)): DEFAULT_ORIGIN for section in SECTIONS for setting in SECTIONS[section]},
            **{_public_key(key): item.origin for key, item in given.items()},
            **{f"catalogs.{entry.name}": found.origins[entry.name] for entry in found.entries},
            **catalogs.rule_origins(namespace_rules, str(file)),
        },
        unusable=found.unusable,
        notes=_notes(file, found),
    )


def with_one_catalog(config: Config, name: str, uri: str, warehouse: str | None, environ: Mapping[str, str]) -> Config:
    """The configuration with this catalog alone and without rules; the environment may have more settings of it.

    Its type is that of the URI. Raises :class:`~icewright.core.errors.InvalidConfiguration`.
    """
    kind = _KIND_OF_SCHEME.get(uri.partition(":")[0].lower())
    if kind is None:
        hint = (
            "https://host/path (rest), thrift://host:9083 (hive), sqlite:////path.db, postgresql://user@host/database"
        )
        raise InvalidConfiguration(f"--uri: not the URI of a catalog: {redact('uri', uri)}", hint=hint)
    if redact("uri", uri) != uri:
        raise InvalidConfiguration(
            "--uri: a password does not belong on a command line, which other users of the machine can read",
            hint="leave it out; write a configuration with a reference to it (`icewright config init`)",
        )
    typed = {"type": Given(kind, "--uri"), "uri": Given(uri, "--uri")}
    typed |= {"warehouse": Given(warehouse, "--warehouse")} if warehouse is not None else {}
    more = layers.environment(environ, frozenset({name}))
    given = {key: item for key, item in more.items() if key[:2] == ("catalogs", name)}
    given |= {("catalogs", name, key): item for key, item in typed.items()}
    entry, _ = catalogs.entry(given, name)
    return replace(config, catalogs=(entry,), rules=(), notes=())


def _public_key(key: Key) -> str:
    """The key under which a value is shown: ``mode`` stands for a policy setting."""
    return dotted((*key[:2], "policy", POLICY_MODE_KEY) if key[0] == "catalogs" and key[2] == "mode" else key)


def _notes(file: Path | None, found: Discovery) -> tuple[str, ...]:
    if not found.entries:
        return ()
    names = ", ".join(entry.name for entry in found.entries)
    where = f"{file} names no catalogs" if file is not None else "there is no icewright.toml"
    sources = ", ".join(dict.fromkeys(found.origins.values()))
    return (f"{where}; catalogs taken from PyIceberg's configuration ({sources}): {names}",)


def _server(given: Mapping[Key, Given], environ: Mapping[str, str], base: Path) -> ServerConfig:
    found = {setting.key: values.value(given, ("server",), setting) for setting in SERVER}
    state_dir = _directory(found["state_dir"], environ, base) if found["state_dir"] else _state_dir(environ)
    store_url = found["store_url"] or f"sqlite:///{quote(str(state_dir / 'icewright.db'))}"
    if redact("store_url", store_url) != store_url:
        raise InvalidConfiguration(
            f"{given['server', 'store_url'].origin}: server.store_url: a password does not belong here",
            hint='leave it out, and write store_password = "env:NAME" or "file:/path"',
        )
    values.require_reference(given, ("server", "store_password"), found["store_password"], "password")
    values.require_reference(given, ("server", "token"), found["token"], "token")
    certificate, key = (_file(found[name], environ, base) for name in ("tls_certificate", "tls_key"))
    own = {"state_dir": state_dir, "store_url": store_url, "tls_certificate": certificate, "tls_key": key}
    keep = {kind: found.pop(name) for kind, name in SETTING_OF.items()}
    server = ServerConfig(**{**found, **own, "keep": keep})
    check_listening(server, next((item.origin for name, item in given.items() if name[0] == "server"), DEFAULT_ORIGIN))
    return server


def _state_dir(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_STATE_HOME") or layers.home(environ) / ".local" / "state"
    return Path(base) / "icewright"


def _directory(text: str, environ: Mapping[str, str], base: Path) -> Path:
    """A directory as written: ``~/`` is the home directory, a relative one is beside the configuration file."""
    return layers.home(environ) / text[2:] if text.startswith("~/") else (base / text).absolute()


def _history(given: Mapping[Key, Given], entries: Sequence[CatalogEntry]) -> HistoryConfig:
    history = HistoryConfig(**{setting.key: values.value(given, ("history",), setting) for setting in HISTORY})
    values.check_own_table(given, "history", history.catalog, lambda: history.name, entries, HistoryConfig().table)
    return history


def _cluster(given: Mapping[Key, Given], environ: Mapping[str, str], base: Path, store_url: str) -> ClusterConfig:
    found = {setting.key: values.value(given, ("cluster",), setting) for setting in CLUSTER}
    values.require_reference(given, ("cluster", "zookeeper_password"), found["zookeeper_password"], "password")
    files = ("zookeeper_ca", "zookeeper_certificate", "zookeeper_key")
    cluster = ClusterConfig(**{**found, **{name: _file(found[name], environ, base) for name in files}})
    origin = next((item.origin for key, item in given.items() if key[0] == "cluster"), DEFAULT_ORIGIN)
    check_cluster(cluster, store_url, origin)
    return cluster


def _file(text: str | None, environ: Mapping[str, str], base: Path) -> Path | None:
    return None if text is None else _directory(text, environ, base)


def _optimizer(given: Mapping[Key, Given], file: str) -> OptimizerConfig:
    found = {setting.key: values.value(given, ("optimizer",), setting) for setting in OPTIMIZER}
    values.require_reference(given, ("optimizer", "server_token"), found["server_token"], "token")
    keys = given.get(("optimizer", "spark_conf_keys"))
    if keys is not None and keys.origin != file:
        raise InvalidConfiguration(
            f"{keys.origin}: optimizer.spark_conf_keys belongs into the configuration file alone",
            hint="these keys allow running any program",
        )
    return OptimizerConfig(**found)


def _autotune(given: Mapping[Key, Given], optimizer: OptimizerConfig) -> AutotuneConfig:
    found = AutotuneConfig(**{setting.key: values.value(given, ("autotune",), setting) for setting in AUTOTUNE})
    is_here = optimizer.launcher == LauncherKind.RESIDENT and optimizer.master.startswith("local")
    if found.mode == TuneMode.ACT and not is_here:
        raise InvalidConfiguration(
            f"{given['autotune', 'mode'].origin}: autotune.mode: act runs resident optimizers on this machine",
            hint="set optimizer.launcher = resident and optimizer.master = local[N], or autotune.mode = advise",
        )
    return found
