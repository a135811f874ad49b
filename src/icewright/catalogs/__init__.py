"""Iceberg catalogs: what is needed of them, and how they are configured."""
