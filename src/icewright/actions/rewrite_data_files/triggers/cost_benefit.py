"""The trigger ``cost-benefit``: small files are merged when readers save more than the rewrite costs.

Both in CPU milliseconds, for the k smallest files of a partition, n of them with S bytes that become m::

    gain/day = scans-per-day * (n - m) * (open-ms + plan-ms)
    cost     = (rewrite-ms + n * open-ms + S / read rate + S / write rate) * (1 + conflicts)
    fires iff gain/day * H > cost, for the k where gain/day * H - cost is largest

The shape is that of the gate benefit - cost of AutoComp (Gruenheid et al., SIGMOD 2025); merging keeps bytes, so what
scans save by reading less is left out, and each partition pays for a rewrite as if it were rewritten alone. H is how
long the outputs are of use: files that are full stay for the *horizon*; a last one that is still small is written again
when as much has come again, so it is of use for its bytes over the rate at which data comes into the table; but not
where one of the k files has more than half of the bytes, or it would be written again for each handful of newcomers.
The next write is not expected sooner than the last one is ago.

So while data comes fast, files gather until they fill one; where it comes slowly they are merged when that pays for the
time until they are merged again; and in a partition that has gone quiet they are merged once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Final

from icewright.actions.rewrite_data_files.triggers.trigger_result import Rule, Small, TriggerResult, nothing_to_merge
from icewright.core import wording
from icewright.core.times import Instant
from icewright.inventory import histogram
from icewright.model.iceberg.inventory import PartitionStatistics
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy

CONFLICT_SHARE: Final = 0.01
"""Of rewrites that come to nothing: what is tolerated with a busy writer."""

NOT_WORTH_IT: Final = "not-worth-it"
"""The reason of a partition whose small files cost readers less than merging them would."""

_DAY_MS: Final = 86_400_000
_SCANS_SAID_MAX: Final = 1e9


def cost_benefit(
    statistics: PartitionStatistics, policy: Policy, arrival_bytes_per_ms: float | None, now: Instant
) -> TriggerResult:
    """What the gate says of a partition. ``arrival_bytes_per_ms``: of the table, None where nobody can tell."""
    files, small = statistics.counts.data_files, Small.of(statistics, policy)
    nothing = nothing_to_merge(files, small, policy, 2)
    if nothing is not None:
        return TriggerResult(nothing)
    quiet_ms = policy.horizon_ms if statistics.written_at is None else max(0, now - statistics.written_at)
    bets = list(_bets(statistics, policy, arrival_bytes_per_ms, quiet_ms))
    best = max(bets, key=lambda bet: bet.gain_ms - bet.cost_ms)
    if best.gain_ms > best.cost_ms:
        rule = Rule(2, allow_dominated=True, bucket_max=best.bucket)
        return TriggerResult(Reason("worth-it", best.said(policy), best.figures(policy)), rule, files - best.fewer)
    nearest = max(bets, key=lambda bet: bet.gain_ms / bet.cost_ms)
    text = f"{nearest.said(policy)}; {_missing(nearest, policy)}"
    until = None if statistics.written_at is None else nearest.pays_at(statistics.written_at, now)
    if until is not None:
        text += f", or at {wording.instant(until)} if nothing is written"
    return TriggerResult(Reason(NOT_WORTH_IT, text, nearest.figures(policy)), until=until)


@dataclass(frozen=True, slots=True)
class _Bet:
    """What merging the smallest files, up to a bucket, brings and costs, in CPU milliseconds."""

    bucket: int
    files: int
    size_bytes: int
    fewer: int
    gain_per_ms: float
    """CPU milliseconds that readers save in each millisecond."""
    lasting: float
    """The share of the gain that is there for the whole horizon."""
    of_use_ms: float
    """How long the rest is."""
    horizon_ms: int
    cost_ms: float

    @property
    def gain_ms(self) -> float:
        return self.gain_per_ms * self.mean_use_ms

    @property
    def mean_use_ms(self) -> float:
        return self.lasting * self.horizon_ms + (1 - self.lasting) * self.of_use_ms

    def pays_at(self, written_at: Instant, now: Instant) -> Instant | None:
        """When it pays if nothing is written, None for never."""
        if self.gain_per_ms <= 0 or self.lasting >= 1:
            return None
        needed_ms = (self.cost_ms / self.gain_per_ms - self.lasting * self.horizon_ms) / (1 - self.lasting)
        return max(now, written_at + ceil(needed_ms)) + 1 if needed_ms < self.horizon_ms else None

    def said(self, policy: Policy) -> str:
        used = self.mean_use_ms / _DAY_MS
        return (
            f"merging {wording.count(self.files, 'small file')} ({wording.size(self.size_bytes)}) into "
            f"{self.files - self.fewer:,} saves {self.gain_ms / 1000:,.2f} CPU s ({policy.scans_per_day:g} scans a day "
            f"x {self.fewer:,} files x {policy.open_ms + policy.plan_ms:g} ms x {used:.3g} days) "
            f"and costs {self.cost_ms / 1000:,.2f}"
        )

    def figures(self, policy: Policy) -> dict[str, int | float | str]:
        return {
            "small_files": self.files,
            "small_bytes": self.size_bytes,
            "files_fewer": self.fewer,
            "scans_per_day": policy.scans_per_day,
            "days_of_use": round(self.mean_use_ms / _DAY_MS, 4),
            "gain_cpu_ms": round(self.gain_ms, 1),
            "cost_cpu_ms": round(self.cost_ms, 1),
        }


def _bets(
    statistics: PartitionStatistics, policy: Policy, arrival_bytes_per_ms: float | None, quiet_ms: int
) -> Iterator[_Bet]:
    edge, largest = histogram.bucket(policy.small_file_size_bytes), policy.output_size_bytes_max
    files = size_bytes = 0
    for bucket, (more_files, more_bytes) in sorted(statistics.counts.sizes.buckets.items()):
        files, size_bytes = files + more_files, size_bytes + more_bytes
        merged = max(1, ceil(size_bytes / largest))
        if bucket >= edge:
            return
        if merged >= files:
            continue
        rest_bytes = size_bytes % largest
        lasting = 1.0 if not size_bytes or rest_bytes >= policy.small_file_size_bytes else 1 - rest_bytes / size_bytes
        again_ms = policy.horizon_ms if not arrival_bytes_per_ms else rest_bytes / arrival_bytes_per_ms
        if (
            arrival_bytes_per_ms and 2 * more_bytes > size_bytes * more_files
        ):  # it would be merged with the next few small ones as well
            again_ms = 0
        saved_ms = (files - merged) * (policy.open_ms + policy.plan_ms)
        work_ms = policy.rewrite_ms + files * policy.open_ms
        work_ms += 1000 * size_bytes * (1 / policy.read_bytes_per_s + 1 / policy.write_bytes_per_s)
        yield _Bet(
            bucket=bucket,
            files=files,
            size_bytes=size_bytes,
            fewer=files - merged,
            gain_per_ms=policy.scans_per_day * saved_ms / _DAY_MS,
            lasting=lasting,
            of_use_ms=min(policy.horizon_ms, max(again_ms, quiet_ms)),
            horizon_ms=policy.horizon_ms,
            cost_ms=max(work_ms * (1 + CONFLICT_SHARE), 1e-9),
        )


def _missing(bet: _Bet, policy: Policy) -> str:
    scans = policy.scans_per_day * bet.cost_ms / bet.gain_ms if bet.gain_ms > 0 else float("inf")
    return f"it pays from {scans:,.0f} scans a day on" if scans < _SCANS_SAID_MAX else "it never pays"
