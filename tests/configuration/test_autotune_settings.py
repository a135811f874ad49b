"""What can be said under ``[autotune]``."""

from __future__ import annotations

from pathlib import Path

import pytest

from icewright.configuration.load import load_config
from icewright.core.errors import InvalidConfiguration
from icewright.work.autotune.decide import TuneLimits
from icewright.work.autotune.wiring import tune_limits
from tests.cases import each_case


def limits(folder: Path, text: str) -> TuneLimits:
    file = folder / "icewright.toml"
    file.write_text(text, encoding="utf-8")
    return tune_limits(load_config(file, {"HOME": str(folder)}, folder).autotune)


def test_the_defaults_are_those_that_were_simulated(tmp_path: Path) -> None:
    assert limits(tmp_path, "") == TuneLimits(step_factor=1.0)


def test_a_step_is_a_size_or_a_factor(tmp_path: Path) -> None:
    factor = limits(tmp_path, '[autotune]\nmemory_step = "x1.2"\nless_memory = "at-once"\nmemory_max = "64g"')
    assert factor == TuneLimits(memory_max_bytes=64 << 30, step_bytes=0, step_factor=1.2, at_once=True)
    assert limits(tmp_path, '[autotune]\nmemory_step = "512m"').step_bytes == 512 << 20


@each_case(
    "text",
    [
        'mode = "on"',
        "wait_ms = 999",
        "idle_ms = 0",
        'memory_step = "x1.00"',
        'memory_step = "x2.0"',
        'memory_step = "2"',
        'less_memory = "slowly"',
        "oom_cycles = 0",
        "quiet_cycles = 501",
        'mode = "act"\n[optimizer]\nmaster = "spark://head:7077"',
        'mode = "act"\n[optimizer]\nlauncher = "spark-submit"',
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"autotune\."):
        limits(tmp_path, f"[autotune]\n{text}")
