"""The retry policy's reading of the error tree: which cause each class is, and how an attempt of that cause ends.

A class of :mod:`icewright.core.errors` that is not in the table fails a test: whoever adds one has to decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from icewright.core import errors
from icewright.core.errors import Cause, IcewrightError
from icewright.work.tasks.retry import End

CAUSES: Final[Mapping[type[IcewrightError], Cause]] = MappingProxyType(
    {
        errors.IcewrightError: Cause.DEFECT,
        errors.Rejected: Cause.REJECTED,
        errors.Conflict: Cause.CONFLICT,
        errors.Unavailable: Cause.AWAY,
        errors.OutcomeUnknown: Cause.UNKNOWN,
        errors.NotFound: Cause.CONFLICT,  # it was there when it was planned
        errors.TableReplaced: Cause.CONFLICT,
        errors.LookLost: Cause.CONFLICT,
        errors.InvalidName: Cause.REJECTED,
        errors.InvalidLocation: Cause.REJECTED,
        errors.InvalidConfiguration: Cause.REJECTED,
        errors.InvalidResourceGroup: Cause.REJECTED,
        errors.InvalidMessage: Cause.REJECTED,
        errors.VersionMismatch: Cause.REJECTED,
        errors.NotAllowed: Cause.REJECTED,
        errors.Forbidden: Cause.FORBIDDEN,
        errors.LoginRefused: Cause.FORBIDDEN,
        errors.ServerUnavailable: Cause.AWAY,
        errors.StoreUnavailable: Cause.AWAY,
        errors.StoreTaken: Cause.AWAY,
        errors.CoordinatorUnavailable: Cause.AWAY,
        errors.NameTaken: Cause.AWAY,
        errors.BucketLost: Cause.AWAY,
        errors.InboxFull: Cause.AWAY,
        errors.TooManyRequests: Cause.AWAY,
        errors.InboxShareFull: Cause.AWAY,
        errors.SpoolFull: Cause.AWAY,
        errors.OutOfMemory: Cause.OUT_OF_MEMORY,
        errors.StorageUnavailable: Cause.AWAY,
        errors.Unreadable: Cause.UNREADABLE,
        errors.Unsupported: Cause.REJECTED,
        errors.NotStitchable: Cause.REJECTED,
        errors.NotSorted: Cause.REJECTED,
        errors.LeaseLost: Cause.LOST,
    }
)

_OF_OPTIMIZERS: Final[Mapping[str, Cause]] = MappingProxyType(
    {
        "file-unreadable": Cause.UNREADABLE,
        "file-changed": Cause.REJECTED,
        "unsupported-location": Cause.REJECTED,
        "unsupported-file": Cause.REJECTED,
        "unsupported-column": Cause.REJECTED,
        "many-partitions": Cause.REJECTED,
        "partition-value": Cause.REJECTED,
        "no-rows-left": Cause.REJECTED,
        "storage-refused": Cause.FORBIDDEN,
        "output-exists": Cause.REJECTED,
        "output-unwritable": Cause.AWAY,
        "proof-failed": Cause.DEFECT,
        "worker-died": Cause.DEFECT,
        "engine": Cause.DEFECT,
        "disk-full": Cause.AWAY,
        "no-executors": Cause.AWAY,
    }
)
"""What is no class of the control plane: errors of the Spark side, by their codes, and what Spark itself fails with."""

CAUSES_BY_CODE: Final[Mapping[str, Cause]] = MappingProxyType(
    {**{kind.code: cause for kind, cause in CAUSES.items()}, **_OF_OPTIMIZERS}
)
"""By the code of a report; one that is not in it is a defect, as far as anybody can tell."""


def cause_of(error: IcewrightError) -> Cause:
    """What an error means: as its class says, or the next class above it that is known."""
    return next(CAUSES[kind] for kind in type(error).__mro__ if kind in CAUSES)


def end_of(cause: Cause, *, retryable: bool) -> End:
    """How an attempt ended that failed from a cause; ``retryable`` is whether it says that the same may do better.

    Its word counts where a try costs nothing but time. What somebody forbids, and what cannot be read or carried out
    as it is, is not tried again, whatever it says: that would not change by waiting.
    """
    match cause:
        case Cause.CONFLICT:
            return End.CONFLICT
        case Cause.UNKNOWN:
            return End.ABSENT
        case Cause.FORBIDDEN | Cause.UNREADABLE | Cause.REJECTED:
            return End.FINAL
        case Cause.AWAY | Cause.OUT_OF_MEMORY | Cause.LOST | Cause.DEFECT:
            return End.RETRYABLE if retryable else End.FINAL
