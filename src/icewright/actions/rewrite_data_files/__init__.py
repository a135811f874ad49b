"""Rewrite data files: merge, sort, apply deletes, move to the current partition spec."""
