"""The setting that says whose a table is."""

from __future__ import annotations

from typing import Final

from icewright.model.policy.setting_values import Setting

OWNER_SETTING_KEY: Final = "icewright.owner"
_LENGTH_MAX: Final = 200


def parse_owner(text: str) -> str:
    """The owner that a text names. Raises ``ValueError``."""
    if not text.strip() or len(text) > _LENGTH_MAX or not text.isprintable():
        raise ValueError(text)
    return text.strip()


OWNER_SETTINGS: Final = (
    Setting(
        OWNER_SETTING_KEY,
        "owner",
        parse_owner,
        None,
        "Whose the table is, for [notifications](notifications.md#whose-a-table-is). Without it that is "
        "the table's property `owner`, in which many engines write who created it.",
        f"a name of 1 to {_LENGTH_MAX} characters",
    ),
)
