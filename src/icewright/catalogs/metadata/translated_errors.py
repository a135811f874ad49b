"""The door: errors of PyIceberg, PyArrow, SQLAlchemy and Thrift become errors of icewright here."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import BadGzipFile

from pyiceberg.exceptions import ResolveError, ValidationError
from sqlalchemy.exc import DataError, SQLAlchemyError
from thrift.Thrift import TException

from icewright.core.errors import IcewrightError, InvalidName, StorageUnavailable, Unavailable, Unreadable, Unsupported

# One file that is not there or not for us; the storage itself answers.
_OF_THE_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)

# How Arrow words the same of an object store.
_OF_THE_OBJECT = re.compile(r"AWS Error (?:ACCESS_DENIED|NO_SUCH_BUCKET|NO_SUCH_KEY|RESOURCE_NOT_FOUND)\b")

# What decoders raise on bytes that are not what they should be. MemoryError: a damaged length asks for terabytes.
_OF_THE_BYTES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BadGzipFile,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    ResolveError,
    TypeError,
    ValidationError,
    ValueError,
    struct.error,
    zlib.error,
)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Around the reading of one metadata file of a table; ``what`` names it in the message.

    Raises :class:`Unreadable` for a missing or damaged file, ``StorageUnavailable`` when the storage does not answer,
    :class:`Unsupported` for what the library knows but cannot do.
    """
    try:
        yield
    except IcewrightError:
        raise
    except _OF_THE_FILE as error:
        raise Unreadable(f"{what} cannot be opened: {_text(error)}") from error
    except ModuleNotFoundError as error:
        raise Unsupported(f"{what} needs a library that is not installed: {_text(error)}") from error
    except NotImplementedError as error:  # PyIceberg's word for what it does not read, such as a type
        raise Unsupported(f"{what} cannot be understood: {_text(error)}") from error
    except _OF_THE_BYTES as error:
        raise Unreadable(f"{what} is damaged: {_text(error)}") from error
    except OSError as error:
        if _OF_THE_OBJECT.search(str(error)):
            raise Unreadable(f"{what} cannot be opened: {_text(error)}") from error
        raise StorageUnavailable(f"the storage does not answer for {what}: {_text(error)}") from error


@contextmanager
def asking(catalog: str) -> Iterator[None]:
    """Around a question to the catalog. Raises :class:`Unavailable`, also when the answer makes no sense.

    What cannot even be asked says nothing of the catalog: that is :class:`InvalidName`.
    """
    try:
        yield
    except IcewrightError:
        raise
    except (UnicodeEncodeError, DataError) as error:
        raise InvalidName(f"catalog {catalog} cannot be asked that: {_text(error)}") from error
    except (SQLAlchemyError, TException, OSError) as error:
        raise Unavailable(f"catalog {catalog} does not answer: {_text(error)}") from error
    except _OF_THE_BYTES as error:
        raise Unavailable(f"catalog {catalog} answers what makes no sense: {_text(error)}") from error


def _text(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):
        return "the file does not exist"  # which one, the message has said
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
