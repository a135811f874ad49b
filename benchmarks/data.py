"""The table that the rewrite benchmarks work on: events of devices, 19 columns of mixed types, from a seed.

What the columns stand for, since it decides how dear they are to encode:

- ``event_id`` counts up, ``created_at`` and ``event_date`` nearly so, as in a log; ``session_id`` is random.
- ``device_id``, ``city``, ``status``, ``user_agent`` repeat with Zipf's law: dictionaries pay.
- ``request`` and ``comment`` hardly ever repeat: dictionaries do not pay.
- ``price``, ``amount``, ``balance`` are decimals kept in 32, 64 and 128 bits.
- ``latency`` (double, now and then NaN) and ``temperature`` (float) have random mantissas.
- ``comment``, ``is_mobile``, ``balance`` and the struct ``location`` have nulls; ``totals`` is a struct of integers
  and decimals.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SPARK_SCHEMA: Final = (
    "event_id bigint, device_id int, session_id bigint, quantity int, price decimal(9,2), amount decimal(18,4), "
    "balance decimal(30,6), city string, status string, user_agent string, request string, comment string, "
    "created_at timestamp, event_date date, latency double, temperature float, is_mobile boolean, "
    "location struct<latitude:double,longitude:double,region:string>, "
    "totals struct<net:decimal(12,2),tax:decimal(12,2),items:int>"
)

_SYLLABLES: Final = ("ba", "de", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va", "ze", "cha", "dro", "fle", "gri")
_WORDS: Final = pa.array([a + b + c for a in _SYLLABLES for b in _SYLLABLES for c in _SYLLABLES[:8]])
_CITIES: Final = pa.array([f"{a.capitalize()}{b}burg" for a in _SYLLABLES[:8] for b in _SYLLABLES[:8]])
_STATUSES: Final = pa.array(["ok", "redirected", "refused", "failed", "timed out", "cancelled"])
_AGENTS: Final = pa.array([f"Browser/{n // 40}.{n % 40} (device {n * 7919 % 1000})" for n in range(1_000)])
_DEVICES: Final = 5_000
_ZIPF: Final = 1.3
_DAY_MS: Final = 86_400_000
_START_MS: Final = 1_750_000_000_000  # 2025-06-15, any day will do
_MS_PER_ROW: Final = 40


def events(file_number: int, rows: int, seed: int) -> Any:
    """The rows of one file as an Arrow record batch: the same for the same arguments, unlike any other file's."""
    rng = np.random.default_rng([seed, file_number])
    ids = np.arange(rows, dtype=np.int64) + file_number * rows
    at_ms = _START_MS + ids * _MS_PER_ROW + rng.integers(0, 1_000, rows)
    quantity = rng.integers(1, 51, rows, dtype=np.int32)
    price = rng.integers(99, 2_000_000, rows)
    net = quantity * price
    columns = {
        "event_id": pa.array(ids),
        "device_id": pa.array(_zipf(rng, rows, _DEVICES).astype(np.int32)),
        "session_id": pa.array(rng.integers(-(2**62), 2**62, rows)),
        "quantity": pa.array(quantity),
        "price": _decimals(price, 9, 2),
        "amount": _decimals(net * 100 + rng.integers(0, 100, rows), 18, 4),
        "balance": _decimals(rng.integers(-(10**15), 10**15, rows), 30, 6, nulls=rng.random(rows) < 0.1),  # noqa: PLR2004 - a share
        "city": _CITIES.take(pa.array(_zipf(rng, rows, len(_CITIES)))),
        "status": _STATUSES.take(pa.array(_zipf(rng, rows, len(_STATUSES)))),
        "user_agent": _AGENTS.take(pa.array(_zipf(rng, rows, len(_AGENTS)))),
        "request": pc.binary_join_element_wise(
            "/api", _words(rng, rows), pa.array(rng.integers(0, 10**9, rows)).cast(pa.string()), "/"
        ),
        "comment": _with_nulls(
            pc.binary_join_element_wise(*(_words(rng, rows) for _ in range(4)), " "),
            rng.random(rows) < 0.3,  # noqa: PLR2004 - a share
        ),
        "created_at": pa.array(at_ms * 1_000).cast(pa.timestamp("us", tz="UTC")),
        "event_date": pa.array((at_ms // _DAY_MS).astype(np.int32)).cast(pa.date32()),
        "latency": pa.array(np.where(rng.random(rows) < 0.001, np.nan, rng.lognormal(3, 1, rows))),  # noqa: PLR2004 - a share
        "temperature": pa.array(rng.normal(20, 5, rows).astype(np.float32)),
        "is_mobile": pa.array(rng.random(rows) < 0.6, mask=rng.random(rows) < 0.05),  # noqa: PLR2004 - a share
        "location": _locations(rng, rows),
        "totals": pa.StructArray.from_arrays(
            [_decimals(net, 12, 2), _decimals(net * 19 // 100, 12, 2), pa.array(quantity % 7)], ["net", "tax", "items"]
        ),
    }
    return pa.RecordBatch.from_pydict(columns)


def _zipf(rng: Any, rows: int, count: int) -> Any:
    """Indices below ``count``, the first ones far more often than the last."""
    return (rng.zipf(_ZIPF, rows) - 1) % count


def _words(rng: Any, rows: int) -> Any:
    return _WORDS.take(pa.array(rng.integers(0, len(_WORDS), rows)))


def _locations(rng: Any, rows: int) -> Any:
    latitude, longitude = rng.uniform(-90, 90, rows), rng.uniform(-180, 180, rows)
    region = _CITIES.take(pa.array(rng.integers(0, 12, rows)))
    return pa.StructArray.from_arrays(
        [pa.array(latitude), pa.array(longitude), region],
        ["latitude", "longitude", "region"],
        mask=pa.array(rng.random(rows) < 0.02),  # noqa: PLR2004 - a share
    )


def _with_nulls(array: Any, nulls: Any) -> Any:
    return pc.if_else(pa.array(nulls), None, array)


def _decimals(unscaled: Any, precision: int, scale: int, nulls: Any = None) -> Any:
    """64-bit integers as decimals: Arrow keeps 128 bits, little-endian, so the upper half is the sign."""
    low = np.asarray(unscaled, dtype=np.int64)
    words = np.stack([low, low >> 63], axis=1)
    array = pa.Array.from_buffers(pa.decimal128(precision, scale), len(low), [None, pa.py_buffer(words.tobytes())])
    return array if nulls is None else _with_nulls(array, nulls)
