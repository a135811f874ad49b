"""Parquet files as bytes: footers, schemas, metrics, storage."""
