"""Where tables are, asked of an Iceberg REST catalog: PyIceberg's client for settings and tokens, raw JSON beyond.

PyIceberg's own calls wait for ever, follow pages for ever, and load tables through models that invent a uuid for tables
without one and refuse whole tables for a type that they do not know.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from pyiceberg.catalog.rest import PAGE_SIZE, Endpoints, RestCatalog
from pyiceberg.exceptions import RESTError
from pyiceberg.io import FileIO
from requests import PreparedRequest, RequestException, Response, Session
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectionError as RequestsConnectionError
from urllib3.exceptions import ProtocolError

from icewright.catalogs.metadata.bounded_reader import METADATA_BYTES_MAX
from icewright.catalogs.metadata.translated_errors import asking, reading
from icewright.catalogs.pointers.file_io import open_files
from icewright.catalogs.pointers.pointers import Pointed
from icewright.catalogs.port import TablePointers
from icewright.core.errors import InvalidName, NotFound, Unavailable, Unreadable
from icewright.model.iceberg.catalog_entries import ANSWER_TIMEOUT_MS, CONNECT_TIMEOUT_MS, CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.object_stores import for_pyiceberg

_log = structlog.get_logger(__name__)

PAGES_MAX: Final = 100_000
"""Of one listing: a catalog that never comes to an end must not keep us for ever."""
NAMESPACES_MAX: Final = 1_000_000
LOCATIONS_S_MAX: Final = 45
"""How long all pointers may take to be asked, one by one."""
ASKED_AT_ONCE: Final = 8
_ASKED_A_TURN: Final = 8 * ASKED_AT_ONCE
_CONFIGS_MAX: Final = 20_000
"""Tables whose settings are remembered, those used last."""
_CHUNK_BYTES: Final = 1 << 20
_OK, _UNAUTHORIZED, _NOT_FOUND, _EXPIRED, _INTERNAL_ERROR = 200, 401, 404, 419, 500
_OF_THE_CATALOG: Final = frozenset({401, 408, 419, 429, 502, 503, 504})
"""Answers that say nothing of the one thing that was asked for."""
_NO_LEVELS: Final = frozenset({400, 404, 405, 406, 422})
"""Answers to the question what is below a namespace: it is gone, or the catalog has one level alone."""
_ALL_SNAPSHOTS: Final = {"snapshots": "all"}
_FEWEST_SNAPSHOTS: Final = {"snapshots": "refs"}


class RestPointers:
    """The pointers that a REST catalog gives, with the settings and credentials for each table's files."""

    def __init__(self, entry: CatalogEntry) -> None:
        self._name = entry.name
        self._properties = entry.pyiceberg_properties()
        self._connecting, self._lock = threading.Lock(), threading.Lock()
        self._client: RestClient | None = None
        self._shared: dict[str, FileIO] = {}
        """By scheme, for the tables that the catalog says nothing particular of."""
        self._configs: OrderedDict[str, Mapping[str, str]] = OrderedDict()
        """What the catalog said for a table's files, by its metadata location."""

    def tables(self) -> Iterator[TableName]:
        """All tables, namespace by namespace."""
        with asking(self._name):
            client = self._connected()
            paths = [path for namespace in _namespaces(client) for path in client.tables_of(namespace)]
        for path in paths:
            try:
                yield TableName(self._name, path[:-1], path[-1])
            except InvalidName as error:
                _log.warning("table_without_usable_name", catalog=self._name, problem=str(error))

    def all_shown(self) -> TablePointers:
        """All pointers, table by table, several at once: the protocol has no question for all.

        Raises ``Unreadable`` where something is not shown to us, or cannot be asked for by its name.
        """
        names, until = self._all_tables(), time.monotonic() + LOCATIONS_S_MAX
        found, gone = dict[TableName, str | None](), list[TableName]()
        with ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="pointers") as pool:
            for start in range(0, len(names), _ASKED_A_TURN):
                if time.monotonic() > until:
                    raise Unavailable(f"catalog {self._name} did not say where its {len(names)} tables are in time")
                for name, location in pool.map(self._location_or_none, names[start : start + _ASKED_A_TURN]):
                    if location is None:
                        gone.append(name)
                    else:
                        found[name] = location or None
        return TablePointers({**found, **dict.fromkeys(self._listed_still(gone))})

    def _listed_still(self, names: Collection[TableName]) -> list[TableName]:
        """Which of these the catalog lists, though it says that there are no such tables, as of some it may not show.

        A table that was dropped meanwhile is in no list any more.
        """
        with asking(self._name):
            client, namespaces = self._connected(), {name.namespace for name in names}
            listed = {path for namespace in namespaces for path in client.tables_of(namespace, shows_all=True)}
        return [name for name in names if name.path in listed]

    def _all_tables(self) -> list[TableName]:
        with asking(self._name):
            client = self._connected()
            spaces = _namespaces(client, shows_all=True)
            paths = [path for namespace in spaces for path in client.tables_of(namespace, shows_all=True)]
        try:
            names = [TableName(self._name, path[:-1], path[-1]) for path in paths]
        except InvalidName as error:
            raise Unreadable(f"catalog {self._name} has a table that cannot be asked for: {error.message}") from error
        if odd := [name for name in names if _moves_the_path(name.path)]:
            raise Unreadable(f"catalog {self._name} has a table that cannot be asked for: {odd[0]}")
        return names

    def _location_or_none(self, name: TableName) -> tuple[TableName, str | None]:
        """The pointer; empty where it cannot be told, None where the table is gone."""
        try:
            return name, self.metadata_location(name)
        except NotFound:
            return name, None
        except Unreadable as error:
            _log.warning("pointer_unknown", catalog=self._name, table=str(name), problem=error.message)
            return name, ""

    def metadata_location(self, name: TableName) -> str:
        """The present metadata file. The answer has the metadata in it as well, with as few snapshots as may be."""
        return _location(name, self._answer(name, _FEWEST_SNAPSHOTS))

    def load(self, name: TableName) -> Pointed:
        """The present metadata as the catalog gives it, every snapshot included."""
        answer = self._answer(name, _ALL_SNAPSHOTS)
        location = _location(name, answer)
        with reading(f"what catalog {self._name} says of table {name}"):
            metadata = answer["metadata"]
            _check_all_snapshots(name, metadata)
            config = _file_settings(answer, location)
        with self._lock:
            self._configs[location] = config
            self._configs.move_to_end(location)
            while len(self._configs) > _CONFIGS_MAX:
                self._configs.popitem(last=False)
        return Pointed(location, metadata)

    def file_io(self, location: str) -> FileIO:
        """What reads the files of a table: the catalog's settings, and over them what it said for this table."""
        with self._lock:
            config = self._configs.get(location, {})
        if config:
            return self._open(location, config)
        scheme = urlsplit(location).scheme
        if scheme not in self._shared:
            self._shared[scheme] = self._open(location, {})
        return self._shared[scheme]

    def _open(self, location: str, config: Mapping[str, str]) -> FileIO:
        with asking(self._name):
            client = self._connected()
        chosen_by_user = {key: text for key, text in self._properties.items() if key.startswith("py-")}
        properties = {**_without_code(client.properties), **chosen_by_user, **config}
        return open_files({**properties, **for_pyiceberg(properties)}, location)

    def _answer(self, name: TableName, snapshots: Mapping[str, str]) -> Mapping[str, Any]:
        if name.catalog != self._name:
            raise NotFound(f"no table {name} in catalog {self._name}")
        with asking(self._name):
            client = self._connected()
            try:
                status, answer = client.load(name, snapshots)
            except RequestException as error:
                if client.answers():
                    raise Unreadable(f"catalog {self._name} does not finish its answer for table {name}") from error
                raise
            if status == _NOT_FOUND:
                raise self._not_found(client, name, answer)
            if status != _OK:
                concerns_all = status in _OF_THE_CATALOG or (status >= _INTERNAL_ERROR and not client.answers())
                kind = Unavailable if concerns_all else Unreadable
                raise kind(f"catalog {self._name} does not give out table {name}: {status} {said_by(answer)}")
        if not isinstance(answer, dict):
            raise Unreadable(f"catalog {self._name} says of table {name} what makes no sense")
        return answer

    def _not_found(self, client: RestClient, name: TableName, answer: Any) -> NotFound | Unreadable | Unavailable:
        """What a 404 means: no such table, or no file behind it, or no catalog at that address."""
        error = answer.get("error") if isinstance(answer, dict) else None
        if not isinstance(error, dict):
            return Unavailable(f"catalog {self._name} does not answer for table {name}: {_NOT_FOUND} without a reason")
        if not str(error.get("type", "")).startswith("NoSuch") and name.path in client.tables_of(name.namespace):
            return Unreadable(f"catalog {self._name} lists table {name} and cannot load it: {said_by(answer)}")
        return NotFound(f"no table {name} in catalog {self._name}")

    def _connected(self) -> RestClient:
        """The client; its settings are asked of the catalog once."""
        with self._connecting:
            if self._client is None:
                try:
                    self._client = RestClient(self._name, **self._properties)
                except (RESTError, NotImplementedError) as error:  # the latter is PyIceberg's: an endpoint is missing
                    raise Unavailable(f"catalog {self._name} denies access: {_short(error)}") from error
            return self._client


