"""Where a SQL catalog's database is: SQLAlchemy's URL taken apart, and put together for SQLAlchemy and for JDBC.

Messages never repeat a URL, since a password may stand in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from icewright.core.errors import InvalidConfiguration

BUSY_TIMEOUT_MS: Final = 30_000
CONNECT_TIMEOUT_S: Final = 10
SQLITE_PACKAGE: Final = "org.xerial:sqlite-jdbc:3.50.3.0"
POSTGRESQL_PACKAGE: Final = "org.postgresql:postgresql:42.7.8"

_EXAMPLES: Final = "sqlite:////absolute/path/catalog.db or postgresql://user@host:5432/database"
_JDBC_NAMES: Final = {
    "application_name": "ApplicationName",
    "connect_timeout": "connectTimeout",
    "options": "options",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
}
"""libpq's parameters with the names that PostgreSQL's JDBC driver has for them."""

_SQLITE_PATH: Final = re.compile(r"sqlite(?:\+\w+)?:///([^?]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class SqliteFile:
    """A database in one file; ``path`` is absolute."""

    path: str

    @property
    def sqlalchemy_url(self) -> str:
        """SQLAlchemy's URL."""
        return f"sqlite:///{quote(self.path)}"

    @property
    def jdbc_url(self) -> str:
        """The URL of Xerial's driver."""
        return f"jdbc:sqlite:{self.path}?busy_timeout={BUSY_TIMEOUT_MS}"

    @property
    def login(self) -> dict[str, str]:
        """There is nobody to log in."""
        return {}

    @property
    def package(self) -> str:
        """Maven coordinates of the driver."""
        return SQLITE_PACKAGE


@dataclass(frozen=True, slots=True)
class PostgresqlDatabase:
    """A database on one PostgreSQL server; ``parameters`` are libpq's.

    Where no password is given there may be one in ``~/.pgpass``, which both clients read.
    """

    host: str
    port: int | None
    database: str
    user: str | None
    password: str | None = field(repr=False)
    parameters: Mapping[str, str]

    @property
    def sqlalchemy_url(self) -> str:
        """SQLAlchemy's URL, for psycopg."""
        user = "" if self.user is None else quote(self.user, safe="")
        login = user if self.password is None else f"{user}:{quote(self.password, safe='')}"
        parameters = {"connect_timeout": str(CONNECT_TIMEOUT_S), **self.parameters}
        return f"postgresql+psycopg://{login}{'@' if login else ''}{self._address}?{urlencode(parameters)}"

    @property
    def jdbc_url(self) -> str:
        """The URL of PostgreSQL's driver, without user and password."""
        said = {"connect_timeout": str(CONNECT_TIMEOUT_S), **self.parameters}
        parameters = {"tcpKeepAlive": "true", **{_JDBC_NAMES[key]: value for key, value in said.items()}}
        return f"jdbc:postgresql://{self._address}?{urlencode(parameters, quote_via=quote)}"

    @property
    def login(self) -> dict[str, str]:
        """User and password by JDBC's names."""
        found = {"user": self.user, "password": self.password}
        return {key: value for key, value in found.items() if value is not None}

    @property
    def package(self) -> str:
        """Maven coordinates of the driver."""
        return POSTGRESQL_PACKAGE

    @property
    def _address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}{'' if self.port is None else f':{self.port}'}/{quote(self.database, safe='')}"


SqlDatabase: TypeAlias = SqliteFile | PostgresqlDatabase


def parse_sql_url(url: str, properties: Mapping[str, str]) -> SqlDatabase:
    """The database of a SQL catalog; ``jdbc.user`` and ``jdbc.password`` of its properties fill in what ``url`` lacks.

    Raises :class:`InvalidConfiguration`.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:  # its message may hold a part of a password
        raise InvalidConfiguration("its uri is no URL", hint=f"write {_EXAMPLES}") from error
    match parts.scheme.split("+")[0]:
        case "sqlite":
            return _sqlite(parts)
        case "postgresql" | "postgres":
            return _postgresql(parts, port, properties)
        case other:
            raise InvalidConfiguration(
                f"SQL catalogs on {other or 'an unnamed database'} cannot be used, only on SQLite and PostgreSQL",
                hint=f"write {_EXAMPLES}",
            )


def sqlite_paths(url: str) -> frozenset[str]:
    """The paths that a URL of SQLAlchemy's may mean by its file, as written and decoded; none of other databases."""
    match = _SQLITE_PATH.match(url)
    return frozenset() if match is None else frozenset({match[1], unquote(match[1])})


def _sqlite(parts: SplitResult) -> SqliteFile:
    path = unquote(parts.path)[1:] if parts.path.startswith("//") else ""
    if not path:
        raise InvalidConfiguration("its uri is not a SQLite file", hint=f"write {_EXAMPLES}")
    return SqliteFile(path)


def _postgresql(parts: SplitResult, port: int | None, properties: Mapping[str, str]) -> PostgresqlDatabase:
    database = unquote(parts.path).removeprefix("/")
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    if not parts.hostname or not database:
        raise InvalidConfiguration("its uri lacks the host or the database", hint=f"write {_EXAMPLES}")
    unknown = sorted(parameters.keys() - _JDBC_NAMES.keys())
    if unknown:
        raise InvalidConfiguration(
            f"its uri has the parameter {unknown[0]!r}, which cannot be said to Spark's driver",
            hint=f"known: {', '.join(_JDBC_NAMES)}",
        )
    user = unquote(parts.username) if parts.username else properties.get("jdbc.user")
    password = unquote(parts.password) if parts.password else properties.get("jdbc.password")
    if user is None and password is not None:
        raise InvalidConfiguration("it has a password and no user")
    return PostgresqlDatabase(parts.hostname, port, database, user, password, parameters)
