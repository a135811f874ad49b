"""What can go wrong in a merge, as branches of the one tree of errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from icewright.domain.errors import IcewrightError, Rejected, Unavailable, Unreadable, Unsupported


class UnsupportedColumn(Unsupported):
    """A column that the kernel cannot carry over without loss: its type, its evolution or its defaults."""

    code: ClassVar[str] = "unsupported-column"


class UnsupportedFile(Unsupported):
    """A file that the kernel does not read: not Parquet, encrypted, without field ids, with INT96, ..."""

    code: ClassVar[str] = "unsupported-file"


class UnsupportedLocation(Unsupported):
    """A location that is not on a local file system."""

    code: ClassVar[str] = "unsupported-location"


class OutputExists(Rejected):
    """The output path is taken. Nothing was written: what stands there may be somebody's only copy."""

    code: ClassVar[str] = "output-exists"


class FileUnreadable(Unreadable):
    """A data file is missing, truncated or damaged, or its storage is away."""

    code: ClassVar[str] = "file-unreadable"


class OutputUnwritable(Unavailable):
    """The output could not be written (no space, no permission). What was written so far is left where it is."""

    code: ClassVar[str] = "output-unwritable"


class ProofFailed(IcewrightError):
    """The rows written are not the rows read. There must be no commit; the files stay as evidence."""

    code: ClassVar[str] = "proof-failed"


@contextmanager
def reading(location: str) -> Iterator[None]:
    """Errors of the Parquet libraries in the block become :class:`FileUnreadable`; our own pass unchanged."""
    try:
        yield
    except IcewrightError:
        raise
    except Exception as error:  # arrow-rs raises bare Exception, pyarrow several classes
        raise FileUnreadable(f"{location}: {_said(error)}") from error
    except BaseException as error:
        if not is_panic(error):
            raise
        raise FileUnreadable(f"{location}: {_said(error)}") from error


def is_panic(error: BaseException) -> bool:
    """Whether a Rust library panicked; its exception derives from BaseException and has no importable name."""
    return type(error).__module__ == "pyo3_runtime"


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip() or 'no message'}"
