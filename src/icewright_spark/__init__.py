"""The Spark side of icewright: jobs that touch table data, and the resident optimizer that runs them.

``icewright_spark.report_commit`` is for jobs of others; it is loaded when it is asked for, so that workers need not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icewright_spark.reports.report import report_commit

__all__ = ["report_commit"]


def __getattr__(name: str) -> Any:
    if name == "report_commit":
        from icewright_spark.reports.report import report_commit  # noqa: PLC0415 - see above

        return report_commit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
