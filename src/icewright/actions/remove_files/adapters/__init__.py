"""Quarantine on each kind of storage, and the journal of removals."""
