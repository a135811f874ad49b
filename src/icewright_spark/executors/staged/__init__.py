"""Rewrite by Spark's own reader and writer, proved by a hash."""
