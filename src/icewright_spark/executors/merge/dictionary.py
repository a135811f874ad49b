"""Which columns get a dictionary: those whose inputs are wholly dictionary-encoded.

That is the choice that the first writer made with the data before it, and it measured best: a dictionary on every
column costs CPU and size where values hardly repeat. A few footers, spread over the group, decide.

A chunk of few values that has no dictionary says nothing, though: no dictionary pays for ten rows, and it may well
for the ten thousand rows of a thousand such files. Where all the sampled chunks are like that, a sample of the
values themselves decides, by the rule that parquet-java goes by (``DictionaryValuesWriter.isCompressionSatisfying``:
dictionary and indexes together are shorter than the plain values).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icewright_spark.executors.merge.read import open_footer
from icewright_spark.parquet.errors import reading
from icewright_spark.parquet.schema import leaf_ids
from icewright_spark.parquet.storage import LOCAL, Storage

SAMPLE_FILES_MAX = 8
FEW_VALUES = 10_000
VALUE_SAMPLE_FILES_MAX = 32
VALUES_SAMPLED = 32_768
"""Rows whose values decide, of all sampled files together; parquet-java decides after a page, which has 20,000."""

_DICTIONARY = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})
_LEVELS = frozenset({"RLE", "BIT_PACKED"})
_LENGTH_BYTES = 4  # before each plain string


def dictionary_ids(locations: Sequence[str], storage: Storage = LOCAL) -> frozenset[int]:
    """Field ids of the leaves to be dictionary-encoded in the merge of these files.

    Raises :class:`FileUnreadable`, :class:`UnsupportedFile` and what storages raise.
    """
    seen: dict[int, set[bool | None]] = {}
    for location in spread(locations, SAMPLE_FILES_MAX):
        for identity, verdict in _verdicts(location, storage):
            seen.setdefault(identity, set()).add(verdict)
    encoded = {identity for identity, verdicts in seen.items() if True in verdicts and False not in verdicts}
    open_ids = {identity for identity, verdicts in seen.items() if verdicts == {None}}
    if open_ids:
        encoded |= _repeating(spread(locations, VALUE_SAMPLE_FILES_MAX), open_ids, storage)
    return frozenset(encoded)


def spread(locations: Sequence[str], count_max: int) -> list[str]:
    """At most ``count_max`` elements, evenly spread from the first to the last."""
    count = min(count_max, len(locations))
    if count <= 1:
        return list(locations[:count])
    return [locations[index * (len(locations) - 1) // (count - 1)] for index in range(count)]


def wholly_encoded(chunk: Any) -> bool:
    """Whether a column chunk is dictionary-encoded throughout, with gain.

    parquet-java's v1 chunks say so by their encodings: ``PLAIN`` is there only where it gave the dictionary up.
    Arrow's writers list ``PLAIN`` for the dictionary page itself and give up only on size; of theirs, a dictionary
    counts when it is less than half of the chunk, that is, when values repeat. The half is a guess,
    not a measurement; a chunk that gave up on size can pass for encoded.
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


def pays(values: Any) -> bool:
    """Whether a dictionary of these values and the indexes into it are shorter than the values."""
    if not len(values):
        return False
    distinct = len(pc.unique(values))
    if pa.types.is_fixed_size_binary(values.type) or not _is_binary(values.type):
        plain_bytes = len(values) * values.type.bit_width / 8
    else:
        plain_bytes = len(values) * _LENGTH_BYTES + pc.sum(pc.binary_length(values)).as_py()
    index_bytes = len(values) * max((distinct - 1).bit_length(), 1) / 8
    return bool(plain_bytes * distinct / len(values) + index_bytes < plain_bytes)


def _verdicts(location: str, storage: Storage) -> Iterator[tuple[int, bool | None]]:
    """For each chunk with values, whether it is dictionary-encoded; None where it has too few values to tell."""
    file = open_footer(location, storage)
    with reading(location):
        ids = leaf_ids(file.schema_arrow)
        chunks = [
            (identity, file.metadata.row_group(number).column(position))
            for number in range(file.metadata.num_row_groups)
            for position, identity in enumerate(ids)
            if identity is not None
        ]
    for identity, chunk in chunks:
        if not _is_all_null(chunk):
            encoded = wholly_encoded(chunk)
            yield identity, None if not encoded and chunk.num_values < FEW_VALUES else encoded


def _is_all_null(chunk: Any) -> bool:
    """Such chunks have no values that could have been encoded, and parquet-java writes them as plain."""
    statistics = chunk.statistics
    return bool(statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values)


def _repeating(locations: Sequence[str], identities: Collection[int], storage: Storage) -> set[int]:
    """Those of the leaves for whose first values in the files a dictionary pays."""
    samples: dict[int, list[Any]] = {}
    rows = min(FEW_VALUES, -(-VALUES_SAMPLED // len(locations)))
    for location in locations:
        for identity, values in _first_values(location, identities, rows, storage).items():
            samples.setdefault(identity, []).append(values)
    return {
        identity
        for identity, parts in samples.items()
        if pays(pa.chunked_array([part for part in parts if part.type == parts[0].type]).combine_chunks())
    }


def _first_values(location: str, identities: Collection[int], rows: int, storage: Storage) -> Mapping[int, Any]:
    """The values of these leaves in the first rows of a file, without nulls."""
    file = open_footer(location, storage)
    with reading(location):
        ids = leaf_ids(file.schema_arrow)
        paths = [file.schema.column(position).path for position, identity in enumerate(ids) if identity in identities]
        batch = next(file.iter_batches(batch_size=rows, columns=paths, use_threads=False), None)
        if batch is None:
            return {}
        arrays = [leaf for array in batch.columns for leaf in _leaf_arrays(array)]
        pairs = zip(leaf_ids(batch.schema), arrays, strict=True)
        return {identity: array.drop_null() for identity, array in pairs if identity is not None}


def _leaf_arrays(array: Any) -> Iterator[Any]:
    """The leaves of an array as dense arrays, in the order of ``leaf_ids``."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_map(kind):
        inside = [array.keys, array.items]
    elif pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        flat = array.flatten()
        inside = flat if pa.types.is_struct(kind) else [flat]
    else:
        yield array.dictionary_decode() if pa.types.is_dictionary(kind) else array
        return
    for child in inside:
        yield from _leaf_arrays(child)


def _is_binary(kind: Any) -> bool:
    tests = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
    views = (pa.types.is_string_view, pa.types.is_binary_view)
    return any(test(kind) for test in (*tests, *views))
