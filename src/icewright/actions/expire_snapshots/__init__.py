"""Expire snapshots by their owner's rule."""
