"""Whether a catalog of the configuration answers: asked by an administrator, for a bounded time.

Nothing of it is the caller's: neither the address nor a secret. What a stolen session of an administrator could
otherwise do with an address of its own is in docs/threats.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TookTooLong
from dataclasses import dataclass
from itertools import islice
from typing import Final

from fastapi import APIRouter, Request, Response

from icewright.catalogs.port import Catalog
from icewright.core.errors import Conflict, IcewrightError, NotFound
from icewright.core.reasons import Reason
from icewright.identity.authorization import On, needs
from icewright.model.access.permissions import Permission
from icewright.web.deps import Service
from icewright.web.messages import render
from icewright.web.schema import operation

router = APIRouter(prefix="/catalogs", tags=["tables"])

ANSWER_S: Final = 10.0
"""How long a catalog is waited for. What asks it goes on until the catalog's own limits end it, and nobody waits."""
TABLES_MAX: Final = 100
"""So many names of tables show that it answers."""
NO_ANSWER: Final = "no-answer"


@dataclass(frozen=True, slots=True)
class CatalogCheck:
    """Whether a catalog answered within ten seconds; ``problem`` is why not.

    ``tables`` were counted, in all namespaces, up to a hundred: ``has_more`` says that there may be others.
    """

    catalog: str
    answers: bool
    tables: int
    has_more: bool
    took_ms: int
    problem: Reason | None


class CatalogChecks:
    """The checks of one server process: of each catalog one at a time; ``seconds`` is what tests shorten."""

    def __init__(self, seconds: float = ANSWER_S) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._under_way: set[str] = set()

    def check(self, catalog: Catalog) -> CatalogCheck:
        """Ask a catalog. Raises :class:`Conflict` while it is being asked for another check."""
        with self._lock:
            if catalog.name in self._under_way:
                raise Conflict(
                    f"catalog {catalog.name} is being checked, and has not answered yet", hint="wait for a minute"
                )
            self._under_way.add(catalog.name)
        begun, answer = time.monotonic(), Future[int]()
        # A daemon: a catalog that hangs keeps no server from ending.
        threading.Thread(target=self._ask, args=(catalog, answer), name="catalog-check", daemon=True).start()
        problem, tables = None, 0
        try:
            tables = answer.result(self.seconds)
        except TookTooLong:
            problem = Reason(NO_ANSWER, f"it did not answer within {self.seconds:g} s")
        except IcewrightError as error:
            problem = Reason(error.code, error.message)
        took_ms = round(1000 * (time.monotonic() - begun))
        return CatalogCheck(catalog.name, problem is None, tables, tables >= TABLES_MAX, took_ms, problem)

    def _ask(self, catalog: Catalog, answer: Future[int]) -> None:
        try:
            answer.set_result(sum(1 for _ in islice(catalog.tables(), TABLES_MAX)))
        except BaseException as error:  # noqa: BLE001 - whoever waits for the answer raises it
            answer.set_exception(error)
        finally:
            with self._lock:
                self._under_way.discard(catalog.name)


@router.post(
    "/{catalog}/check",
    dependencies=[needs(Permission.ADMINISTER, On.EVERYTHING)],
    **operation(CatalogCheck, problems={404: "No such catalog is configured.", 409: "It is being checked already."}),
)
def check_catalog(request: Request, catalogs: Service[Mapping[str, Catalog]], catalog: str) -> Response:
    """Ask a catalog of the configuration for its tables now, with the settings that this server has, for ten seconds.

    It is asked by the address and the secrets of the configuration alone: a request names neither.
    """
    found = catalogs.get(catalog)
    if found is None:
        raise NotFound(f"no catalog {catalog!r} is configured", hint=f"configured: {', '.join(sorted(catalogs))}")
    checks: CatalogChecks = request.app.state.catalog_checks
    return render(checks.check(found))
