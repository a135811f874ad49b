"""The Spark ``CALL`` that comes nearest to an expiry, see :mod:`icewright.plans.procedure_call`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.iceberg.names import TableName
from icewright.plans.procedure_call import procedure_call

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def expire_call(name: TableName, action: ExpireSnapshots) -> str:
    """One SQL statement. Its instant has a zone: without one, Spark takes that of the session.

    The procedure also deletes files at once, which the action does not.
    """
    arguments = []
    if action.rule.older_than_ms <= action.as_of:
        oldest_at = _EPOCH + timedelta(milliseconds=action.as_of - action.rule.older_than_ms)
        arguments.append(f"older_than => TIMESTAMP '{oldest_at:%Y-%m-%d %H:%M:%S}.{oldest_at.microsecond // 1000:03}Z'")
    if action.rule.retain_last is not None:
        arguments.append(f"retain_last => {action.rule.retain_last}")
    return procedure_call(name, "expire_snapshots", *arguments)
