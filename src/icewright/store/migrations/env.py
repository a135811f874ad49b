"""What Alembic runs around the migrations: on the connection, and in the transaction, of the caller."""

from __future__ import annotations

from alembic import context

from icewright.store.migrate import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
