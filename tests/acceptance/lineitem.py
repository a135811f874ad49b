"""TPC-H's lineitem as a busy job writes it: many small commits, and rows deleted again in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

KEPT = 20
"""One in so many orders is deleted again: 5 % of the rows."""

COLUMNS = """
    l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(15,2),
    l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag STRING,
    l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING,
    l_shipmode STRING, l_comment STRING
"""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is written, and from when on which level has something to do."""

    factor: float
    commits: int
    deletes: int
    target_file_size_bytes: int
    level_1_size_bytes: int
    level_2_runs: int
    before_level_0: int
    """Commits after which there is enough for Level 0, and too little for Level 1."""

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a table of this scale, without a layout."""
        return {
            "format-version": "2",
            "write.delete.mode": "merge-on-read",
            "write.target-file-size-bytes": str(self.target_file_size_bytes),
            "icewright.level-1.size-bytes": str(self.level_1_size_bytes),
            "icewright.level-2.runs": str(self.level_2_runs),
            "commit.retry.num-retries": "20",
            "icewright.write-window": "PT0S",  # or levels were an hour apart, since rows are deleted
        }


KIB, MIB = 1 << 10, 1 << 20
SHORT = Scale(0.02, 26, 2, 64 * KIB, 512 * KIB, 3, before_level_0=2)
LONG = Scale(1, 400, 20, 2 * MIB, 8 * MIB, 10, before_level_0=5)


def slices(rows: pa.Table, commits: int) -> Iterator[pa.Table]:
    """The rows in so many parts of about the same size."""
    step = -(-rows.num_rows // commits)
    for start in range(0, rows.num_rows, step):
        yield rows.slice(start, step)


def deletion(first: int, last: int) -> str:
    """What is deleted of a range of orders."""
    return f"l_orderkey BETWEEN {first} AND {last} AND l_orderkey % {KEPT} = 7"


def not_deleted(rows: pa.Table) -> pa.Table:
    """The rows that no deletion concerns once all are done."""
    keys = rows["l_orderkey"]
    quotient = pc.divide(keys, KEPT)
    return rows.filter(pc.not_equal(pc.subtract(keys, pc.multiply(quotient, KEPT)), 7))


def by_key(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows by their key, in the types of ``schema``: what every reader has to agree on, whatever its own types."""
    typed = rows.select(schema.names).cast(schema)
    return typed.sort_by([("l_orderkey", "ascending"), ("l_linenumber", "ascending")]).combine_chunks()
