"""Iceberg's Java API: manifests, scan tasks, statistics files."""
