"""Resource groups as people write them, in the configuration and in policy files: the same keys and the same values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from icewright.core import wording
from icewright.core.errors import InvalidResourceGroup
from icewright.core.times import Window
from icewright.model.policy.resource_groups import OPTIMIZERS_MAX, ResourceGroup, TenantCaps
from icewright.model.policy.setting_values import ratio, whole_number
from icewright.model.policy.time_windows import WindowTextError, parse_cron, parse_time_zone
from icewright.policy.window_settings import WINDOW_SETTINGS

Written: TypeAlias = "str | Mapping[str, Written] | Sequence[Written]"
"""A value as a file has it: numbers and the like as the text that is written."""

_SIZE: Final = re.compile(r"([1-9][0-9]{0,17})([kmgt]?)", re.ASCII)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_CAPS: Final = {"tasks": "tasks_max", "cores": "cores", "memory": "memory_bytes"}
_GROUP_CAPS: Final = {**_CAPS, "applications": "applications_max", "optimizers": "optimizers_max"}
_NUMBERS: Final = ("normal_min", "normal_max", "large_min", "large_max")
_GROUP_KEYS: Final = (*_GROUP_CAPS, "large_share", *_NUMBERS, "windows", "tenants")
_WINDOW_KEYS: Final = ("cron", "time_zone", "duration")
_DURATION: Final = next(one.parse for one in WINDOW_SETTINGS if one.field == "window_duration_ms")


def group_of(name: str, written: Mapping[str, Written]) -> ResourceGroup:
    """A resource group from what a file says of it. Raises :class:`InvalidResourceGroup`."""
    where = f"resource group {wording.name(name)}"
    _known(where, written, _GROUP_KEYS)
    caps = {field: _cap(where, key, written[key]) for key, field in _GROUP_CAPS.items() if key in written}
    share = {} if "large_share" not in written else {"large_share": _share(where, written["large_share"])}
    windows = tuple(_window(where, one) for one in _list(where, "windows", written.get("windows", ())))
    tenants = tuple(_tenants(where, written.get("tenants", {})))
    numbers = {key: _number(where, key, written[key]) for key in _NUMBERS if key in written}
    return ResourceGroup(name, **caps, **share, **numbers, windows=windows, tenants=tenants)  # type: ignore[arg-type]  # by name


def group_fault(group: ResourceGroup) -> str | None:
    """What is wrong with a group that did not come by :func:`group_of`; None where its windows can be read."""
    for window in group.windows:
        try:
            parse_cron(window.cron)
            parse_time_zone(window.time_zone)
        except WindowTextError as error:
            return f"resource group {group.name}: windows: {error}"
    return None


def _tenants(where: str, written: Written) -> Iterator[TenantCaps]:
    for tenant, caps in _map(where, "tenants", written).items():
        found = _map(where, f"tenants.{wording.name(tenant)}", caps)
        _known(f"{where}: tenants.{wording.name(tenant)}", found, tuple(_CAPS))
        given = {field: _cap(where, key, found[key]) for key, field in _CAPS.items() if key in found}
        yield TenantCaps(tenant, **given)


def _window(where: str, written: Written) -> Window:
    found = _map(where, "windows", written)
    _known(f"{where}: windows", found, _WINDOW_KEYS)
    cron, zone, duration = (found.get(key, default) for key, default in zip(_WINDOW_KEYS, ("", "UTC", ""), strict=True))
    if not (isinstance(cron, str) and isinstance(zone, str) and isinstance(duration, str)):
        raise _wrong(where, "windows", "cron, time_zone and duration are texts")
    try:
        return Window(parse_cron(cron), parse_time_zone(zone), _DURATION(duration))
    except WindowTextError as error:
        raise _wrong(where, "windows", str(error)) from error
    except ValueError as error:
        raise _wrong(where, "windows", "duration: write an ISO-8601 duration, PT1M to P7D") from error


def _cap(where: str, key: str, written: Written) -> int:
    if isinstance(written, str):
        if key == "memory" and (match := _SIZE.fullmatch(written.strip().lower())):
            return int(match[1]) << 10 * _POWERS[match[2]]
        try:
            return whole_number(1, 10**9)(written)
        except ValueError:
            pass
    allowed = "bytes, or a number and k, m, g or t, such as 64g" if key == "memory" else "a whole number, at least 1"
    raise _wrong(where, key, f"write {allowed}; leave it out for no cap")


def _number(where: str, key: str, written: Written) -> int:
    try:
        return whole_number(0, OPTIMIZERS_MAX)(written if isinstance(written, str) else "")
    except ValueError as error:
        raise _wrong(where, key, f"write a whole number, 0 to {OPTIMIZERS_MAX}") from error


def _share(where: str, written: Written) -> float:
    try:
        return ratio(written if isinstance(written, str) else "")
    except ValueError as error:
        raise _wrong(where, "large_share", "write a number above 0 and below 1, such as 0.2") from error


def _known(where: str, written: Mapping[str, Written], known: Sequence[str]) -> None:
    for key in written:
        if key not in known:
            raise InvalidResourceGroup(f"{where}: unknown key {wording.name(key)}", hint=f"known: {', '.join(known)}")


def _map(where: str, key: str, written: Written) -> Mapping[str, Written]:
    if not isinstance(written, Mapping):
        raise _wrong(where, key, "expected a table of keys and values")
    return written


def _list(where: str, key: str, written: Written) -> Sequence[Written]:
    if isinstance(written, str | Mapping):
        raise _wrong(where, key, "expected a list")
    return written


def _wrong(where: str, key: str, text: str) -> InvalidResourceGroup:
    return InvalidResourceGroup(f"{where}: {key}: {text}")
