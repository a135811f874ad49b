"""G13, T8: paths that lead out of where they should, in every encoding: no file of anybody's, and no 2xx."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.builders.api_requests import asking
from tests.builders.served import V1, Served
from tests.conftest import CAMPAIGN

ENCODINGS: Final = 20_000 if CAMPAIGN else 1_000
DOTS: Final = (
    b"..",
    b"%2e%2e",
    b"%2E.",
    b".%2e",
    b"%252e%252e",
    b"%25252e%25252e",
    b"%c0%ae%c0%ae",
    b"%e0%80%ae%e0%80%ae",
    b"%u002e%u002e",
    b"%ef%bc%8e%ef%bc%8e",
    b"..%00",
    b"..;",
    b"..%3b",
    b"....",
    b"..%20",
    b".%0a.",
    b"%2e%2e%09",
)
SLASHES: Final = (
    b"/",
    b"%2f",
    b"%252f",
    b"%5c",
    b"\\",
    b"%255c",
    b"%c0%af",
    b"%e0%80%af",
    b"//",
    b"/./",
    b"%2f%2f",
    b"%ef%bc%8f",
    b"%u2215",
    b"/%00/",
)
STARTS: Final = (
    b"/ui/assets/",
    f"{V1}/tables/".encode(),
    f"{V1}/plans/".encode(),
    f"{V1}/tasks/".encode(),
    f"{V1}/quarantine/".encode(),
    f"{V1}/policies/revisions/".encode(),
    f"{V1}/".encode(),
    b"/",
)
ENDS: Final = (
    b"etc/passwd",
    b"app.py",
    b"__init__.py",
    b"server.json",
    b"token",
    b"proc/self/environ",
    b"icewright.db",
    b"page.html%00.js",
    b"c:%5cwindows%5cwin.ini",
)
SECRET: Final = (b"root:", b"import ", b"def ", b"SQLite format")


def targets() -> Iterator[bytes]:
    """Ways out, each once, in an order that is the same in each run."""
    ways = [
        start + (dots + slash) * depth + end
        for start, dots, slash, end, depth in itertools.product(STARTS, DOTS, SLASHES, ENDS, (1, 3, 8))
    ]
    random.Random(13).shuffle(ways)  # noqa: S311 - the same in each run
    yield from ways[:ENCODINGS]


@pytest.mark.timeout(900)
def test_g13_t8_no_path_leads_out_whatever_its_encoding(served: Served) -> None:
    served.table()
    opened: set[str] = set()
    watching = True

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if watching and event in {"open", "os.listdir", "os.remove", "os.rename", "shutil.rmtree"}:
            opened.add(str(args[0]))

    with asking(served.app) as asker:
        asker.ask("GET", b"/ui/")  # what is read lazily is read now
        asker.ask("GET", b"/ui/assets/../app.py")
        sys.addaudithook(watch)  # hooks stay: this one is deaf afterwards
        try:
            for number, target in enumerate(targets()):
                got = asker.ask("POST" if number % 5 == 0 else "GET", target)
                assert 400 <= got.status < 500, (target, got)
                assert not any(word in got.body for word in SECRET), (target, got)
        finally:
            watching = False
        print(f"G13, paths: {asker.asked:,} encodings, statuses {sorted(asker.statuses.items())}")  # noqa: T201 - the figure of docs/security.md
    touched = {
        name for name in opened if not name.isdecimal() and ("etc" in name or name.endswith((".db", ".json", "token")))
    }
    assert not touched, touched
    assert asker.asked > ENCODINGS
