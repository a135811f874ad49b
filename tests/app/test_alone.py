"""One server per store, and never a lock that outlives its holder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from icewright.app.alone import alone_with
from icewright.domain.errors import NotAllowed

_HOLD = """
import sys
from pathlib import Path
from icewright.app.alone import alone_with
with alone_with(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_server_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    store = tmp_path / "state" / "icewright.db"
    first = subprocess.Popen(  # noqa: S603 - our own interpreter, as a list
        [sys.executable, "-c", _HOLD, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None
    assert first.stdout.readline() == "held\n"

    with pytest.raises(NotAllowed, match="another server holds the store"), alone_with(store):
        pass
    first.kill()
    first.communicate()
    with alone_with(store):
        assert store.with_name("icewright.db.lock").stat().st_mode & 0o777 == 0o600
