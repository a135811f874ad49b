"""Alembic's migrations: each stays as it was once released; the schema is what all of them add up to."""
