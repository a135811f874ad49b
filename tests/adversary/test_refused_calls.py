"""Calls that are refused leave a trace, guessing becomes slow, and nobody else is slowed or locked out by that."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network

import pytest

from icewright.audit.model import AuditEntry
from icewright.audit.sql import SqlAudit
from icewright.identity import denials
from icewright.identity import gate as door
from icewright.identity.denials import ADDRESSES_LOGGED_MAX, FREE_FAILURES, WAITING_OF_ONE_MAX, Denials
from icewright.model.access.identity import NewToken
from icewright.model.access.permissions import Role
from icewright.web.transport import Transport
from tests.builders.served import V1, Served, TestClient, problem
from tests.doubles.clock import ManualClock
from tests.lakes.stores import new_store


class Time:
    """What passes only when a test says so, and who waited for it."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, time: Time) -> Served:
    monkeypatch.setattr(door, "Denials", lambda audit: Denials(audit, now_s=time.now, sleep=time.sleep))
    return Served()


def denied(served: Served) -> list[AuditEntry]:
    return [entry for entry in served.audit.entries(limit=10_000, after=0) if entry.action == "access.denied"]


def asked(served: Served, token: str, path: str = "/tables") -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return int(served.client(headers).get(V1 + path).status_code)


def test_s7_forbidden_calls_and_wrong_tokens_are_in_the_audit(served: Served, time: Time) -> None:
    viewer = served.access.give_token(NewToken("viewer", (Role.VIEWER,), ("lake",)), "owner").token
    assert {asked(served, viewer, "/tokens") for _ in range(50)} == {403}
    assert {asked(served, f"icw_wrong{number}") for number in range(300)} <= {401, 429}
    assert served.client().get(f"{V1}/tables").status_code == 401  # without credentials: no attempt at anything
    assert denied(served) == []
    time.now_s += 61
    assert asked(served, viewer) == 200
    found = {(entry.principal, entry.detail["code"]): entry.detail["calls"] for entry in denied(served)}
    assert found == {("token:viewer", "forbidden"): 50, ("stranger", "unauthenticated"): 300}
    assert next(entry.resource for entry in denied(served)) == "tokens"


def test_s7_guessing_is_slowed_and_valid_credentials_are_not(served: Served, time: Time) -> None:
    viewer = served.access.give_token(NewToken("viewer", (Role.VIEWER,), ("lake",)), "owner").token
    for number in range(FREE_FAILURES):
        asked(served, f"icw_{number}")
    assert time.slept == []
    for number in range(30):
        asked(served, f"icw_{number}")
    assert len(time.slept) == 30
    assert time.slept == sorted(time.slept)
    assert time.slept[-1] == denials.DELAY_S_MAX
    assert asked(served, viewer) == 200
    assert len(time.slept) == 30
    time.now_s += 3_600
    asked(served, "icw_x")
    assert len(time.slept) == 30


def test_s7_who_waits_takes_no_place_of_others(time: Time) -> None:
    held = Denials(SqlAudit(new_store(), ManualClock()), now_s=time.now, sleep=lambda _: asyncio.Event().wait())  # type: ignore[arg-type,return-value]  # it never ends

    async def guess() -> list[int]:
        for _ in range(FREE_FAILURES):
            await held.wrong("192.0.2.1")
        tries = [asyncio.create_task(held.wrong("192.0.2.1")) for _ in range(50)]
        done, waiting = await asyncio.wait(tries, timeout=0.1)
        answered = [one.result() for one in done]
        for one in waiting:
            one.cancel()
        assert all(one is not None and one.status == 429 for one in answered)
        assert await held.wrong("192.0.2.2") is None
        return [len(waiting), len(answered)]

    assert asyncio.run(guess()) == [WAITING_OF_ONE_MAX, 50 - WAITING_OF_ONE_MAX]


def test_s7_strangers_fill_neither_memory_nor_audit(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denials, "ADDRESSES_MAX", 100)
    audit = SqlAudit(new_store(), ManualClock())
    held = Denials(audit, now_s=time.now, sleep=time.sleep)

    async def flood() -> None:
        for number in range(2_000):
            await held.wrong(f"10.0.{number // 256}.{number % 256}")
            await held.wrong(f"2001:db8::{number:x}")
            await held.wrong("\ud800 no address")

    asyncio.run(flood())
    for number in range(1_000):
        held.forbidden(f"token:t{number}", f"/api/v1/{'x' * number}")
    time.now_s += 61
    assert held.is_due
    held.write()
    entries = audit.entries(limit=10_000, after=0)
    assert len(entries) <= ADDRESSES_LOGGED_MAX + denials.PRINCIPALS_LOGGED_MAX + 2
    assert sum(int(entry.detail["calls"]) for entry in entries) == 7_000
    assert len(held._failures) <= 100


def test_s7_behind_a_trusted_proxy_the_client_counts(served: Served, time: Time) -> None:
    served.access.transport = Transport(proxies=(ip_network("127.0.0.0/8"),))
    http = TestClient(served.app, str(served.http.base_url), client=("127.0.0.1", 1))

    def guess(client: str) -> int:
        headers = {"Authorization": "Bearer icw_x", "X-Forwarded-For": client, "X-Forwarded-Proto": "https"}
        return int(http.get(f"{V1}/tables", headers=headers).status_code)

    for _ in range(2 * FREE_FAILURES):
        guess("192.0.2.1")
    slowed = len(time.slept)
    assert slowed == FREE_FAILURES
    assert guess("192.0.2.2") == 401
    assert len(time.slept) == slowed
    problem(http.get(f"{V1}/tables", headers={"X-Forwarded-Proto": "https"}), 401, "unauthenticated")
