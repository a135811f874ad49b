"""Where a table's new files go, as far as its metadata tells: the place that workers must be able to reach."""

from __future__ import annotations

from typing import Final

from icewright.model.iceberg.tables import TableMetadata

_LOCAL: Final = ("/", "file:")
_DATA_PATH: Final = "write.data.path"
_FOLDER_PATH: Final = "write.folder-storage.path"
_OBJECT_PATH: Final = "write.object-storage.path"
_OBJECT_LAYOUT: Final = "write.object-storage.enabled"


def is_local(location: str) -> bool:
    """Whether a location is on a local file system."""
    return location.lower().startswith(_LOCAL)


def storage_root(metadata: TableMetadata) -> str | None:
    """The location that stands for a table's storage; None when all of it is local, which needs no proof.

    The rules are those of Iceberg's ``LocationProviders`` (1.12). A table whose new files go to another place than its
    own stands for both with the one that is not local.
    """
    properties = metadata.properties
    objects = properties.get(_OBJECT_LAYOUT, "").strip().lower() == "true"
    keys = (_DATA_PATH, _OBJECT_PATH, _FOLDER_PATH) if objects else (_DATA_PATH, _FOLDER_PATH)
    given = next((properties[key] for key in keys if key in properties), None)
    data = given or f"{metadata.location.rstrip('/')}/data"
    return next((place for place in (data, metadata.location) if not is_local(place)), None)
