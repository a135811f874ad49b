"""What is kept of a table's own properties, so that it can be told which tables a change of policies is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icewright.core.secret_keys import names_a_secret
from icewright.policy.settings import PREFIX

KNOWN_CHARACTERS_MAX: Final = 65_536
"""Of the properties of one table together: whoever writes a table can write anything into them."""


def known_properties(properties: Mapping[str, str]) -> Mapping[str, str] | None:
    """The properties without those that may hold a secret; None where they are too long to be kept."""
    known = {key: value for key, value in properties.items() if key.startswith(PREFIX) or not names_a_secret(key)}
    return known if sum(len(key) + len(value) for key, value in known.items()) <= KNOWN_CHARACTERS_MAX else None