class RestClient(RestCatalog):
    """PyIceberg's client with limits: of time, of bytes, of pages."""

    def tables_of(self, namespace: tuple[str, ...], *, shows_all: bool = False) -> list[tuple[str, ...]]:
        """The tables of a namespace; none of one that is gone or not for us.

        Where the catalog ``shows_all`` the latter raises ``Unreadable``: tables that nobody shows us have files, too.
        """
        if _moves_the_path(namespace):
            if shows_all:
                raise Unreadable(f"catalog {self.name} has a namespace that cannot be asked for: {namespace}")
            return []
        endpoint = self.url(Endpoints.list_tables, namespace=self._encode_namespace_path(namespace))
        allowed = frozenset({_NOT_FOUND}) if shows_all else None
        pages = self._pages(endpoint, {}, allowed)
        return [(*one["namespace"], one["name"]) for page in pages for one in page["identifiers"]]

    def namespaces_below(self, parent: tuple[str, ...], *, shows_all: bool = False) -> list[tuple[str, ...]]:
        """The namespaces right below another (the empty one: the first level). ``shows_all`` as for the tables."""
        query = {"parent": self._namespace_separator.join(parent)} if parent else {}
        allowed = (_NO_LEVELS if parent else frozenset()) if shows_all else None
        pages = self._pages(self.url(Endpoints.list_namespaces), query, allowed)
        found = [tuple(str(part) for part in one) for page in pages for one in page["namespaces"]]
        # Some catalogs do not know the question and answer with the first level again.
        return [one for one in found if len(one) > len(parent) and one[: len(parent)] == parent]

    def load(self, name: TableName, query: Mapping[str, str]) -> tuple[int, Any]:
        """Status and JSON of the answer to LoadTable. Raises ``NotFound`` for a name that no address can hold."""
        if _moves_the_path(name.path):
            raise NotFound(f"no table {name} can be asked for in catalog {name.catalog}")
        return self._get(self.url(Endpoints.load_table, **self._split_identifier_for_path(name.path)), query)

    def answers(self) -> bool:
        """Whether the catalog answers at all."""
        try:
            status, _ = self._get(self.url(Endpoints.get_config, prefixed=False), {})
        except OSError:
            return False
        return status == _OK

    def _pages(
        self, url: str, query: Mapping[str, str], passed_over: frozenset[int] | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """The pages of a list; nothing where the answer is one of those that are ``passed_over``, or any refusal."""
        size, token = self.properties.get(PAGE_SIZE), ""
        for _ in range(PAGES_MAX):
            paging = {"pageToken": token, **({"pageSize": str(size)} if size else {})} if token or size else {}
            status, page = self._get(url, {**query, **paging})
            if status not in _OF_THE_CATALOG and _OK < status < _INTERNAL_ERROR:
                # Gone since, not for us, or of a name that no address can hold.
                if passed_over is not None and (token or status not in passed_over):
                    raise Unreadable(
                        f"catalog {self.name} does not show all its tables: {status} {said_by(page)}",
                        hint="allow the server's principal to list all namespaces and tables",
                    )
                _log.warning("namespace_passed_over", catalog=self.name, status=status, problem=said_by(page))
                return
            if status != _OK or not isinstance(page, dict):
                raise Unavailable(f"catalog {self.name} does not list: {status} {said_by(page)}")
            yield page
            following = page.get("next-page-token")
            if not following:
                return
            if following == token:
                break
            token = following
        raise Unavailable(f"catalog {self.name} does not end a list")

    def _get(self, url: str, query: Mapping[str, str]) -> tuple[int, Any]:
        """Status and JSON of an answer, None for what is no JSON; a token that ran out is renewed once."""
        status, answer = self._get_once(url, query)
        if status in (_UNAUTHORIZED, _EXPIRED):
            self._refresh_token()
            status, answer = self._get_once(url, query)
        return status, answer

    def _get_once(self, url: str, query: Mapping[str, str]) -> tuple[int, Any]:
        with self._session.get(url, params=query, stream=True) as response:
            content = whole_answer(response, self.name)
        try:
            return response.status_code, json.loads(content)
        except ValueError:
            return response.status_code, None

    def _config_headers(self, session: Session) -> None:
        """Called for each new session, before anything is sent by it."""
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Impatient())
        super()._config_headers(session)


