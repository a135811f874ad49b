"""Whether what a file states of its rows holds for the rows as they are read back.

Readers skip row groups and pages by minima, maxima and null counts, and row groups by bloom filters. Where one of these
is wrong, rows are lost to them, though each row is there and a proof of the rows says so. A bound only has to hold: one
that is wider, or none, loses nothing. What is said to be exact has to be, since it may be taken for an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from icewright.core.errors import NotStitchable
from icewright.model.iceberg.tables import Json
from icewright_spark.parquet.errors import ProofFailed
from icewright_spark.parquet.footer import Files, read_footer
from icewright_spark.parquet.places import Place, Seen, comparable, key, look, places
from icewright_spark.parquet.schema import leaves
from icewright_spark.parquet.source import FileSource
from icewright_spark.parquet.statistics.bloom import hashes
from icewright_spark.parquet.statistics.stated import NOTHING, ChunkStated, ColumnStated, Stated, stated_of

_SHOWN_MAX: Final = 60
_ZEROS: Final = (-0.0, 0.0)


class StatedCheck:
    """Takes the rows of a file, from the first to the last, and compares what it states of them."""

    def __init__(
        self, schema_fields: Sequence[Json], stated: Mapping[int, ColumnStated], wrong: str | None = None
    ) -> None:
        """``stated`` is by field id; of columns that are not in it nothing is compared. ``wrong`` as below."""
        self._rows = 0
        self._columns = [
            _ColumnCheck(place, stated.get(place.leaf.field_id, NOTHING))
            for place in places(schema_fields)
            if place.leaf.type != "variant"  # two values without an order
        ]
        self.wrong = wrong
        """The first thing that does not hold, in words."""

    def update(self, batch: Any) -> None:
        """The next rows, of the schema's columns."""
        if self.wrong is None:
            found = (column.update(batch, self._rows) for column in self._columns)
            self.wrong = next((text for text in found if text is not None), None)
        self._rows += batch.num_rows

    @property
    def difference(self) -> str | None:
        """Behind the last row: the first thing that does not hold, in words; rows that are missing are one."""
        if self.wrong is None and any(column.rows not in (0, self._rows) for column in self._columns):
            return f"its footer states something of other rows than the {self._rows} that were read"
        return self.wrong

    def finish(self, location: str) -> Mapping[int, Seen]:
        """Behind the last row: what was seen of each leaf, by field id.

        Raises :class:`ProofFailed` where something that is stated does not hold.
        """
        wrong = self.difference
        if wrong is not None:
            raise wrongly_read(location, wrong)
        return {column.field_id: column.seen for column in self._columns}


def wrongly_read(location: str, wrong: str) -> ProofFailed:
    """What to raise of a file that states what does not hold."""
    return ProofFailed(
        f"{location} would be read wrongly: {wrong}",
        hint="nothing was committed; keep the file, it is the evidence",
    )


def check_of(storage: Files, location: str, size_bytes: int, schema_fields: Sequence[Json]) -> StatedCheck:
    """A check of what a Parquet file of that size states of its rows, which have these columns.

    Raises :class:`FileUnreadable`, :class:`UnsupportedFile`, and what storages raise.
    """
    types = {leaf.field_id: leaf.type for leaf in leaves(schema_fields)}
    try:
        footer = read_footer(storage, location, size_bytes, length_max=size_bytes)
        with storage.open_input(location) as file:
            stated = stated_of(footer, FileSource(file, location, size_bytes), types)
    except NotStitchable as error:
        return StatedCheck((), {}, f"its footer cannot be read: {error}")
    return StatedCheck(schema_fields, stated)


