"""Where the bytes of a table are, as the command line shows it: the footprint of its reachable files in flat values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from icewright.catalogs.local_spool import OpenSpool
from icewright.catalogs.table_files_port import TableFiles
from icewright.core.completeness import Complete, Gap, Known, Partial
from icewright.core.errors import NotFound, Rejected
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.footprint.unneeded_views import UnneededView
from icewright.inventory.footprint import Amount, ClassShare, ExpiryShare, Footprint, footprint
from icewright.inventory.reference_bits import reference_bits
from icewright.model.actions.expire_snapshots import ExpiryRule
from icewright.model.iceberg.locations import Aliases
from icewright.model.iceberg.names import TableName
from icewright.ownership.reachable import Progress, Reachable, Step, reachable

_DAY_MS: Final = 86_400_000
EXPIRY_RULES: Final = (
    *(ExpiryRule(days * _DAY_MS) for days in (1, 5, 7, 30)),
    *(ExpiryRule(0, retain_last) for retain_last in (1, 10, 100)),
)
"""What is asked about by default: by age, and by number."""


NO_SERVER: Final = Reason("no-server", "orphans and quarantine are known to the server alone, and none was asked")


@dataclass(frozen=True, slots=True)
class RefStorageView:
    """The snapshot of a ref: what it needs, and what no other ref's snapshot does."""

    name: str
    type: str
    snapshot_id: str
    reachable: Amount
    only_here: Amount


@dataclass(frozen=True, slots=True)
class StorageView:
    """Where the bytes of a table are, as of one metadata file.

    ``complete`` is false where something could not be read or understood: all amounts are then lower bounds.
    ``gaps`` are the first of ``gaps_count``. ``refs`` leaves ``refs_left_out`` out. ``unneeded`` is beside all that,
    and the server's alone to know; where it is null, ``not_asked`` is why.
    """

    name: str
    uuid: str
    metadata_location: str
    current_snapshot_id: str | None
    snapshots: int
    observed_at: Instant
    complete: bool
    gaps: tuple[Gap, ...]
    gaps_count: int
    total: Amount
    classes: tuple[ClassShare, ...]
    refs: tuple[RefStorageView, ...]
    refs_left_out: int
    expiries: tuple[ExpiryShare, ...]
    unneeded: UnneededView | None = None
    not_asked: Reason | None = NO_SERVER

    def with_unneeded(self, unneeded: UnneededView | Reason) -> StorageView:
        """The same with what the server said of files that the table does not need, or why it did not answer."""
        if isinstance(unneeded, Reason):
            return replace(self, unneeded=None, not_asked=unneeded)
        return replace(self, unneeded=unneeded, not_asked=None)


def storage_view(
    files: TableFiles,
    name: TableName,
    rules: Sequence[ExpiryRule],
    open_spool: OpenSpool,
    *,
    aliases: Aliases,
    progress: Progress,
    now: Callable[[], Instant],
) -> StorageView:
    """Read all metadata of a table once and sum it up. Raises as :func:`~icewright.ownership.reachable.reachable`."""
    at = now()
    with reachable(
        files,
        name,
        lambda metadata: reference_bits(metadata, rules, at),
        open_spool,
        aliases=aliases,
        progress=progress,
    ) as known:
        return _view(known, at)


class StorageReader:
    """Sums up tables for callers of the server that leads: no other has the files of its catalogs in hand."""

    def __init__(
        self,
        files: Mapping[str, TableFiles],
        aliases_of: Callable[[str], Aliases],
        open_spool: OpenSpool,
        now: Callable[[], Instant],
    ) -> None:
        """``files`` are by catalog."""
        self._files, self._aliases_of, self._open_spool, self._now = files, aliases_of, open_spool, now

    def view(self, name: TableName, ends: Callable[[], bool]) -> StorageView:
        """As :func:`storage_view`. Raises ``Rejected`` once ``ends`` is true: half of the sums would tell nothing."""
        files = self._files.get(name.catalog)
        if files is None:
            raise NotFound(f"this server reads no files of the catalog {name.catalog}")

        def progress(step: Step, done: int, total: int) -> None:
            if ends():
                raise Rejected(
                    f"{done:,} of {total:,} {step} were read in the time that there is for an answer",
                    hint="`icewright table storage` takes as long as it takes",
                )

        aliases = self._aliases_of(name.catalog)
        return storage_view(
            files, name, EXPIRY_RULES, self._open_spool, aliases=aliases, progress=progress, now=self._now
        )


def _view(known: Known[Reachable], at: Instant) -> StorageView:
    match known:
        case Complete(value=found):
            gaps, count = (), 0
        case Partial(found=found, gaps=gaps, gaps_count=count):
            pass
    metadata, sums = found.metadata, footprint(found.files(), found.references)
    return StorageView(
        name=str(metadata.name),
        uuid=metadata.table_id.uuid,
        metadata_location=metadata.metadata_location,
        current_snapshot_id=None if metadata.current_snapshot_id is None else str(metadata.current_snapshot_id),
        snapshots=len(metadata.snapshots),
        observed_at=at,
        complete=isinstance(known, Complete),
        gaps=gaps,
        gaps_count=count,
        total=total(sums),
        classes=sums.classes,
        refs=tuple(
            RefStorageView(
                share.ref.name, share.ref.kind.value, str(share.ref.snapshot_id), share.reachable, share.only_here
            )
            for share in sums.refs
        ),
        refs_left_out=found.references.other_refs,
        expiries=sums.expiries,
    )


def total(sums: Footprint) -> Amount:
    """All files."""
    return sum((share.live + share.by_refs + share.by_history for share in sums.classes), Amount())
