"""Whether a plan still follows from its table's policy, by a digest of the settings that it was made from.

What is read again whenever it counts is in no digest of a plan: the mode, the maintenance window, the breaker, and
where a task waits. Of these the newest values hold for every plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import fields
from typing import Final

from icewright.core import codec
from icewright.model.actions.actions import ActionKind, traits_of
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy

SETTINGS_DIGEST: Final = "settings_digest"
"""The figure of a task's reason with the digest of its plan."""

POLICY_CHANGED: Final = "policy-changed"
SETTINGS: Final = frozenset(field.name for field in fields(Policy)) - {"origins", "problems"}
QUEUE_SETTINGS: Final = frozenset(
    {"owner", "resource_group", "priority", "real_time", "real_time_interval_ms", "large_successes"}
)
"""Those that say where a task waits."""
READ_ANEW: Final = QUEUE_SETTINGS | {
    *("mode", "window_cron", "window_time_zone", "window_duration_ms"),
    *("breaker_conflicts", "breaker_failures", "parked_ms"),
    *("analysis_interval_ms", "analysis_drift"),
    *("accepts_recommendations", "accept_min_saved_bytes_ratio", "accept_min_saved_cpu_s_per_day"),
}
"""Those that no plan is made from: they are read whenever something is queued, claimed or looked at."""
_DIGITS: Final = 32


def settings_of(kind: str) -> frozenset[str]:
    """The fields of the policy that a plan of this kind is made from."""
    named = traits_of(ActionKind(kind)).settings
    return SETTINGS - READ_ANEW if named is None else named


def plan_digest(kind: str, policy: Policy) -> str:
    """The settings that a plan of this kind is made from, and the version of its action, as hexadecimal digits.

    So what a release before this one planned is not given out in the form of now.
    """
    return _digest(policy, settings_of(kind), traits_of(ActionKind(kind)).protocol_version)


def look_digest(policy: Policy) -> str:
    """All that the plan of a look, and where its task waits, follow from, as hexadecimal digits."""
    names = settings_of(ActionKind.REWRITE_DATA_FILES) | QUEUE_SETTINGS | {"mode", "problems"}
    return _digest(policy, names)


def policy_changed(kind: str, digest: object, policy: Policy) -> Reason | None:
    """Why a plan of this kind does not follow from the policy any more; None where it does.

    A plan without a digest, of before there were any, does not say by which settings it was made.
    """
    if digest is None:
        return Reason(POLICY_CHANGED, "an earlier release planned it") if settings_of(kind) else None
    if digest == plan_digest(kind, policy):
        return None
    return Reason(POLICY_CHANGED, "settings of the table's policy that it was planned by have changed since")


def _digest(policy: Policy, names: Iterable[str], version: int | None = None) -> str:
    values = codec.dumps([version, {name: getattr(policy, name) for name in sorted(names)}])
    return hashlib.sha256(values.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
