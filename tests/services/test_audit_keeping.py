"""The server forgets what is old of the audit, and the rest still verifies."""

from icewright.adapters.memory.audit import MemoryAudit
from icewright.adapters.memory.clock import ManualClock
from icewright.domain.audit import Act, verify
from icewright.services.audit_keeping import KeptAudit


def test_t12_old_entries_are_forgotten_a_batch_at_a_time() -> None:
    clock = ManualClock()
    log = MemoryAudit(clock)
    for _ in range(5_010):
        log.append(Act("a", "x"))
    clock.advance(1_000)
    log.append(Act("b", "x"))
    kept = KeptAudit(log, 1_000)
    assert not kept.prune(clock.now())
    assert kept.prune(clock.now() + 1)
    assert not kept.prune(clock.now() + 1)
    entries = log.entries(limit=100, after=0)
    assert [entry.action for entry in entries] == ["b", "audit.pruned", "audit.pruned"]
    assert verify(entries, log.start()).broken_at is None
