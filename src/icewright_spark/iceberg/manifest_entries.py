"""The entries of manifests as Iceberg reads and writes them, many at once and within the JVM.

A manifest may have a hundred thousand entries, and a call into the JVM costs a tenth of a millisecond; so entries come
in lists of Java's, and what is asked of one is asked of all of a list. Iceberg's readers and writers of whole entries,
with the snapshot that added them, are not public: they are reached by name, which the tested versions of Iceberg have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icewright.core.errors import Unsupported
from icewright.model.actions.rewrite_manifests import ManifestClass, ManifestContent
from icewright.model.iceberg.files import Partition
from icewright_spark.iceberg.java_api import REFUSALS, SparkTable, first_line, iterate

_API: Final = "org.apache.iceberg."
_ENTRY: Final = f"{_API}ManifestEntry"
_GUAVA: Final = f"{_API}relocated.com.google.common."
_CHUNK: Final = 2_000
"""Entries in memory at once, each with the metrics of its columns: some kilobytes."""

_SEQUENCE_NUMBERS: Final = ("dataSequenceNumber", "fileSequenceNumber")
_SEQUENCE_NUMBERS_SINCE: Final = 2
_MODULUS: Final = 1 << 256
_CODEC: Final = ("write.manifest.compression-codec", "write.avro.compression-codec", "gzip")
_LEVEL: Final = ("write.manifest.compression-level", "write.avro.compression-level", None)
"""The properties of manifests, by which name Iceberg's Avro writer takes them, and their defaults."""


@dataclass(frozen=True, slots=True)
class EntriesDigest:
    """A multiset of live entries: how many, and the sum of a hash of each.

    An entry is all that Iceberg reads of its file, metrics and bounds among it, the snapshot that added it, its data
    and file sequence numbers (which format version 1 does not have), and the id of its first row.
    """

    entries: int = 0
    total: int = 0

    def plus(self, hashes: Sequence[int]) -> EntriesDigest:
        """With these entries as well."""
        return EntriesDigest(self.entries + len(hashes), (self.total + sum(hashes)) % _MODULUS)

    def both(self, other: EntriesDigest) -> EntriesDigest:
        """The sum of two."""
        return EntriesDigest(self.entries + other.entries, (self.total + other.total) % _MODULUS)

    @property
    def text(self) -> str:
        """As hexadecimal digits."""
        return f"{self.total:064x}"


