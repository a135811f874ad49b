"""The only code that deletes files: in small batches, by what is true right before each, and so that it can be undone.

A run carries out one :class:`~.deletion.DeletePlan`. All its intents are in the store before the first
file is touched. Before each batch the table is read again and everything that it needs now is left alone, as is what is
not the table's alone by what all tables of all catalogs say, too young, or another file by now; a store that lost this
server to another one refuses the batch. Each step is recorded as begun before it is begun: what is found so after a
crash is looked for, and never repeated blindly. After each batch all tables are asked once more, and what one has come
to need is put back at once.

Nothing here runs by itself, and each call does one batch at most: whoever calls decides when, and may die at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from icewright.actions.remove_files.current_facts import FactsNow, Never, PlaceOf, partial_knowledge, with_checksummed
from icewright.actions.remove_files.may_delete import Facts, beyond_budget, is_needed, may_be_purged, why_kept, why_not
from icewright.actions.remove_files.quarantine_port import Quarantine
from icewright.catalogs.objects import Objects
from icewright.core import wording
from icewright.core.completeness import Gaps, Known, Partial
from icewright.core.errors import Conflict, NotAllowed, NotFound, OutcomeUnknown, Rejected, StoreTaken, Unavailable
from icewright.core.fault_points import Fault, fault
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.deletion import (
    Cause,
    Checked,
    DeletePlan,
    DeleteSettings,
    DeletionRun,
    Intent,
    IntentState,
    Needs,
    Step,
    intents_of,
    settled,
)
from icewright.model.iceberg.locations import Aliases, CanonicalPath, checksummed
from icewright.model.iceberg.names import TableName
from icewright.ownership.needed_files import NeedsOf
from icewright.ports.deletions import DeletionStore

BATCH_FILES: Final = 100
ASKED_FILES: Final = 10_000
"""Of how many files it is asked at once whether the table needs them; several batches share one reading."""
RESTING: Final = "resting"
"""Why a batch waits that came too soon after the one before."""
NEEDED_ELSEWHERE: Final = "needed-elsewhere"
"""Why a file came back that another table needs."""
OUTDATED: Final = "outdated"
"""Why a batch stopped that took longer than what was known before it can be believed."""
BATCH_MS_MAX: Final = 120_000
"""How old what is known may become while a batch goes on: a machine that was halted in between finds another world."""
_MINUTE_MS: Final = 60_000
_PLANNED: Final = frozenset({IntentState.PLANNED})
_UNKNOWN: Final = frozenset({IntentState.UNKNOWN})
_QUARANTINED: Final = frozenset({IntentState.QUARANTINED})
_BACK: Final = {
    Step.QUARANTINE: IntentState.PLANNED,
    Step.RESTORE: IntentState.QUARANTINED,
    Step.PURGE: IntentState.QUARANTINED,
}
"""What a file is whose step did not happen."""

OthersNeed = Callable[[TableName, Sequence[CanonicalPath]], Known[Mapping[CanonicalPath, TableName]]]
"""Which of these paths other tables need, and which table each; :class:`.needed_files.OtherTables` tells."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one call brought: the intents that it changed, as they are now.

    ``waits`` is why no more was done now. ``after`` is for the next call, None when there is nothing left. ``kept`` is
    why files stay in quarantine that are over their time, which keeps no others from anything.
    """

    changed: tuple[Intent, ...] = ()
    waits: Reason | None = None
    after: int | None = None
    is_done: bool = False
    kept: Reason | None = None

    def count(self, state: IntentState) -> int:
        """How many of them are in a state now."""
        return sum(intent.state is state for intent in self.changed)


class Deleter:
    """Carries out plans of the tables of one catalog, and takes them back. For one thread."""

    def __init__(
        self,
        store: DeletionStore,
        objects: Objects,
        quarantine: Quarantine,
        needs: NeedsOf,
        place: PlaceOf,
        others: OthersNeed,
        *,
        aliases: Aliases,
        settings: DeleteSettings | None = None,
        graces_since: Callable[[], Instant] = lambda: 0,
    ) -> None:
        """``graces_since`` tells when the clock jumped last: nothing is older than that."""
        self._store, self._objects, self._quarantine = store, objects, quarantine
        self._needs, self._others = needs, others
        self._facts = FactsNow(needs, place, objects, store.now, quarantine.roots, aliases, graces_since)
        self._settings = settings or DeleteSettings()
        self._epoch = store.epoch()

    def begin(self, plan: DeletePlan, run_id: str, *, fencing_token: int | None = None) -> DeletionRun:
        """Write down what a plan intends. Nothing is touched yet; doing it again changes nothing.

        Raises :class:`NotAllowed` for a plan beyond the budget that nobody approved, and where there is no quarantine;
        ``Unsupported`` for storages on which nothing is deleted yet; ``Conflict`` while another run of the table is
        open.
        """
        plan_hash = plan.plan_hash
        approval, reason = self._store.approval(plan_hash), beyond_budget(plan, self._settings)
        if reason is not None and approval is None:
            raise NotAllowed(f"plan {plan.plan_id}: {reason.text}", hint="look at its files, and approve the plan")
        for candidate in plan.candidates:
            self._quarantine.check(candidate.object.path)
        now = self._store.now()
        run = DeletionRun(
            run_id=run_id,
            plan_id=plan.plan_id,
            plan_hash=plan_hash,
            table_id=plan.table_id,
            table_name=plan.table_name,
            metadata_location=plan.metadata_location,
            cause=plan.cause,
            grace_ms=plan.grace_ms,
            table_bytes=plan.table_bytes,
            epoch=self._epoch,
            fencing_token=fencing_token,
            approved_by=None if approval is None else approval.approved_by,
            begun_at=now,
            next_at=now,
        )
        fault(Fault.DELETION_BEGIN_BEFORE)
        begun = self._store.begin(run, intents_of(plan, run_id, now))
        fault(Fault.DELETION_BEGIN_AFTER)
        return begun

    def advance(self, run_id: str, may_go_on: Callable[[], None] = lambda: None) -> Batch:
        """Quarantine the next files of a run, at most a batch of them.

        ``may_go_on`` is called right before the first file is touched; what it raises passes through. Raises
        ``Unavailable`` when store, catalog or storage do not answer before that; ``waits`` tells of it afterwards.
        """
        run = self._store.run(run_id)
        looked = self._settle(run_id)
        may_go = run.is_open and _in_doubt(looked) is None
        if may_go and (planned := self._store.intents(run_id, _PLANNED, limit=ASKED_FILES)):
            return self._advance(run, planned, looked, may_go_on)
        return self._ended(run, looked)

    def undo(self, run_id: str, after: int | None = None) -> Batch:
        """Put files of a run back, at most a batch; nothing more of it is quarantined.

        What cannot come back, since something is at its place now, stays in quarantine with the reason. What was purged
        is gone.
        """
        run = self._store.run(run_id)
        looked = self._settle(run_id)
        reason = Reason("undone", "the run was taken back before it came to this file")
        if run.is_open and (planned := self._store.intents(run_id, _PLANNED, limit=ASKED_FILES)):
            return Batch((*looked, *self._leave(planned, reason)), after=-1 if after is None else after)
        held = self._store.intents(run_id, _QUARANTINED, limit=BATCH_FILES, after=after)
        if not held:
            return self._ended(run, looked)
        done, waits = self._step(held, Step.RESTORE, None)
        return Batch((*looked, *done), waits, held[-1].number)

    def leave(self, run_id: str, reason: Reason) -> Batch:
        """Quarantine nothing more of a run, and let it end: whoever carried it out does not any more.

        What is in quarantine stays there, and is looked after as ever.
        """
        run = self._store.run(run_id)
        looked = self._settle(run_id)
        if run.is_open and (planned := self._store.intents(run_id, _PLANNED, limit=ASKED_FILES)):
            return Batch((*looked, *self._leave(planned, reason)))
        return self._ended(run, looked)

    def tend(self, run_id: str, after: int | None = None, *, name: TableName | None = None) -> Batch:
        """Look after what a run has in quarantine: put back what any table needs, purge what was there for long.

        At most a batch. ``name`` is what the table is called by now, None for as it was. Without complete knowledge of
        all tables, and once this one is gone, nothing is purged.
        """
        run = self._store.run(run_id)
        looked = self._settle(run_id)
        held = self._store.intents(run_id, _QUARANTINED, limit=ASKED_FILES, after=after)
        if not held:
            return Batch(looked, is_done=True)
        block, name = _block(held), name or run.table_name
        others = self._others(name, with_checksummed(intent.object.path for intent in block))
        facts, held = self._facts.now(run, block, name), block[:BATCH_FILES]
        back, waits = self._put_back(held, others, facts.needs if isinstance(facts, Facts) else None)
        if isinstance(others, Partial):
            waits = waits or partial_knowledge("what other tables need is not known in full", others.gaps)
        if not isinstance(facts, Facts):
            return Batch((*looked, *back), facts.reason if isinstance(facts, Never) else facts, held[-1].number)
        asked_back = {intent.number for intent in back}
        left = [one for one in held if one.number not in asked_back]
        old = [] if waits is not None else [one for one in left if self._may_be_purged(one, facts)]
        gone, late = self._step(old, Step.PURGE, facts)
        kept = why_kept(left, facts, self._settings)
        return Batch((*looked, *back, *gone), waits or late, held[-1].number, kept=kept)

    def _advance(
        self,
        run: DeletionRun,
        planned: Sequence[Intent],
        looked: Sequence[Intent],
        may_go_on: Callable[[], None],
    ) -> Batch:
        if self._store.now() < run.next_at:
            return Batch(tuple(looked), Reason(RESTING, "files are removed no faster than the settings allow"))
        facts = self._facts.fresh(run, _block(planned))
        if isinstance(facts, Never):
            return Batch((*looked, *self._leave(planned, facts.reason)))
        if isinstance(facts, Reason):
            return Batch(tuple(looked), facts)
        settings = self._settings
        if run.grace_ms is not None and run.cause is Cause.ORPHAN:
            settings = replace(settings, orphan_grace_ms=run.grace_ms)
        batch = [(intent, why_not(intent, run.cause, facts, settings)) for intent in _block(planned)[:BATCH_FILES]]
        left = [replace(intent, state=IntentState.SKIPPED, why=why) for intent, why in batch if why is not None]
        going = [intent for intent, why in batch if why is None]
        fault(Fault.DELETION_CHECKED)
        may_go_on()
        done, waits = self._step(going, Step.QUARANTINE, facts, left)
        pause_ms = len(going) * _MINUTE_MS // self._settings.pace
        self._store.rest(run.run_id, self._epoch, self._store.now() + pause_ms)
        return Batch((*looked, *done, *self._put_back_needed(run, done)), waits)

    def _may_be_purged(self, intent: Intent, facts: Facts) -> bool:
        return may_be_purged(intent, facts, self._settings)

    def _put_back_needed(self, run: DeletionRun, done: Sequence[Intent]) -> tuple[Intent, ...]:
        """Put back what a commit has come to need while it was moved; what cannot be told now is for :meth:`tend`."""
        moved = [intent for intent in done if intent.state is IntentState.QUARANTINED]
        if not moved:
            return ()
        paths = with_checksummed(intent.object.path for intent in moved)
        needs: Needs | None = None
        with suppress(NotFound, Unavailable):
            known = self._needs(run.table_name, paths)
            needs = known.found if isinstance(known, Partial) else known.value
        others: Known[Mapping[CanonicalPath, TableName]] = Gaps().judge({})
        with suppress(Unavailable):
            others = self._others(run.table_name, paths)
        back, _ = self._put_back(moved, others, needs)
        return tuple(back)

    def _put_back(
        self,
        held: Sequence[Intent],
        others: Known[Mapping[CanonicalPath, TableName]],
        needs: Needs | None,
    ) -> tuple[Sequence[Intent], Reason | None]:
        """Put back what the table needs, or another one, as far as that is known."""
        theirs = others.found if isinstance(others, Partial) else others.value
        back = []
        for one in held:
            path = one.object.path
            other = theirs.get(path) or theirs.get(checksummed(path) or path)
            if other is not None:
                back.append(replace(one, why=Reason(NEEDED_ELSEWHERE, f"table {wording.cut(str(other))} needs it")))
            elif needs is not None and is_needed(path, needs):
                back.append(replace(one, why=None))
        return self._step(back, Step.RESTORE, None)

    def _step(
        self, intents: Sequence[Intent], step: Step, facts: Facts | None, left: Sequence[Intent] = ()
    ) -> tuple[Sequence[Intent], Reason | None]:
        """Do one step with files, recorded before and after, and ``left`` beside. Tells why it stopped, if it did."""
        if not intents and not left:
            return (), None
        location = "" if facts is None else facts.needs.metadata_location
        checked = Checked(location, self._epoch, self._store.now())
        begun = [
            replace(one, state=IntentState.UNKNOWN, step=step, checked=checked, why=_because(one)) for one in intents
        ]
        fault(Fault.DELETION_STEP_BEFORE)
        written = self._store.change(self._epoch, [*begun, *left])
        fault(Fault.DELETION_STEP_BEGUN)
        results: list[Intent] = []
        waits: Reason | None = None
        for intent in written[: len(begun)]:
            waits = waits or self._outdated(checked, step)
            if waits is not None:  # nobody has touched it
                results.append(replace(intent, state=_BACK[step]))
                continue
            try:
                results.append(self._do(intent, step))
            except (Unavailable, OutcomeUnknown) as error:  # it stays unknown, and is looked for by the next call
                waits = Reason(error.code, error.message)
            fault(Fault.DELETION_FILE_DONE)
        return (*self._record(results, 0 if facts is None else facts.latest), *written[len(begun) :]), waits

    def _outdated(self, checked: Checked, step: Step) -> Reason | None:
        """Whether what was known before a batch is too old for its next file; putting back needs none of it.

        Raises :class:`StoreTaken` when another server looks after the files by now: it looks for those in between.
        """
        if self._store.epoch() != self._epoch:
            raise StoreTaken("another server leads now", hint="it continues what was begun")
        if step is Step.RESTORE or checked.checked_at <= self._store.now() <= checked.checked_at + BATCH_MS_MAX:
            return None
        return Reason(OUTDATED, "the batch took so long that what the table needs has to be looked at again")

    def _do(self, intent: Intent, step: Step) -> Intent:
        """One step with one file. Raises ``Unavailable`` and ``OutcomeUnknown`` when it may have happened."""
        run_id, expected = intent.run_id, intent.object
        try:
            match step, intent.held:
                case Step.QUARANTINE, _:
                    held = self._quarantine.quarantine(run_id, expected)
                    return replace(intent, state=IntentState.QUARANTINED, held=held)
                case Step.RESTORE, held if held is not None:
                    self._quarantine.restore(run_id, expected, held)
                    return replace(intent, state=IntentState.RESTORED)
                case Step.PURGE, held if held is not None:
                    self._quarantine.purge(run_id, expected, held)
                    return replace(intent, state=IntentState.PURGED)
                case _:
                    raise OutcomeUnknown(f"it is not known where {expected.path} was put")
        except (Conflict, Rejected) as error:
            if step is Step.QUARANTINE and isinstance(error, Conflict):
                self._require_not_held(intent)
            why = Reason("file-changed" if isinstance(error, Conflict) else error.code, error.message)
            state = IntentState.SKIPPED if step is Step.QUARANTINE else IntentState.QUARANTINED
            return replace(intent, state=state, why=why)

    def _require_not_held(self, intent: Intent) -> None:
        """Raises ``OutcomeUnknown`` where a file is in quarantine already: another server moved it."""
        if self._quarantine.look(intent.run_id, intent.object).held is not None:
            raise OutcomeUnknown(f"{intent.object.path} is in quarantine already, and this server has not moved it")

    def _record(self, results: Sequence[Intent], latest: Instant) -> Sequence[Intent]:
        """Write down how steps went. Files are in quarantine since the latest of the clocks says so."""
        if not results:
            return ()
        now = max(self._store.now(), latest)
        dated = [
            replace(one, held_at=now) if one.state is IntentState.QUARANTINED and one.held_at is None else one
            for one in results
        ]
        fault(Fault.DELETION_RECORD_BEFORE)
        recorded = self._store.change(self._epoch, dated)
        fault(Fault.DELETION_RECORD_AFTER)
        return recorded

    def _settle(self, run_id: str) -> tuple[Intent, ...]:
        """Look for files whose last step has no known outcome; those that stay unknown come last."""
        found = self._store.intents(run_id, _UNKNOWN, limit=ASKED_FILES)
        if not found:
            return ()
        looked = [settled(intent, self._quarantine.look(run_id, intent.object)) for intent in found]
        _, now = self._facts.clocks(one.object.path for one in looked if one.held is not None)
        dated = [replace(one, held_at=one.held_at or now) if one.held is not None else one for one in looked]
        fault(Fault.DELETION_SETTLE_BEFORE)
        recorded = self._store.change(self._epoch, dated)
        fault(Fault.DELETION_SETTLE_AFTER)
        return tuple(sorted(recorded, key=lambda intent: intent.state is IntentState.UNKNOWN))

    def _leave(self, planned: Sequence[Intent], reason: Reason) -> Sequence[Intent]:
        """Let files stay where they are, for good as far as this run goes."""
        left = [replace(intent, state=IntentState.SKIPPED, why=reason) for intent in planned]
        recorded = self._store.change(self._epoch, left)
        fault(Fault.DELETION_LEFT)
        return recorded

    def _ended(self, run: DeletionRun, looked: tuple[Intent, ...]) -> Batch:
        """Close a run of which nothing is left to be done, unless it is in doubt what became of its files."""
        waits = _in_doubt(looked)
        if run.is_open and waits is None:
            self._store.close(run.run_id, self._epoch)
            fault(Fault.DELETION_CLOSED)
        return Batch(looked, waits, is_done=waits is None)


def _because(intent: Intent) -> Reason | None:
    """Why another table's need brings a file back stays with it; what an earlier step came to does not."""
    return intent.why if intent.why is not None and intent.why.code == NEEDED_ELSEWHERE else None


def _in_doubt(looked: Sequence[Intent]) -> Reason | None:
    """Why there are files of which nobody knows what became of them."""
    if not looked or looked[-1].state is not IntentState.UNKNOWN:
        return None
    return looked[-1].why or Reason("not-found", "the outcome for a file is unknown")


def _block(intents: Sequence[Intent]) -> Sequence[Intent]:
    """The first intents whose paths are asked about together: the same ones for each batch of them.

    So the answer to the first batch serves the others as long as nothing is committed to the table.
    """
    number = intents[0].number // ASKED_FILES
    return [intent for intent in intents if intent.number // ASKED_FILES == number]
