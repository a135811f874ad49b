"""Planning the removal of orphan files: look for them, say what may go, keep the plan.

A pass takes as long as the listing of the table's place: minutes for a large one. So nothing here is done while
anything else of the table waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from icewright.actions.remove_files.orphans.gone_tables import GoneUuids
from icewright.actions.remove_files.orphans.rules import WORDS, Kept
from icewright.actions.remove_files.orphans.service import (
    PLACE_UNKNOWN,
    OrphanFinder,
    OrphanPass,
    OrphansFound,
    OrphansRefused,
)
from icewright.catalogs.port import Catalog
from icewright.core import wording
from icewright.core.clock import Clock, Ids
from icewright.core.errors import InvalidMessage, TableReplaced, Unavailable, Unsupported
from icewright.core.times import Instant
from icewright.model.actions.remove_files import (
    OrphanFile,
    OrphanPolicy,
    RemoveOrphanFiles,
    RemoveOrphanFilesPrediction,
    RemoveOrphanFilesRequest,
)
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Policy
from icewright.model.policy.setting_values import duration_ms
from icewright.ownership.registry import Registry
from icewright.plans.repository import keep_plan
from icewright.plans.standalone_plan import Decided, build_standalone_plan
from icewright.ports.store import TableStore

ASKED_MAX: Final = 4
"""Passes at once that people asked for: each has a thread of the API's, and lists a table into temporary files."""
_GAPS_SAID_MAX: Final = 5
_JUMPED: Final = "the clock jumped: all files count as seen first then"
_HINT: Final = "an age is a duration: P7D or PT96H; less than 3 days counts as 3 days"


class OrphanPlanner:
    """Makes plans of the removal of orphan files, and keeps them in the store."""

    def __init__(
        self,
        finders: Mapping[str, OrphanFinder],
        catalogs: Mapping[str, Catalog],
        registry: Registry,
        tables: TableStore,
        clock: Clock,
        ids: Ids,
        policy: Callable[[TableMetadata], Policy],
    ) -> None:
        """``finders`` are by the names of their catalogs; without one, nothing is looked for in a catalog."""
        self._finders, self._catalogs, self._registry = dict(finders), dict(catalogs), registry
        self._tables, self._clock, self._ids, self._policy = tables, clock, ids, policy
        self._room = threading.BoundedSemaphore(ASKED_MAX)

    def plan(
        self, name: TableName, asked: RemoveOrphanFilesRequest | None = None, table_id: TableId | None = None
    ) -> Plan:
        """Look for orphan files now, and plan what may go; what was asked for is never queued by itself.

        Raises ``Unsupported`` where there is no finder, ``InvalidMessage`` for an age that is none, ``TableReplaced``
        where the name leads to another table than ``table_id`` by now, ``Unavailable`` while others have asked for as
        many as may go on at once, and what :meth:`OrphanFinder.look` raises.
        """
        if asked is None:
            return self._plan(name, None, table_id)
        if not self._room.acquire(blocking=False):
            raise Unavailable(f"{ASKED_MAX} searches for orphan files are under way already; ask again later")
        try:
            return self._plan(name, asked, table_id)
        finally:
            self._room.release()

    def _plan(self, name: TableName, asked: RemoveOrphanFilesRequest | None, table_id: TableId | None) -> Plan:
        finder = self._finders.get(name.catalog)
        if finder is None:
            raise Unsupported(f"files of catalog {name.catalog!r} cannot be listed here")
        asked_ms = _age_ms(asked)
        metadata = self._catalogs[name.catalog].load(name)
        if table_id is not None and metadata.table_id != table_id:
            raise TableReplaced(f"{name} is another table now (uuid {metadata.table_id.uuid})")
        policy = self._policy(metadata)
        age_ms = policy.orphan_age_ms if asked_ms is None else asked_ms
        found = finder.look(name, GoneUuids(self._registry).place_now, OrphanPolicy(age_min_ms=age_ms))
        return self._kept(metadata, policy, found, asked=asked is not None)

    def _kept(self, metadata: TableMetadata, policy: Policy, found: OrphanPass, *, asked: bool) -> Plan:
        """The plan of a pass, in the store; what is planned for the table's files stands beside it."""
        decided: Decided[RemoveOrphanFiles, RemoveOrphanFilesPrediction] = Decided(_reason(found), notes=_rules(found))
        if isinstance(found, OrphansFound):
            metadata, decided = found.table, replace(decided, action=found.action, prediction=found.prediction)
        plan = build_standalone_plan(self._ids.new("plan"), metadata, policy, decided, self._clock.now(), asked=asked)
        return keep_plan(self._tables, plan)

    def parted(self, plan: Plan) -> tuple[Plan | None, Plan]:
        """A plan with files in doubt as two, both kept: the files without doubt, if there are any, and the others."""
        (action,) = plan.actions
        if not isinstance(action, RemoveOrphanFiles):
            raise TypeError(f"plan {plan.plan_id} removes no orphan files")
        sure = self._part(plan, action, tuple(file for file in action.files if file.doubt is None))
        rest = self._part(plan, action, tuple(file for file in action.files if file.doubt is not None))
        return sure, rest or plan

    def _part(self, plan: Plan, action: RemoveOrphanFiles, files: tuple[OrphanFile, ...]) -> Plan | None:
        if not files:
            return None
        size_bytes = sum(file.size_bytes for file in files)
        part = replace(action, files=files, orphan_files=len(files), orphan_bytes=size_bytes)
        prediction = plan.prediction
        if isinstance(prediction, RemoveOrphanFilesPrediction):
            prediction = replace(
                prediction, files=len(files), size_bytes=size_bytes, needs_approval=part.needs_approval
            )
        made = replace(
            plan,
            plan_id=self._ids.new("plan"),
            actions=(part,),
            reason=_removes(part),
            prediction=prediction,
        )
        return keep_plan(self._tables, made)


