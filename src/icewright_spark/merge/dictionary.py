"""Which columns get a dictionary: those whose inputs are wholly dictionary-encoded.

That is the choice that the first writer made with the data before it, and it measured best: a dictionary on every
column costs CPU and size where values hardly repeat. A few footers, spread over the group, decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from icewright_spark.merge.errors import reading
from icewright_spark.merge.read import open_footer
from icewright_spark.merge.schema import leaf_ids

SAMPLE_FILES_MAX = 8

_DICTIONARY = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})
_LEVELS = frozenset({"RLE", "BIT_PACKED"})


def dictionary_ids(locations: Sequence[str]) -> frozenset[int]:
    """Field ids of the leaves that are dictionary-encoded in all of a sample of the files.

    Raises :class:`FileUnreadable` and :class:`UnsupportedFile`.
    """
    verdicts: dict[int, bool] = {}
    for location in spread(locations, SAMPLE_FILES_MAX):
        for identity, encoded in _verdicts(location).items():
            verdicts[identity] = encoded and verdicts.get(identity, True)
    return frozenset(identity for identity, encoded in verdicts.items() if encoded)


def spread(locations: Sequence[str], count_max: int) -> list[str]:
    """At most ``count_max`` elements, evenly spread from the first to the last."""
    count = min(count_max, len(locations))
    if count <= 1:
        return list(locations[:count])
    return [locations[index * (len(locations) - 1) // (count - 1)] for index in range(count)]


def _verdicts(location: str) -> Mapping[int, bool]:
    """For each leaf with values in the file, whether all its chunks are dictionary-encoded."""
    file = open_footer(location)
    with reading(location):
        verdicts: dict[int, bool] = {}
        ids = leaf_ids(file.schema_arrow)
        for number in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(number)
            for position, identity in enumerate(ids):
                chunk = group.column(position)
                if identity is not None and not _is_all_null(chunk):
                    verdicts[identity] = wholly_encoded(chunk) and verdicts.get(identity, True)
        return verdicts


def _is_all_null(chunk: Any) -> bool:
    """Such chunks have no values that could have been encoded, and parquet-java writes them as plain."""
    statistics = chunk.statistics
    return bool(statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values)


def wholly_encoded(chunk: Any) -> bool:
    """Whether a column chunk is dictionary-encoded throughout, with gain.

    parquet-java's v1 chunks say so by their encodings: ``PLAIN`` is there only where it gave the dictionary up.
    Arrow's writers list ``PLAIN`` for the dictionary page itself and give up only on size; of theirs, a dictionary
    counts when it is less than half of the chunk, that is, when values repeat.
    """
    encodings = frozenset(chunk.encodings)
    if not chunk.has_dictionary_page or not encodings & _DICTIONARY:
        return False
    if encodings <= _DICTIONARY | _LEVELS:
        return True
    if not encodings <= _DICTIONARY | _LEVELS | {"PLAIN"} or "PLAIN_DICTIONARY" in encodings:
        return False
    dictionary_bytes = chunk.data_page_offset - chunk.dictionary_page_offset
    return bool(dictionary_bytes * 2 < chunk.total_compressed_size)
