"""``[platform]``: what belongs together there."""

from __future__ import annotations

from collections.abc import Mapping

from icewright.config import values
from icewright.config.layers import Given, Key
from icewright.config.model import PlatformConfig
from icewright.config.platform import COMMAND, KUBERNETES, NONE, PLATFORM, WEBHOOK
from icewright.core.errors import InvalidConfiguration
from icewright.model.work.optimizers import TuneMode

_NEEDS: Mapping[str, tuple[str, ...]] = {WEBHOOK: ("url", "secret"), COMMAND: ("command",), KUBERNETES: ("workload",)}
"""What each kind cannot do without."""


def platform_config(given: Mapping[Key, Given], file: str) -> PlatformConfig:
    """The section. Raises :class:`InvalidConfiguration` where a kind lacks what it needs, or none can be asked."""
    found = PlatformConfig(**{setting.key: values.value(given, ("platform",), setting) for setting in PLATFORM})
    of = {key[1]: item.origin for key, item in given.items() if key[0] == "platform"}
    origin = next(iter(of.values()), file)
    values.require_reference(given, ("platform", "secret"), found.secret)
    if of.get("command", file) != file:
        raise InvalidConfiguration(
            f"{of['command']}: platform.command belongs into the configuration file alone", hint="it runs a program"
        )
    if found.servers_max < found.servers_min:
        raise InvalidConfiguration(f"{origin}: platform.servers_max is less than platform.servers_min")
    missing = [key for key in _NEEDS.get(found.kind, ()) if not getattr(found, key)]
    if missing:
        raise InvalidConfiguration(f"{origin}: platform.kind = {found.kind} needs platform.{missing[0]}")
    if found.kind == NONE and found.mode == TuneMode.ACT:
        raise InvalidConfiguration(
            f"{origin}: platform.mode = act: there is no platform to ask for servers", hint="set platform.kind"
        )
    return found
