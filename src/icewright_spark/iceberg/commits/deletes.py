"""The commit of work on delete files, through the one place that commits to Iceberg.

Of a commit that removes or replaces delete files alone, Iceberg validates nothing but that they are still there. That
is too little: a rollback, or a rewrite that keeps sequence numbers, can make a delete file needed again that was not.
So what is committed is checked by us against one snapshot, and Iceberg refuses the commit when the table is at another
one by then, whoever came first and however it retries (``validateWith``; decision 0035). Then it is checked again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from icewright.core.errors import Conflict
from icewright.model.work.jobs import TaskSpec
from icewright_spark.iceberg.commits.commit import CommitResult, several_tries, sign
from icewright_spark.iceberg.java_api import SparkTable


def commit_deletes(
    table: SparkTable,
    spec: TaskSpec,
    *,
    fill: Callable[[Any], str],
    format_version: int,
    may_commit: Callable[[], None],
    pause: Callable[[float], None] = time.sleep,
) -> CommitResult:
    """Commit what ``fill`` puts into a Java ``RewriteFiles``, right after the snapshot that it was checked against.

    ``fill`` is called before each try, with the table as it is then: it checks that against everything which the
    commit rests on, fills the operation, and gives the proof. It raises :class:`Conflict` for what does not hold any
    more. ``may_commit`` and the rest as in :func:`~icewright_spark.iceberg.commits.commit.commit_rewrite`.
    """

    def prepare() -> Any:
        if table.format_version != format_version:
            raise Conflict(f"{spec.table_name} was upgraded to format version {table.format_version} meanwhile")
        if table.java.currentSnapshot() is None:
            raise Conflict(f"{spec.table_name} has no snapshot any more")
        # Iceberg would delete the manifests of a commit that was refused, and a catalog may refuse what it has done.
        operation = table.java.newRewrite().deleteWith(table.deletes_nothing())
        operation = operation.validateWith(table.is_still_current())
        sign(operation, spec, fill(operation))
        return operation

    return several_tries(table, spec, prepare, may_commit, pause, checks_all=True)
