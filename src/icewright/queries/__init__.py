"""The query log: which queries engines run on which tables, with which filters."""
