"""What owners ask for and apply: each trigger with the rule that fired, and files moved to the current partition spec.

The tables are in mode ``approve``: a person plans, reads the plan, and applies it.
"""

from __future__ import annotations

from icewright.api_client.client import Client
from icewright.core.errors import NotFound
from icewright.model.actions.rewrite_data_files import RewriteDataFilesRequest
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Json
from icewright.model.plans.plans import Migration
from tests.e2e.processes import Processes, wait_for
from tests.lakes.sqlite import append, make_table

RULES = {"levels": "small-files", "mse": "size-error", "tiered": "minor", "cost-benefit": "worth-it"}
"""The trigger, and the rule of it that fires for many tiny files."""
MOVED = TableName("asked", ("db",), "moved")
COMMITS = 14


def fill(entry: CatalogEntry, name: TableName, **properties: str) -> None:
    table = make_table(entry, name.path, properties={"icewright.mode": "approve", **properties})
    for number in range(COMMITS):
        append(table, range(number * 10, number * 10 + 10))


def planned(processes: Processes, client: Client, name: TableName, migrate: Migration | None = None) -> Json:
    """The plan of a table, as soon as the server knows that."""

    def look() -> Json | None:
        try:
            return client.table(name)
        except NotFound:
            return None

    table = wait_for(look, f"{name} is known", processes, 60)
    of = table["uuid"], table["catalog"]
    if migrate is not None:
        return client.plan_asked(*of, RewriteDataFilesRequest(migrate))
    plan: Json = client.look_at_table(*of)["plan"]
    return plan
