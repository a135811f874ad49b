"""What can go wrong in a merge, as branches of the one tree of errors."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from icewright.core.errors import (
    IcewrightError,
    OutOfMemory,
    Rejected,
    StorageUnavailable,
    Unavailable,
    Unreadable,
    Unsupported,
)


class UnsupportedColumn(Unsupported):
    """A column that the kernel cannot carry over without loss: its type, its evolution or its defaults."""

    code: ClassVar[str] = "unsupported-column"


class UnsupportedFile(Unsupported):
    """A file that the kernel does not read: not Parquet, encrypted, without field ids, with INT96, ..."""

    code: ClassVar[str] = "unsupported-file"


class ManyPartitions(Unsupported):
    """The rows of a group belong to more partitions than it may become files."""

    code: ClassVar[str] = "many-partitions"


class PartitionValue(Unsupported):
    """Rows were to be moved to a partition whose value has no form in Iceberg's JSON, as dates beyond the year 9999."""

    code: ClassVar[str] = "partition-value"


class NoRowsLeft(Unsupported):
    """No row is left of a group that was to be moved, so nothing says where an empty file would belong."""

    code: ClassVar[str] = "no-rows-left"


class UnsupportedLocation(Unsupported):
    """A location that Arrow cannot reach as Iceberg's Java would: its scheme, or a setting of the storage."""

    code: ClassVar[str] = "unsupported-location"


class OutputExists(Rejected):
    """The output path is taken. Nothing was written: what stands there may be somebody's only copy."""

    code: ClassVar[str] = "output-exists"


class FileUnreadable(Unreadable):
    """A data file is missing, truncated or damaged, or its storage is away."""

    code: ClassVar[str] = "file-unreadable"


class FileChanged(Rejected):
    """A data file is not what its manifest says: it has another size, or another number of rows.

    No bad moment of the storage: a person is to look at it.
    """

    code: ClassVar[str] = "file-changed"


class OutputUnwritable(Unavailable):
    """The output could not be written (no permission, a disk that fails)."""

    code: ClassVar[str] = "output-unwritable"


class DiskFull(OutputUnwritable):
    """There is no room for the output: on the disk, within a quota, or in a directory."""

    code: ClassVar[str] = "disk-full"


DISK_FULL = re.compile(
    r"No space left on device|Disk quota exceeded|Too many links|DiskOutOfSpaceException|"
    r"(?:DS|NS)?QuotaExceededException|MaxDirectoryItemsExceededException|There is not enough space on the disk|"
    r"\bos error (?:28|31|122)\b|\bOSError\((?:28|31|122),|\[Errno (?:28|31|122)\]"
)
"""What Python, Rust, Java and Hadoop say of a disk that is full (ENOSPC, EMLINK, EDQUOT)."""


class StorageRefused(Unavailable):
    """The storage does not let this worker in: its credentials are wrong or have expired, or have no permission."""

    code: ClassVar[str] = "storage-refused"


class ProofFailed(IcewrightError):
    """The rows written are not the rows read. There must be no commit; the files stay as evidence."""

    code: ClassVar[str] = "proof-failed"


_REFUSED = re.compile(
    "AWS Error (?:ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|INVALID_CLIENT_TOKEN_ID|"
    "MISSING_AUTHENTICATION_TOKEN|UNRECOGNIZED_CLIENT|INVALID_SIGNATURE|OPT_IN_REQUIRED)|ExpiredToken|InvalidToken|"
    "HTTP status (?:401|403)|PERMISSION_DENIED|UNAUTHENTICATED|AuthenticationFailed|AuthorizationFailure|"
    "AuthorizationPermissionMismatch|AccessControlException"
)
_AWAY = re.compile(
    "AWS Error (?:NETWORK_CONNECTION|REQUEST_TIMEOUT|SLOW_DOWN|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|THROTTLING)|"
    r"curlCode|HTTP status 5\d\d|CURL error|Could not connect|Timed out|ConnectException|UnknownHostException"
)
"""What Arrow's messages say of S3, Google Cloud Storage, Azure and HDFS."""


@contextmanager
def reading(location: str) -> Iterator[None]:
    """Errors of the Parquet libraries in the block become :class:`FileUnreadable`; our own pass unchanged.

    Where it was not the file, they become what :func:`worker_trouble` says.
    """
    try:
        yield
    except IcewrightError:
        raise
    except Exception as error:  # arrow-rs raises bare Exception, pyarrow several classes
        raise (worker_trouble(error) or FileUnreadable)(f"{location}: {_said(error)}") from error
    except BaseException as error:
        if not is_panic(error):
            raise
        raise FileUnreadable(f"{location}: {_said(error)}") from error


def unwritable(what: str, error: BaseException) -> IcewrightError:
    """What to raise when a library could not write, or panicked over it."""
    full = DiskFull if DISK_FULL.search(str(error)) else None
    return (full or worker_trouble(error) or OutputUnwritable)(f"{what}: {str(error).strip() or type(error).__name__}")


def worker_trouble(error: BaseException) -> type[StorageRefused | StorageUnavailable | OutOfMemory] | None:
    """Whether it was the storage or the memory and not the file.

    Of the storage only what Arrow says can tell; its classes do not.
    """
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return OutOfMemory
    text = str(error)
    if _REFUSED.search(text):
        return StorageRefused
    return StorageUnavailable if _AWAY.search(text) else None


def is_panic(error: BaseException) -> bool:
    """Whether a Rust library panicked; its exception derives from BaseException and has no importable name."""
    return type(error).__module__ == "pyo3_runtime"


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip() or 'no message'}"
