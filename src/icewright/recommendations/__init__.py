"""Recommendations: what the queries of tables suggest, and what people decided about it."""
