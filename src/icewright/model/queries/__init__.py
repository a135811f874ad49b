"""Queries that engines ran, as they were reported: the words of the query log."""