class _Impatient(HTTPAdapter):
    """Waits for a connection, and for each piece of an answer, no longer than it should.

    A server may close a connection that was kept open just as the next question goes out by it. A question that
    changes nothing is then asked again, once, by a connection of its own (RFC 9110, 9.2.2).
    """

    def send(self, request: PreparedRequest, **kwargs: Any) -> Response:  # type: ignore[override]  # as it is called
        if kwargs.get("timeout") is None:
            kwargs["timeout"] = (CONNECT_TIMEOUT_MS / 1000, ANSWER_TIMEOUT_MS / 1000)
        try:
            return super().send(request, **kwargs)
        except RequestsConnectionError as error:
            if request.method != "GET" or not _closed_unanswered(error):
                raise
        # Connections that were kept may all have been closed; none of them is used again.
        self.poolmanager.clear()
        return super().send(request, **kwargs)


def _closed_unanswered(error: RequestsConnectionError) -> bool:
    """Whether the other end closed the connection before it said anything."""
    broken = error.args[0] if error.args else None
    return isinstance(broken, ProtocolError) and isinstance(broken.args[-1], ConnectionError)


def _namespaces(client: RestClient, *, shows_all: bool = False) -> Iterator[tuple[str, ...]]:
    """All namespaces, parents first. ``shows_all`` as in :meth:`RestClient.tables_of`."""
    waiting: list[tuple[str, ...]] = [()]
    seen: set[tuple[str, ...]] = set()
    while waiting:
        for namespace in client.namespaces_below(waiting.pop(), shows_all=shows_all):
            if namespace in seen:
                continue
            seen.add(namespace)
            if len(seen) > NAMESPACES_MAX:
                raise Unavailable(f"catalog {client.name} does not end its list of namespaces")
            yield namespace
            waiting.append(namespace)


