"""One tree of errors, branched by what the caller should do.

    IcewrightError
    |- Rejected      the request or the policy is wrong   -> tell the user (4xx, exit 2); do not retry
    |- Conflict      the world moved                      -> observe and plan again
    |- Unavailable   catalog, store, storage, engine away -> back off, try the tick again
    |- Unknown       we cannot tell whether it happened   -> look, then decide; touch nothing meanwhile

Adapters translate the errors of libraries at the door, with ``from``; ``from None`` where their text may hold a secret.
A :class:`Cause` stays on the task of a failed attempt: for the queue, for the breaker, and for people.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar


class IcewrightError(Exception):
    """Base of all errors that icewright raises on purpose.

    ``code`` is stable and meant for programs; ``hint`` says what the reader can do.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Rejected(IcewrightError):
    """The request or the policy is wrong."""

    code = "rejected"


class Conflict(IcewrightError):
    """The world moved since we looked."""

    code = "conflict"


class Unavailable(IcewrightError):
    """Something that we depend on does not answer; trying again later is right."""

    code = "unavailable"


class ServerUnavailable(Unavailable):
    """icewright's own server, or its store, does not answer an optimizer: nothing that the attempt could help."""

    code = "server-away"


class OutcomeUnknown(IcewrightError):
    """We cannot tell whether it happened."""

    code = "unknown"


class NotFound(Rejected):
    """No catalog, table, plan or task of that name."""

    code = "not-found"


class TableReplaced(Conflict):
    """The name now belongs to another table: dropped and created again (its uuid differs)."""

    code = "table-replaced"


class LookLost(Conflict):
    """Another look at the same table was written first; what this one moves forward from is not stored any more."""


class InvalidName(Rejected):
    """A table name that cannot be parsed."""

    code = "invalid-name"


class InvalidLocation(Rejected):
    """A location that names no object: neither a URI nor an absolute path."""

    code = "invalid-location"


class InvalidConfiguration(Rejected):
    """The configuration cannot be used as it is."""

    code = "invalid-configuration"


class InvalidResourceGroup(InvalidConfiguration):
    """A resource group that cannot be as it is written."""

    code = "invalid-resource-group"


class InvalidMessage(Rejected):
    """A document (event, task, report) that is not of the shape it should be."""

    code = "invalid-message"


class VersionMismatch(Rejected):
    """Server and optimizer (or client) speak different versions of the protocol."""

    code = "version-mismatch"


class NotAllowed(Rejected):
    """The mode or the state of the thing forbids the request."""

    code = "not-allowed"


class Forbidden(Rejected):
    """Whoever asks has not the permission that it needs."""

    code = "forbidden"


class LoginRefused(Forbidden):
    """It could not be shown who somebody is who wants to log in."""

    code = "login-refused"


class StoreUnavailable(Unavailable):
    """icewright's own store does not answer; catalogs and tables are not concerned."""


class StoreTaken(StoreUnavailable):
    """Another server leads by now; what this one began as the leader writes nothing more."""


class BucketLost(StoreTaken):
    """Another server looks at the tables of a bucket by now; what this one began for one of them writes nothing."""


class CoordinatorUnavailable(Unavailable):
    """What elects the leader and knows the servers that are there does not answer; the store may."""


class NameTaken(CoordinatorUnavailable):
    """Another server has the name of this one, and lives."""


class InboxFull(Unavailable):
    """So many events wait that no more are taken in; what they tell of is found by the sweep."""

    def __init__(self, waiting: int) -> None:
        super().__init__(
            f"{waiting:,} events wait already",
            hint="send it again later, or leave it to the sweep, which finds every commit",
        )


class TooManyRequests(Unavailable):
    """One caller asks for more than its share; others are not concerned."""

    code = "too-many-requests"


class SpoolFull(TooManyRequests):
    """The spool holds as much of queries as it may; nothing of what was sent is kept."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the spool holds {most:,} bytes of queries, which is all that it may",
            hint="send it again later; queries.spool_bytes raises the limit",
        )


class InboxShareFull(TooManyRequests):
    """As many events of one reporter wait as it may have wait at a time."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"{most:,} events of this reporter wait already, which is its share of the inbox",
            hint="send it again later, or leave it to the sweep, which finds every commit",
        )


class OutOfMemory(Unavailable):
    """A process at work got no more memory. Its files are no worse than others; a larger process may do."""

    code = "out-of-memory"


class StorageUnavailable(Unavailable):
    """The storage of one table does not answer; that of other tables may."""

    code = "storage-away"


class Unreadable(Unavailable):
    """Metadata of one table cannot be read (missing, truncated or damaged); other tables are not concerned."""

    code = "unreadable"


class Unsupported(Rejected):
    """The table uses something that icewright does not handle yet."""

    code = "unsupported"


class NotStitchable(Unsupported):
    """Row groups that cannot be put under one footer as they are.

    Only the files themselves tell, not the manifests: the table is planned anew, with another executor.
    """

    code = "not-stitchable"


class NotSorted(Unsupported):
    """Files that cannot be merged by key: one is not in the order that is said of it, or too many overlap.

    Only the files themselves tell, not the manifests: the table is planned anew, with another executor.
    """

    code = "not-sorted"


class LeaseLost(Conflict):
    """The attempt is not ours any more: its lease ran out, or its fencing token is old."""

    code = "lease-lost"


class Cause(StrEnum):
    """Which of the ways in which work comes to nothing it was."""

    AWAY = "away"
    """Something that it depends on did not answer."""
    OUT_OF_MEMORY = "out-of-memory"
    """A process at work got no more memory: a larger one may do."""
    CONFLICT = "conflict"
    """The table moved on before the commit."""
    FORBIDDEN = "forbidden"
    """Somebody did not let us."""
    UNREADABLE = "unreadable"
    """A file is missing, truncated or damaged."""
    REJECTED = "rejected"
    """It cannot be carried out as it is."""
    UNKNOWN = "unknown"
    """Nobody could tell whether it was committed; it was not."""
    LOST = "lost"
    """The attempt was not heard of any more."""
    DEFECT = "defect"
    """What nobody foresaw, such as a proof that does not hold, or a crash of the engine."""
