"""One rewrite in a process and a Spark session of its own: a JVM keeps what a run before it needed, of whomever.

``python -m benchmarks.alone`` is the child; it is told what to do by its input, and answers in its last line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.lake import BenchTable
from benchmarks.measure import Cost, ProcessTree, measure
from benchmarks.rewriters import ICEWRIGHT, PEER, IcewrightRewriter, ProcedureRewriter
from benchmarks.session import settings
from icewright.core.codec import dumps, loads
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright_spark.session.session import build_session

_ROOT = Path(__file__).parent.parent


def rewrite_alone(contestant: str, entry: CatalogEntry, table: str, target_file_size_bytes: int) -> Cost:
    """What a contestant's rewrite of a table costs without anything before it; the session's start does not count.

    Raises ``subprocess.CalledProcessError`` when it comes to nothing.
    """
    asked = {"contestant": contestant, "entry": dumps(entry), "table": table, "target": target_file_size_bytes}
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.alone"],
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=_ROOT,
    )
    return Cost(**json.loads(child.stdout.splitlines()[-1]))


def main() -> None:
    """The child."""
    asked = json.load(sys.stdin)
    entry = loads(CatalogEntry, asked["entry"])
    spark = build_session(settings())
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)
    table = BenchTable(spark, entry, asked["table"])
    rewrite = {
        PEER: ProcedureRewriter(spark, table, asked["target"]).rewrite,
        ICEWRIGHT: IcewrightRewriter(spark, entry, table.name).rewrite,
    }[asked["contestant"]]
    cost = measure(ProcessTree(), rewrite)
    spark.stop()
    print(json.dumps(asdict(cost)), flush=True)


if __name__ == "__main__":
    main()