class ManifestEntries:
    """Readers, writers and hashes of entries for the manifests of one table, and one class of them."""

    def __init__(self, table: SparkTable, of: ManifestClass) -> None:
        self._table, self._of, lists = table, of, table.lists
        self._spec = table.java.specs().get(of.spec_id)
        self._is_data = of.content is ManifestContent.DATA
        self._io, self._specs = table.java.io(), table.java.specs()
        self._live = lists.hidden(f"{_API}ManifestReader", "liveEntries")
        self._copy = lists.hidden(_ENTRY, "copy", kind=f"{_GUAVA}base.Function")
        self._file = lists.hidden(_ENTRY, "file")
        has_sequence = table.format_version >= _SEQUENCE_NUMBERS_SINCE
        said = ("snapshotId", *_SEQUENCE_NUMBERS) if has_sequence else ("snapshotId",)
        self._numbers = [lists.hidden(_ENTRY, name) for name in said]
        signature = f"(L{_API}ContentFile;L{_API}PartitionSpec;)Ljava/lang/String;".replace(".", "/")
        self._json = lists.static(f"{_API}ContentFileParser", "toJson", signature, self._spec)
        digests = "org.apache.commons.codec.digest.DigestUtils"
        self._sha256 = lists.of_one(digests, "sha256Hex", "(Ljava/lang/String;)Ljava/lang/String;")
        self._partition = lists.method(f"{_API}ContentFile", "partition", "()Lorg/apache/iceberg/StructLike;")

    def chunks(self, manifest: Any, *, committed: bool) -> Iterator[Any]:
        """The live entries of a Java ``ManifestFile``, in order, as lists of copies.

        One that is not ``committed`` keeps the row ids that its entries state, though it has none of its own yet.
        """
        guava, reader = (
            self._table.jvm.org.apache.iceberg.relocated.com.google.common,
            self._reader(manifest, committed=committed),
        )
        try:
            copies = guava.collect.Iterables.transform(self._live.apply(reader), self._copy)
            yield from iterate(guava.collect.Iterables.partition(copies, _CHUNK))
        finally:
            reader.close()

    def _reader(self, manifest: Any, *, committed: bool) -> Any:
        files = self._table.jvm.org.apache.iceberg.ManifestFiles
        if not self._is_data:
            return files.readDeleteManifest(manifest, self._io, self._specs)
        if committed:
            return files.read(manifest, self._io, self._specs)
        kinds = (f"{_API}ManifestFile", f"{_API}io.FileIO", "java.util.Map", "boolean")
        return self._table.lists.call_hidden(
            f"{_API}ManifestFiles", "read", kinds, (manifest, self._io, self._specs, False)
        )

    def hashes(self, entries: Sequence[Any] | Any) -> list[int]:
        """A hash of each entry of a Java list. Raises :class:`Unsupported` for what Iceberg has no JSON of."""
        lists = self._table.lists
        try:
            files = lists.each(lists.each(lists.each(entries, self._file), self._json), self._sha256)
            columns = [lists.values(files), *(lists.values(lists.each(entries, each)) for each in self._numbers)]
        except REFUSALS as error:
            raise Unsupported(f"Iceberg has no JSON of a file in a manifest: {first_line(error)}") from error
        return [_hash("|".join(map(str, said))) for said in zip(*columns, strict=True)]

    def digest(self, manifest: Any, *, committed: bool) -> EntriesDigest:
        """The live entries of a manifest as a multiset."""
        found = EntriesDigest()
        for entries in self.chunks(manifest, committed=committed):
            found = found.plus(self.hashes(entries))
        return found

    def numbering(self, values: Sequence[str]) -> Numbering:
        """Tells the partitions of entries by their places in ``values``, each as in a share."""
        return Numbering(self._table, self._of, values, (self._file, self._partition))

    def writer(self, location: str) -> Any:
        """A Java ``ManifestWriter`` for the class, as a commit of the table would write manifests."""
        files, version = self._table.jvm.org.apache.iceberg.ManifestFiles, self._table.format_version
        properties = self._table.properties
        said = {own: properties.get(key, default) for key, own, default in (_CODEC, _LEVEL)}
        options = self._table.jvm.java.util.HashMap()
        for key, value in said.items():
            if value is not None:
                options.put(key, value)
        output = self._io.newOutputFile(location)
        write = files.write if self._is_data else files.writeDeleteManifest
        return write(version, self._spec, output, None, options)

    def write(self, writer: Any, entries: Any, places: Sequence[int]) -> None:
        """Put the entries at these places of a Java list into a manifest as existing ones, with all they have."""
        lists = self._table.lists
        existing = lists.hidden_handle(f"{_API}ManifestWriter", "existing", (_ENTRY,)).bindTo(writer)
        lists.do(lists.picked(entries, places), existing)


class Numbering:
    """Which of some partitions entries belong to."""

    def __init__(self, table: SparkTable, of: ManifestClass, values: Sequence[str], getters: tuple[Any, Any]) -> None:
        """Raises :class:`Unsupported` for a partition that Iceberg does not take."""
        self._lists, self._getters = table.lists, getters
        spec = table.java.specs().get(of.spec_id)
        self._get: Any = None
        if not spec.isUnpartitioned():
            numbers = table.jvm.org.apache.iceberg.util.StructLikeMap.create(spec.partitionType())
            for number, each in enumerate(values):
                numbers.put(table.partition_data(Partition(of.spec_id, each)), number)
            self._get = self._lists.function_of("java.util.Map", "get", _OBJECT_TO_OBJECT, numbers)

    def of(self, entries: Any) -> list[int | None]:
        """The number of each entry's partition in a Java list, None where it is none of them."""
        if self._get is None:
            return [0] * int(entries.size())
        found: Any = entries
        for getter in (*self._getters, self._get):
            found = self._lists.each(found, getter)
        return self._lists.values(found)


_OBJECT_TO_OBJECT: Final = "(Ljava/lang/Object;)Ljava/lang/Object;"


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest())
