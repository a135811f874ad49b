"""The durable store: SQLAlchemy Core, one implementation for SQLite and PostgreSQL."""
