"""Which keys of properties name secrets, so that their values are neither shown nor kept."""

from __future__ import annotations

import re
from typing import Final

_SECRET_KEY: Final = re.compile(
    r"password|passwd|secret|token|credential|access[-_.]?key|account[-_.]?key|sas|private|auth", re.IGNORECASE
)


def names_a_secret(key: str) -> bool:
    """Whether the value of a property of that name may be a secret."""
    return _SECRET_KEY.search(key) is not None
