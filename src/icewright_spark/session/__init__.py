"""The Spark session, and what its workers and its driver spend."""
