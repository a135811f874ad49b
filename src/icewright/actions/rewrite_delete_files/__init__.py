"""Rewrite or remove position and equality deletes."""
