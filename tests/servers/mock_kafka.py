"""A Kafka cluster inside librdkafka: as much of one as its own tests need, started in a moment, gone with the block."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import confluent_kafka
from confluent_kafka import Producer

_PRODUCER: Final = 0
_SAID_BYTES: Final = 512


def _library() -> ctypes.CDLL:
    """The very library that the Python client brings along."""
    (found,) = (Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs").glob("librdkafka-*")
    library = ctypes.CDLL(str(found))
    pointer = ctypes.c_void_p
    library.rd_kafka_conf_new.restype = pointer
    library.rd_kafka_new.argtypes = (ctypes.c_int, pointer, ctypes.c_char_p, ctypes.c_size_t)
    library.rd_kafka_new.restype = pointer
    library.rd_kafka_mock_cluster_new.argtypes = (pointer, ctypes.c_int)
    library.rd_kafka_mock_cluster_new.restype = pointer
    library.rd_kafka_mock_cluster_bootstraps.argtypes = (pointer,)
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    library.rd_kafka_mock_group_initial_rebalance_delay_ms.argtypes = (pointer, ctypes.c_int32)
    library.rd_kafka_mock_topic_create.argtypes = (pointer, ctypes.c_char_p, ctypes.c_int, ctypes.c_int)
    library.rd_kafka_mock_cluster_destroy.argtypes = (pointer,)
    library.rd_kafka_destroy.argtypes = (pointer,)
    return library


class MockKafka:
    """A running cluster of one broker."""

    def __init__(self, library: ctypes.CDLL, cluster: int) -> None:
        self._library, self._cluster = library, cluster
        self.brokers = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()

    def topic(self, name: str, partitions: int = 1) -> str:
        """A new topic."""
        assert not self._library.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1)
        return name


def send(brokers: str, topic: str, *messages: bytes, partition: int = 0) -> None:
    """Put messages into a topic of any cluster, durably."""
    producer = Producer({"bootstrap.servers": brokers})
    for message in messages:
        producer.produce(topic, message, partition=partition)
    assert producer.flush(60) == 0


@contextmanager
def mock_kafka() -> Iterator[MockKafka]:
    """A cluster in which groups find together at once, as they do not by default."""
    library, said = _library(), ctypes.create_string_buffer(_SAID_BYTES)
    client = library.rd_kafka_new(_PRODUCER, library.rd_kafka_conf_new(), said, _SAID_BYTES)
    assert client, said.value
    cluster = library.rd_kafka_mock_cluster_new(client, 1)
    assert cluster
    library.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0)
    try:
        yield MockKafka(library, cluster)
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(client)
