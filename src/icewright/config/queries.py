"""The settings of ``[queries]``: what is kept of the queries of engines."""

from __future__ import annotations

from icewright.config.setting import Kind, Setting, choice, integer
from icewright.model.queries.queries import LiteralPolicy

SPOOL_BYTES_MIN = 1 << 20

QUERIES = (
    Setting(
        "catalog",
        Kind.TEXT,
        "The catalog in which the queries of engines are kept as a table, for SQL and for recommendations; without one "
        "only their sums are kept, in the store.",
    ),
    Setting(
        "table", Kind.TEXT, "That table, with its namespace; it is made when it is not there.", "icewright.queries"
    ),
    Setting(
        "catalogs",
        Kind.MAPPING,
        'Which catalog of icewright a catalog of an engine is: iceberg = "lake". By default the one of the same name.',
    ),
    choice(
        "literals",
        "What is kept of the values in queries: hash replaces strings by keyed digests, drop keeps none, keep keeps "
        "all.",
        tuple(LiteralPolicy),
        default=LiteralPolicy.HASH.value,
    ),
    Setting(
        "hash_key",
        Kind.TEXT,
        "The key of these digests, as env:NAME or file:/path, the same for all servers of a store; by default one that "
        "the server makes in its state directory.",
    ),
    Setting(
        "event_logs",
        Kind.TEXTS,
        "Folders of Spark's event logs that the server reads, on its own disk.",
        default=(),
    ),
    Setting(
        "kafka",
        Kind.MAPPING,
        "The topic of Trino's Kafka event listener: brokers (host:port, several with commas), topic, group (by default "
        'icewright-queries) and properties of librdkafka for security, such as "properties.sasl.password"; secrets as '
        "env:NAME or file:/path.",
    ),
    integer(
        "spool_bytes",
        "How much the spool may hold of queries that are not yet counted, in bytes; what is beyond is refused until "
        "there is room.",
        default=1 << 30,
        least=SPOOL_BYTES_MIN,
    ),
)
