"""Whose a table is, for those who tell its owner what happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icewright.domain.names import TableName
from icewright.domain.policies import OWNER_KEY, Rule
from icewright.planning.owner_settings import OWNER_SETTING_KEY, parse_owner
from icewright.planning.policy import layers_of


def owner_of(name: TableName, properties: Mapping[str, str], rules: Sequence[Rule]) -> str | None:
    """Whose a table of that name with these properties is, by these rules; None where nobody says so.

    What the setting says comes before the table's property ``owner``. What is no name is passed over here; of the
    setting, the table's policy tells so, as of any other.
    """
    said = [layer.properties.get(OWNER_SETTING_KEY) for layer in layers_of(name, properties, rules)]
    for text in (*said, properties.get(OWNER_KEY)):
        try:
            if text is not None:
                return parse_owner(text)
        except ValueError:
            continue
    return None
