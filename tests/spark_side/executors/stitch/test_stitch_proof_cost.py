"""All that a stitch does for its proof is counted as that, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import xxhash

from icewright_spark.executors.stitch import copy as copy_module
from icewright_spark.executors.stitch import stitch as stitch_module
from icewright_spark.executors.stitch.stitch import stitch_group
from tests.builders.spent import Spent
from tests.builders.stitch_files import job_of, written

PROVING = {"digested": 7, "metadata_of": 20, "seen": 30, "compare": 100, "digest_of": 200, "reading": 400}
WORK = {"common_fields": 1_000, "_put": 5_000}


class Digested:
    """xxh3-128 of what is copied, as the copy takes it."""

    def __init__(self) -> None:
        self._digest = xxhash.xxh3_128()
        self.hexdigest = self._digest.hexdigest

    def digested(self, piece: Any) -> None:
        self._digest.update(piece)

    def update(self, piece: Any) -> None:
        self.digested(piece)


def test_the_cost_of_proof_is_all_of_it_and_nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job = job_of(written(tmp_path), tmp_path / "out.parquet")
    spent = Spent(monkeypatch)
    monkeypatch.setattr(copy_module, "xxhash", SimpleNamespace(xxh3_128=Digested))
    spent.by(Digested, "digested", PROVING["digested"])
    spent.by(copy_module.Copy, "_put", WORK["_put"])
    for name in ("metadata_of", "seen", "compare", "digest_of", "reading", "common_fields"):
        spent.by(stitch_module, name, {**PROVING, **WORK}[name])

    figures = stitch_group(job).figures

    assert set(spent.calls) == {*PROVING, *WORK}
    assert spent.calls["metadata_of"] == 4  # three inputs, one output
    assert figures.proof_cpu_ms == sum(cost * spent.calls[name] for name, cost in PROVING.items())
    assert figures.cpu_ms == figures.proof_cpu_ms + sum(cost * spent.calls[name] for name, cost in WORK.items())
