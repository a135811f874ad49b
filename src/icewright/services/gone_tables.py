"""Stands in for a table that is gone, so that a person can have its files purged by the same Deleter, step by step.

What a table needs is read from its metadata right before each file goes. Of one that is gone nothing can be read, so
nothing of it ever goes by itself. A person may say that nobody will want it back. Even then it is asked right before
each batch whether it is there after all, and whether any table of any catalog has its uuid, or a place or files where
its files were; as long as not all tables are known, nothing goes. What nobody here can see is a catalog that is not
configured: for that stands the person's word.
"""

from __future__ import annotations

from collections.abc import Iterable

from icewright.domain.deletion import DeletionRun, Needs
from icewright.domain.errors import NotAllowed, NotFound
from icewright.domain.knowledge import Gap, Gaps, Known, Partial
from icewright.domain.locations import CanonicalPath
from icewright.domain.names import TableName
from icewright.domain.ownership import Place
from icewright.domain.reasons import Reason
from icewright.planning.claims import topmost
from icewright.services.needs import NeedsOf, UsersNow


class GoneTables:
    """What a Deleter asks, answered for the table of one run at a time. For one thread."""

    def __init__(self, needs: NeedsOf, users_now: UsersNow) -> None:
        self._needs, self._users_now = needs, users_now
        self._run: DeletionRun | None = None
        self._folders: tuple[str, ...] = ()

    def turn_to(self, run: DeletionRun, paths: Iterable[CanonicalPath]) -> None:
        """From now on it is about the table of this run, and files at these paths."""
        self._run = run
        self._folders = topmost({f"{path.rpartition('/')[0]}/" for path in paths})

    def place(self, name: TableName) -> Known[Place]:
        """The folders that the files were in; who else may be there is asked with :meth:`needs`."""
        uuid = self._present().table_id.uuid.strip().lower()
        return Gaps().judge(Place(name, uuid, self._folders, ()))

    def needs(self, name: TableName, paths: Iterable[CanonicalPath]) -> Known[Needs]:
        """That nothing is needed; partial as long as anybody may need it.

        Raises :class:`NotAllowed` where the table is there, and ``Unavailable`` where that cannot be told.
        """
        run = self._present()
        asked = frozenset(paths)
        for each in {name, run.table_name}:
            self._require_gone(each, run, asked)
        known, gaps = self._users_now(run.table_id.uuid, self._folders), Gaps()
        if isinstance(known, Partial):
            for gap in known.gaps:
                gaps.add(gap)
        for user in sorted(known.found if isinstance(known, Partial) else known.value):
            gaps.add(
                Gap(str(user), Reason("in-use", "it has the table's uuid, or a place or files where its files were"))
            )
        return gaps.judge(Needs(run.table_id, run.metadata_location, True, 0, asked, frozenset()))

    def _require_gone(self, name: TableName, run: DeletionRun, asked: frozenset[CanonicalPath]) -> None:
        try:
            known = self._needs(name, asked)
        except NotFound:
            return
        there = (known.found if isinstance(known, Partial) else known.value).table_id
        if there == run.table_id:
            raise NotAllowed(
                f"{name} is there: what it needs is read before anything of it is purged",
                hint=f"icewright quarantine purge {run.run_id}",
            )

    def _present(self) -> DeletionRun:
        if self._run is None:
            raise NotAllowed("nobody has said which table is gone")
        return self._run
