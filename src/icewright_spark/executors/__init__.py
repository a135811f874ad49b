"""The ways to rewrite groups of files: merge, stitch, sort, staged."""
