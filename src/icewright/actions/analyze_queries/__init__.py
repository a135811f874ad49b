"""Analyze the queries of a table: try layouts on them, and recommend one, or to leave the table as it is."""
