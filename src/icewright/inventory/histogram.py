"""Size histograms: enough of the files' sizes to answer for any target size later, at any number of files.

Buckets are an eighth of an octave wide (9 %), so an answer about a threshold is at most that much off.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from icewright.model.iceberg.inventory import BUCKETS_PER_OCTAVE, SizeHistogram


class NegativeCount(ArithmeticError):
    """More was taken away than was there: a manifest was summed up twice, or never. The state is not to be saved."""


def bucket(size_bytes: int) -> int:
    """The bucket k with 2**(k/8) <= ``size_bytes`` < 2**((k+1)/8), exactly; -1 for an empty file."""
    if size_bytes < 0:
        raise ValueError(f"a file of {size_bytes} bytes")
    # floor(8 * log2(n)) is floor(log2(n**8)): integers know their bit length, floats would err at the edges.
    return int((size_bytes**BUCKETS_PER_OCTAVE).bit_length() - 1)


def count_sizes(sizes_bytes: Iterable[int]) -> SizeHistogram:
    """The histogram of some files."""
    buckets: dict[int, tuple[int, int]] = {}
    for size_bytes in sizes_bytes:
        key = bucket(size_bytes)
        files, total = buckets.get(key, (0, 0))
        buckets[key] = (files + 1, total + size_bytes)
    return SizeHistogram(buckets)


def add(one: SizeHistogram, other: SizeHistogram) -> SizeHistogram:
    """The histogram of both together."""
    buckets = dict(one.buckets)
    for key, (files, size_bytes) in other.buckets.items():
        files_before, bytes_before = buckets.get(key, (0, 0))
        buckets[key] = (files_before + files, bytes_before + size_bytes)
    return SizeHistogram(buckets)


def subtract(whole: SizeHistogram, part: SizeHistogram) -> SizeHistogram:
    """``whole`` without ``part``; emptied buckets disappear. Raises :class:`NegativeCount`."""
    buckets = dict(whole.buckets)
    for key, (files, size_bytes) in part.buckets.items():
        files_before, bytes_before = buckets.get(key, (0, 0))
        left = (files_before - files, bytes_before - size_bytes)
        if min(left) < 0 or (left[0] == 0 and left[1] > 0):
            raise NegativeCount(f"size bucket {key}: {files_before, bytes_before} less {files, size_bytes}")
        if left[0]:
            buckets[key] = left
        else:
            buckets.pop(key, None)
    return SizeHistogram(buckets)


def small(histogram: SizeHistogram, threshold_bytes: int) -> tuple[int, int]:
    """Files below a threshold, and their bytes.

    Bucket-granular: a file counts as small when its bucket lies below the threshold's own. So none is counted that
    is not small, and those within 9 % under the threshold are left out.
    """
    edge = _edge(threshold_bytes)
    below = [entry for key, entry in histogram.buckets.items() if key < edge]
    return sum(files for files, _ in below), sum(size for _, size in below)


_edge = lru_cache(maxsize=256)(bucket)
"""Of a threshold, which many partitions have in common."""


def upto(histogram: SizeHistogram, size_bytes: int) -> tuple[int, int]:
    """Files of at most a size, and their bytes. The bucket that the size lies in counts by its mean size.

    So exact where all files of that bucket are on the same side; otherwise those that are off are so by 9 % at most.
    """
    within = [(files, total) for files, total in histogram.buckets.values() if total <= size_bytes * files]
    return sum(files for files, _ in within), sum(total for _, total in within)


def mean_square_shortfall(histogram: SizeHistogram, target_bytes: int) -> float:
    """The mean over all files of (target - min(size, target))**2, in bytes squared; 0.0 without files.

    Each file counts with the mean size of its bucket; what that leaves out is at most a five-hundredth of its size
    squared, since a bucket is 9 % wide.
    """
    files = sum(files for files, _ in histogram.buckets.values())
    gaps = ((files, target_bytes - min(total / files, target_bytes)) for files, total in histogram.buckets.values())
    return sum(files * gap * gap for files, gap in gaps) / files if files else 0.0
