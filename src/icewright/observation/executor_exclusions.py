"""Tables whose files turned out not to be such as an executor needs: only their files tell, not their manifests.

An executor is the planner's choice, so that an attempt whose executor cannot do it fails, and the next plan uses
another one. Kept in the store: the report may reach one server, and the next plan be made by another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from icewright.core.clock import Clock
from icewright.core.errors import NotSorted, NotStitchable
from icewright.model.actions.actions import Action, Executor, RewriteDataFiles
from icewright.model.iceberg.layouts import Level
from icewright.model.iceberg.names import TableId
from icewright.model.work.jobs import GroupLeft
from icewright.ports.findings import EXCLUSION_KEPT_MS, ExecutorExclusion, Findings

NOT_STITCHABLE: Final = NotStitchable.code
"""Code of failed attempts that found files which cannot be put under one footer."""

NOT_MERGED: Final = frozenset({"unsupported-column", "unsupported-file"})
"""Codes of groups that a merge or a sort refused for what only the footers of their files tell, as INT96 in one."""

NOT_SORTED: Final = NotSorted.code
"""Code of failed attempts that found files which cannot be merged by their key."""

EXCLUSION_CODES: Final = frozenset({NOT_STITCHABLE, NOT_SORTED})
"""What is remembered."""

_MERGING: Final = (Executor.MERGE, Executor.SORT)


def has_another_executor(code: str, action: Action) -> bool:
    """Whether groups of an action that failed with this code are given to another executor by the next plan.

    Row groups that cannot be copied are merged, files that cannot be merged by their key are shuffled, and files that a
    merge refused are staged, or shuffled. A file that Level 0 was to keep in its order, for its deletes alone, has no
    other executor.
    """
    if not isinstance(action, RewriteDataFiles):
        return False
    if code in NOT_MERGED:
        return any(group.executor in _MERGING for group in action.groups)
    return code == NOT_STITCHABLE or (code == NOT_SORTED and action.level is not Level.LEVEL_0)


def files_not_merged(failed: Iterable[tuple[RewriteDataFiles, GroupLeft]]) -> Mapping[str, str]:
    """Why a merge refused files, by path; ``failed`` are groups that failed on their own, with their actions."""
    return {
        file.path: left.detail
        for action, left in failed
        for group in action.only({left.group_id}).groups
        if left.code in NOT_MERGED and group.executor in _MERGING
        for file in group.files
    }


class ExecutorExclusions:
    """What is known of tables."""

    def __init__(self, findings: Findings, clock: Clock) -> None:
        self._findings, self._clock = findings, clock

    def note(self, table_id: TableId, code: str, detail: str) -> None:
        """Take down what an executor found the files of a table to be, by one of :data:`EXCLUSION_CODES`."""
        self._findings.note_exclusion(table_id, code, ExecutorExclusion(self._clock.now(), detail))

    def why(self, table_id: TableId) -> Mapping[str, str]:
        """What was found lately, by code; nothing where nothing is known against the table's files."""
        return self.lately(self._findings.exclusions(table_id))

    def lately(self, found: Mapping[str, ExecutorExclusion]) -> Mapping[str, str]:
        """As :meth:`why`, of what was read already."""
        since = self._clock.now() - EXCLUSION_KEPT_MS
        return {code: one.detail for code, one in found.items() if one.found_at > since}