def _age_ms(asked: RemoveOrphanFilesRequest | None) -> int | None:
    if asked is None or asked.older_than is None:
        return None
    try:
        return duration_ms(asked.older_than)
    except ValueError as error:
        raise InvalidMessage(f"{wording.quoted(asked.older_than)} is no duration", hint=_HINT) from error


def _reason(found: OrphanPass) -> Reason:
    match found:
        case OrphansRefused(reason=reason) if reason.code == PLACE_UNKNOWN:  # what is in the way comes first
            return Reason(reason.code, f"{reason.text}; until it is, no file is an orphan", reason.figures)
        case OrphansRefused(reason=reason):
            return Reason(reason.code, f"no file is known to be an orphan: {reason.text}")
        case OrphansFound(action=None):
            seen = found.finished.files
            told = f"{wording.count(seen, 'file')} that nothing needs {'was' if seen == 1 else 'were'} seen"
            figures = {"seen_files": seen, "seen_bytes": found.finished.size_bytes, "pass": found.finished.number}
            return Reason("no-orphans", f"no file may be removed yet: {told} in pass {found.finished.number}", figures)
        case OrphansFound(action=action) if action is not None:
            return _removes(action)
    raise TypeError(f"no pass: {found!r}")


def _removes(action: RemoveOrphanFiles) -> Reason:
    text = f"nothing needs {wording.count(len(action.files), 'file')} ({wording.size(action.size_bytes)})"
    text += f", for {wording.duration(action.age_min_ms)} at least"
    if action.gone:
        text += f"; table {', '.join(action.gone)} lay here before, and was declared gone"
    return Reason("remove-orphan-files", text, {"files": len(action.files), "bytes": action.size_bytes})


def _still_tells(found: OrphansFound) -> Instant:
    """When the clock jumped, as long as that keeps files; else 0."""
    return found.graces_since if found.finished.finished_at - found.graces_since < found.age_min_ms else 0


def _rules(found: OrphanPass) -> tuple[Reason, ...]:
    """What stays and why, and what was not known."""
    kept = () if isinstance(found, OrphansRefused) else found.kept.items()
    since = 0 if isinstance(found, OrphansRefused) else _still_tells(found)
    gaps = found.gaps if isinstance(found, OrphansRefused) else found.listing_gaps
    jumped = (Reason("clock-jumped", _JUMPED, {"at": since}),) if since else ()
    unheld = None if isinstance(found, OrphansRefused) else found.unheld
    return (
        *(() if unheld is None else (unheld,)),
        *jumped,
        *(Reason(code, f"{wording.count(n, 'file')} stay: {WORDS[Kept(code)]}", {"files": n}) for code, n in kept),
        *(Reason(gap.reason.code, f"{wording.cut(gap.what)}: {gap.reason.text}") for gap in gaps[:_GAPS_SAID_MAX]),
    )
