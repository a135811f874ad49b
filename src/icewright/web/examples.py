"""A body or two for each operation that people call by hand, for the OpenAPI document: by operation and name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "receive_commit": {
        "commit": {"table_name": "lake.sales.orders", "snapshot_id": "8744736658442914487", "operation": "append"},
        "it changed": {"table_name": {"catalog": "lake", "namespace": ["sales"], "name": "orders"}},
    },
    "receive_commits": {
        "two": {
            "events": [
                {"table_name": "lake.sales.orders", "snapshot_id": "8744736658442914487"},
                {"table_name": "lake.sales.returns", "snapshot_id": "1182371111235452101"},
            ],
            "channel": "outbox",
        }
    },
    "create_plan": {
        "expire snapshots": {"kind": "expire_snapshots"},
        "all files to the current partition spec": {"kind": "rewrite_data_files", "migrate": "spec"},
    },
    "approve_plan": {"by name": {"approved_by": "Ada"}},
    "create_token": {
        "for a scheduler": {
            "name": "nightly",
            "roles": ["operator"],
            "scopes": ["lake.sales"],
            "lifetime_ms": 7_776_000_000,
        }
    },
    "open_session": {"as the page showed it": {"code": "icc_SgPN4BZoT2oRyHb8gGFkw7DdCPx5tJrVLqAmYh3nXe0"}},
    "preview_policies": {
        "one rule": {
            "rules": [
                {
                    "name": "keep-sales-for-a-year",
                    "match": {"tables": ["lake.sales.**"]},
                    "settings": {"icewright.mode": "auto"},
                }
            ]
        }
    },
    "apply_policies": {"none": {"policies": {"rules": []}, "applied_by": "Ada", "note": "start over"}},
    "purge_gone_table": {"by name": {"purged_by": "Ada"}},
}
