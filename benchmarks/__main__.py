"""``python -m benchmarks [B1 ...]``: measure, save the results, and say what was met."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

from pyspark.sql import SparkSession

from benchmarks import b1, b2, b3, b3_written, b4, b7, b7_full, b9, b11, b12, b13, b14, first_minutes, queue
from benchmarks.machine import load_now
from benchmarks.render import render
from benchmarks.results import Load, Result, loads, save, table
from benchmarks.rewriters import ICEWRIGHT, PEER
from benchmarks.session import DRIVER_MEMORY, settings
from icewright_spark.session.session import build_session

_ROOT: Final = Path(__file__).parent.parent
_RESULTS: Final = _ROOT / "benchmarks" / "results"
_PAGE: Final = _ROOT / "docs" / "benchmarks.md"
_PARTIAL: Final = "partial"
_SEED: Final = 1

Spark: TypeAlias = Callable[[], SparkSession]
"""The session, built when it is asked for."""


class Form(StrEnum):
    """``short`` only shows that a benchmark works; ``full`` is longer than usual, where there is such a form."""

    SHORT = "short"
    USUAL = "usual"
    FULL = "full"


Keep: TypeAlias = Callable[[Result], None]
"""What long benchmarks have found so far is given to it, so that one that is broken off was not in vain."""

Benchmark: TypeAlias = Callable[[Spark, Path, int, Form, Keep], Result]


def _b1(spark: Spark, folder: Path, seed: int, form: Form, _keep: Keep) -> Result:
    return b1.run(spark(), folder, b1.short(seed) if form is Form.SHORT else b1.full(seed), _say)


def _b2(spark: Spark, folder: Path, seed: int, form: Form, _keep: Keep) -> Result:
    if form is Form.SHORT:
        return b2.run(b2.constants(_RESULTS, {ICEWRIGHT: 0.5, PEER: 0.5}), b2.short(seed), _say)
    tiny = b2.measured(spark(), folder, seed, _say)
    options = b2.full(seed) if form is Form.FULL else b2.usual(seed)
    result = b2.run(b2.constants(_RESULTS, tiny), options, _say)
    return replace(result, benchmark=f"{b2.NAME}-full") if form is Form.FULL else result


def _b3(spark: Spark, folder: Path, seed: int, form: Form, _keep: Keep) -> Result:
    return b3.run(spark(), folder, b3.short(seed) if form is Form.SHORT else b3.full(seed), _say)


def _b3_written(spark: Spark, folder: Path, seed: int, form: Form, _keep: Keep) -> Result:
    options = {Form.SHORT: b3_written.short, Form.USUAL: b3_written.usual, Form.FULL: b3_written.full}[form]
    return b3_written.run(spark(), folder, options(seed), _say)


def _b4(_spark: Spark, folder: Path, seed: int, form: Form, _keep: Keep) -> Result:
    return b4.run(folder, b4.short(seed) if form is Form.SHORT else b4.full(seed), _say)


def _b7(_spark: Spark, folder: Path, seed: int, form: Form, keep: Keep) -> Result:
    if form is Form.FULL:
        return b7_full.run(folder, b7_full.full(seed), _say, keep)
    return b7.run(folder, b7.short(seed) if form is Form.SHORT else b7.usual(seed), _say)


def _b9(spark: Spark, folder: Path, seed: int, form: Form, _keep: Keep) -> Result:
    options = {Form.SHORT: b9.short, Form.USUAL: b9.usual, Form.FULL: b9.full}[form]
    return b9.run(spark(), folder, options(seed), _say)


def _b11(spark: Spark, folder: Path, seed: int, form: Form, _keep: Keep) -> Result:
    options = {Form.SHORT: b11.short, Form.USUAL: b11.usual, Form.FULL: b11.full}[form]
    return b11.run(spark(), folder, options(seed), _say)


def _b12(_spark: Spark, folder: Path, seed: int, form: Form, _keep: Keep) -> Result:
    options = {Form.SHORT: b12.short, Form.USUAL: b12.usual, Form.FULL: b12.full}[form]
    return b12.run(folder, options(seed), _say)


def _b13(_spark: Spark, folder: Path, seed: int, form: Form, _keep: Keep) -> Result:
    options = {Form.SHORT: b13.short, Form.USUAL: b13.usual, Form.FULL: b13.full}[form]
    return b13.run(folder, options(seed), _say)


def _b14(_spark: Spark, folder: Path, seed: int, form: Form, _keep: Keep) -> Result:
    return b14.run(folder, b14.short(seed) if form is Form.SHORT else b14.usual(seed), _say)


def _first(_spark: Spark, folder: Path, seed: int, form: Form, _keep: Keep) -> Result:
    return first_minutes.run(
        folder, first_minutes.short(seed) if form is Form.SHORT else first_minutes.usual(seed), _say
    )


def _queue(_spark: Spark, folder: Path, seed: int, form: Form, _keep: Keep) -> Result:
    return queue.run(folder, queue.short(seed) if form is Form.SHORT else queue.usual(seed), _say)


_BENCHMARKS: Final[Mapping[str, Benchmark]] = {
    b1.NAME: _b1,
    b2.NAME: _b2,
    b3.NAME: _b3,
    b3_written.NAME: _b3_written,
    b4.NAME: _b4,
    b7.NAME: _b7,
    b9.NAME: _b9,
    b11.NAME: _b11,
    b12.NAME: _b12,
    b13.NAME: _b13,
    b14.NAME: _b14,
    first_minutes.NAME: _first,
    queue.NAME: _queue,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when everything ran, whether targets were met or not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(_BENCHMARKS)}; all unless given")
    parser.add_argument("--seed", type=int, default=_SEED, help="decides the data and the order of the runs")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--short", action="store_true", help="show that it works; nothing is saved")
    forms.add_argument(
        "--full",
        action="store_true",
        help="B2: three traces of each writer; "
        "B7: 100,000 tables, an hour of commits, half with three servers and half with one (two to three hours on two "
        f"cores; what is there after each phase is kept in the folder {_PARTIAL} of the results); "
        "B9: 5,000,000 files and 10,000 snapshots; B11: a month; "
        "B3-written: 32 tables; B12: an hour; B13: 500 tables; saved as B7-full and so on",
    )
    parser.add_argument("--render", action="store_true", help=f"only write {_PAGE.relative_to(_ROOT)} from the results")
    parser.add_argument(
        "--driver-memory",
        default=DRIVER_MEMORY,
        help="of the Spark session; the peer of B9 --full needs 10g, where 2g does not hold its listing",
    )
    parser.add_argument("--results", type=Path, default=_RESULTS, help="the folder of the results")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in _BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(_BENCHMARKS)}")
    if options.render:
        return _render(options.results)
    form = Form.SHORT if options.short else Form.FULL if options.full else Form.USUAL
    _measure(options.names or list(_BENCHMARKS), options.seed, form, options.results, options.driver_memory)
    return 0


def _measure(names: Sequence[str], seed: int, form: Form, results: Path, driver_memory: str) -> None:
    done: list[Result] = []

    def keep(found: Result) -> None:
        _say(f"kept {save(found, results / _PARTIAL)}")

    with ExitStack() as stack:

        @cache
        def spark() -> SparkSession:
            session = build_session(settings(driver_memory))
            stack.callback(session.stop)
            return session

        for name in names:
            _say(f"{name}, seed {seed}")
            load_at_start = load_now()
            with tempfile.TemporaryDirectory(prefix="icewright-benchmark-") as folder:
                result = _BENCHMARKS[name](spark, Path(folder), seed, form, keep)
            result = replace(result, load=Load(load_at_start, load_now()))
            done.append(result)
            if form is not Form.SHORT:
                _say(f"saved {save(result, results)}")
                (results / _PARTIAL / f"{result.benchmark}.json").unlink(missing_ok=True)
        for result in done:
            _say(f"\n{result.benchmark}: {result.title}\n{table(result)}")


def _render(results: Path) -> int:
    files = sorted(results.glob("*.json"))
    if not files:
        _say(f"there are no results in {results}")
        return 2
    _PAGE.write_text(render([loads(file.read_text()) for file in files]))
    _say(f"wrote {_PAGE}")
    return 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    # Whoever ends a long run by SIGTERM ends its servers as well, and leaves no lake behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
