"""Equality deletes as Flink writes them, by Iceberg's own Java writer: no engine here writes any."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession


def delete_where_equal(
    spark: SparkSession, table: Any, rows: Sequence[Mapping[str, Any]], *, partition: Any = None
) -> None:
    """One commit that deletes every row that equals one of ``rows`` in all their columns.

    ``table`` is Java's, of format version 2 or newer; values are strings, ints of the type ``int``, or None.
    ``partition`` is Java's, of the current spec, where that is partitioned.
    """
    jvm: Any = spark._jvm
    iceberg = jvm.org.apache.iceberg
    columns = jvm.java.util.ArrayList()
    for column in rows[0]:
        columns.add(column)
    schema = table.schema().select(columns)
    ids = spark.sparkContext._gateway.new_array(jvm.int, len(columns))  # type: ignore[union-attr]  # there is a gateway
    for position in range(len(columns)):
        ids[position] = schema.columns().get(position).fieldId()
    factory = (
        getattr(jvm, "org.apache.iceberg.data.GenericFileWriterFactory$Builder")(table)
        .equalityFieldIds(ids)
        .equalityDeleteRowSchema(schema)
        .build()
    )
    output = table.io().newOutputFile(table.locationProvider().newDataLocation(f"{uuid.uuid4()}-deletes.parquet"))
    encrypted = iceberg.encryption.EncryptionUtil.plainAsEncryptedOutput(output)
    writer = factory.newEqualityDeleteWriter(encrypted, table.spec(), partition)
    for row in rows:
        record = iceberg.data.GenericRecord.create(schema)
        for column, value in row.items():
            record.setField(column, value)
        writer.write(record)
    writer.close()
    table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
