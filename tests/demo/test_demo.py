"""The demo on a machine that is slow, or has to fetch what Spark needs first."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import pytest

from icewright.demo import run
from icewright.demo.folder import DemoFolder


class NoOptimizer:
    """A server that has not heard of an optimizer yet."""

    def status(self) -> dict[str, Any]:
        return {"optimizers": []}


def wait_for_it(folder: Path, for_s: float) -> None:
    nothing = cast("Any", None)
    client = cast("Any", NoOptimizer())
    run._start_spark_writer(nothing, client, nothing, DemoFolder(folder), time.monotonic() - for_s)


def test_an_optimizer_may_take_minutes_to_start_but_not_for_ever(tmp_path: Path) -> None:
    wait_for_it(tmp_path, 120.0)
    with pytest.raises(run.DemoFailed, match="the optimizer did not start"):
        wait_for_it(tmp_path, 10_000.0)
