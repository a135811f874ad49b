"""Whose a table is, for those who tell its owner what happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icewright.model.iceberg.names import TableName
from icewright.model.policy.policies import OWNER_KEY, Rule
from icewright.policy.effective import layers_of
from icewright.policy.owner_settings import OWNER_SETTING_KEY, parse_owner


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
