"""The tables of who may come in, and of what was done by whom; the others are in the module ``schema``."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    false,
)

metadata = MetaData()

# By code point, as Python compares; PostgreSQL would otherwise sort by the locale of the database.
Key = Text().with_variant(Text(collation="C"), "postgresql")

# Who may come in. Secrets are here as digests alone.
tokens = Table(
    "tokens",
    metadata,
    Column("name", Key, nullable=False),
    Column("digest", Key, nullable=False),
    Column("hint", Text, nullable=False),
    Column("grants", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", BigInteger),
    Column("last_used_at", BigInteger),
    Column("revoked_at", BigInteger),
    PrimaryKeyConstraint("name", name="pk_tokens"),
    UniqueConstraint("digest", name="uq_tokens_digest"),
)

# Of codes and sessions, ``name`` is that of the principal, as JSON; ``conditions`` are those of the rules by which a
# person was let in.
login_codes = Table(
    "login_codes",
    metadata,
    Column("digest", Key, nullable=False),
    Column("principal", Text, nullable=False),
    Column("until", BigInteger, nullable=False),
    Column("name", Key, nullable=False, server_default='""'),
    Column("conditions", Text, nullable=False, server_default="[]"),
    Column("is_program", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("digest", name="pk_login_codes"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", Key, nullable=False),
    Column("principal", Text, nullable=False),
    Column("begun_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    Column("name", Key, nullable=False, server_default='""'),
    Column("conditions", Text, nullable=False, server_default="[]"),
    Column("is_program", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("digest", name="pk_sessions"),
)

# A chain: each entry has the hash of the one before it. Rows are added at its end, and go from its beginning alone.
audit = Table(
    "audit",
    metadata,
    Column("number", BigInteger, nullable=False, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("principal", Text, nullable=False),
    Column("action", Key, nullable=False),
    Column("resource", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    PrimaryKeyConstraint("number", name="pk_audit"),
)
Index("ix_audit_at", audit.c.at, audit.c.number)

# Entries as they were written, until they are linked into the chain.
unlinked_audit = Table(
    "unlinked_audit",
    metadata,
    # SQLite counts up only what it calls INTEGER; AUTOINCREMENT never gives a number twice.
    Column("number", BigInteger().with_variant(Integer, "sqlite"), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("principal", Text, nullable=False),
    Column("action", Key, nullable=False),
    Column("resource", Text, nullable=False),
    Column("detail", Text, nullable=False),
    PrimaryKeyConstraint("number", name="pk_unlinked_audit"),
    sqlite_autoincrement=True,
)

audit_start = Table(
    "audit_start",
    metadata,
    Column("number", BigInteger, nullable=False, autoincrement=False),
    Column("hash", Text, nullable=False),
    PrimaryKeyConstraint("number", name="pk_audit_start"),
)

# What requests with an Idempotency-Key were answered, until it is forgotten; ``answer`` is NULL while they go on.
answers = Table(
    "answers",
    metadata,
    Column("name", Key, nullable=False),
    Column("fingerprint", Key, nullable=False),
    Column("until", BigInteger, nullable=False),
    Column("answer", Text),
    PrimaryKeyConstraint("name", name="pk_answers"),
)
Index("ix_answers_until", answers.c.until)