def whole_answer(response: Response, catalog: str) -> bytes:
    """All bytes of an answer. Raises ``Unavailable`` for one that is too long or takes too long."""
    deadline_s = time.monotonic() + ANSWER_TIMEOUT_MS / 1000
    chunks: list[bytes] = []
    size_bytes = 0
    for chunk in response.iter_content(_CHUNK_BYTES):
        size_bytes += len(chunk)
        if size_bytes > METADATA_BYTES_MAX or time.monotonic() > deadline_s:
            raise Unavailable(f"catalog {catalog} does not end an answer ({size_bytes} bytes)")
        chunks.append(chunk)
    return b"".join(chunks)


def _location(name: TableName, answer: Mapping[str, Any]) -> str:
    location = answer.get("metadata-location")
    if not isinstance(location, str) or not location:
        raise Unreadable(f"the catalog does not say where the metadata of table {name} is")
    return location


def _check_all_snapshots(name: TableName, metadata: Mapping[str, Any]) -> None:
    """Some catalogs answer with the snapshots of refs alone, whatever they are asked; the log then names others.

    Whether a task took effect could not be told from such an answer.
    """
    known = {snapshot["snapshot-id"] for snapshot in metadata.get("snapshots") or ()}
    missing = [
        entry["snapshot-id"] for entry in metadata.get("snapshot-log") or () if entry["snapshot-id"] not in known
    ]
    if missing:
        raise Unreadable(f"the catalog leaves snapshots of table {name} out, {missing[0]} for one")


def _file_settings(answer: Mapping[str, Any], location: str) -> dict[str, str]:
    """Settings and credentials for the table's files: the credentials of the longest prefix win over the rest."""
    config = dict(answer.get("config") or {})
    fitting = [one for one in answer.get("storage-credentials") or () if location.startswith(one["prefix"])]
    if fitting:
        config.update(max(fitting, key=lambda one: len(one["prefix"]))["config"])
    return _without_code({str(key): str(text) for key, text in config.items()})


def _without_code(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as another says them, without those that name code for PyIceberg to load."""
    return {key: text for key, text in properties.items() if not (key.startswith("py-") or key.endswith("-impl"))}


def _moves_the_path(parts: tuple[str, ...]) -> bool:
    """Whether a part of a name would be taken for a step in the path of an address."""
    return any(part in (".", "..") for part in parts)


def _short(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def said_by(answer: Any) -> str:
    """What an error answer says, in one short line."""
    error = answer.get("error") if isinstance(answer, dict) else None
    said = error.get("message") if isinstance(error, dict) else None
    return " ".join(str(said or "without a reason").split())[:200]
