"""Secrets in what others say: errors and lines of logs, which quote addresses, settings and headers of requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Final
from urllib.parse import quote, quote_plus

from icewright.model.access.redacted_text import names_a_secret

MASK: Final = "***"
_LENGTH_MIN: Final = 4
"""Shorter secrets are parts of ordinary words: masking them would tell more of them than it hides."""

# No pattern may take much longer than a text is long, whoever wrote that: runs are possessive, or short.
_BEFORE_HOST: Final = re.compile(r"(?<![^\s@])[^\s@]++@(?:[^\s@/]{1,256}+@)*+")
_USER: Final = re.compile(r"://[^:/@\s]{0,256}+:")
_KEY: Final = re.compile(
    r"""(?<![\w.-])(?P<key>[\w.-]++)(?<!Exception)(?<!Error)
    (?P<sign>\\{0,8}+["']?+\s{0,32}+(?:[=:-]>|:?={1,2}+|:|%3D|%3A))\s{0,32}+""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
_VALUE: Final = re.compile(
    r"""
    "(?:[^"\\]|\\.)*+"?+
    | '(?:[^'\\]|\\.)*+'?+
    | (?P<quote>\\{1,8}+["']) .*? (?:(?P=quote)|\Z)  # quoted within a text that is quoted itself
    | (?:[^\s,;&"'%]|%(?!26)|[,;&](?!\s|\Z|[\w.-]{0,64}["']?[=:]|["']))++
    """,
    re.DOTALL | re.VERBOSE,
)
_BEARER: Final = re.compile(
    r"(?P<head>\b(?:bearer|basic|negotiate)(?:\s{1,2}+|%20))(?:[\w.~+/=-]|%[0-9a-f]{2}){8,}+", re.IGNORECASE
)
_OF_AWS: Final = re.compile(r"\b(?P<head>AWS\s\w{16,128}+:)[\w+/=]{8,}+")
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----(?:[^-]|-(?!----END))*+")
_ELEMENT: Final = re.compile(r"<(?P<name>[\w.:-]{1,128}+)>(?P<value>[^<]++)")
_OPTION: Final = re.compile(r"(?<!\S)(?P<head>--(?P<name>[\w-]{1,64}+)\s)[^\s-]\S*+")
_KEY_ID: Final = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}+")
_SIGNED: Final = re.compile(r"\beyJ[\w-]{8,}+\.[\w-]++\.[\w-]*+")
_PARAMETER: Final = re.compile(r"[?&;](?P<name>[^?&;=]++)=(?P<value>[^&;]++)")
_ESCAPED: Final = re.compile("%[0-9A-F]{2}")
_SETTING: Final = re.compile(r"(?:s3|fs|spark|hadoop|hive|client|adls|gcs|rest|oauth2?|jdbc|javax|ssl|io|kafka)\.")
_NO_VALUES: Final = frozenset(
    ("true", "false", "none", "null", "basic", "oauth2", "sigv4", "google", "simple", "kerberos")
)
"""Values of settings that are words of every sentence, whatever their names are like."""
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
        text = _BEFORE_HOST.sub(_without_password, text)
        text = _PRIVATE_KEY.sub(MASK, _OF_AWS.sub(rf"\g<head>{MASK}", text))
        text = _ELEMENT.sub(lambda found: _if_secret(found, f"<{found['name']}>"), text)
        text = _OPTION.sub(lambda found: _if_secret(found, found["head"]), text)
        text = _BEARER.sub(rf"\g<head>{MASK}", text)
        text = _SIGNED.sub(MASK, _KEY_ID.sub(MASK, text))
        return "".join(_without_values(text))


def secret_values(properties: Mapping[str, str]) -> Iterator[str]:
    """The values of properties that may be secret, by their names."""
    return (value for key, value in properties.items() if names_a_secret(key) and value.lower() not in _NO_VALUES)


def passwords_in(address: str) -> Iterator[str]:
    """The passwords that an address has before its host and in its parameters, as they are spelled in it."""
    for found in _BEFORE_HOST.finditer(address):
        user = _USER.search(found[0])
        if user is not None:
            password = found[0][user.end() : -1]
            yield from (password, password.partition("@")[0])  # it has one itself, or a name behind it has
    for found in _PARAMETER.finditer(address):
        if names_a_secret(found["name"]):
            yield found["value"]


def _without_password(found: re.Match[str]) -> str:
    user = _USER.search(found[0])
    return found[0] if user is None else f"{found[0][: user.end()]}{MASK}@"


def _if_secret(found: re.Match[str], head: str) -> str:
    return head + MASK if names_a_secret(found["name"]) else found[0]


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
    if "." in key and found["sign"] == ":" and not _SETTING.match(key):  # a sentence about a table of such a name
        return False
    return names_a_secret(_NO_SECRET.sub("", key)) or _SIGNATURE.search(key) is not None


def _spellings(secret: str) -> set[str]:
    """A secret as it is, and as addresses, JSON and Python's ``repr`` have it."""
    quoted = {quote(secret), quote(secret, safe=""), quote_plus(secret), quote(secret, safe="!*'()")}
    quoted.add(quote_plus(secret, safe="*").replace("~", "%7E"))  # Java's
    quoted |= {_ESCAPED.sub(lambda found: found[0].lower(), one) for one in quoted}
    return {secret, escape(secret), escape(secret, quote=False), json.dumps(secret)[1:-1], repr(secret)[1:-1], *quoted}
