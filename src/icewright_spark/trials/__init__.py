"""Layouts tried on a sample of a table's rows against the queries that were run, before anything is rewritten."""