class _ColumnCheck:
    """One column: what was seen of it since the present page began, and since the present row group began."""

    def __init__(self, place: Place, stated: ColumnStated) -> None:
        self._place, self._stated = place, stated
        self.field_id, self.seen = place.leaf.field_id, Seen()
        self._chunk = self._page = 0
        self._of_chunk, self._of_page = Seen(), Seen()
        self._distinct: list[Any] = []

    @property
    def rows(self) -> int:
        """How many rows something is stated of."""
        return self._stated.chunks[-1].end if self._stated.chunks else 0

    def update(self, batch: Any, start: int) -> str | None:
        """The rows of a batch, the first of which is ``start``. Says what does not hold, if anything."""
        array, at, rows = self._place.of(batch), 0, batch.num_rows
        if not self._stated.chunks:
            self.seen.add(look(self._place, array))
        while at < rows and self._chunk < len(self._stated.chunks):
            chunk = self._stated.chunks[self._chunk]
            part_of = chunk.pages[self._page] if chunk.pages else chunk.chunk[0]
            end = min(part_of.end - start, rows)
            wrong = self._see(chunk, array.slice(at, end - at))
            if wrong is None and start + end == part_of.end:
                wrong = self._end(chunk, part_of)
            if wrong is not None:
                return f"column {'.'.join(self._place.leaf.path)!r}, {wrong}"
            at = end
        return None

    def _see(self, chunk: ChunkStated, array: Any) -> str | None:
        found = look(self._place, array)
        self._of_page.add(found)
        self.seen.add(found)
        if chunk.bloom_filter is None and chunk.chunk[0].distinct is None:
            return None
        values, _ = self._place.values(array)
        if chunk.chunk[0].distinct is not None:
            self._distinct.append(comparable(values).drop_null().unique())
        if chunk.bloom_filter is None:
            return None
        lacking = chunk.bloom_filter.lacks(hashes(values, self._stated.physical, self._stated.width))
        return f"{chunk.chunk[0].what}: its bloom filter lacks {lacking} values" if lacking else None

    def _end(self, chunk: ChunkStated, part_of: Stated) -> str | None:
        """At the end of a page, and of a row group with its last page."""
        self._of_chunk.add(self._of_page)
        wrong = _difference(part_of, self._of_page) if chunk.pages else None
        self._of_page, self._page = Seen(), self._page + 1
        if part_of.end == chunk.end:
            wrongs = (_difference(stated, self._of_chunk) for stated in chunk.chunk)
            wrong = wrong or next((text for text in wrongs if text is not None), None)
            wrong = wrong or self._other_count(chunk) or self._one_of_two_zeros(chunk)
            self._of_chunk, self._page, self._chunk, self._distinct = Seen(), 0, self._chunk + 1, []
        return wrong

    def _one_of_two_zeros(self, chunk: ChunkStated) -> str | None:
        """Readers look for values by their bits in what has them all, and the two zeros are equal in SQL."""
        if not self._of_chunk.zeros or self._place.leaf.repeated:
            return None
        if chunk.whole_dictionary:
            return f"{chunk.chunk[0].what}: it has zeros, and readers look for one of the two in its dictionary"
        physical, filtered = self._stated.physical, chunk.bloom_filter
        if filtered is None or not any(filtered.lacks(hashes(pa.array([each]), physical, 0)) for each in _ZEROS):
            return None
        return f"{chunk.chunk[0].what}: it has zeros, and its bloom filter one of the two, for which readers look"

    def _other_count(self, chunk: ChunkStated) -> str | None:
        stated = chunk.chunk[0]
        found = len({value for part in self._distinct for value in part.to_pylist()})
        if stated.distinct in (None, found):
            return None
        return f"{stated.what}: {stated.distinct} distinct values are stated, {found} found"


def _difference(stated: Stated, seen: Seen) -> str | None:
    """In words, what is stated of some rows and does not hold."""
    if stated.entries not in (None, seen.entries):
        return f"{stated.what}: {stated.entries} entries are stated, {seen.entries} found"
    if stated.nulls not in (None, seen.nulls):
        return f"{stated.what}: {stated.nulls} nulls are stated, {seen.nulls} found"
    if stated.without_values and seen.values:
        return f"{stated.what}: no value is stated, {seen.values} found"
    return _wrong_bound(stated, seen)


def _wrong_bound(stated: Stated, seen: Seen) -> str | None:
    if seen.nans and stated.least is not None and stated.greatest is not None:
        return f"{stated.what}: bounds are stated, and {seen.nans} NaN found, which readers would not look for"
    for name, bound, found, exact in (
        ("minimum", stated.least, seen.least, stated.exact[0]),
        ("maximum", stated.greatest, seen.greatest, stated.exact[1]),
    ):
        if bound is None or (found is None and not exact):
            continue
        if exact and bound != found:
            return f"{stated.what}: the {name} is stated to be {_short(bound)} exactly, and is {_short(found)}"
        beyond = key(found) < key(bound) if name == "minimum" else key(bound) < key(found)
        if beyond:
            return f"{stated.what}: the {name} is stated to be {_short(bound)}, and {_short(found)} is beyond it"
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
