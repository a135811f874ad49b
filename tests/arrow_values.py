"""Arrow types of all shapes, and values for them that are easily mistaken for one another."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

KINDS: dict[str, Any] = {
    "b": pa.bool_(),
    "i": pa.int32(),
    "l": pa.int64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "s": pa.string(),
    "y": pa.binary(),
    "x": pa.binary(3),
    "dec": pa.decimal128(38, 2),
    "list": pa.list_(pa.float64()),
    "lists": pa.list_(pa.list_(pa.string())),
    "struct": pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]),
    "structs": pa.list_(pa.struct([("a", pa.string()), ("b", pa.float32())])),
    "map": pa.map_(pa.string(), pa.list_(pa.int64())),
}

WORDS = st.one_of(st.none(), st.sampled_from(["", "a", "ab", "b", "é\0", "\U0001f9ca"]))
FLOATS = st.one_of(st.none(), st.sampled_from([0.0, -0.0, float("nan"), 1.5]))
LONGS = st.one_of(st.none(), st.sampled_from([0, 1, -1, 2**31 - 1]))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "b": st.one_of(st.none(), st.booleans()),
    "i": LONGS,
    "l": LONGS,
    "f": FLOATS,
    "d": FLOATS,
    "s": WORDS,
    "y": st.one_of(st.none(), st.binary(max_size=2)),
    "x": st.one_of(st.none(), st.sampled_from([b"\0\0\0", b"abc"])),
    "dec": LONGS,
    "list": st.one_of(st.none(), st.lists(FLOATS, max_size=2)),
    "lists": st.one_of(st.none(), st.lists(st.one_of(st.none(), st.lists(WORDS, max_size=2)), max_size=2)),
    "struct": st.one_of(
        st.none(), st.fixed_dictionaries({"a": LONGS, "b": st.one_of(st.none(), st.lists(WORDS, max_size=2))})
    ),
    "structs": st.one_of(
        st.none(), st.lists(st.one_of(st.none(), st.fixed_dictionaries({"a": WORDS, "b": FLOATS})), max_size=2)
    ),
    "map": st.one_of(
        st.none(),
        st.lists(st.tuples(st.sampled_from(["", "k"]), st.one_of(st.none(), st.lists(LONGS, max_size=2))), max_size=2),
    ),
}
KIND_NAMES = st.sampled_from(sorted(KINDS))


def with_garbage(kind: Any, garbage: bytes) -> Any:
    """[null, null] of a fixed-width type over the given bytes."""
    return pa.Array.from_buffers(kind, 2, [pa.py_buffer(b"\0"), pa.py_buffer(garbage)])
