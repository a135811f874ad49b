"""Append to an Iceberg table with plain PySpark, knowing nothing of icewright.

Run it in a second terminal while `make demo` runs; whatever the optimizer does meanwhile, no row is lost:

    .venv/bin/python examples/append_with_pyspark.py --table demo.nyc.flights --commits 5
        --uri sqlite:///$PWD/icewright-demo/catalog.db --warehouse file://$PWD/icewright-demo/warehouse
"""

from __future__ import annotations

import argparse
import os
import sys

from pyspark.sql import SparkSession

PACKAGES = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0,org.xerial:sqlite-jdbc:3.50.3.0"


def main() -> None:
    """Copy the first ten rows of the table into it, once per commit."""
    options = _options()
    catalog = options.table.split(".")[0]
    prefix = f"spark.sql.catalog.{catalog}"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars.packages", PACKAGES)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config(prefix, "org.apache.iceberg.spark.SparkCatalog")
        .config(f"{prefix}.type", "jdbc")
        .config(f"{prefix}.uri", f"jdbc:sqlite:{options.uri.removeprefix('sqlite:///')}?busy_timeout=30000")
        .config(f"{prefix}.jdbc.schema-version", "V1")
        .config(f"{prefix}.warehouse", options.warehouse)
        .getOrCreate()
    )
    rows = spark.table(options.table).limit(10).collect()
    schema = spark.table(options.table).schema
    for number in range(1, options.commits + 1):
        spark.createDataFrame(rows, schema).coalesce(1).writeTo(options.table).append()
        print(f"commit {number}: {len(rows)} rows", flush=True)  # noqa: T201 - what it has to say
    spark.stop()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uri", required=True, help="the catalog's SQLite file as sqlite:////absolute/path")
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--table", required=True, help="catalog.namespace.table")
    parser.add_argument("--commits", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
