"""The settings of S3 as both clients read them.

Iceberg's Java and PyIceberg share most names (``s3.endpoint``, ``s3.access-key-id``) and differ in a few: the region,
and whether a bucket is part of the path or of the host. A user may write either name; each client gets its own.
Without keys both use what the machine has: environment, profile, instance role.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from icewright.core.errors import InvalidConfiguration

S3_SCHEMES: Final = frozenset({"s3", "s3a", "s3n"})
AWS_PACKAGE: Final = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"
S3_FILE_IO: Final = "org.apache.iceberg.aws.s3.S3FileIO"
RESOLVING_FILE_IO: Final = "org.apache.iceberg.io.ResolvingFileIO"

_TIMEOUTS: Final = {"s3.connect-timeout": "10", "s3.request-timeout": "10"}
"""Seconds in which a store must have accepted, and in which it may send nothing; each request is tried three times. The
loop of the server waits for them."""
_REGION_OF_ANY_ENDPOINT: Final = "us-east-1"
"""What stores other than Amazon's take for a region. Without one, Arrow would ask Amazon where the bucket is."""

_REGION: Final = ("s3.region", "client.region")
_KEYS: Final = (
    ("s3.access-key-id", "client.access-key-id"),
    ("s3.secret-access-key", "client.secret-access-key"),
    ("s3.session-token", "client.session-token"),
)
_PATH_STYLE: Final = "s3.path-style-access"
_VIRTUAL_HOSTS: Final = "s3.force-virtual-addressing"
NOT_FOR_JAVA: Final = frozenset(
    {"s3.region", _VIRTUAL_HOSTS, "s3.connect-timeout", "s3.request-timeout", *(names[1] for names in _KEYS)}
)
"""Names that only PyIceberg knows."""
_TRUTH: Final = {"true": True, "false": False}


def uses_s3(properties: Mapping[str, str], warehouse: str) -> bool:
    """Whether a catalog has to do with S3, by what its entry says."""
    is_java_s3 = properties.get("io-impl") == S3_FILE_IO
    return is_java_s3 or is_on_s3(warehouse) or any(key.startswith("s3.") for key in properties)


def is_on_s3(location: str) -> bool:
    """Whether a location is on S3."""
    return urlsplit(location).scheme in S3_SCHEMES


def for_pyiceberg(properties: Mapping[str, str]) -> dict[str, str]:
    """What PyIceberg's ``FileIO`` takes in place of, or beside, ``properties``."""
    found = _same_for_both(properties)
    region = _first(properties, _REGION) or (_REGION_OF_ANY_ENDPOINT if "s3.endpoint" in properties else None)
    if region is not None:
        found["s3.region"] = region
    path_style = _path_style(properties)
    if path_style is not None:
        found[_VIRTUAL_HOSTS] = _text(not path_style)
    return {**{key: properties.get(key, seconds) for key, seconds in _TIMEOUTS.items()}, **found}


def for_java(properties: Mapping[str, str]) -> dict[str, str]:
    """What Iceberg's ``S3FileIO`` takes in place of, or beside, ``properties``."""
    found = _same_for_both(properties)
    region = _first(properties, _REGION) or (_REGION_OF_ANY_ENDPOINT if "s3.endpoint" in properties else None)
    if region is not None:
        found["client.region"] = region
    path_style = _path_style(properties)
    if path_style is not None:
        found[_PATH_STYLE] = _text(path_style)
    return found


def _same_for_both(properties: Mapping[str, str]) -> dict[str, str]:
    """Keys as both read them; PyIceberg would also take ``client.access-key-id``, which Java does not know."""
    found = {names[0]: _first(properties, names) for names in _KEYS}
    return {key: value for key, value in found.items() if value is not None}


def _path_style(properties: Mapping[str, str]) -> bool | None:
    said = {_truth(properties, _PATH_STYLE)} if _PATH_STYLE in properties else set()
    if _VIRTUAL_HOSTS in properties:
        said.add(not _truth(properties, _VIRTUAL_HOSTS))
    if len(said) > 1:
        raise InvalidConfiguration(f"{_PATH_STYLE} and {_VIRTUAL_HOSTS} contradict each other; keep one of them")
    return said.pop() if said else None


def _truth(properties: Mapping[str, str], key: str) -> bool:
    value = _TRUTH.get(properties[key].strip().lower())
    if value is None:
        raise InvalidConfiguration(f"{key} must be true or false, not {properties[key]!r}")
    return value


def _first(properties: Mapping[str, str], names: Iterable[str]) -> str | None:
    return next((properties[name] for name in names if name in properties), None)


def _text(value: bool) -> str:  # noqa: FBT001 - the value itself
    return "true" if value else "false"
