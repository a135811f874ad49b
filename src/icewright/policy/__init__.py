"""The effective policy of a table, and where each setting comes from."""
