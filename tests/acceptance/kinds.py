"""The kinds of tables that users have, each written as their own jobs would write it: plain Spark SQL.

A kind says how such a table comes about and what icewright must make of it. Every table begins with enough small
files to be worth a rewrite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from icewright.model.iceberg.names import TableName
from icewright_spark.iceberg.java_api import SparkTable
from tests.lakes.deletes import delete_where_equal

FILES, ROWS_PER_FILE = 6, 50
"""Of all appends; fewer files where rows are gathered by partition."""

Change: TypeAlias = Callable[[SparkSession, str], None]
"""Something that happens to the table of a name."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of table.

    ``columns`` is its DDL, ``row`` the SQL expressions of one row over ``id``. ``between`` happens halfway through the
    appends, ``after`` are statements behind them, with ``{table}``, and ``last`` is what SQL has no statement for.
    ``executor`` is what the plan must choose. ``read_by`` are the readers beside Spark that can read it. ``not_on``:
    the catalog where such a table cannot come about. ``commits``: the appends, as many as files where each of them
    writes one per partition.
    """

    name: str
    columns: str
    row: str
    executor: str = "merge"
    properties: tuple[tuple[str, str], ...] = ()
    partitioning: str = ""
    between: Change | None = None
    after: tuple[str, ...] = ()
    last: Change | None = None
    version: int = 2
    read_by: frozenset[str] = frozenset({"pyiceberg"})
    not_on: str = ""
    commits: int = 2

    @property
    def lineage(self) -> bool:
        """Whether rows have ids that a rewrite must keep."""
        return self.version >= 3

    def make(self, spark: SparkSession, table: str) -> None:
        """Create and fill the table."""
        options = {
            "format-version": str(self.version),
            "write.delete.mode": "merge-on-read",
            "write.update.mode": "merge-on-read",
            "icewright.rewrite-data-files.min-input-files": "2",
            **dict(self.properties),
        }
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        spark.sql(f"CREATE TABLE {table} ({self.columns}) USING iceberg {self.partitioning} TBLPROPERTIES ({listed})")
        files = FILES // self.commits
        for number in range(self.commits):
            if number == self.commits // 2 and self.between is not None:
                self.between(spark, table)
            begin, end = (at * files * ROWS_PER_FILE for at in (number, number + 1))
            spark.sql(
                f"INSERT INTO {table} SELECT {self.row} FROM range({begin}, {end}, 1, {files})"  # noqa: S608 - our own constants
            )
        for statement in self.after:
            spark.sql(statement.format(table=table))
        if self.last is not None:
            self.last(spark, table)


def _evolve_nested(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} ADD COLUMN place.height double")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN place.y")


def _evolve_columns(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN city TO town")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN n TYPE bigint")


def _evolve_spec(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD city WITH bucket(2, id)")


def _orc_from_here(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.format.default' = 'orc')")


def _equality_deletes(spark: SparkSession, table: str) -> None:
    delete_where_equal(spark, _java(spark, table), [{"city": "city 1", "n": number} for number in range(3)])


def _new_column_with_default(spark: SparkSession, table: str) -> None:
    iceberg: Any = spark._jvm.org.apache.iceberg  # type: ignore[union-attr]  # there is a JVM
    five = iceberg.expressions.Expressions.lit(5)
    _java(spark, table).updateSchema().addColumn("n", iceberg.types.Types.IntegerType.get(), five).commit()


def _imported_files(spark: SparkSession, table: str) -> None:
    catalog, *path = table.split(".")
    for number in range(3):
        folder = f"{_java(spark, table).location()}-imported/{number}"
        rows = spark.range(1000 + number * 10, 1005 + number * 10)
        rows.selectExpr("id", "concat('city ', id % 3) AS city", "1 AS n").coalesce(1).write.parquet(folder)
        spark.sql(
            f"CALL {catalog}.system.add_files(table => '{'.'.join(path)}', source_table => '`parquet`.`{folder}`')"
        )


def _java(spark: SparkSession, table: str) -> Any:
    catalog, *namespace, name = table.split(".")
    return SparkTable(spark, TableName(catalog, tuple(namespace), name)).java


_NOBODY_ELSE: frozenset[str] = frozenset()
_PLAIN = "id bigint, city string, n int"
_PLAIN_ROW = "id, concat('city ', id % 3), cast(id * 7 % 11 AS int)"
_AT_ONCE = (("icewright.level-1.size-bytes", "1"), ("write.target-file-size-bytes", "4000"))
_DELETE = ("DELETE FROM {table} WHERE id % 20 = 3",)
_EVERYTHING = (
    "b boolean, i int, l bigint, f float, d double, d9 decimal(9,2), d18 decimal(18,4), d38 decimal(38,10), "
    "day date, at timestamp, local timestamp_ntz, s string, bin binary, "
    "point struct<x:double,y:double>, tags array<string>, counts map<string,int>"
)
_EVERYTHING_ROW = (
    "id % 2 = 0, cast(id AS int), id, if(id % 5 = 0, float('NaN'), cast(id AS float)), "
    "if(id % 7 = 0, -0.0D, id / 3.0D), "
    "cast(id / 100 AS decimal(9,2)), cast(id AS decimal(18,4)), cast(id * 1000000007 AS decimal(38,10)), "
    "date_add(date '2024-01-01', cast(id AS int)), timestamp_micros(id * 1000003), "
    "cast(timestamp_micros(id * 7) AS timestamp_ntz), if(id % 4 = 0, NULL, concat('é', id)), "
    "cast(cast(id AS string) AS binary), named_struct('x', id / 2.0D, 'y', NULL), "
    "if(id % 3 = 0, array(), array('a', NULL, concat('t', id))), map('k', cast(id AS int), 'n', NULL)"
)

_NEVER_BY_LEVELS = ("icewright.rewrite-data-files.min-input-files", "1000")
_TRIGGERS = {
    "mse": (),
    "tiered": (),
    "cost-benefit": (("icewright.cost-benefit.scans-per-day", "999999999"),),
}
"""Each with what makes it fire for a few small files at once."""

KINDS = (
    *(
        Kind(
            f"trigger_{trigger.replace('-', '_')}",
            _PLAIN,
            _PLAIN_ROW,
            properties=(("icewright.trigger", trigger), _NEVER_BY_LEVELS, *properties),
        )
        for trigger, properties in _TRIGGERS.items()
    ),
    Kind("v1", _PLAIN, _PLAIN_ROW, version=1),
    Kind("partitioned", _PLAIN, _PLAIN_ROW, partitioning="PARTITIONED BY (city)", commits=6),
    Kind("everything", _EVERYTHING, _EVERYTHING_ROW),
    Kind("position_deletes", _PLAIN, _PLAIN_ROW, after=_DELETE),
    Kind(
        "position_deletes_per_partition",
        _PLAIN,
        _PLAIN_ROW,
        partitioning="PARTITIONED BY (city)",
        properties=(("write.delete.granularity", "partition"),),
        after=_DELETE,
        commits=6,
    ),
    Kind("v3", _PLAIN, _PLAIN_ROW, version=3),
    Kind("deletion_vectors", _PLAIN, _PLAIN_ROW, version=3, after=_DELETE),
    Kind("updated_rows", _PLAIN, _PLAIN_ROW, version=3, after=("UPDATE {table} SET n = n + 1 WHERE id % 10 = 1",)),
    Kind("evolved_columns", _PLAIN, _PLAIN_ROW, between=_evolve_columns),
    Kind("evolved_spec", _PLAIN, _PLAIN_ROW, partitioning="PARTITIONED BY (city)", between=_evolve_spec, commits=6),
    Kind(
        "nested_evolution",
        "id bigint, place struct<x:double,y:double>",
        "id, named_struct('x', id / 2.0D, 'y', cast(NULL AS double))",
        executor="staged",
        between=_evolve_nested,
    ),
    Kind(
        "equality_deletes",
        _PLAIN,
        _PLAIN_ROW,
        "staged",
        last=_equality_deletes,
        read_by=_NOBODY_ELSE,
    ),
    Kind("initial_default", "id bigint", "id", "staged", last=_new_column_with_default, version=3),
    # Spark's own writer, which makes the files to be imported, has no s3: by itself.
    Kind("imported_files", _PLAIN, _PLAIN_ROW, "staged", between=_imported_files, not_on="s3"),
    Kind(
        "variant",
        "id bigint, v variant",
        "id, parse_json(concat('{\"a\": ', id, '}'))",
        "staged",
        version=3,
        read_by=_NOBODY_ELSE,
        not_on="hive",  # whose metastore (2.3) knows no such type
    ),
    Kind("avro", _PLAIN, _PLAIN_ROW, "staged", (("write.format.default", "avro"),), read_by=_NOBODY_ELSE),
    Kind("some_orc", _PLAIN, _PLAIN_ROW, "staged", between=_orc_from_here, read_by=_NOBODY_ELSE),
    Kind("zorder", _PLAIN, _PLAIN_ROW, "shuffle", (*_AT_ONCE, ("icewright.layout", "zorder(city, n)"))),
    Kind(
        "hilbert_with_deletion_vectors",
        _PLAIN,
        _PLAIN_ROW,
        "shuffle",
        (*_AT_ONCE, ("icewright.layout", "hilbert(id, n)")),
        version=3,
        after=_DELETE,
    ),
    Kind(
        "bloom_filters",
        _PLAIN,
        _PLAIN_ROW,
        "staged",
        properties=(("write.parquet.bloom-filter-enabled.column.id", "true"),),
    ),
)

_BY_NAME = {kind.name: kind for kind in KINDS}
_SHORT = {
    "sqlite": ("everything", "partitioned", "zorder", "imported_files", "some_orc"),
    "postgresql": ("position_deletes", "evolved_columns", "hilbert_with_deletion_vectors", "initial_default"),
    "rest": ("deletion_vectors", "position_deletes_per_partition", "v3", "variant"),
    "hive": ("v1", "evolved_spec", "equality_deletes", "bloom_filters"),
    "s3": ("updated_rows", "nested_evolution", "avro"),
}
SHORT = {catalog: tuple(_BY_NAME[name] for name in names) for catalog, names in _SHORT.items()}
"""The short form has each kind over one catalog, and over each catalog some that are merged and some that are staged.

The triggers are left to a test of what is asked for, which has them all.
"""
