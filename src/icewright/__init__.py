"""icewright watches Apache Iceberg tables, optimizes them on Spark and proves that no row changed."""

__version__ = "0.1.0"
