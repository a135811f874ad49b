"""Changes of tables asked of an Iceberg REST catalog, which writes the metadata itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pyiceberg.catalog.rest import Endpoints

from icewright.catalogs.metadata.translated_errors import asking
from icewright.catalogs.pointers.rest_pointers import RestClient, RestPointers, said_by, whole_answer
from icewright.core.errors import Conflict, NotAllowed, NotFound, Unavailable
from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Ref, TableMetadata

_OK, _MULTIPLE = 200, 300
_NONE: Mapping[str, int | None] = MappingProxyType({})
_NOT_FOUND, _CONFLICT, _TOO_MANY, _INTERNAL_ERROR = 404, 409, 429, 500


def property_updates(changes: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """Changes of properties; those whose value is None are removed."""
    updates = {key: text for key, text in changes.items() if text is not None}
    removals = [key for key, text in changes.items() if text is None]
    asked: list[dict[str, Any]] = []
    if updates:
        asked.append({"action": "set-properties", "updates": updates})
    if removals:
        asked.append({"action": "remove-properties", "removals": removals})
    return asked


def expiry_updates(action: ExpireSnapshots, now: TableMetadata) -> list[dict[str, Any]]:
    """Removals of refs, and of one snapshot each: as Iceberg's own client words it, and older catalogs want it.

    So are those of the statistics that snapshots have ``now``, which not every catalog takes away with them.
    """
    refs = [{"action": "remove-snapshot-ref", "ref-name": ref.name} for ref in action.refs_removed]
    updates: list[dict[str, Any]] = []
    for one in action.snapshot_ids:
        updates.append({"action": "remove-snapshots", "snapshot-ids": [one]})
        if now.statistics_of(one) is not None:
            updates.append({"action": "remove-statistics", "snapshot-id": one})
        if now.partition_statistics_of(one) is not None:
            updates.append({"action": "remove-partition-statistics", "snapshot-id": one})
    return [*refs, *updates]


def main_updates(main: Ref, snapshot_id: int, properties: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """``main`` at another snapshot, with the settings that it has, and changes of properties."""
    settings = {
        "max-ref-age-ms": main.max_ref_age_ms,
        "max-snapshot-age-ms": main.max_snapshot_age_ms,
        "min-snapshots-to-keep": main.min_snapshots_to_keep,
    }
    moved = {"action": "set-snapshot-ref", "ref-name": main.name, "type": main.kind.value, "snapshot-id": snapshot_id}
    kept = {key: number for key, number in settings.items() if number is not None}
    return [{**moved, **kept}, *property_updates(properties)]


class RestCommits(RestPointers):
    """Pointers of a REST catalog whose tables can be changed."""

    def commit(
        self, name: TableName, uuid: str, updates: Sequence[Mapping[str, Any]], refs: Mapping[str, int | None] = _NONE
    ) -> bool:
        """Ask for updates as the REST API words them; False when the table is not the same any more.

        That is: another uuid, or one of these ``refs`` is not at that snapshot (None: is there). The catalog checks no
        more than it is asked to.

        Raises ``NotFound`` and ``NotAllowed`` when it is refused, and ``Unavailable`` when nobody knows whether it was
        made.
        """
        here = [{"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": at} for ref, at in refs.items()]
        body = {
            "identifier": {"namespace": list(name.namespace), "name": name.name},
            "requirements": [{"type": "assert-table-uuid", "uuid": uuid}, *here],
            "updates": list(updates),
        }
        with asking(self._name):
            status, answer = self._post(name, body)
        if _OK <= status < _MULTIPLE:
            if isinstance(answer, dict) and isinstance(answer.get("metadata"), dict):
                return True
            raise Unavailable(f"catalog {self._name} answers {status} for table {name}, and not what it is now")
        if status == _CONFLICT:
            return False
        if status == _NOT_FOUND:
            raise NotFound(f"no table {name} in catalog {self._name}")
        said = f"catalog {self._name} does not change table {name}: {status} {said_by(answer)}"
        raise (Unavailable if status >= _INTERNAL_ERROR or status == _TOO_MANY else NotAllowed)(said)

    def register(self, name: TableName, metadata_location: str) -> None:
        """Have a metadata file registered as a table, as it is.

        Raises ``Conflict`` for a name that is taken, ``NotAllowed`` when it is refused, and ``Unavailable`` when nobody
        knows whether it was done.
        """
        with asking(self._name):
            client = self._connected()
            namespace = client._encode_namespace_path(name.namespace)  # noqa: SLF001 - see below
            url = client.url(Endpoints.register_table, namespace=namespace)
            status, answer = self._answered(client, url, {"name": name.name, "metadata-location": metadata_location})
        if _OK <= status < _MULTIPLE:
            return
        said = f"catalog {self._name} does not register table {name}: {status} {said_by(answer)}"
        if status == _CONFLICT:
            raise Conflict(said)
        raise (Unavailable if status >= _INTERNAL_ERROR or status == _TOO_MANY else NotAllowed)(said)

    def _post(self, name: TableName, body: Mapping[str, Any]) -> tuple[int, Any]:
        client = self._connected()
        url = client.url(Endpoints.update_table, **client._split_identifier_for_path(name.path))  # noqa: SLF001 - PyIceberg's own spelling of names in addresses
        return self._answered(client, url, body)

    def _answered(self, client: RestClient, url: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        with client._session.post(url, data=json.dumps(body).encode(), stream=True) as response:  # noqa: SLF001 - see above
            content = whole_answer(response, self._name)
        try:
            return response.status_code, json.loads(content)
        except ValueError:
            return response.status_code, None
