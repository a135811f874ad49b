"""Who may approve what they asked for: one person alone, on a machine that no other one reaches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from icewright.config.listening import check_approvals
from icewright.config.model import ServerConfig
from icewright.config.settings import ONE_PERSON
from icewright.core.errors import InvalidConfiguration


def test_one_person_approves_alone_only_where_no_other_comes_in() -> None:
    server = ServerConfig("127.0.0.1", 7077, Path("/state"), "sqlite:////state/store.db", None, 30_000, 0)
    check_approvals(server, has_provider=True, origin="x")
    alone = replace(server, approvals=ONE_PERSON)
    check_approvals(alone, has_provider=False, origin="x")
    with pytest.raises(InvalidConfiguration, match=r"\[oidc\]"):
        check_approvals(alone, has_provider=True, origin="x")
    for reached in (
        replace(alone, host="0.0.0.0"),  # noqa: S104 - it is refused
        replace(alone, trusted_proxies=("10.0.0.7",)),
        replace(alone, public_url="https://icewright.example.com"),
    ):
        with pytest.raises(InvalidConfiguration, match="others may have access"):
            check_approvals(reached, has_provider=False, origin="x")
