"""G9: requests that are made up from the OpenAPI document, right ones and wrong ones, for every operation.

No 5xx, no hang, nothing for strangers, and a code of the document with every refusal.
"""

import random
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings

from icewright.identity.authorization import Declared, Public, declarations
from icewright.model.access.identity import NewToken
from icewright.model.access.permissions import Permission, Role
from icewright.model.work.jobs import ANY_TASK
from tests.builders.api_requests import Asker, asking, documented_codes
from tests.builders.served import EVENTS, TOKEN, V1, Served, hello
from tests.conftest import CAMPAIGN

REQUESTS: Final = 10_000 if CAMPAIGN else 400
SEED: Final = 20_261_123
_QUIET: Final = list(HealthCheck)


class Company:
    """A server with something of everything, and three who ask: its owner, a reader of one namespace, a stranger."""

    def __init__(self) -> None:
        self.served = Served()
        uuid = self.served.table(mode="approve")
        plan_id = self.served.post(f"/tables/{uuid}/look")["plan"]["plan_id"]
        task_id = self.served.post(f"/plans/{plan_id}/apply")["task_id"]
        self.served.post("/optimizers", hello())
        self.served.post("/optimizers/optimizer-1/claims", ANY_TASK)
        self.known: Mapping[str, str] = {
            "uuid": uuid,
            "plan_id": plan_id,
            "task_id": task_id,
            "optimizer_id": "optimizer-1",
            "name": "ci",
            "number": "1",
        }
        reader = NewToken("reader", (Role.VIEWER,), ("lake.elsewhere",))
        self.callers: Mapping[str, str | None] = {
            "owner": TOKEN,
            "reader": self.served.access.give_token(reader, "owner").token,
            "stranger": None,
        }
        self.declared = {
            (method, path): None if isinstance(one, Public) else one
            for method, path, one in declarations(self.served.app)
        }

    def may_be_let_in(self, caller: str, declared: Declared | None) -> bool:
        """Whether a 2xx is all right: of the reader, who reads in one namespace where there is nothing."""
        return caller == "owner" or declared is None or (caller == "reader" and declared.permission is Permission.READ)


def prepared(case: Any, known: Mapping[str, str], chance: random.Random) -> tuple[str, bytes, list[Any], bytes]:
    """A made-up request as bytes; half of the time it is about something that is there."""
    given_ids = dict(case.path_parameters or {})
    for name in given_ids:
        if name in known and chance.random() < 0.5:
            case.path_parameters[name] = known[name]
    kwargs = case.as_transport_kwargs(base_url="http://localhost")
    kwargs["headers"] = {name: value for name, value in kwargs["headers"].items() if isinstance(value, str)}
    try:
        request = requests.Request(**kwargs).prepare()
    except requests.RequestException:  # nothing that can be put on the wire
        return "GET", b"/", [], b""
    parts = urlsplit(str(request.url))
    target = quote(parts.path, safe="/%~+") + (f"?{parts.query}" if parts.query else "")
    body = request.body if isinstance(request.body, bytes | str) else b""
    headers = [
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace") if isinstance(value, str) else value)
        for name, value in request.headers.items()
        if name.lower() not in {"authorization", "cookie"}
    ]
    return (
        str(request.method),
        target.encode("ascii", "replace"),
        headers,
        body.encode() if isinstance(body, str) else body,
    )


def operations_of(document: Any) -> list[Any]:
    found: list[Any] = list(schemathesis.openapi.from_dict(document).get_all_operations())
    return [one.ok() for one in found]


@pytest.mark.timeout(1_800 if CAMPAIGN else 600)
def test_g9_i24_t1_no_request_makes_the_server_fail_and_no_stranger_gets_anything() -> None:
    company = Company()
    document = company.served.get("/openapi.json")
    operations = operations_of(document)
    modes = list(schemathesis.GenerationMode)
    each = -(-REQUESTS // (len(operations) * len(modes)))
    chance = random.Random(SEED)  # noqa: S311 - the same in each run
    with asking(company.served.app) as asker:
        for number, operation in enumerate(operations):
            for mode in modes:
                _fuzz(company, asker, operation, mode, chance, (number, each))
        said = ", ".join(f"{status}: {count:,}" for status, count in sorted(asker.statuses.items()))
        print(f"G9: {asker.asked:,} requests of {len(operations)} operations; {said}")  # noqa: T201 - the figures of docs/security.md
        assert asker.statuses[200] > asker.asked // 20  # it is not the door alone that is asked
        assert asker.asked >= REQUESTS
        assert asker.codes <= documented_codes(document), asker.codes - documented_codes(document)
    assert company.served.get("/healthz")  # and it is well
    assert company.served.get(f"/tables/{company.known['uuid']}")["summary"]["name"] == str(EVENTS)


def _fuzz(
    company: Company,
    asker: Asker,
    operation: Any,
    mode: schemathesis.GenerationMode,
    chance: random.Random,
    at: tuple[int, int],
) -> None:
    declared = company.declared[operation.method.upper(), operation.path]

    @seed(SEED + at[0])
    @settings(max_examples=at[1], database=None, deadline=None, suppress_health_check=_QUIET, phases=[Phase.generate])
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        method, target, headers, body = prepared(case, company.known, chance)
        for caller, token in company.callers.items():
            got = asker.ask(method, target, headers=headers, body=body, token=token)
            if 200 <= got.status < 300 and target != b"/":
                assert company.may_be_let_in(caller, declared), (caller, method, target, got)

    check()


def test_all_operations_are_asked() -> None:
    document = Served().get("/openapi.json")
    assert {operation.path for operation in operations_of(document)} == set(document["paths"])


def test_a_defect_and_an_open_door_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    company = Company()
    with asking(company.served.app) as asker:
        assert asker.ask("GET", f"{V1}/status".encode()).status == 200
        assert not company.may_be_let_in("stranger", company.declared["GET", f"{V1}/status"])
        monkeypatch.setattr(company.served.control.tasks, "counts", lambda: 1 // 0)
        with pytest.raises(AssertionError):
            asker.ask("GET", f"{V1}/status".encode())
