"""Secrets in what others say: errors and lines of logs, which quote addresses, settings and headers of requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote, quote_plus

from icewright.model.access.redacted_text import names_a_secret

MASK: Final = "***"
_LENGTH_MIN: Final = 4
"""Shorter secrets are parts of ordinary words: masking them would tell more of them than it hides."""

# No pattern may take much longer than a text is long, whoever wrote that: runs are possessive, or short.
_PASSWORD: Final = re.compile(r"(?P<head>://[^:/@\s]{0,256}+:)[^\s@]{1,256}+@(?:[^\s@/]{1,256}+@)*+")
_KEY: Final = re.compile(
    r"(?<![\w.-])(?P<key>[\w.-]++)(?<!Exception)(?<!Error)(?P<sign>[\"']?+\s{0,2}+[=:])\s{0,2}+", re.ASCII
)
_VALUE: Final = re.compile(r"""\"(?:[^\"\\]|\\.)*+\"?+|'(?:[^'\\]|\\.)*+'?+|[^\s,;&\"'(){}\[\]]++""", re.DOTALL)
_BEARER: Final = re.compile(r"(?P<head>\b(?:bearer|basic|negotiate)\s{1,2}+)[\w.~+/=-]{8,}+", re.IGNORECASE)
_KEY_ID: Final = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}+")
_SIGNED: Final = re.compile(r"\beyJ[\w-]{8,}+\.[\w-]++\.[\w-]*+")
_SIGNATURE: Final = re.compile(r"(?:^|[-_.])sig(?:nature)?$", re.IGNORECASE)
_NO_SECRET: Final = re.compile(r"authori[sz]ed", re.IGNORECASE)
"""What errors say that name a secret's property by accident alone."""


class SecretsInText:
    """Masks secrets in texts: those that are known, and what looks like one."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        # The longest first: one may be the beginning of another.
        spelled = {one for secret in known if len(secret) >= _LENGTH_MIN for one in _spellings(secret)}
        self._known = sorted(spelled, key=len, reverse=True)

    def masked(self, text: str) -> str:
        """The text without them."""
        for secret in self._known:
            text = text.replace(secret, MASK)
        text = _PASSWORD.sub(rf"\g<head>{MASK}@", text)
        text = _BEARER.sub(rf"\g<head>{MASK}", text)
        text = _SIGNED.sub(MASK, _KEY_ID.sub(MASK, text))
        return "".join(_without_values(text))


def secret_values(properties: Mapping[str, str]) -> Iterator[str]:
    """The values of properties that may be secret, by their names."""
    return (value for key, value in properties.items() if names_a_secret(key))


def _without_values(text: str) -> Iterator[str]:
    """The text without the values of settings whose names tell of secrets."""
    begin = 0
    for found in _KEY.finditer(text):
        if found.start() < begin or not _is_secret(found):
            continue
        value = _VALUE.match(text, found.end())
        if value is not None:
            yield text[begin : found.end()] + MASK
            begin = value.end()
    yield text[begin:]


def _is_secret(found: re.Match[str]) -> bool:
    key = found["key"]
    if "." in key and found["sign"] == ":":  # a sentence about a table of such a name
        return False
    return names_a_secret(_NO_SECRET.sub("", key)) or _SIGNATURE.search(key) is not None


def _spellings(secret: str) -> set[str]:
    """A secret as it is, and as addresses, JSON and Python's ``repr`` have it."""
    quoted = {quote(secret), quote(secret, safe=""), quote_plus(secret)}
    return {secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], *quoted}
