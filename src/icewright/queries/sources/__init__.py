"""What engines report about queries, as records: Trino's events, Spark's event logs, Iceberg's scan reports, SQL."""
