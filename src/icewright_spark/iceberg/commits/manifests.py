"""The commit of rewritten manifests, through the one place that commits to Iceberg.

Iceberg looks at nothing but whether the manifests to be replaced are still in the current snapshot; that is enough, for
a manifest never changes. What else was committed meanwhile stays. As with every commit, nothing is deleted, whatever
comes of it (decision 0031).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from icewright.core.errors import Conflict
from icewright.model.actions.rewrite_manifests import ManifestContent, RewriteManifests
from icewright.model.work.jobs import Conflicted, TaskSpec
from icewright_spark.iceberg.commits.commit import CommitResult, several_tries, sign
from icewright_spark.iceberg.java_api import SparkTable

_MANIFEST: Final = "org.apache.iceberg.ManifestFile"
_REWRITE: Final = "org/apache/iceberg/RewriteManifests"
_ONE_MANIFEST: Final = f"(Lorg/apache/iceberg/ManifestFile;)L{_REWRITE};"

COPIED_UNTIL: Final = 1
"""The last format version in which Iceberg writes added manifests once more, to put its snapshot's id into them."""


def commit_manifests(
    table: SparkTable,
    spec: TaskSpec,
    action: RewriteManifests,
    written: Sequence[Any],
    *,
    proof: str,
    prove_copies: Callable[[Sequence[Any]], None],
    format_version: int,
    may_commit: Callable[[], None],
) -> CommitResult:
    """Replace the manifests of the action by those that were ``written``, Java's ``ManifestFile``s.

    ``format_version`` is the one that they were written for. In format version 1 Iceberg commits copies of them, which
    ``prove_copies`` is given before, and raises for what must not be committed. ``may_commit`` and the rest as in
    :func:`~.commit.commit_rewrite`. Raises :class:`Conflict` for a table that was upgraded meanwhile.
    """

    def prepare() -> Any:
        if table.format_version != format_version:
            raise Conflict(f"{spec.table_name} was upgraded to format version {table.format_version} meanwhile")
        found = SnapshotManifests(table)
        gone = found.missing(action)
        if gone:
            more = f" (and {len(gone) - 1} more)" if len(gone) > 1 else ""
            return Conflicted(f"another commit replaced {gone[0]}{more}")
        operation = _operation(table, spec, found.of(action), written, proof)
        if format_version <= COPIED_UNTIL:
            prove_copies(_added(table, operation))
        return operation

    return several_tries(table, spec, prepare, may_commit)


def _operation(table: SparkTable, spec: TaskSpec, replaced: Any, written: Sequence[Any], proof: str) -> Any:
    # Iceberg would delete manifests of a commit that was refused, and a catalog may refuse what it has done.
    operation, lists = table.java.rewriteManifests().deleteWith(table.deletes_nothing()), table.lists
    lists.do(replaced, lists.bound(_REWRITE, "deleteManifest", _ONE_MANIFEST, operation))
    for manifest in written:
        operation.addManifest(manifest)
    sign(operation, spec, proof)
    return operation


def _added(table: SparkTable, operation: Any) -> list[Any]:
    """The manifests that an operation would add, as they will be committed; not those of a commit just before it."""
    snapshot = operation.apply()
    after, own = SnapshotManifests(table, snapshot), snapshot.snapshotId()
    return [after.java.get(place) for place, added in enumerate(after.added) if added == own]


class SnapshotManifests:
    """The manifests of a snapshot, the current one by default, as Java's, and where each is among them."""

    def __init__(self, table: SparkTable, snapshot: Any = None) -> None:
        """Raises :class:`Conflict` for a table without a snapshot, or a manifest that is listed twice."""
        snapshot = snapshot or table.java.currentSnapshot()
        if snapshot is None:
            raise Conflict("the table has no snapshot any more")
        lists = self._lists = table.lists
        self.java = snapshot.allManifests(table.java.io())
        paths = lists.values(lists.each(self.java, lists.method(_MANIFEST, "path", "()Ljava/lang/String;")))
        lengths = lists.values(lists.each(self.java, lists.method(_MANIFEST, "length", "()J")))
        self.added = lists.values(lists.each(self.java, lists.method(_MANIFEST, "snapshotId", "()Ljava/lang/Long;")))
        self.places = {path: place for place, path in enumerate(paths)}
        if len(self.places) < len(paths):
            raise Conflict("a manifest is listed twice in the current snapshot")
        self._known = set(zip(paths, lengths, self.added, strict=True))

    def missing(self, action: RewriteManifests) -> list[str]:
        """The paths of those manifests of an action that are not there, or are other ones by now."""
        manifests = action.manifests
        wanted = {each.path: (each.path, each.size_bytes, each.added_snapshot_id) for each in manifests}
        return [path for path, its in wanted.items() if its not in self._known]

    def without_row_ids(self, action: RewriteManifests) -> list[str]:
        """The paths of those data manifests of an action, none of which is missing, whose rows have no ids yet."""
        first = self._lists.each(self.of(action), self._lists.method(_MANIFEST, "firstRowId", "()Ljava/lang/Long;"))
        said = zip(action.manifests, self._lists.values(first), strict=True)
        return [one.path for one, row_id in said if row_id is None and one.belongs_to.content is ManifestContent.DATA]

    def of(self, action: RewriteManifests) -> Any:
        """The Java list of the manifests of an action, none of which is missing, in its order."""
        return self._lists.picked(self.java, [self.places[each.path] for each in action.manifests])
