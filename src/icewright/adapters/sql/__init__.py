"""The durable store: SQLAlchemy Core on SQLite, written so that PostgreSQL needs no second implementation."""
