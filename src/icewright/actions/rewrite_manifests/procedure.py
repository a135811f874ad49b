"""The Spark ``CALL`` that comes nearest to rewriting manifests, see :mod:`icewright.plans.procedure_call`."""

from __future__ import annotations

from icewright.model.actions.rewrite_manifests import RewriteManifests
from icewright.model.iceberg.tables import TableMetadata
from icewright.plans.procedure_call import procedure_call


def manifests_call(metadata: TableMetadata, action: RewriteManifests) -> str:
    """One SQL statement. The procedure takes one spec at a time: this is that of most entries.

    It also chooses the manifests itself, all of the spec's.
    """
    entries: dict[int, int] = {}
    for manifest in action.manifests:
        spec_id = manifest.belongs_to.spec_id
        entries[spec_id] = entries.get(spec_id, 0) + manifest.entries
    spec_id = max(sorted(entries), key=lambda each: entries[each])
    arguments = ["use_caching => false"]
    if spec_id != metadata.default_spec_id:
        arguments.append(f"spec_id => {spec_id}")
    return procedure_call(metadata.name, "rewrite_manifests", *arguments)
