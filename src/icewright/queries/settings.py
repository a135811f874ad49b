"""``[queries]``: what is kept of the queries of engines, and from where they come beside HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from icewright.config import values
from icewright.config.layers import Given, Key, dotted
from icewright.config.model import QueriesConfig
from icewright.config.queries import QUERIES
from icewright.core.errors import InvalidConfiguration
from icewright.events.settings import check_kafka
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.queries.queries import LiteralPolicy

_SECTION: Final = "queries"


def queries_config(
    given: Mapping[Key, Given], entries: Sequence[CatalogEntry], folder: Callable[[str], str]
) -> QueriesConfig:
    """The section, checked against the catalogs that there are. ``folder`` is the path of one as it is written.

    Raises ``InvalidConfiguration``.
    """
    found = {setting.key: values.value(given, (_SECTION,), setting) for setting in QUERIES}
    found["literals"] = LiteralPolicy(found["literals"])
    found["event_logs"] = tuple(map(folder, found["event_logs"]))
    queries = QueriesConfig(**found)
    values.check_own_table(given, _SECTION, queries.catalog, lambda: queries.name, entries, QueriesConfig().table)
    check_kafka(given, _SECTION, queries.kafka)
    names = {entry.name for entry in entries}
    for engines, ours in queries.catalogs.items():
        if ours not in names:
            key = (_SECTION, "catalogs", engines)
            raise InvalidConfiguration(
                f"{given[key].origin}: {dotted(key)}: there is no catalog {ours!r}",
                hint=f"known: {', '.join(sorted(names)) or 'none'}",
            )
    values.require_reference(given, (_SECTION, "hash_key"), queries.hash_key, "key")
    return queries
