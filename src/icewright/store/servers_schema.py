"""The tables of servers and their shares, of what they removed, and of submitters; see the module ``schema``."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Integer, PrimaryKeyConstraint, Table, Text

from icewright.store.schema_access import Key, metadata

servers = Table(
    "servers",
    metadata,
    Column("server_id", Key, nullable=False),
    Column("url", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("epoch", BigInteger),
    Column("started_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    Column("cpu", Float),  # the share of what it can use that it has used lately; NULL where that is not known
    PrimaryKeyConstraint("server_id", name="pk_servers"),
)

# A server's sessions, one after the other: by that of the moment it holds buckets. What ended never begins again.
server_sessions = Table(
    "server_sessions",
    metadata,
    Column("session", BigInteger, nullable=False, autoincrement=False),
    Column("server_id", Key, nullable=False),
    Column("backend", BigInteger, nullable=False),  # of PostgreSQL, which serves the server's own connection
    Column("joined_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Column("ended_by", Key),  # why; NULL where it has not ended
    Column("coordinator", Text),  # what tells it which servers are there; NULL of older releases, as what follows
    Column("configuration", Text),  # what it says of its configuration
    PrimaryKeyConstraint("session", name="pk_server_sessions"),
)

# Who looks at which tables: a row for each bucket from the first assignment on. The epoch is the version at which the
# owner got it: no two owners have the same one.
buckets = Table(
    "buckets",
    metadata,
    Column("bucket", Integer, nullable=False, autoincrement=False),
    Column("session", BigInteger),  # the owner's; NULL where there is none
    Column("epoch", BigInteger, nullable=False),
    Column("target", BigInteger),  # the session that the owner is to hand it over to; NULL where it keeps it
    Column("moved_at", BigInteger, nullable=False),
    Column("moved_by", Key, nullable=False),  # why
    PrimaryKeyConstraint("bucket", name="pk_buckets"),
)

SESSION_NUMBER = "server_session"
"""The counter that has the number of the latest session."""
ASSIGNMENT = "assignment"
"""The counter that has the version of the assignment: it grows with each change of ``buckets``."""

prunings = Table(
    "prunings",
    metadata,
    Column("kind", Key, nullable=False),
    Column("pruned_at", BigInteger, nullable=False),
    Column("removed", BigInteger, nullable=False),
    Column("left_count", BigInteger, nullable=False),
    Column("oldest_at", BigInteger),
    PrimaryKeyConstraint("kind", name="pk_prunings"),
)

submitters = Table(
    "submitters",
    metadata,
    Column("submitter_id", Key, nullable=False),
    Column("submitter", Text, nullable=False),
    Column("asked_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("submitter_id", name="pk_submitters"),
)
